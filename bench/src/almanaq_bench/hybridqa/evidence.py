"""Where in a relation a question's answer may stand: every cell and every cell's passages, described by numbers.

A question of HybridQA names its row by words of cells or of passages, and asks for another cell of the row or for
words of one of its passages. The features here say how much of a question each row speaks of, and how well each of its
places fits what is asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from almanaq.text.words import STOPWORDS, stem, words
from almanaq_bench.hybridqa.relation import HybridRelation

FEATURES = tuple(
    """cell cell_who cell_when cell_where cell_count cell_what
    row_in_cells row_in_passages row_best_passage row_names row_cell_mentioned row_pairs row_triples row_extreme
    cell_header_asked cell_header_in_question cell_said cell_type_fits cell_type_misfits cell_elsewhere cell_first
    cell_unexplained cell_header_fits cell_header_misfits cell_header_last cell_by_passages
    cell_by_passage_runs cell_by_mention
    info_header_asked info_header_in_question info_said info_unexplained info_type_fits info_asked_word info_first
    info_cell_mentioned info_names info_length info_pairs info_triples info_sentence info_rare info_header_who
    info_header_where info_header_work info_by_cells info_by_mention info_cell_asked info_other_passages""".split()
)
"""The numbers that describe a place, in the order of a model's weights."""

_LOW = frozenset("first earliest oldest lowest least smallest fewest shortest top".split())
_HIGH = frozenset(
    "last latest recent newest highest most largest greatest best longest biggest tallest youngest".split()
)
_WHAT = r"\b(?:what|which)"
_KINDS = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("count", r"\bhow (?:many|much|far|long|old|tall|high|large|big|often)\b|\bnumber of\b|\bpopulation\b"),
        ("when", r"\bwhen\b|\b(?:what|which|in) (?:\w+ )?(?:year|date|day|month|season)\b|\byear\b|\bdate\b"),
        ("where", rf"\bwhere\b|{_WHAT} (?:city|town|country|state|place|location|county|region|venue)\b"),
        ("who", rf"\bwho\b|\bwhom\b|\bwhose\b|{_WHAT} (?:player|person|athlete|driver|actor)\b"),
    )
)
_VERBS = "is are was were did does do has had".split()
_ASKED = re.compile(
    rf"\b(?:what|which|whose)\b((?: (?!(?:{'|'.join(_VERBS)})\b)[\w'-]+){{1,4}})?",
    re.IGNORECASE,
)
_OF = re.compile(
    r"\b(?:what|which|who) (?:is|are|was|were) the ((?:[\w'-]+ ){0,3}?[\w'-]+) "
    r"(?:of|for|in|that|who|whose|on|at|from|with|to|by)\b",
    re.IGNORECASE,
)
_HEADERS = {
    "who": """name player athlete driver rider person artist actor actress director winner author recipient nominee
        member coach manager captain performer singer composer writer trainer owner opponent candidate senator champion
        gymnast swimmer skater runner host celebrity alumnus honoree laureate editor architect representative""",
    "where": """city country location place venue state town county region province nation nationality stadium arena
        residence hometown address suburb municipality district neighborhood locality community territory""",
    "when": "year date season years opened founded established built completed born died release released time day",
    "count": """number rank population capacity points score goals total age height length area wins losses games sales
        weight distance no floors seats votes position pick attendance titles elevation""",
    "work": "title film song album work book show game program single series play novel movie event tournament",
}
_HEADER_KINDS = {stem(word): kind for kind, said in _HEADERS.items() for word in said.split()}
_SENTENCE = re.compile(r"\s[.;]\s|\n")
_NUMBER = re.compile(r"[0-9][0-9,.]*")
_YEAR = re.compile(r"\b1[0-9]{3}\b|\b20[0-9]{2}\b")


@dataclass(frozen=True, slots=True)
class CellPlace:
    """A place of a relation: the cell at (row, column), or, with `info`, the passages that it links."""

    row: int
    column: int
    info: bool


@dataclass(frozen=True, slots=True)
class QuestionFocus:
    """What a question asks for.

    Attributes:
        stems: of the question, without those that tell nothing.
        names: stems of its names and numbers.
        asked: stems of the noun that is asked for.
        kind: count, when, where, who or what.
        extremes: 1 for each word such as "most", -1 for each such as "first".
    """

    stems: tuple[str, ...]
    names: frozenset[str]
    asked: frozenset[str]
    kind: str
    extremes: tuple[int, ...]


def read_question(question: str) -> QuestionFocus:
    """Return what a question asks for."""
    content_words = [word for word in words(question) if word not in STOPWORDS]
    capital = {stem(w.casefold()) for w in re.findall(r"(?<=\s)[A-Z][\w'’-]*|[0-9][0-9,.]*[0-9]|[0-9]", question)}
    found = _OF.search(question) or _ASKED.search(question)
    asked = frozenset(stem(w) for w in words(found[1] or "") if w not in STOPWORDS) if found else frozenset()
    kind = next((name for name, pattern in _KINDS if pattern.search(question)), "what")
    extremes = tuple(1 if w in _HIGH else -1 for w in words(question) if w in _HIGH | _LOW)
    return QuestionFocus(tuple(dict.fromkeys(map(stem, content_words))), frozenset(capital), asked, kind, extremes)


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the table: its name in queries, that of its passages ("" where it links none), and its words.

    Attributes:
        cells: as the table writes them; passages: the texts that each cell links.
    """

    name: str
    info: str
    cells: tuple[str, ...]
    passages: tuple[tuple[str, ...], ...]


def fields_of(relation: HybridRelation) -> tuple[Field, ...]:
    """Return the columns of the table that a relation was made of."""
    groups: dict[int, list[str]] = {}
    for name, origin in relation.origins.items():
        groups.setdefault(origin, []).append(name)
    return tuple(_field(relation, names) for names in groups.values())


def _field(relation: HybridRelation, names: Sequence[str]) -> Field:
    infos = [name for name in names if name in relation.info_columns]
    plain = [name for name in names if name not in infos]
    spelled = relation.spelled.get(plain[0], {})
    written = relation.arrow.column(plain[-1]).to_pylist()  # the last is the text where casts failed
    cells = tuple("" if value is None else str(spelled.get(value, value)) for value in written)
    texts = relation.arrow.column(infos[0]).to_pylist() if infos else [None] * len(cells)
    return Field(plain[0], infos[0] if infos else "", cells, tuple(tuple(each or ()) for each in texts))


class Evidence:
    """A question beside a relation: how much of it each row and each place speaks of."""

    def __init__(self, question: str, relation: HybridRelation) -> None:
        self.asked = read_question(question)
        self.fields = fields_of(relation)
        self.rows = int(relation.arrow.num_rows)
        self._cells = [[frozenset(_stems(cell)) for cell in field.cells] for field in self.fields]
        self._infos = [[frozenset(_stems(" ".join(texts))) for texts in field.passages] for field in self.fields]
        self._headers = [frozenset(_stems(field.name)) for field in self.fields]
        self._kinds = [next((_HEADER_KINDS[w] for w in _stems(f.name) if w in _HEADER_KINDS), "") for f in self.fields]
        self._weights = self._rarity()
        self._passage_weights = self._passage_rarity()
        self._said = " " + " ".join(_stems(question)) + " "
        self._row_features = [self._row(row) for row in range(self.rows)]

    def spots(self) -> list[CellPlace]:
        """Return every place that holds something."""
        found = []
        for column, field in enumerate(self.fields):
            for row in range(self.rows):
                if field.cells[row].strip():
                    found.append(CellPlace(row, column, False))
                if field.passages[row]:
                    found.append(CellPlace(row, column, True))
        return found

    def features(self, spot: CellPlace) -> list[float]:
        """Return the numbers that describe a place, as FEATURES names them."""
        found = dict.fromkeys(FEATURES, 0.0)
        found.update(self._row_features[spot.row])
        found.update(self._info(spot) if spot.info else self._cell(spot))
        return [found[name] for name in FEATURES]

    def best_row(self, feature: str) -> float:
        """Return the highest value that any row has of one of its features; 0 where there is no row."""
        return max((features[feature] for features in self._row_features), default=0.0)

    def _rarity(self) -> dict[str, float]:
        """Return each stem of the question a weight: more the fewer rows speak of it; they sum to 1."""
        weights = {}
        for word in self.asked.stems:
            held = sum(
                any(word in self._cells[c][row] or word in self._infos[c][row] for c in range(len(self.fields)))
                for row in range(self.rows)
            )
            weights[word] = math.log((self.rows + 1) / (held + 0.5)) if held else 0.0
        total = sum(weights.values())
        return {word: weight / total for word, weight in weights.items()} if total > 0 else weights

    def _passage_rarity(self) -> dict[str, float]:
        """Return each stem of the question a weight: more the fewer cells' passages speak of it."""
        held = [stems for column in self._infos for stems in column if stems]
        return {w: math.log((len(held) + 1) / (0.5 + sum(w in stems for stems in held))) for w in self.asked.stems}

    def _share(self, held: frozenset[str]) -> float:
        return sum(weight for word, weight in self._weights.items() if word in held)

    def _row(self, row: int) -> dict[str, float]:
        cells = frozenset().union(*(column[row] for column in self._cells))
        infos = frozenset().union(*(column[row] for column in self._infos))
        mentions = [self._mention(column, row) for column in range(len(self.fields))]
        names = self.asked.names
        text = " ".join(
            " ".join(_stems(cell)) for field in self.fields for cell in (field.cells[row], *field.passages[row])
        )
        return {
            "row_in_cells": self._share(cells),
            "row_in_passages": self._share(infos - cells),
            "row_best_passage": max((self._share(column[row]) for column in self._infos), default=0.0),
            "row_names": len(names & (cells | infos)) / len(names) if names else 0.0,
            "row_cell_mentioned": max(mentions, default=0.0),
            "row_pairs": self._runs(text, 2),
            "row_triples": self._runs(text, 3),
            "row_extreme": self._extreme(row),
        }

    def _runs(self, text: str, length: int) -> float:
        """Return the share of the question's runs of so many words that stand in a text of stems."""
        question_words = self._said.split()
        runs = [" ".join(question_words[i : i + length]) for i in range(len(question_words) - length + 1)]
        return sum(run in text for run in runs) / len(runs) if runs else 0.0

    def _best_sentence(self, texts: Sequence[str], wanted: Sequence[str]) -> float:
        """Return the greatest share, by rarity, of the wanted words that stand in one sentence."""
        total = sum(max(0.0, self._passage_weights[w]) for w in wanted)
        if total <= 0:
            return 0.0
        sentences = [frozenset(_stems(part)) for text in texts for part in _SENTENCE.split(text)]
        return (
            max(
                (sum(max(0.0, self._passage_weights[w]) for w in wanted if w in sentence) for sentence in sentences),
                default=0.0,
            )
            / total
        )

    def _mention(self, column: int, row: int) -> float:
        """Say how much a question says a whole cell: the weight of its words, or 0 where it says only some."""
        cell_stems = " ".join(_stems(self.fields[column].cells[row]))
        return self._share(self._cells[column][row]) if cell_stems and f" {cell_stems} " in self._said else 0.0

    def _extreme(self, row: int) -> float:
        """Return whether a row is the first or last by a column of numbers, as a superlative asks for."""
        if not self.asked.extremes:
            return 0.0
        sign = self.asked.extremes[0]
        best = 0.0
        for column, field in enumerate(self.fields):
            numbers = [_number(cell) for cell in field.cells]
            known = [n for n in numbers if n is not None]
            if len(known) * 2 < self.rows or numbers[row] is None or not known:
                continue
            if numbers[row] == (max(known) if sign > 0 else min(known)):
                best = max(best, 1.0 if self._headers[column] & set(self.asked.stems) or _is_year(field) else 0.5)
        return best

    def _cell(self, spot: CellPlace) -> dict[str, float]:
        header, cell, row = self._headers[spot.column], self._cells[spot.column][spot.row], self._row_features[spot.row]
        text = self.fields[spot.column].cells[spot.row]
        fits = _fits(text, self.asked.kind, header)
        others = [
            self._cells[c][spot.row] | self._infos[c][spot.row] for c in range(len(self.fields)) if c != spot.column
        ]
        elsewhere = self._share(frozenset().union(*others)) if others else 0.0
        return {
            "cell": 1.0,
            f"cell_{self.asked.kind}": 1.0,
            "cell_header_asked": _overlap(header, self.asked.asked),
            "cell_header_in_question": _overlap(header, frozenset(self.asked.stems)),
            "cell_said": self._share(cell),
            "cell_type_fits": float(fits is True),
            "cell_type_misfits": float(fits is False),
            "cell_elsewhere": elsewhere,
            "cell_first": float(spot.column == 0),
            "cell_unexplained": 1.0 - elsewhere,
            "cell_header_fits": float(self._kinds[spot.column] == self.asked.kind),
            "cell_header_misfits": float(
                self.asked.kind != "what" and self._kinds[spot.column] not in ("", self.asked.kind)
            ),
            "cell_by_passages": row["row_in_passages"],
            "cell_by_passage_runs": max(
                (self._runs(" ".join(_stems(" ".join(f.passages[spot.row]))), 2) for f in self.fields if f.info),
                default=0.0,
            ),
            "cell_by_mention": row["row_cell_mentioned"],
            "cell_header_last": float(bool(header) and bool(self._last_word(spot.column) & self.asked.asked)),
        }

    def _last_word(self, column: int) -> frozenset[str]:
        return frozenset(_stems(self.fields[column].name)[-1:])

    def _info(self, spot: CellPlace) -> dict[str, float]:
        header, held = self._headers[spot.column], self._infos[spot.column][spot.row]
        cells = frozenset().union(*(column[spot.row] for column in self._cells))
        texts = self.fields[spot.column].passages[spot.row]
        stems = " ".join(" ".join(_stems(text)) for text in texts)
        left = [w for w in self.asked.stems if w not in cells]
        kind, row = self._kinds[spot.column], self._row_features[spot.row]
        return {
            "info_by_cells": row["row_in_cells"],
            "info_by_mention": row["row_cell_mentioned"],
            "info_cell_asked": max(_overlap(other, self.asked.asked) for other in self._headers),
            "info_other_passages": max(
                (self._share(column[spot.row]) for i, column in enumerate(self._infos) if i != spot.column), default=0.0
            ),
            "info_pairs": self._runs(stems, 2),
            "info_triples": self._runs(stems, 3),
            "info_sentence": self._best_sentence(texts, left),
            "info_rare": sum(self._passage_weights[w] for w in left if w in held) / 10,
            "info_header_who": float(kind == "who"),
            "info_header_where": float(kind == "where"),
            "info_header_work": float(kind == "work"),
            "info_header_asked": _overlap(header, self.asked.asked),
            "info_header_in_question": _overlap(header, frozenset(self.asked.stems)),
            "info_said": self._share(held),
            "info_unexplained": len([w for w in self.asked.stems if w in held and w not in cells])
            / max(1, len(self.asked.stems)),
            "info_type_fits": float(_fits(" ".join(texts), self.asked.kind, header, inside=True) is True),
            "info_asked_word": _overlap(self.asked.asked, held),
            "info_first": float(spot.column == 0),
            "info_cell_mentioned": self._mention(spot.column, spot.row),
            "info_names": len(self.asked.names & held) / len(self.asked.names) if self.asked.names else 0.0,
            "info_length": math.log1p(sum(map(len, texts))) / 10,
        }


@lru_cache(maxsize=20_000)
def _stems(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in words(text) if word not in STOPWORDS)


def _overlap(some: frozenset[str], others: frozenset[str]) -> float:
    return len(some & others) / len(some) if some else 0.0


def _number(text: str) -> float | None:
    found = _NUMBER.search(text)
    try:
        return float(found[0].replace(",", "")) if found else None
    except ValueError:
        return None


def _is_year(field: Field) -> bool:
    return sum(bool(_YEAR.search(cell)) for cell in field.cells) * 2 > len(field.cells)


def _fits(text: str, kind: str, header: frozenset[str], *, inside: bool = False) -> bool | None:
    """Return whether words can be what is asked for; None where nothing speaks for or against it."""
    if kind == "count":
        return bool(_NUMBER.search(text))
    if kind == "when":
        return bool(_YEAR.search(text) or header & {"date", "year", "month", "day", "season"})
    if kind in ("who", "where") and not inside:
        return None if re.search(r"[A-Za-z]{3}", text) and not _NUMBER.fullmatch(text.strip()) else False
    return None
