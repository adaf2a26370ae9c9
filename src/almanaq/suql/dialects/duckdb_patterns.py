"""Functions of regular expressions in DuckDB, as PostgreSQL has them (semantics 7)."""

from __future__ import annotations

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.duckdb_matches import (
    OVER_LINES,
    Match,
    call,
    first_match,
    guarded,
    matches,
    of_one_kind,
    plain,
    read_flags,
    text,
    written,
)
from almanaq.suql.dialects.lists import mapped
from almanaq.suql.dialects.patterns import similar_as_regexp
from almanaq.suql.dialects.regexps.re2 import write
from almanaq.suql.dialects.regexps.tree import ANY, Edge, Group, Repeat, Sequence, parts
from almanaq.suql.dialects.replacements import pieces_of, rewritten_replacement


def write_match(node: exp.Expr) -> exp.Expr:
    """`x ~ p`: dots match line ends in PostgreSQL."""
    pattern, folded = node.expression, isinstance(node, exp.RegexpILike)
    several = pattern.this.unnest() if isinstance(pattern, exp.Any | exp.All) else None
    if several is None:
        return matches(node.this, pattern, "i" if folded else "")
    if not isinstance(several, exp.Array):
        raise UnsupportedError("~ ANY takes ARRAY[…] of patterns, written out, on duckdb")
    found = [matches(node.this, each, "i" if folded else "") for each in several.expressions]
    return exp.paren(exp.or_(*found) if isinstance(pattern, exp.Any) else exp.and_(*found))


def write_similar(node: exp.Expr) -> exp.Expr:
    return matches(node.this, text(similar_as_regexp(node.expression)), "")


def substring_of_pattern(value: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    """`substring(x FROM p)` is what the first group matches, or all."""
    pattern = plain(pattern)
    if not isinstance(pattern, exp.Literal):
        found = call("regexp_extract", value, guarded(pattern, flat=True), exp.Literal.number(0), OVER_LINES)
        return exp.Case(ifs=[exp.If(this=matches(value, pattern, ""), true=found)])
    match = first_match(pattern.name, "", groups=True)
    return match.when_found(value, match.group(value, 1 if match.groups else 0))


def write_matched(node: exp.Expr) -> exp.Expr:
    """`regexp_match(x, p)` is an array of what the groups match."""
    value, pattern, *flags = node.expressions
    match = first_match(written(pattern, "regexp_match"), read_flags(flags[0] if flags else None), groups=True)
    numbers = range(1, match.groups + 1) if match.groups else [0]
    return match.when_found(value, exp.Array(expressions=[match.group(value, number) for number in numbers]))


def write_count(node: exp.Expr) -> exp.Expr:
    pattern = written(node.expression, "regexp_count")
    match = first_match(pattern, read_flags(node.args.get("parameters")), groups=False)
    value = _from_place(node.this, node.args.get("position"), match)
    if match.is_of_words:
        tokens = call("regexp_extract_all", value, text(of_one_kind()))
        found = mapped("list_filter", tokens, "w", call("regexp_full_match", exp.to_identifier("w"), text(match.core)))
    else:
        match.require_many("regexp_count")
        found = call("regexp_extract_all", value, text(match.pattern), exp.Literal.number(0), OVER_LINES)
    return exp.cast(call("len", found), "int")


def write_substr(node: exp.Expr) -> exp.Expr:
    """`regexp_substr(x, p, start, n, flags, group)`."""
    number = _number(node.args.get("group"), 0)
    pattern, flags = written(node.expression, "regexp_substr"), read_flags(node.args.get("parameters"))
    match = first_match(pattern, flags, groups=number > 0)
    value, occurrence = (
        _from_place(node.this, node.args.get("position"), match),
        _number(node.args.get("occurrence"), 1),
    )
    if number > match.groups:
        if number > 1:
            return exp.null()
        number = 0  # a pattern without groups is one
    if occurrence == 1:
        return match.when_found(value, match.group(value, number))
    match.require_many("regexp_substr")
    if number or match.whole:
        raise UnsupportedError("regexp_substr of the n-th match takes no group, and no word's edge, on duckdb")
    found = call("regexp_extract_all", value, text(match.pattern), exp.Literal.number(0), OVER_LINES)
    return exp.Bracket(this=found, expressions=[exp.Literal.number(occurrence)], offset=1)


def write_place(node: exp.Expr) -> exp.Expr:
    """`regexp_instr(x, p)`: one more than what stands before the first match."""
    pattern, flags = written(node.expression, "regexp_instr"), read_flags(node.args.get("parameters"))
    match = first_match(pattern, flags, groups=False)
    given = [_number(node.args.get(name), default) for name, default in _PLACE]
    if [given[0], given[1], given[3]] != [1, 1, 0] or given[2] not in (0, 1):
        raise UnsupportedError("regexp_instr takes a text and a pattern here: use regexp_substr, or strpos")
    ahead = Group(Sequence((Edge("^"), Repeat(ANY, 0, None, greedy=False), *match.before)))
    led = text(write(Sequence((ahead, Group(match.tree), *match.after))))
    places = [call("length", call("regexp_extract", node.this, led, exp.Literal.number(1), OVER_LINES))]
    if given[2]:
        places.append(call("length", match.group(node.this, 0)))
    sums: exp.Expr = exp.Literal.number(1)
    for place in places:
        sums = exp.Add(this=place, expression=sums)
    found = matches(node.this, node.expression, flags)
    known = exp.Is(this=node.this.copy(), expression=exp.null())
    cases = [exp.If(this=known, true=exp.null()), exp.If(this=found, true=sums)]
    return exp.cast(exp.Case(ifs=cases, default=exp.Literal.number(0)), "int")


_PLACE = (("position", 1), ("occurrence", 1), ("option", 0), ("group", 0))


def write_parts(node: exp.Expr) -> exp.Expr:
    """`regexp_split_to_array(x, p)`."""
    value, pattern, *flags = node.expressions
    name = "regexp_split_to_array"
    match = first_match(written(pattern, name), read_flags(flags[0] if flags else None), groups=False)
    match.require_many(name)
    if match.whole:
        raise UnsupportedError(f"{name} takes no pattern with a word's edge on duckdb: write a blank, or [^[:alnum:]]")
    return call("string_split_regex", value, text(match.pattern), OVER_LINES)


def write_replace(node: exp.Expr) -> exp.Expr:
    """`regexp_replace(x, p, by, flags)`: one match, or all with g."""
    modifiers = node.args.get("modifiers")
    flags = modifiers.name if modifiers is not None else ""
    every = "g" in flags
    by = node.args.get("replacement") or text("")
    pattern = plain(node.expression)
    if not isinstance(pattern, exp.Literal):
        return _replace_computed(node, by, flags)
    groups = not isinstance(by, exp.Literal) or any(isinstance(p, int) and p > 0 for p in pieces_of(by.name))
    match = first_match(pattern.name, read_flags(modifiers, also="g"), groups=groups)
    if every and match.is_of_words:
        return _replace_words(node.this, match, by)
    if every:
        match.require_many("regexp_replace with g")
    found, shift = match.pattern, 0
    if match.whole:
        around = [Group(part) for part in (Sequence(match.before), match.tree, Sequence(match.after))]
        found, shift = write(Sequence(tuple(around))), 1
    replacement = rewritten_replacement(by, match.groups, framed=bool(shift))
    return call("regexp_replace", node.this, text(found), replacement, text("gs" if every else "s"))


def _replace_words(value: exp.Expr, match: Match, by: exp.Expr) -> exp.Expr:
    r"""`regexp_replace(x, '\yone\y', …, 'g')`: each run of letters that is such a word."""
    word = call("regexp_replace", exp.to_identifier("w"), text(f"^(?:{match.core})$"),
                rewritten_replacement(by, match.groups, framed=False), OVER_LINES)  # fmt: skip
    tokens = call("regexp_extract_all", value, text(of_one_kind()))
    return call("array_to_string", mapped("list_transform", tokens, "w", word), text(""))


def _replace_computed(node: exp.Expr, by: exp.Expr, flags: str) -> exp.Expr:
    if isinstance(node.expression, exp.Null):
        return exp.null()
    if flags:
        raise UnsupportedError("regexp_replace with flags takes a pattern that is written out on duckdb: use replace")
    pattern = guarded(node.expression, flat=True)
    return call("regexp_replace", node.this, pattern, rewritten_replacement(by, 0, framed=False), OVER_LINES)


def _from_place(value: exp.Expr, place: exp.Expr | None, match: Match) -> exp.Expr:
    """Return a text from a place on, at which `^` does not match."""
    start = _number(place, 1)
    if start == 1:
        return value
    if match.whole or any(isinstance(part, Edge) and "^" in part.sign for part in parts(match.tree)) or start < 1:
        raise UnsupportedError("a pattern with ^, or a word's edge, is not matched from a place on, on duckdb")
    return exp.Substring(this=value.copy(), start=exp.Literal.number(start))


def _number(given: exp.Expr | None, default: int) -> int:
    if given is None:
        return default
    if isinstance(given, exp.Literal) and given.is_int:
        return int(given.name)
    raise UnsupportedError("places and numbers of matches are written out, as 1, on duckdb")
