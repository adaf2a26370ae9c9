"""A seeded corpus of any size for measuring scale: many schemas, many titles, long-tailed words, planted questions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from almanaq.corpus.table import Table, TableId

_HEADS = "ba be bi bo bu ca ce co cu da de di do du fa fe fi fo ga ge go ha he ho ka ke ki ko la le li lo lu ma".split()
_TAILS = "n r s t l m nd rt st lk sh ton ria mos del vek rin".split()
_COLUMNS = (
    "name year team city country score rank date length height population club position nationality title director "
    "artist album label genre format station owner frequency route capacity opened builder class number driver points "
    "laps grid party votes district status species family origin price model engine power weight type result opponent"
).split()


@dataclass(frozen=True)
class SyntheticCorpus:
    """`size` tables, each drawn from the seed and its own number: any part can be made without the rest."""

    size: int
    seed: int = 0

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Table]:
        return (self.table(number) for number in range(self.size))

    def table(self, number: int) -> Table:
        """Return one table: a title of three or four words, 3 to 8 columns, 4 to 14 rows."""
        draw = Random(f"{self.seed}/{number}")
        subject = " ".join(_word(draw, 400_000).capitalize() for _ in range(2))
        title = f"{subject} {' '.join(_word(draw, 3_000) for _ in range(draw.randint(1, 2)))}"
        header = tuple(f"{_word(draw, 900)} {name}" if draw.random() < 0.35 else name for name in _names(draw))
        rows = tuple(tuple(_cell(draw, name) for name in header) for _ in range(draw.randint(4, 14)))
        section = _word(draw, 2_000) if draw.random() < 0.5 else ""
        return Table(TableId("0", f"t{number}"), header, rows, title=title, section=section)

    def questions(self, count: int) -> Iterator[tuple[str, TableId]]:
        """Yield questions with their tables, spread over every tenth of the corpus."""
        for place in range(count):
            table = self.table((2 * place + 1) * self.size // (2 * count))
            draw = Random(f"{self.seed}/question/{place}")
            row = draw.choice(table.rows)
            asked, known = draw.sample(range(len(table.header)), 2)
            yield f"What is the {table.header[asked]} of {row[known]} in {' '.join(table.title.split()[:2])}?", table.id


def _names(draw: Random) -> list[str]:
    return draw.sample(_COLUMNS, draw.randint(3, 8))


def _cell(draw: Random, name: str) -> str:
    if name.split()[-1] in ("year", "opened"):
        return str(draw.randint(1880, 2025))
    if draw.random() < 0.4:
        return str(int(draw.paretovariate(0.6)) % 1_000_000)
    return " ".join(_word(draw, 300_000).capitalize() for _ in range(draw.randint(1, 2)))


def _word(draw: Random, vocabulary: int) -> str:
    """Return a word by a law of Zipf: rank r of `vocabulary` words with a weight near 1 / r."""
    rank = int(vocabulary ** draw.random())
    digest = hashlib.blake2b(f"{vocabulary}/{rank}".encode(), digest_size=6).digest()
    syllables = 1 + (rank > 30) + (rank > 2_000)
    return "".join(_HEADS[digest[i] % len(_HEADS)] + _TAILS[digest[i + 3] % len(_TAILS)] for i in range(syllables))
