"""Settings from the environment and from `almanaq.toml` in the working directory; flags go before both.

Imported only by commands that need settings: pydantic is too slow to be paid for by `import almanaq`.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from almanaq.errors import UsageError, suggest

FILE = Path("almanaq.toml")


class Settings(BaseSettings):
    """Every setting, with its default.

    In the environment a name is written `ALMANAQ_MODEL`, in `almanaq.toml` `model`. The two settings of
    OpenAI-compatible servers keep the names that other tools know: `OPENAI_BASE_URL`, `OPENAI_API_KEY`.
    """

    model_config = SettingsConfigDict(
        env_prefix="ALMANAQ_",
        env_ignore_empty=True,
        extra="forbid",
        populate_by_name=True,
        toml_file=FILE,
        protected_namespaces=(),
    )

    model: str = "local"
    embedder: str | None = None
    cache_dir: str | None = None
    openai_base_url: str | None = Field(None, validation_alias=AliasChoices("openai_base_url", "OPENAI_BASE_URL"))
    openai_api_key: str | None = Field(
        None, validation_alias=AliasChoices("openai_api_key", "OPENAI_API_KEY"), repr=False
    )
    max_calls: int | None = Field(None, ge=0)
    speculation: float = Field(2.0, ge=1, allow_inf_nan=False)
    order: Literal["similarity", "table"] = "similarity"
    strict: bool = False
    deadline: float | None = Field(None, gt=0, allow_inf_nan=False)
    concurrency: int = Field(64, ge=1)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Put flags before the environment, and that before the file; no other place is read."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    def export(self) -> None:
        """Set the environment variables that the model layer reads, for settings that came from the file."""
        for variable, value in (
            ("OPENAI_BASE_URL", self.openai_base_url),
            ("OPENAI_API_KEY", self.openai_api_key),
            ("ALMANAQ_CACHE_DIR", self.cache_dir),
        ):
            if value is not None:
                os.environ[variable] = value


def read_settings(**flags: Any) -> Settings:
    """Give the settings in force, `flags` that are None left out.

    Raises:
        UsageError: `almanaq.toml` is not TOML or holds an unknown key; a value of the wrong type or out of range.
    """
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{FILE}: not valid TOML: {error}") from error
    except OSError as error:
        raise UsageError(f"{FILE}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise UsageError("; ".join(_explain(detail, flags) for detail in error.errors())) from None


def _explain(detail: Any, flags: dict[str, Any]) -> str:
    """Say in one clause which setting is wrong, where it was set, and what it may be."""
    name = str(detail["loc"][0]).lower() if detail["loc"] else "settings"
    if detail["type"] == "extra_forbidden":
        return f"{FILE}: unknown setting {name!r}{suggest(name, Settings.model_fields)}"
    message = detail["msg"][0].lower() + detail["msg"][1:]
    return f"{_origin(name, flags)}: {message}, not {detail['input']!r}"


def _origin(name: str, flags: dict[str, Any]) -> str:
    """Name the place whose value was taken for a setting, in the order of precedence."""
    if flags.get(name) is not None:
        return "--" + name.replace("_", "-")
    for variable in (f"ALMANAQ_{name.upper()}", name.upper()):
        if os.environ.get(variable):
            return variable
    return f"{FILE}: {name}"
