"""LOTUS: `sem_filter` and `sem_map` of a data frame."""

from __future__ import annotations

import os

import lotus
from frames import Frames
from loop import serve
from lotus.models import LM


class Lotus(Frames):
    """Its filter has no limit."""

    def keep(self, rows, column, question, limit=None):
        kept = rows.sem_filter(f"{question} {{{column}}}")
        return kept if limit is None else kept.head(limit)

    def value(self, rows, column, question, number=False):
        said = rows.sem_map(f"{question} {{{column}}}")["_map"].tolist()
        return [float(value) for value in said] if number else said


lotus.settings.configure(lm=LM(model="openai/stand-in", api_base=os.environ["OPENAI_BASE_URL"], temperature=0))
serve(Lotus().run)
