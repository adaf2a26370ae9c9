"""Files of settings that lie in a folder, allowed by the user to say where documents and keys go.

A folder may come from anybody, and so may the `almanaq.toml` in it. What the user has allowed is remembered by the
file's place and a hash of its content, in the user's own folder of settings: a file that changes is asked about again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

from almanaq.errors import UsageError
from almanaq.visible import visible


def config_folder() -> Path:
    """Return the folder of the user's own settings: almanaq in XDG_CONFIG_HOME, else in ~/.config."""
    named = os.environ.get("XDG_CONFIG_HOME")
    return (Path(named) if named else Path.home() / ".config") / "almanaq"


def is_trusted(file: Path, content: bytes) -> bool:
    """Return whether the user has allowed a file as it is."""
    return _remembered().get(_place(file)) == _hash(content)


def trust(file: Path, content: bytes) -> None:
    """Remember that the user allows a file as it is. Raises UsageError where that cannot be written down."""
    _write({**_remembered(), _place(file): _hash(content)})


def distrust(file: Path) -> bool:
    """Forget that a file was allowed; say whether it was. Raises UsageError where that cannot be written down."""
    known = _remembered()
    if known.pop(_place(file), None) is None:
        return False
    _write(known)
    return True


def allowed_on_terminal(question: str) -> bool:
    """Ask a person, where one sits at the terminal; False where nobody does, or says no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"{visible(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _file() -> Path:
    return config_folder() / "trusted.json"


def _place(file: Path) -> str:
    return str(file.resolve())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _remembered() -> dict[str, str]:
    """Return the hashes of the allowed files by place; none where the list cannot be read."""
    try:
        record = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _write(known: dict[str, str]) -> None:
    file = _file()
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        raise UsageError(f"cannot remember it in {file}: {error.strerror}; make room, or mend the folder") from error
