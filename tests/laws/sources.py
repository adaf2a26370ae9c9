"""Items of FROM under other names, and merged by USING and NATURAL: what a law about names needs.

A column that an alias list renames keeps its name with a number behind it, so that its type can still be told.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from .expressions import Draw, literal
from .world import FREE, TYPES, WORDS, World

if TYPE_CHECKING:
    from .generator import Out, Source


def renamed(draw: Draw, source: Source) -> Source:
    """Return a source with an alias list that renames some of its first columns."""
    count = draw.rng.randint(1, len(source.columns))
    number = draw.alias("")
    old = [c.name for c in source.columns[:count]]
    new = {name: f"{name.rstrip('_0123456789')}_{i}_{number}" for i, name in enumerate(old)}
    columns = tuple(replace(c, name=new.get(c.name, c.name)) for c in source.columns)
    listed = ", ".join(c.name for c in columns[:count])
    return replace(source, columns=columns, keys=tuple(new.get(k, k) for k in source.keys), listed=f"({listed})")


def values(draw: Draw, made: type[Source], out: type[Out]) -> Source:
    """Return VALUES with a key, a number and a text to read."""
    rows = []
    for i in range(draw.rng.randint(1, 4)):
        text = literal(" ".join(draw.rng.choice(WORDS) for _ in range(2)))
        cells = (str(i + 1), str(draw.rng.randint(0, 5)), draw.rng.choice((text, text, "NULL")))
        rows.append(f"({', '.join(cells)})")
    number = draw.alias("")
    types = (("id", "int"), ("stars", "int"), ("body", "text"))
    columns = tuple(out(f"{name}_{number}", type_, name in FREE) for name, type_ in types)
    listed = ", ".join(c.name for c in columns)
    return made(f"(VALUES {', '.join(rows)})", f"v{number}", columns, (columns[0].name,), f"({listed})")


def merged(draw: Draw, world: World, made: type[Source], out: type[Out]) -> tuple[list[Source], str]:
    """Draw a chain of USING or NATURAL joins on one column, by every kind of join; what it merges goes unqualified."""
    rng, sources, text = draw.rng, [], ""
    column = rng.choice(("ref", "stars"))
    for i in range(rng.choice((2, 2, 3))):
        relation = rng.choice(world.relations)
        number = draw.alias("")
        others = [c for c in relation.columns if c != column and TYPES[c] not in ("enum",)]
        kept = rng.sample(others, min(len(others), rng.randint(1, 3)))
        kept += [c for c in FREE if c in relation.columns and c not in kept][:1]
        columns = tuple(out(f"{c}_{number}", TYPES[c], c in FREE) for c in kept)
        shown = ", ".join([column, *(f"{c} AS {o.name}" for c, o in zip(kept, columns, strict=True))])
        source = made(f"(SELECT {shown} FROM {relation.name})", f"s{number}", columns)
        written = f"{source.sql} AS {source.alias}"
        if i:
            kind = rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "FULL JOIN"))
            natural = rng.random() < 0.4
            text += f" NATURAL {kind} {written}" if natural else f" {kind} {written} USING ({column})"
        else:
            text = written
        sources.append(source)
    sources.append(made("", column, (out(column, "int"),)))  # its one column is named without a table
    return sources, text


def recursion(rng: random.Random, world: World) -> tuple[str, tuple[str, str]]:
    """Draw a recursive member that walks from row to row; give its query and the names of its two columns."""
    keyed = [relation for relation in world.relations if relation.keyed]
    if not keyed:
        return f"SELECT 1 AS id, {rng.randint(1, 9)} AS ref UNION ALL SELECT id + 1, ref FROM r WHERE id < 4", (
            "id",
            "ref",
        )
    relation = rng.choice(keyed).name
    start = f"SELECT id, ref FROM {relation} WHERE id <= {rng.randint(1, 3)}"
    return f"{start} UNION SELECT t.id, t.ref FROM r JOIN {relation} AS t ON t.id = r.ref", ("id", "ref")
