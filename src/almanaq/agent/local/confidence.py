"""Whether a query says what was asked: each word of the question is held against the query, and each part of the query
against the words.

The parser may take any road to a query; this looks only at the two ends. A word that nothing in the query answers to,
or a part of the query that no word asks for, is what makes a reply doubtful (see `Account`), and `probability` weighs
them as they were seen to matter on questions of databases that were not used to fit the weights
(experiments/local/fit_confidence.py).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import sqlglot
from sqlglot import exp

from almanaq.agent.local.reading import Reading
from almanaq.agent.local.schema_index import SchemaIndex
from almanaq.agent.local.spoken import relation_stems, spoken
from almanaq.agent.local.understand import Understanding
from almanaq.agent.local.words import Word, identifier_stems, roots, split, stem, stems, word_set

CONFIDENCE = 0.7
"""The probability of being right below which a question is declined that was understood whole."""
_SILENT = word_set(
    """
    a an the of to in on at for from with by as and or is are was were be been being do does did done has have had
    having what which who whom whose where when how why that this these those there here it its they them their he his
    she her we our us you your i my me please can could would should will shall may might show list give tell find get
    display return provide see want need like know let let's all any each every some so then than if into out up per
    also both either belong belongs has's what's who's ? , ; ! about much many together along corresponding respective
    respectively give's currently exist exists existing recorded record records entry entries table database data row
    rows detail details information info one ones thing things only just ever different distinct unique various
    value values result results sort sorted order ordered ordering ascending descending alphabetical alphabetically
    """
)
"""Words that ask for nothing by themselves, or whose cue is looked for apart."""
_COUNTS = (
    ("how", "many"),
    ("number", "of"),
    ("count", "of"),
    ("count",),
    ("numbers", "of"),
    ("frequency",),
    ("times",),
)
_CUES: dict[str, frozenset[str]] = {
    "average": word_set("average mean avg averages"),
    "total": word_set("total sum altogether combined overall"),
    "most": word_set("most highest largest biggest greatest longest maximum max top best tallest oldest newest latest")
    | word_set("heaviest fastest strongest deepest widest richest costliest hottest warmest busiest earliest first")
    | word_set("dearest priciest brightest farthest furthest hardest densest last recent popular common frequent"),
    "least": word_set("least lowest smallest fewest shortest minimum min worst youngest lightest slowest cheapest")
    | word_set("coldest coolest nearest closest weakest thinnest poorest bottom rarest eldest"),
    "group": word_set("per each every by"),
    "not": word_set("not no never without except excluding neither nor non n't isn't aren't doesn't don't didn't")
    | word_set("wasn't weren't hasn't haven't lacking missing unknown none lacks lack empty null other"),
    "compare": word_set("more less fewer greater smaller larger higher lower above below over under before after since")
    | word_set(
        "between least most than older younger longer shorter earlier later exceeds exceed until exactly within"
    ),
    "share": word_set("percentage percent proportion share ratio fraction median variance deviation % correlation"),
    "difference": word_set("difference compared versus vs increase decrease change growth rise drop gap"),
    "order": word_set(
        "sort sorted order ordered ordering ascending descending alphabetical alphabetically rank ranked"
    ),
    "distinct": word_set("different distinct unique various"),
    "both": word_set("both neither either"),
    "same": word_set("same similar identical equal"),
}
_SUPERLATIVE = re.compile(r"[a-z]{3,}(?:est|iest)$")
_NUMBER = re.compile(r"[$€£]?\d[\d,]*(?:\.\d+)?[kKmM%]?\+?$")
_SPELLED = dict(
    zip("one two three four five six seven eight nine ten eleven twelve".split(), range(1, 13), strict=True)
)


@dataclass(frozen=True, slots=True)
class Account:
    """A question held against a query.

    Attributes:
        unexplained: the words of the question that no part of the query answers to.
        features: by name, as the weights know them.
    """

    unexplained: tuple[str, ...]
    features: Mapping[str, float]

    @property
    def probability(self) -> float:
        """The probability that the query gives what was asked."""
        weights = _weights()
        total = weights["bias"] + sum(weights.get(name, 0.0) * value for name, value in self.features.items())
        return 1 / (1 + math.exp(-total))


@dataclass(frozen=True, slots=True)
class Judged:
    """The best query for a question.

    Attributes:
        probability: that it gives what was asked.
        understood: the query, where every word of the question was understood; None for a guess.
        unknown: the words that the query leaves out; `missing` what else was not understood.
        strange: the words of which nothing at all is known.
    """

    suql: str
    probability: float
    understood: str | None
    guess: Reading | None
    unknown: tuple[str, ...]
    missing: str = ""
    strange: tuple[str, ...] = ()

    def is_sure(self, confidence: float) -> bool:
        """Say whether the query may be run; a guess is only shown."""
        return (self.understood is not None or confidence < 0) and self.probability >= confidence


def not_sure(judged: Judged) -> str:
    """Say what was not understood, and give the nearest query to edit."""
    words = ", ".join(f"“{word}”" for word in dict.fromkeys(judged.unknown))
    why = f"I do not know what to make of {words}" if words else "I am not sure that I understood the question"
    if judged.missing:
        why = f"One thing is not clear to me: {judged.missing}"
    return (
        f"{why}, so I ran nothing. The nearest query that I could write is below; edit it, or ask again in the words "
        f"of the tables.\n\n    {judged.suql}"
    )


def parse_tree(suql: str) -> exp.Query:
    """Give the tree of a query that was written here."""
    tree = sqlglot.parse_one(suql, read="postgres")
    assert isinstance(tree, exp.Query)
    return tree


@cache
def _weights() -> dict[str, float]:
    import json

    text = files("almanaq.agent.local").joinpath("confidence.json").read_text("utf-8")
    found: dict[str, float] = json.loads(text)["weights"]
    return found


def account(
    question: str, tree: exp.Query, index: SchemaIndex, understood: Understanding, guess: exp.Query | None
) -> Account:
    """Hold a question against a query of the relations in `index`.

    Args:
        understood: what the words were understood as; where that is a query, it is `tree`.
        guess: the query of the parser that links what it can.
    """
    told = _Accounting(question, tree, index).result()
    whole = understood.suql is not None
    agree = whole and guess is not None and _parts(guess) == _parts(tree)
    ways = {
        "understood": float(whole),
        "agree": float(agree),
        "disagree": float(whole and guess is not None and not agree),
        "unknown words": float(len(understood.unknown)),
        "no figure": float(not whole and not understood.unknown),
    }
    return Account(told.unexplained, {**told.features, **ways})


def _parts(tree: exp.Query) -> list[str]:
    """Give what a query is made of, whatever its form: two that have the same ask the same."""
    names = [node.name.lower() for node in tree.find_all(exp.Column, exp.Table, exp.Literal)]
    kinds = tree.find_all(exp.AggFunc, exp.Not, exp.Group, exp.Limit, exp.Having)
    return sorted([*names, *(type(node).__name__ for node in kinds)])


class _Accounting:
    def __init__(self, question: str, tree: exp.Query, index: SchemaIndex) -> None:
        self.question, self.tree, self.index = question, tree, index
        self.words = split(question)
        self.folded = [word.folded for word in self.words]
        self.stems = [word.stem for word in self.words]
        self.tables = {table.name: index.catalog.find(table.name) for table in tree.find_all(exp.Table)}
        self.said = set(self.stems) | set(self.folded)
        self.rooted = {root for word in self.words for root in roots(word.stem)}

    def result(self) -> Account:
        named, literal = self._names(), self._literals()
        cues = self._cues()
        unexplained = []
        for word in self.words:
            if word.folded in _SILENT or word.folded in cues["told"]:
                continue
            if word.stem in named or word.stem in literal or word.folded in literal or roots(word.stem) & named:
                continue
            unexplained.append(word)
        features = {f"cue {name}": float(value) for name, value in cues["flags"].items()}
        features |= self._unexplained_features(unexplained)
        features |= self._unjustified()
        features |= self._shape()
        return Account(tuple(word.text for word in unexplained), features)

    # --- words --------------------------------------------------------------------------------------------------

    def _names(self) -> set[str]:
        """Give the stems of everything the query names."""
        found: set[str] = set()
        for name, relation in self.tables.items():
            found |= set(relation_stems(relation)) if relation is not None else set(identifier_stems(name))
        for column in self.tree.find_all(exp.Column):
            found |= set(self._column_stems(column))
        return found | {root for each in found for root in roots(each)}

    def _column_stems(self, column: exp.Column) -> tuple[str, ...]:
        for relation in self.tables.values():
            known = relation.column(column.name) if relation is not None else None
            if known is not None:
                return (*spoken(known.name, known.description), *identifier_stems(known.name))
        return identifier_stems(column.name)

    def _literals(self) -> set[str]:
        found: set[str] = set()
        for literal in self.tree.find_all(exp.Literal):
            found |= set(stems(literal.name)) | {literal.name.casefold()}
            if not literal.is_string:
                found |= {word for word, number in _SPELLED.items() if str(number) == literal.name}
            elif re.match(r"\d{4}-\d\d-\d\d", literal.name):
                found |= {literal.name[:4], "january", "year", "month", "last", "this", "day", "week"}
        return found

    # --- cues ---------------------------------------------------------------------------------------------------

    def _cues(self) -> dict[str, Any]:
        """Give the words whose cue the query has taken up, and the cues that it has not, or has without a word."""
        tree, told, flags = self.tree, set[str](), dict[str, bool]()
        has = {
            "average": bool(tree.find(exp.Avg)),
            "total": bool(tree.find(exp.Sum)) or self._counts(),
            "most": self._ranks(True),
            "least": self._ranks(False),
            "group": bool(tree.find(exp.Group)),
            "not": bool(tree.find(exp.Not, exp.NEQ))
            or any(isinstance(i.expression, exp.Null) for i in tree.find_all(exp.Is)),
            "compare": bool(tree.find(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)),
            "share": bool(tree.find(exp.Div)),
            "difference": bool(tree.find(exp.Sub)),
            "order": bool(tree.find(exp.Order)),
            "distinct": bool(tree.find(exp.Distinct)) or self._counts(),
            "both": False,
            "same": False,
        }
        literal = self._literals() | self._names()
        for cue, words in _CUES.items():
            said = {w for w in self.folded if w in words and (w not in literal or cue in ("average",))}
            if cue in ("most", "least"):
                said |= {w for w in self.folded if _SUPERLATIVE.fullmatch(w) and w in words}
            if cue == "most" and not (has["most"] or has["least"]):
                said |= {w for w in self.folded if _SUPERLATIVE.fullmatch(w) and w not in literal}
            if cue == "compare":
                said -= {w for w in said if w in ("least", "most") and not self._after(w, "at")}
            if cue in ("most", "least"):
                said -= {w for w in said if w in ("least", "most") and self._after(w, "at")}
            flags[f"{cue} asked, not done"] = bool(said) and not has[cue]
            flags[f"{cue} done, not asked"] = has[cue] and not said
            told |= said if has[cue] else set()
        counted = any(self._says(cue) for cue in _COUNTS)
        flags["count asked, not done"] = counted and not self._counts()
        flags["count done, not asked"] = self._counts() and not counted
        told |= {"number", "count", "times", "frequency", "numbers"} if self._counts() else set()
        told |= {word for word in self.folded if _SUPERLATIVE.fullmatch(word)} if has["most"] or has["least"] else set()
        return {"told": told, "flags": flags}

    def _counts(self) -> bool:
        return bool(self.tree.find(exp.Count))

    def _ranks(self, down: bool) -> bool:
        if self.tree.find(exp.Max if down else exp.Min):
            return True
        return self.tree.find(exp.Limit) is not None and any(
            bool(o.args.get("desc")) is down for o in self.tree.find_all(exp.Ordered)
        )

    def _after(self, word: str, before: str) -> bool:
        return any(a == before and b == word for a, b in pairwise(self.folded))

    def _says(self, cue: tuple[str, ...]) -> bool:
        size = len(cue)
        return any(tuple(self.folded[i : i + size]) == cue for i in range(len(self.folded) - size + 1))

    # --- features -----------------------------------------------------------------------------------------------

    def _unexplained_features(self, words: list[Word]) -> dict[str, float]:
        content = [w for w in self.words if w.folded not in _SILENT]
        numbers = [w for w in words if _NUMBER.match(w.text) or w.folded in _SPELLED]
        proper = [w for w in words if w.capitalised and w.start > 0 and w not in numbers]
        schema = {s for r in self.index.catalog.relations for s in relation_stems(r)}
        schema |= {s for place in self.index.all_places() for s in place.stems}
        in_schema = [w for w in words if w.stem in schema]
        others = len(words) - len(numbers) - len(proper)
        return {
            "unexplained words": min(others, 4.0),
            "any unexplained": float(bool(words)),
            "unexplained share": len(words) / max(1, len(content)),
            "unexplained numbers": float(len(numbers)),
            "unexplained names": float(len(proper)),
            "unexplained words of the schema": float(len(in_schema)),
        }

    def _unjustified(self) -> dict[str, float]:
        """Count the parts of the query that no word asks for."""
        tables = 0
        for name, relation in self.tables.items():
            own = set(relation_stems(relation)) if relation is not None else set(identifier_stems(name))
            columns = {s for c in relation.columns for s in identifier_stems(c.name)} if relation is not None else set()
            tables += not (own & self.said or {r for s in own for r in roots(s)} & self.rooted or columns & self.said)
        select = self.tree.selects if isinstance(self.tree, exp.Query) else []
        shown = [c for item in select for c in item.find_all(exp.Column)]
        unasked = sum(not self._asked(column) for column in shown)
        where = list(self._conditions())
        loose = sum(not any(self._asked(c) for c in part.find_all(exp.Column)) for part in where)
        limit = self.tree.args.get("limit")
        amount = limit.expression.name if limit is not None else ""
        spelled = {str(number) for word, number in _SPELLED.items() if word in self.folded}
        return {
            "tables not asked": float(tables),
            "shown, not asked": float(min(unasked, 3)),
            "all shown unasked": float(bool(shown) and unasked == len(shown)),
            "conditions on columns not named": float(loose),
            "limit not said": float(amount not in ("", "1") and amount not in self.folded and amount not in spelled),
            "order column not asked": float(
                any(not self._asked(c) for o in self.tree.find_all(exp.Ordered) for c in o.find_all(exp.Column))
            ),
            "aggregate over a column not asked": float(
                any(not self._asked(c) for a in self.tree.find_all(exp.AggFunc) for c in a.find_all(exp.Column))
            ),
            "group column not asked": float(
                any(not self._asked(c) for g in self.tree.find_all(exp.Group) for c in g.find_all(exp.Column))
            ),
        }

    def _conditions(self) -> Iterator[exp.Expr]:
        for where in self.tree.find_all(exp.Where):
            yield from where.this.flatten() if isinstance(where.this, exp.And) else [where.this]

    def _asked(self, column: exp.Column) -> bool:
        words = self._column_stems(column)
        return bool(set(words) & self.said or {root for word in words for root in roots(word)} & self.rooted)

    def _shape(self) -> dict[str, float]:
        tree = self.tree
        shown = [c for item in tree.selects for c in item.find_all(exp.Column)]
        partly = sum(not set(self._column_stems(c)) <= self.said for c in shown)
        rivals = 0
        for column in tree.find_all(exp.Column):
            own = set(self._column_stems(column)) & self.said
            rivals += sum(
                place.column.name != column.name and bool(own) and own == set(place.stems) & self.said
                for place in self.index.all_places()
                if place.relation.name in self.tables
            )
        literals = [x.name for x in tree.find_all(exp.Literal) if x.is_string]
        return {
            "relations": float(len(self.tables) - 1),
            "nested": float(bool(tree.find(exp.Subquery, exp.In))),
            "conditions": float(len(list(self._conditions()))),
            "partly named": float(min(partly, 3)),
            "rivals": float(min(rivals, 4)),
            "words": len([w for w in self.words if w.folded not in _SILENT]) / 10,
            "pattern": float(bool(tree.find(exp.ILike))),
            "literal not as written": float(
                sum(stem(x) not in self.said and x.casefold() not in self.question.casefold() for x in literals)
            ),
            "nothing but rows": float(
                not list(self._conditions()) and not tree.find(exp.AggFunc) and not tree.args.get("limit")
            ),
            "and": float(self.folded.count("and")),
            "clauses": float(sum(w in ("who", "that", "which", "whose", "where", "with") for w in self.folded[1:])),
            "asks of two": float(self.folded.count("and") > 0 and len(shown) < 2 and not tree.find(exp.And)),
            "text asked": float(any(isinstance(f, exp.Anonymous) for f in tree.find_all(exp.Anonymous))),
        }
