"""The statements of a script as psql takes them."""

from __future__ import annotations

import re

_OPENING = re.compile(
    r"""(?P<comment>--[^\n]*|/\*) | (?P<escaped>[eE]'(?:[^'\\]|\\.|'')*') | (?P<text>'(?:[^']|'')*') |
    (?P<name>"(?:[^"]|"")*") | (?P<tag>\$[A-Za-z_]*\$) | (?P<end>;) | (?P<word>[A-Za-z_]\w*) | (?P<other>.)""",
    re.X | re.S,
)


def statements(script: str) -> list[str]:
    """Return the statements of a script without psql's own commands and without comments."""
    script = "\n".join("" if line.lstrip().startswith("\\") else line for line in script.split("\n"))
    found, pieces, at = [], "", 0
    while at < len(script):
        match = _OPENING.match(script, at)
        assert match is not None
        at = match.end()
        if match["comment"]:
            at = _after_comment(script, match) if match["comment"] == "/*" else at
            pieces += " "
        elif match["tag"]:
            closing = script.find(match["tag"], at)
            at = len(script) if closing < 0 else closing + len(match["tag"])
            pieces += script[match.start() : at]
        elif match["end"] and not _in_body(pieces):
            found.append(pieces.strip())
            pieces = ""
        else:
            pieces += match[0]
    return [statement for statement in [*found, pieces.strip()] if statement]


def _after_comment(script: str, opened: re.Match[str]) -> int:
    depth, at = 1, opened.end()
    for match in re.compile(r"/\*|\*/").finditer(script, at):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return len(script)


def _in_body(text: str) -> bool:
    """Return whether a function's body of several statements is open."""
    lowered = text.lower()
    return "begin atomic" in lowered and not re.search(r"\bend\s*$", lowered)
