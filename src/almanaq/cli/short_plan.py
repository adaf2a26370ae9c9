"""A plan in short: for each part that costs model calls, which rows are fetched, what they are asked, when it stops."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from almanaq.suql.explain.explain import Explanation, StageLine

_QUOTED = re.compile(r"('(?:[^']|'')*')")
_QUALIFIER = re.compile(r'(?:"[^"]+"|\b[A-Za-z_]\w*)\.(?=["A-Za-z_])')
_TEXT_CAST = re.compile(r"CAST\((\w+) AS TEXT(?:\[\])?\)")
_SOURCE = re.compile(r"rows: SELECT .*? FROM (?P<from>.*?)(?: WHERE (?P<where>.*?))?(?: ORDER BY (?P<order>.*))?$")


def short_plan(explanation: Explanation) -> list[str]:
    """Return the plan as lines of at most one thought each; the whole of it is `--explain`."""
    lines = [line for stage in explanation.stages if stage.stage.startswith("text") for line in _text_stage(stage)]
    lines += [f"link    {stage.what}" for stage in explanation.stages if stage.stage == "link"]
    return [*lines, "finish  the rest of the query in the database"] if lines else ["the database runs the whole query"]


def _text_stage(stage: StageLine) -> list[str]:
    first, *others = stage.what.splitlines()
    match = _SOURCE.match(first)
    where = match["where"] if match is not None else None
    fetched = f"rows with {_plain(where)}" if where else "all rows"
    if match is not None and match["order"]:
        fetched += f", in the order of {_plain(_without_row_id(match['order']))}"
    calls = f"about {stage.predicted['calls']:,} text calls" if "calls" in stage.predicted else "text calls"
    asked = [line.partition(": ")[2] for line in others if line.startswith(("keep: ", "ask: "))]
    stops = [line for line in others if line.startswith("stop")]
    return [f"fetch   {fetched}", f"read    {'; '.join(asked)} ({calls})", *(f"stop    {s[5:]}" for s in stops)]


def _without_row_id(order: str) -> str:
    """Leave out the row id that makes an order total."""
    return re.sub(r',\s*(?:"\w+"|\w+)\.rowid$', "", order)


def _plain(sql: str) -> str:
    """Write conditions without qualifiers, quoted names and the casts that an engine needs; text in quotes stays."""
    parts = _QUOTED.split(sql)
    parts[::2] = [_QUALIFIER.sub("", part).replace('"', "").replace(" NULLS LAST", "") for part in parts[::2]]
    parts[::2] = [_TEXT_CAST.sub(r"\1", part) for part in parts[::2]]
    return "".join(parts)
