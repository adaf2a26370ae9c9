"""`COLLATE` on DuckDB: PostgreSQL's names of languages as those of ICU, which both have."""

from __future__ import annotations

import re

from sqlglot import exp

from almanaq.errors import UnsupportedError

_BY_BYTES = ("c", "posix", "ucs_basic")
_LOCALE = re.compile(r"([a-z]{2,3})(?:[_-]([a-z]{2}))?(?:\.utf-?8|-x-icu)?", re.IGNORECASE)
_LANGUAGES = frozenset(
    """aa af am ar as az be bg bn bo br bs ca cs cy da de dsb el en eo es et fa fi fil fo fr fy ga gl gu ha haw he hi hr
    hsb hu hy id is it ja ka kk kl km kn ko ku ky lb ln lo lt lv mk ml mn mr ms mt my nb ne nl nn no or pa pl ps pt ro
    ru se si sk sl sq sr sv sw ta te th tk tn to tr ug uk ur uz vi wo xh yi yo zh zu""".split()
)
"""Languages whose rules DuckDB has (`pragma_collations()`); "und" is the root that English follows."""


def write_collation(node: exp.Expr) -> exp.Expr:
    """Return a text with the collation of a language; `"de_DE"`, `"de_DE.utf8"` and `"de-x-icu"` are German.

    Raises:
        UnsupportedError: DuckDB has no rules for that name.
    """
    name = node.expression.name
    if name.lower() in _BY_BYTES:
        return node
    locale = _LOCALE.fullmatch(name)
    language = "en" if locale and locale[1].lower() == "und" else locale[1].lower() if locale else ""
    if language not in _LANGUAGES:
        raise UnsupportedError(f'COLLATE "{name}" is not known on duckdb: "C", or a language as "de-x-icu" or "fr_FR"')
    return exp.Collate(this=node.this, expression=exp.Var(this=language))
