"""Write the options into the signature of `connect`, where editors read them (`make docs`).

A test compares the two. The docstring of `connect` takes what they do from `almanaq.options` when it is imported.
"""

from __future__ import annotations

from pathlib import Path

from almanaq.options import CONNECTION_OPTIONS, OPTIONS, Option

FILE = Path(__file__).parents[1] / "src" / "almanaq" / "connection.py"


def render(text: str) -> str:
    """Return the module with the arguments of `connect` as the schema has them."""
    before, function, after = text.partition("def connect(\n    source: Source,\n    *,\n")
    _, options, after = after.partition("    options: Options | None = None,\n")
    signature = "".join(
        f"    {option.name}: {option.argument_type} = {_default(option)},\n" for option in OPTIONS.values()
    )
    return f"{before}{function}{signature}{options}{after}"


def _default(option: Option) -> str:
    """Return the default that the signature shows: of an option of queries none, so that it is known if it is given."""
    value = option.default if option in CONNECTION_OPTIONS else None
    return f'"{value}"' if isinstance(value, str) else str(value)


if __name__ == "__main__":
    FILE.write_text(render(FILE.read_text(encoding="utf-8")), encoding="utf-8")
