"""Write the options into the signature and the docstring of `connect`, where editors read them.

`--write` writes them (`make docs`); without it, exit 1 where they differ from `almanaq.options`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from almanaq.options import CONNECTION_OPTIONS, OPTIONS, Option, describe_options

FILE = Path(__file__).parents[1] / "src" / "almanaq" / "connection.py"


def render(text: str) -> str:
    """Return the module with the arguments of `connect` as the schema has them."""
    before, function, after = text.partition("def connect(\n    source: Source,\n    *,\n")
    _, options, after = after.partition("    options: Options | None = None,\n")
    documented, raises, after = after.partition("\n\n    Raises:")
    kept = documented[: documented.index("\n        model: ")]
    signature = "".join(
        f"    {option.name}: {option.argument_type} = {_default(option)},\n" for option in OPTIONS.values()
    )
    described = describe_options(list(OPTIONS.values()), " " * 8)
    return f"{before}{function}{signature}{options}{kept}\n{described}{raises}{after}"


def _default(option: Option) -> str:
    """Return the default that the signature shows: of an option of queries none, so that it is known if it is given."""
    value = option.default if option in CONNECTION_OPTIONS else None
    return f'"{value}"' if isinstance(value, str) else str(value)


if __name__ == "__main__":
    now = FILE.read_text(encoding="utf-8")
    if "--write" in sys.argv[1:]:
        FILE.write_text(render(now), encoding="utf-8")
    elif render(now) != now:
        sys.exit("the arguments of connect() have drifted from almanaq/options.py; run `make docs`")
