"""DocETL: `filter` and `map` of a frame; its filter stops at a limit."""

from __future__ import annotations

import docetl
from frames import Frames
from loop import serve


class Docetl(Frames):
    """Rows are dictionaries; its cache on disk is off, so that each run pays for what it asks."""

    def keep(self, rows, column, question, limit=None):
        found = docetl.from_list(rows.assign(place=range(len(rows))).to_dict("records")).filter(
            prompt=f"{question}\n<text>{{{{ input.{column} }}}}</text>",
            output={"schema": {"keep": "boolean"}},
            limit=limit,
        )
        kept = found.collect()
        return rows.iloc[sorted(row["place"] for row in kept)]

    def value(self, rows, column, question, number=False):
        made = docetl.from_list(rows.assign(place=range(len(rows))).to_dict("records")).map(
            prompt=f"{question}\n<text>{{{{ input.{column} }}}}</text>",
            output={"schema": {"said": "number" if number else "string"}},
        )
        said = {row["place"]: row["said"] for row in made.collect()}
        return [said[place] for place in range(len(rows))]


docetl.default_model = "openai/stand-in"
docetl.bypass_cache = True
serve(Docetl().run)
