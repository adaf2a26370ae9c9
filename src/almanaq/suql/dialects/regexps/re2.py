"""Writes a regular expression as RE2 and Java read it, with the flag that lets a dot match the end of a line."""

from __future__ import annotations

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.regexps.classes import content
from almanaq.suql.dialects.regexps.tree import ANY, Chars, Choice, Edge, Group, Node, Repeat, Sequence

_EDGES = {"^": "^", "$": r"\z", "line^": "(?m:^)", "line$": "(?m:$)"}
_DIGIT = Chars((), ("digit",))


def write(node: Node) -> str:
    r"""Return the pattern.

    Raises:
        UnsupportedError: it has `\y` and the like, which know only the letters of English there.
    """
    if isinstance(node, Chars):
        return _chars(node)
    if isinstance(node, Edge):
        if node.sign not in _EDGES:
            raise UnsupportedError(
                f"{node.sign} is not supported here: it may begin and end a pattern whose first and last characters "
                "are letters or digits; write what may stand beside the word, as (^|[^[:alnum:]_])"
            )
        return _EDGES[node.sign]
    if isinstance(node, Sequence):
        return "".join(f"(?:{write(item)})" if isinstance(item, Choice) else write(item) for item in node.items)
    if isinstance(node, Choice):
        return "|".join(write(branch) for branch in node.branches)
    if isinstance(node, Group):
        return f"({write(node.inner)})"
    return _repeated(node)


def _repeated(node: Repeat) -> str:
    inner = write(node.inner)
    if not isinstance(node.inner, Chars | Group):
        inner = f"(?:{inner})"
    signs = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    high = "" if node.high is None else node.high
    bounds = f"{{{node.low}}}" if node.low == node.high else f"{{{node.low},{high}}}"
    return inner + signs.get((node.low, node.high), bounds) + ("" if node.greedy else "?")


def _chars(chars: Chars) -> str:
    if chars == ANY:
        return "."
    if chars.classes == _DIGIT.classes and not chars.ranges:
        return r"\D" if chars.negated else r"\d"
    if len(chars.ranges) == 1 and chars.ranges[0][0] == chars.ranges[0][1] and not chars.classes and not chars.negated:
        return _char(chars.ranges[0][0])
    written = [_span(low, high) for low, high in chars.ranges]
    for name in chars.classes:
        categories, ranges = content(name)
        written += [rf"\p{{{category}}}" for category in categories] + [_span(low, high) for low, high in ranges]
    return f"[{'^' * chars.negated}{''.join(dict.fromkeys(written))}]"


def _span(low: int, high: int) -> str:
    return _char(low) if low == high else f"{_char(low)}-{_char(high)}"


def _char(point: int) -> str:
    char = chr(point)
    if char.isalnum() and point < 0x250:
        return char
    if char in " _,;:'\"/@%<>=!~`":
        return char
    names = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}
    if char in names:
        return names[char]
    return f"\\{char}" if point < 127 and char.isprintable() else char if char.isalpha() else rf"\x{{{point:x}}}"
