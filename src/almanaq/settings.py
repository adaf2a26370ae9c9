"""Settings from the environment, from `almanaq.toml` in the working directory, and from the user's own; flags go first.

The file of a folder may come from anybody. What it says of models, addresses, keys and caches counts only once the user
has allowed it (`almanaq trust`): else a folder could have documents, and a key of the environment, sent to whomever it
names. The user's own file, `~/.config/almanaq/almanaq.toml`, may say all. What was allowed is remembered by the file's
place and a hash of its content, so that a file that changes is asked about again.

Imported only by commands that need settings: pydantic is too slow to be paid for by `import almanaq`.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from almanaq.display import visible
from almanaq.errors import UsageError, suggest
from almanaq.models.http import HIDDEN, redact_address, redact_keys
from almanaq.options import OPTIONS, pydantic_fields

FILE = Path("almanaq.toml")

_HARMLESS = ("timeout",)
"""Settings that are no options, and that any file may set."""
_TRUSTED = "trusted.json"
"""Lists the hashes of the files that the user has allowed, by their places."""
_LONGEST_FILE = 2**20
_SHOWN = 200
_SECRET = ("openai_api_key", "openai_base_url")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file of settings as it was read; `content` is what was read, so that what is allowed is what is used."""

    path: Path
    content: bytes = field(repr=False)
    values: Mapping[str, Any] = field(repr=False)


class Settings(create_model("OptionSettings", __base__=BaseModel, **pydantic_fields("setting"))):  # type: ignore[misc]
    """Every setting, with its default: the options that may be settings, and what only the models' layer reads.

    In the environment a name is written `ALMANAQ_MODEL`, in `almanaq.toml` `model`. The two settings of
    OpenAI-compatible servers keep the names that other tools know: `OPENAI_BASE_URL`, `OPENAI_API_KEY`. Files are read
    by `read_settings` alone.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, protected_namespaces=())

    model: str = "auto"
    """The one option whose default is another on the command line: there a model is looked for."""
    cache_dir: str | None = None
    openai_base_url: str | None = Field(None, repr=False)
    openai_api_key: str | None = Field(None, repr=False)
    aliases: dict[str, str] = Field(default_factory=dict)
    local_servers: str | None = None
    timeout: float | None = Field(None, gt=0, allow_inf_nan=False)

    def export(self) -> None:
        """Set the environment variables that the model layer reads, for settings that came from a file."""
        for variable, value in (
            ("OPENAI_BASE_URL", self.openai_base_url),
            ("OPENAI_API_KEY", self.openai_api_key),
            ("ALMANAQ_CACHE_DIR", self.cache_dir),
            ("ALMANAQ_LOCAL_SERVERS", self.local_servers),
            ("ALMANAQ_TIMEOUT", None if self.timeout is None else str(self.timeout)),
        ):
            if value is not None:
                os.environ[variable] = value

    def options(self) -> dict[str, Any]:
        """Return the options that are set, as arguments of `connect`; the model's name is that behind an alias."""
        found = {name: getattr(self, name) for name, option in OPTIONS.items() if option.is_set_by("setting")}
        return {name: value for name, value in found.items() if value is not None} | {"model": self.resolve_model()}

    def resolve_model(self) -> str:
        return self.aliases.get(self.model, self.model)


def read_settings(**flags: Any) -> Settings:
    """Return the settings in force; `flags` that are None are left out."""
    folder, own = read_file(FILE), read_file(config_folder() / FILE.name)
    files = [file for file in (folder, own) if file is not None]
    settings = _make_settings(flags, files)
    if folder is not None:
        bare = _make_settings(flags, [])
        reaching = {n: v for n, v in find_reaching(folder.values).items() if n not in bare.model_fields_set}
        if reaching and not is_trusted(folder.path, folder.content):
            _ask_user(folder, reaching)
    for name in settings.aliases:
        if ":" in name or name in ("auto", "local"):
            raise UsageError(f"{_file_of('aliases', files)}: aliases: {name!r} is the name of a model; choose another")
    return settings


def read_file(path: Path) -> SettingsFile | None:
    """Return a file of settings, None where there is none; raises UsageError for one that cannot be read."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LONGEST_FILE:
            raise UsageError(
                f"{path}: not a settings file: it must be a regular file of at most {_LONGEST_FILE:,} bytes"
            )
        content = path.read_bytes()
        return SettingsFile(path, content, tomllib.loads(content.decode()))
    except FileNotFoundError:
        return None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


def find_reaching(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a file that say where documents, keys or replies go, or that raise what may be spent."""
    harmless = {name: OPTIONS[name].is_harmless(value) for name, value in values.items() if name in OPTIONS}
    # A setting is not harmless until somebody has said so.
    return {name: value for name, value in values.items() if not harmless.get(name, name in _HARMLESS)}


def show_setting(name: str, value: object) -> str:
    """Return a setting as a line of a file, without a key in it."""
    text = HIDDEN if name == "openai_api_key" else redact_address(str(value)) if name in _SECRET else str(value)
    return f"{name} = {json.dumps(redact_keys(text[:_SHOWN]), ensure_ascii=False)}"


def _ask_user(file: SettingsFile, reaching: Mapping[str, Any]) -> None:
    listed = ", ".join(show_setting(name, value) for name, value in reaching.items())
    place = file.path.resolve()
    if sys.stdin.isatty() and sys.stderr.isatty():
        question = f"{place} says where documents and keys go: {listed}. Allow this version of the file?"
        print(f"{visible(question)} [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            trust(file.path, file.content)
            return
    raise UsageError(
        f"{place} may not say where documents and keys go until you allow it: {listed}. Read it, then run `almanaq"
        f" trust`; or give flags or set the environment; or write it into {config_folder() / FILE.name}"
    )


def _make_settings(flags: Mapping[str, Any], files: Sequence[SettingsFile]) -> Settings:
    """Return the settings of flags, the environment and files, which go before one another in this order."""
    environment = {name.lower(): value for name, value in os.environ.items() if value}
    named = {name: environment.get(name if name in _SECRET else f"almanaq_{name}") for name in Settings.model_fields}
    given: dict[str, Any] = {}
    for values in (*(file.values for file in reversed(files)), named, flags):
        for key, value in values.items():
            name = key.lower() if key.lower() in _SECRET else key
            if name == "aliases" and isinstance(value, str):
                with suppress(ValueError):  # a text that is no JSON is refused below
                    value = json.loads(value)
            if isinstance(value, dict) and isinstance(given.get(name), dict):
                value = given[name] | value
            if value is not None:
                given[name] = value
    try:
        return Settings(**given)
    except ValidationError as error:
        raise UsageError("; ".join(_explain_fault(detail, flags, files) for detail in error.errors())) from None


def _explain_fault(detail: Any, flags: Mapping[str, Any], files: Sequence[SettingsFile]) -> str:
    """Say in one clause which setting is wrong, where it was set, and what it may be."""
    name = str(detail["loc"][0]).lower() if detail["loc"] else "settings"
    if detail["type"] == "extra_forbidden":
        return f"{_file_of(name, files)}: unknown setting {name!r}{suggest(name, Settings.model_fields)}"
    message = detail["msg"][0].lower() + detail["msg"][1:]
    # The value may be a key that was meant for another setting.
    value = "" if name in _SECRET else f", not {redact_keys(repr(detail['input']))}"
    return f"{_name_origin(name, flags, files)}: {message}{value}"


def _name_origin(name: str, flags: Mapping[str, Any], files: Sequence[SettingsFile]) -> str:
    """Name the place whose value was taken for a setting, in the order of precedence."""
    if flags.get(name) is not None:
        return "--" + name.replace("_", "-")
    for variable in (f"ALMANAQ_{name.upper()}", name.upper()):
        if os.environ.get(variable):
            return variable
    return f"{_file_of(name, files)}: {name}"


def _file_of(name: str, files: Sequence[SettingsFile]) -> Path:
    return next((file.path for file in files if name in {key.lower() for key in file.values}), FILE)


def config_folder() -> Path:
    """Return the folder of the user's own settings: almanaq in XDG_CONFIG_HOME, else in ~/.config."""
    named = os.environ.get("XDG_CONFIG_HOME")
    return (Path(named) if named else Path.home() / ".config") / "almanaq"


def is_trusted(file: Path, content: bytes) -> bool:
    return _read_trusted().get(str(file.resolve())) == hashlib.sha256(content).hexdigest()


def trust(file: Path, content: bytes) -> None:
    """Remember that the user allows a file as it is."""
    _write_trusted({**_read_trusted(), str(file.resolve()): hashlib.sha256(content).hexdigest()})


def distrust(file: Path) -> bool:
    """Forget that a file was allowed; say whether it was."""
    known = _read_trusted()
    if known.pop(str(file.resolve()), None) is None:
        return False
    _write_trusted(known)
    return True


def _read_trusted() -> dict[str, str]:
    try:
        record = json.loads((config_folder() / _TRUSTED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # what cannot be read allows nothing
    return record if isinstance(record, dict) else {}


def _write_trusted(known: dict[str, str]) -> None:
    file = config_folder() / _TRUSTED
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        raise UsageError(
            f"cannot remember it in {file}: {error.strerror}; free some space, or repair the folder"
        ) from error
