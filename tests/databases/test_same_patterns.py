"""Regular expressions and texts: DuckDB gives what PostgreSQL does, or refuses by name what it would read otherwise."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

import almanaq
from almanaq.errors import AlmanaqError, DataError, UnsupportedError
from engines import PostgresServer

TEXTS = (
    *("", "a", "ab", "abc", "aab", "abab", "a b", "ab ab", "Ab,aB", "a\nb", "\n", "a,b,,c", "  a  ", "12-3", "a\\b_%c"),
    *(
        "Straße 12",
        "é a",
        "e\u0301x",
        "\u212a ſ k İı",
        "हिन्दी अब",
        "😀👩‍👧!",
        "\tx\u3000",
        "x²",
        "o'neil-Smith",
        "ab" * 40,
    ),
    None,
)
QUOTED = {
    "{v} ~ {p}": (
        *(r"^\w+$", r"\w\W", r"[^\w]", r"\s", "[[:space:]]$", "[[:punct:]]", "[[:alpha:]]", r"^\d", "[[:upper:]]"),
        *("a.b", "a$", "(?n)a$", "(?n)^b", "(?n)a.b", "(?n)[^x]b", "(?w)^b", "(?p)^b", "(?x) a b # c", "(?i)STRASSE"),
        *(r"***=a.b", "***:ab", r"(?q)_%", "a{255}", "a{2}", "a{,2}", "[]a]", "[^]a]", r"[\]\\]", r"[\n]", r"\u0301"),
        *(r"\x65", r"\Aa", r"b\Z", r"a\nb", "()", "a|", "[[.a.]]", "[[=a=]]b", "a(?#no)b", r"[a-c\d]+", "^$", ".*?b$"),
        *(r"\mab", r"ab\M", r"\yStra", r"Stra\y", r"\ystraße\y", r"\y(ab|x)\y", r"^\ya", "[[:<:]]a", r"\Yb", r"a\y b"),
    ),
    "{v} ~* {p}": ("k", "s", "ß", "ẞ", "İ", "ı", "[k-s]", "[[:upper:]]", "STRAßE", "^[^a]"),
    "NOT ({v} !~ {p})": (r"\mab", r"^\w+$"),
    "substring({v} FROM {p})": (
        *("a|ab", "ab|a", "b*", "(a)(b)?", "a(b)?", r"(\w+)\W+(\w+)", r"\y(b)\y", "^(.*?)-(.*)$", "(a|b)+$", ".*?b"),
    ),
    "regexp_match({v}, {p})": (r"(\w)(\w*)", "(x)|(a)", "b", "(a+)(b+)?(c)?", r"([^,]*),(.*)", "(ab)+", "(?i)(A)(B)"),
    "regexp_replace({v}, {p}, '<\\1|\\&|\\0|\\\\|\\9>')": ("a", "(a)(b)?", r"\mb", r"(\w)\M"),
    "regexp_replace({v}, {p}, '[\\&]', 'g')": (
        *("a", r"\w+", r"\m\w", r"\w\M", r"\y(ab|a)\y", "<.*?>\\s*", r"^\s+|\s+$", r"\s+", "[^[:alnum:]]", "a+?b"),
        *("ab|a", "a|ab", "(ab)+", "(a|b)(,|-)", "a??b"),
    ),
    "regexp_replace({v}, {p}, 'X', 'gi')": ("K", "S", "B", "İ"),
    "regexp_count({v}, {p})": ("a", r"\w+", r"\mab\M", "[[:alpha:]]", "a.b", "(a|b)", "^a"),
    "regexp_count({v}, {p}, 2)": ("a", "b$", "."),
    "regexp_count({v}, {p}, 1, 'i')": ("A", "k"),
    "regexp_split_to_array({v}, {p})": (",", r"\s+", r"\W+", "a|ab", "[,-]"),
    "regexp_split_to_array({v}, {p}, 'i')": ("A",),
    "regexp_substr({v}, {p})": ("b+", r"\w+$", "(a)(b)"),
    "regexp_substr({v}, {p}, 1, 2)": ("b", r"\w+"),
    "regexp_substr({v}, {p}, 1, 1, 'i', 1)": ("(A)B", "A"),
    "regexp_instr({v}, {p})": ("b", r"\mb", "$", "z", "^"),
    "regexp_instr({v}, {p}, 1, 1, 1)": ("ab", r"\w+"),
    "{v} SIMILAR TO {p}": ("a%", "%(ß|c)%", "a_b", r"a\\b\_\%c", "[a-c]+", "a{1,3}", "x.*", "^a", "%\\w"),
}
WRITTEN = (
    *("{v} ~ ANY (ARRAY['^a', 'b$'])", "{v} ~ ('a' || 'b')", "{v} ~ 'a'::text"),
    *("{v} ~ NULL", "(regexp_match({v}, '(a)(b)'))[2]", "regexp_replace('a.c', left({v}, 1), 'x')"),
    *(
        "split_part({v}, '', 1)",
        "split_part({v}, '', 2)",
        "split_part({v}, left({v}, 0), -1)",
        "split_part({v}, ',', -2)",
    ),
    *("reverse({v})", "overlay({v} PLACING 'XX' FROM 2)", "overlay({v} PLACING '' FROM 1 FOR 3)", "left({v}, -2)"),
    *(
        "right({v}, -2)",
        "lpad({v}, 5, 'xy')",
        "rpad({v}, -1)",
        "repeat({v}, -1)",
        "substr({v}, -1, 3)",
        "substr({v}, 0)",
    ),
    *("substr({v}, 2, length({v}))", "btrim({v}, 'a ')", "ltrim({v}, 'a-c')", "rtrim({v}, 'x!')", "btrim({v}, '')"),
    *("initcap({v})", "lower({v})", "ascii({v})", "md5({v})", "length({v})", "translate({v}, 'aab', 'xyz')"),
    *(
        "strpos({v}, '')",
        "position('b' IN {v})",
        "starts_with({v}, 'a')",
        "replace({v}, '', 'x')",
        "concat_ws(',', {v}, NULL)",
    ),
    *(r"{v} LIKE 'a\\b%'", r"{v} LIKE '%\_\%c'", "{v} LIKE 'a#%' ESCAPE '#'", "{v} ILIKE 'STRAßE%'", "{v} LIKE '_'"),
)
REFUSED = (
    *(
        r"s ~ '(?=a)'",
        r"s ~ '(a)\1'",
        r"s ~ '\y'",
        r"s ~ 'a.*\y.*b'",
        r"s ~ '\bx'",
        "s ~ 'a**'",
        "s ~ '[b-a]'",
        "s ~ '(a'",
    ),
    *("s ~ 'a{256}'", "s ~* (s || '')", "s ~ '[[:graph:]]'", "s SIMILAR TO 'a' ESCAPE '#'", "s SIMILAR TO s"),
    *("substring(s FROM '(a|ab)(c|bcd)?')", "substring(s FROM '(.*?),(.*)')", "regexp_match(s, '(a*)+')"),
    *("regexp_match(s, 'x|(a*)')", "regexp_replace(s, 'a*', 'x', 'g')", "regexp_replace(s, 'a', 'x', 'z')"),
    *("regexp_replace(s, s, 'x', 'g')", "regexp_count(s, '')", "regexp_count(s, '^a', 2)", "regexp_count(s, s)"),
    *(
        "regexp_split_to_array(s, '')",
        r"regexp_split_to_array(s, '\ma')",
        "regexp_substr(s, s)",
        "regexp_instr(s, 'a', 2)",
    ),
    *("overlay(s PLACING 'x' FROM 2 FOR -1)", "split_part(s, ',', 0)", "substr(s, 2, -1)"),
)


@pytest.fixture(scope="module")
def both(postgres_server: PostgresServer) -> Iterator[list[Any]]:
    texts = {"t": pa.table({"id": range(len(TEXTS)), "s": pa.array(TEXTS, pa.string())})}
    found = [almanaq.connect(source) for source in (texts, postgres_server.source(texts))]
    yield found
    found[0].close()


def values(con: Any, expressions: Sequence[str]) -> list[list[Any]]:
    """Return the values of each expression, in the order of the texts."""
    items = ", ".join(f"{expression} AS v{i}" for i, expression in enumerate(expressions))
    rows = list(con.sql(f"SELECT {items} FROM t ORDER BY id").rows)
    return [list(column) for column in zip(*rows, strict=True)]


def expressions() -> list[str]:
    quoted = [form.format(v="s", p=_quoted(p)) for form, patterns in QUOTED.items() for p in patterns]
    return [*quoted, *(form.format(v="s") for form in WRITTEN)]


def _quoted(pattern: str) -> str:
    return "'" + pattern.replace("'", "''") + "'"


def test_patterns_and_texts_mean_the_same(both: list[Any]) -> None:
    differ = {}
    written = expressions()
    for place in range(0, len(written), 40):
        some = written[place : place + 40]
        ours, theirs = (values(con, some) for con in both)
        for expression, own, other in zip(some, ours, theirs, strict=True):
            if own != other:
                differ[expression] = [found for found in zip(TEXTS, own, other, strict=True) if found[1] != found[2]]
    assert differ == {}


@pytest.mark.parametrize("expression", REFUSED)
def test_what_would_match_otherwise_is_refused_by_name(expression: str) -> None:
    with almanaq.connect({"t": pa.table({"id": [1], "s": ["a"]})}) as con, pytest.raises(UnsupportedError):
        _ = con.sql(f"SELECT {expression} AS v FROM t").rows


@pytest.mark.parametrize(
    "expression", [r"s ~ ('\w' || s)", r"regexp_replace(s, 'a', s || '\1')", "split_part(s, ',', id - 1)"]
)
def test_what_only_a_row_shows_is_an_error_in_that_row(expression: str) -> None:
    with almanaq.connect({"t": pa.table({"id": [1], "s": ["a"]})}) as con, pytest.raises(DataError):
        _ = con.sql(f"SELECT {expression} AS v FROM t").rows


def test_of_any_pattern_duckdb_finds_what_postgresql_does_or_refuses_it(both: list[Any]) -> None:
    draw = random.Random(17)
    forms = list(QUOTED)[:-1]
    accepted: list[str] = []
    found: list[list[Any]] = []
    for _ in range(100):
        expression = draw.choice(forms).format(v="s", p=_quoted(_pattern(draw)))
        try:
            found += values(both[0], [expression])
        except UnsupportedError:
            continue
        accepted.append(expression)
    assert len(accepted) > 35
    theirs = [column for at in range(0, len(accepted), 40) for column in values(both[1], accepted[at : at + 40])]
    assert {e: own for e, own, other in zip(accepted, found, theirs, strict=True) if own != other} == {}


def _pattern(draw: random.Random, depth: int = 2) -> str:
    """Return a pattern of letters, sets, repetitions, groups and edges."""
    branches = [
        "".join(_piece(draw, depth) for _ in range(draw.choice([1, 2, 2, 3]))) for _ in range(draw.choice([1, 1, 2]))
    ]
    found = "|".join(branches)
    if depth < 2:
        return found
    return draw.choice(["", "", "", "", "^", r"\m", r"\y"]) + found + draw.choice(["", "", "", "", "$", r"\y"])


def _piece(draw: random.Random, depth: int) -> str:
    if depth and draw.random() < 0.3:
        part = draw.choice(["({})", "(?:{})"]).format(_pattern(draw, depth - 1))
    else:
        part = draw.choice(["a", "b", "c", ".", "[ab]", "[^a]", r"\w", r"\d", r"\s", "k", "é", ",", "ab"])
    return part + draw.choice(["", "", "", "*", "+", "?", "*?", "+?", "{2}", "{1,2}"])


def test_a_computed_pattern_that_is_simple_is_matched() -> None:
    with almanaq.connect({"t": pa.table({"s": ["ab", "b", None]})}) as con:
        assert con.sql("SELECT s ~ ('^' || left(s, 1) || '.?$') AS v FROM t ORDER BY s").rows == [
            (True,),
            (True,),
            (None,),
        ]
    assert issubclass(UnsupportedError, AlmanaqError)
