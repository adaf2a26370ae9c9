"""CatalogIndex: the relations, columns and values of a catalog by the words for them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from itertools import islice

from almanaq.agent.linking.columns import (
    NO_VALUE,
    LinkedColumn,
    head_words,
    link_column,
    name_column,
    other_names,
    relation_words,
    with_values,
)
from almanaq.agent.linking.english import english, measured_words, read_data, share_root, verb_forms
from almanaq.agent.linking.words import derived_forms, fold, identifier_stems, name_stems, stem, value_key
from almanaq.suql.catalog.relations import Catalog, ColumnKind, Relation
from almanaq.suql.catalog.terms import Term
from almanaq.text.words import edit_distance, tolerance

Values = Callable[[str, str, int], Sequence[str]]
"""(relation, column, limit) → distinct values, the most frequent first."""

MOST_VALUES, MOST_NAMES = 5000, 50_000
"""Most values that are read of a column, and of one of names."""
LONGEST_VALUE = 10
"""Words of the longest value that is looked up by its words."""
_DAY = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")
_FEW = 60
_PARTED = re.compile(r"\s*[;:(\[|,]")
"""What sets off the rest of a heading from the name that people say."""
_CODED = 0.9
_SHORTEST_CODE, _SHORTEST_WORD, _SHORTENED = 3, 5, 4
_CALLED_SO = 0.9
"""How surely a column is called by words, so that no other of its rows is by a part of its name."""
_TIES = frozenset(("a", "at", "by", "for", "in", "of", "on", "per", "the"))
_REORDERED = 0.93
"""How surely all words of a name in another order, or some shortened, mean the column."""
_BESIDE = 0.15
"""How much less a word means a column in whose name it only says more of another: "party at appointment"."""
_DROPPED_ENDS = ("name", "code", "type", "text", "value", "number", "no", "id", "count")
_UNSAID_ENDS = frozenset("on ft f c lb lbs s sec usd eur gbp chf kg g km m cm mm kw mw kwh mwh pct percent sq".split())
"""Units and prepositions that nobody says: `honey kg` is honey, `hired_on` hired."""


@dataclass(frozen=True, slots=True)
class ValueMeaning:
    """A value of a column that words spell.

    Attributes:
        value: as it is written in the column; of a list column the item.
        how: "" where the words are the whole value; "item" of a list; "part" where the value only holds them.
    """

    column: LinkedColumn
    value: str
    how: str = ""


@cache
def _spelled_out(word: str) -> str:
    """Return what a word of a column's name stands for: "weight" for `wt`, and for `bodywt`."""
    known = english().abbreviations
    ends = (full for short, full in known.items() if len(word) > len(short) + 3 and word.endswith(short))
    return word if word in measured_words() else stem(known.get(word) or next(ends, word))


def _shortens(own: str, said: str) -> bool:
    """Return whether a word of a name stands for a word: `pr` for price, `rate` for rating, "cap" of `capital`."""
    shorter, longer = sorted((own, said), key=len)
    short = len(shorter) > (shorter is said) + 1 and shorter.isalpha() and longer.startswith(shorter)
    return short or said in verb_forms(own)


@dataclass(frozen=True, slots=True)
class Named:
    """A relation or column that words name, and how surely."""

    thing: Relation | LinkedColumn
    sureness: float
    how: str = ""


class CatalogIndex:
    """What a catalog holds, by words.

    Args:
        catalog: the relations to index.
        values: gives the values of a column; those of prose, keys and private columns are not asked for.
        today: gives the date that "last year" refers to.
        is_unique: (relation, column) → whether no two rows share a value.
    """

    def __init__(
        self,
        catalog: Catalog,
        values: Values,
        today: Callable[[], date] = date.today,
        is_unique: Callable[[str, str], bool] = lambda *_: False,
    ) -> None:
        self.catalog, self.today, self._read, self._is_unique = catalog, today, values, is_unique
        self._values: dict[str, list[ValueMeaning]] = defaultdict(list)
        self._by_stems: dict[tuple[str, ...], list[ValueMeaning]] = defaultdict(list)
        self._parts: dict[str, set[ValueMeaning]] = defaultdict(set)
        self._forms: dict[str, set[ValueMeaning]] = defaultdict(set)
        self._first: dict[str, int] = defaultdict(int)
        self.columns: dict[str, tuple[LinkedColumn, ...]] = {
            relation.name: tuple(self._index_values(link_column(relation, column)) for column in relation.columns)
            for relation in catalog.relations
        }
        self._named: dict[tuple[str, ...], list[Named]] = defaultdict(list)
        self._holding: dict[str, list[LinkedColumn]] = defaultdict(list)
        self._by_words: dict[frozenset[str], list[LinkedColumn]] = defaultdict(list)
        for column in self.all_columns():
            self._index_names(column)
        for relation in catalog.relations:
            named, words = self.name_of(relation), {word for c in self.columns[relation.name] for word in c.words}
            if named.calls and named.names_rows and not (named.is_identifier or {"name", "title"} & words):
                for said in ("name", "title"):
                    self._named[(said,)].append(Named(named, 0.85, "described"))
        self._tables: dict[tuple[str, ...], list[Named]] = defaultdict(list)
        self.timed: dict[str, str] = {}
        for relation in catalog.relations:
            self._index_relation(relation)
        self._terms: dict[tuple[str, ...], list[Term]] = defaultdict(list)
        for term in catalog.terms:
            self._index_term(term)
        self.longest_name = max((len(words) for words in (*self._named, *self._tables, *self._terms)), default=1)

    def all_columns(self) -> Iterable[LinkedColumn]:
        """Yield every column of every relation."""
        for columns in self.columns.values():
            yield from columns

    def name_of(self, relation: Relation) -> LinkedColumn:
        """Return the column that names the rows of a relation."""
        return name_column(self.columns[relation.name])

    def column(self, relation: str, name: str) -> LinkedColumn | None:
        """Return a column by its names, folding case; None where there is none."""
        folded = name.casefold()
        return next((c for c in self.columns.get(relation, ()) if c.name.casefold() == folded), None)

    def values_of(self, column: LinkedColumn) -> Sequence[str]:
        """Return the values of a text column, the most frequent first; () of one that is not read."""
        if column.column.private or column.kind == "prose":
            return ()
        return column.column.values or self._read(column.relation.name, column.name, MOST_VALUES)

    def days_of(self, column: LinkedColumn) -> list[str]:
        """Return the days that a column of dates holds, as far as they are read, in order."""
        return sorted(value[:10] for value in self.values_of(column) if _DAY.match(value))

    # --- names --------------------------------------------------------------------------------------------------------

    def relations_named(self, words: tuple[str, ...]) -> list[Named]:
        """Return the relations that stems name."""
        return self._tables.get(words, [])

    def terms_named(self, words: tuple[str, ...]) -> list[Term]:
        """Return the terms that stems name."""
        return self._terms.get(words, [])

    def columns_named(self, words: tuple[str, ...]) -> list[Named]:
        """Return the columns that stems name, wholly or in part, the surest first."""
        found = {id(each.thing): each for each in reversed(self._named.get(words, []))}
        called = {each.thing.relation.name for each in found.values() if each.sureness >= _CALLED_SO}  # type: ignore[union-attr]
        if len(words) > 1 and not found:  # "date of birth", "city mpg" of `MPG.city`
            said = frozenset(words) - _TIES
            for column in self._by_words.get(said, ()) if not _TIES & {words[0], words[-1]} else ():
                found[id(column)] = Named(column, 1.0 if any(map(str.isdigit, words)) else _REORDERED)  # "2021 price"
        if len(words) > 1 and not found:
            for column in self.all_columns():
                if len(column.words) == len(words) and all(map(_shortens, column.words, words)):
                    found[id(column)] = Named(column, _REORDERED)  # "start price" of `start_pr`
        if len(words) == 1 or not found:
            for column in self._holding.get(words[0], ()):
                size = len(words)
                at = [i for i in range(len(column.words) - size + 1) if column.words[i : i + size] == words]
                if not at and size > 1 and {*words} < {*column.words}:
                    at = [-1]  # the aircraft model is an `aircraft_make_model`
                if at and id(column) not in found and column.relation.name not in called:
                    ends = at[-1] + size == len(column.words)
                    sure = 0.62 + 0.2 * size / len(column.words) + 0.06 * ends
                    sure -= _BESIDE * bool(_TIES.intersection(column.words[: at[-1]]))
                    found[id(column)] = Named(column, sure, "part")
        return sorted(found.values(), key=lambda each: -each.sureness)

    def columns_like(self, word: str) -> list[Named]:
        """Return the columns of whose name a word is another form or a synonym: "directed" of `director`."""
        found: dict[int, Named] = {}
        said = stem(word)
        meant = english().verbs.get(word, frozenset()) | english().synonyms.get(said, frozenset())
        for column in self.all_columns():
            words = [w for w in column.words if w not in ("by", "at", "on", "in", "date", "is", "has")]
            if not words or (column.is_identifier and column.kind == "number"):
                continue
            head = words[-1] if len(words) < 3 else ""
            if [said + "er"] == words or words in [[said.removesuffix(end)] for end in ("iest", "est", "ier")]:
                found[id(column)] = Named(column, 0.92)  # who owns it, the owner says, and the windiest has most `wind`
            elif len(said) > 3 and any(share_root(said, own) for own in words[:1] if len(words) == 1 or len(own) > 4):
                found[id(column)] = Named(column, 0.78 if len(words) == 1 else 0.7, "root")
            elif len(words) == 1 and (said in verb_forms(words[0]) or derived_forms(said) & derived_forms(words[0])):
                found[id(column)] = Named(column, 0.76, "root")  # "ended" of `end_date`
            elif len(words) == 1 and _SHORTENED <= len(words[0]) < len(said) and said.startswith(words[0]):
                found[id(column)] = Named(column, 0.7, "root")
            elif meant & {head, words[0]}:
                found[id(column)] = Named(column, 0.72 if len(words) == 1 else 0.66, "synonym")
            elif said in column.about and len(said) > 3:
                found[id(column)] = Named(column, 0.6, "described")
        return sorted(found.values(), key=lambda each: -each.sureness)

    def measured_by(
        self, measured: Iterable[tuple[str, bool]], relations: Iterable[str]
    ) -> list[tuple[LinkedColumn, bool]]:
        """Return the columns that an adjective measures, the likeliest first, each with whether more of it is more.

        One called so, if need be with the rows' noun ("pup_weight" of pups), goes before those that have more words.
        """
        found: dict[int, tuple[LinkedColumn, bool]] = {}
        ranked = [c for name in relations for c in self.columns[name] if c.is_ranked or "birth" in c.roles]
        for word, up in measured:
            fits = [c for c in ranked if word in (*map(_spelled_out, c.words), *c.words)]
            called = [c for c in fits if {*map(_spelled_out, c.words)} - {*relation_words(c.relation)[-1:]} <= {word}]
            told = {c.relation.name for c in called}
            for column in (*called, *(c for c in fits if c.relation.name not in told)):
                found.setdefault(id(column), (column, up))
        return [*found.values()]

    def _index_names(self, column: LinkedColumn) -> None:
        forms: dict[tuple[str, ...], float] = {}

        def add(words: Iterable[str], sure: float) -> None:
            key = tuple(words)
            if key and key not in forms:
                forms[key] = sure

        known = english()
        own = relation_words(column.relation)
        words = column.words
        add(words, 1.0)
        add(("".join(identifier_stems(column.name)),), 1.0)
        for parts in known.compounds.get("".join(words), ()), known.compounds.get(column.name.casefold(), ()):
            add(map(stem, parts), 1.0)
        spelled = tuple(stem(known.abbreviations.get(word, word)) for word in words)
        add(spelled, 0.97)
        if len(words) > 1 and (words[: len(own)] == own or words[0] in own):
            add(words[len(own) if words[: len(own)] == own else 1 :], 0.96)
        heading = identifier_stems(_PARTED.split(column.name, maxsplit=1)[0])
        if heading and all(heading != other.words for other in self.columns[column.relation.name]):
            add(heading, 0.97)  # "Protein (g)", "Iron; fe", "Yield, 12 months"
        trimmed = [w for w in words if not w.isdigit()]
        add(trimmed, 0.95)
        add((w for w in spelled if not w.isdigit()), 0.95)
        plain = [w for w in trimmed if w not in ("of", "in", "the", "per")]
        while len(plain) > 1 and plain[-1] in _UNSAID_ENDS:
            plain = plain[:-1]
            add(plain, 0.95)
        while len(plain) > 1 and plain[0] in _UNSAID_ENDS and english().unit_of(plain[0]):
            plain = plain[1:]  # `kmTravelled`
            add(plain, 0.95)
        if len(plain) > 1 and plain[-1] in _DROPPED_ENDS:
            refers = any(column.name in own_columns for own_columns, *_ in column.relation.foreign_keys)
            taken = any(other.words == tuple(plain[:-1]) for other in self.columns[column.relation.name])
            sure = 0.7 if refers or taken or self._has_relation(plain[:-1]) else 0.9
            add(plain[:-1], 0.93 if plain[-1] in ("name", "code") else sure)
        if len(plain) == 1:
            for end in (*_DROPPED_ENDS[:4], *known.abbreviations):
                if plain[0].endswith(end) and len(plain[0]) > len(end) + 3 and len(end) > 1:
                    head, tail = plain[0].removesuffix(end), known.abbreviations.get(end, end)
                    add((head,) if end in _DROPPED_ENDS else (head, tail), 0.87)
                    add((head, tail), 0.9)
        add(plain, 0.92)
        if column.kind == "boolean" and len(plain) > 1 and plain[-1] in ("ind", "indicator", "flag", "yn"):
            add(plain[:-1], 0.95)
        if trimmed[:2] == ["name", "of"]:
            add(trimmed[2:], 0.93)
        if len(plain) > 1 and plain[0] in ("is", "has", "num", "number", "total", "count", "no", "nb", "n"):
            add(plain[1:], 0.9)
        if len(trimmed) > 2 and "of" in trimmed[1:-1]:
            add(trimmed[: trimmed.index("of")], 0.86)
        for name in other_names(column.column.description):
            add(name, 0.97)
        said = head_words(column.column.description)
        if said and len(said) < 4:
            add(said, 0.85)
        for form in {frozenset(each) - _TIES for each in (words, spelled, plain)}:
            self._by_words[form].append(column)
        for noun in ("case", "incident") if column.tallies else ():
            add((noun,), 0.93)
        for words, sure in forms.items():
            self._named[words].append(Named(column, sure, "" if sure > 0.9 else "described"))
        for word in set(column.words):
            self._holding[word].append(column)
            full = stem(known.abbreviations.get(word, word))
            if full != word:
                self._holding[full].append(column)

    def _index_term(self, term: Term) -> None:
        """Index a term by its names, unless a relation is called so; one that is a column gives it more names."""
        column = None if term.grain else self.column(term.relation, term.expression.strip('"`'))
        names = name_stems(term)
        for words in filter(None, dict.fromkeys(names)):
            if any(not named.how and named.sureness > 1 for named in self._tables[words]):
                continue  # "orders" are rows, and their number counts them
            if column is None or term.kind != "dimension":
                self._terms[words].append(term)
            elif all(each.thing is not column for each in self._named[words]):
                self._named[words].append(Named(column, 0.97))

    def _has_relation(self, words: Sequence[str]) -> bool:
        return any(tuple(words) == relation_words(relation) for relation in self.catalog.relations)

    def _index_relation(self, relation: Relation) -> None:
        words, said = relation_words(relation), head_words(relation.description)
        known = english()

        def add(key: tuple[str, ...], sure: float, how: str = "") -> None:
            if key and all(each.thing is not relation for each in self._tables[key]):
                self._tables[key].append(Named(relation, sure, how))

        add(words, 1.06)
        add(("".join(words),), 1.0)
        if (named := self.name_of(relation)).kind == "date" and named.names_rows:
            ends = {day[4:] for day in self.days_of(named)}
            time = "year" if ends == {"-01-01"} else "month" if {end[3:] for end in ends} == {"-01"} else "day"
            self.timed[relation.name] = time
            add((time,), 0.9)
        for column in self.columns[relation.name][:1]:
            add(column.row_noun if column.numbers else (), 1.06)
        add(tuple(stem(known.abbreviations.get(word, word)) for word in words), 1.0)
        for name in other_names(relation.description):
            add(name, 1.0)
        if len(words) > 1:
            add(words[-1:], 0.92)
            add(words[:1], 0.7, "part")
            for size in range(2, min(len(words), 4)):
                add(words[-size:], 0.95)
        add(said[:2], 0.85, "described")
        add(said[:1], 0.8, "described")
        amounts = known.roles["price"] | known.roles["pay"] | known.roles["revenue"]
        for word in words[-1:]:
            for other in known.synonyms.get(word, frozenset()) - amounts:  # revenue is what sales bring in
                add((other,), 0.8, "synonym")
        held = {part for column in self.columns[relation.name] for part in column.words}
        for noun, columns in known.things.items():
            others = [r for r in self.catalog.relations if r is not relation]
            if (
                columns & held
                and noun not in held
                and not any(columns & {w for c in self.columns[r.name] for w in c.words} for r in others)
            ):
                for each in {noun, *known.synonyms.get(noun, ())} - amounts:
                    add((each,), 0.75, "described")
        if known.person_columns & held:
            others = [r for r in self.catalog.relations if r is not relation]
            alone = not any(known.person_columns & {w for c in self.columns[r.name] for w in c.words} for r in others)
            for noun in known.people:
                add((stem(noun),), 0.86 if alone else 0.6, "described")

    # --- values -------------------------------------------------------------------------------------------------------

    def values_spelled(self, text: str) -> list[ValueMeaning]:
        """Return the values that a text spells, without regard to case, accents and marks."""
        return self._values.get(value_key(text), [])

    def values_of_stems(self, words: tuple[str, ...]) -> list[ValueMeaning]:
        """Return the values of kinds that stems spell: 'dog' of "dogs"; no plural is a name."""
        return self._by_stems.get(words, [])

    def longest_from(self, word: str) -> int:
        """Return how many words the longest value has that begins with a word."""
        return self._first.get(word, 0)

    def values_like(self, word: str) -> list[ValueMeaning]:
        """Return the one value of which a word is another form ("Retirement" of retired), or which is its code."""
        if len(word) < _SHORTEST_WORD:
            return []
        found = {each for form in derived_forms(stem(word)) for each in self._forms.get(form, ())}
        if not found:
            sizes = range(min(_SHORTEST_CODE + 1, max(_SHORTEST_CODE, len(word) // 2)), len(word))
            found = {each for size in sizes for each in self._forms.get("code:" + word[:size], ())}
        return [*found] if len({each.value for each in found}) == 1 else []

    def values_holding(self, words: tuple[str, ...]) -> list[ValueMeaning]:
        """Return the values that hold these words in a row."""
        sets = [self._parts.get(word, set()) for word in words]
        shared = set.intersection(*sets) if sets else set()
        found = [m for m in shared if _holds(tuple(value_key(m.value).split()), words)]
        return sorted(found, key=lambda m: (m.column.relation.name, m.column.name, m.value))

    def nearest_values(self, text: str) -> list[ValueMeaning]:
        """Return the values nearest in spelling to a text, within the tolerance for its length."""
        key = value_key(text)
        limit = tolerance(key)
        best: list[str] = []
        for known in self._spellings().get(key[:1], ()) if limit else ():
            if abs(len(known) - len(key)) > limit:
                continue
            edits = edit_distance(key, known, limit)
            if edits < limit or (edits == limit and not best):
                best = [known] if edits < limit else [*best, known]
                limit = edits
        return self._values[best[0]] if len(best) == 1 else []

    def values_beginning(self, text: str, most: int) -> list[ValueMeaning]:
        """Return values that begin with a text, without regard to case, accents and marks, in alphabetical order."""
        key = value_key(text)
        known = (spelled for spelled in self._spellings().get(key[:1], ()) if spelled.startswith(key))
        found = (meaning for spelled in sorted(known) for meaning in self._values[spelled])
        return [*islice((each for each in found if value_key(each.value).startswith(key)), most)]

    def nearest_name(self, word: str) -> str | None:
        """Return the one word of names of relations and columns that is nearest in spelling to a word; else None."""
        limit = min(tolerance(word), 2)
        known = {part for words in (*self._named, *self._tables) for part in words} if limit else set()
        edits = {part: edit_distance(stem(word), part, limit) for part in known if part[:1] == word[:1]}
        least = min(edits.values(), default=limit + 1)
        near = [part for part, count in edits.items() if count == least]
        return near[0] if len(near) == 1 and least <= limit else None

    def _spellings(self) -> Mapping[str, list[str]]:
        if not hasattr(self, "_by_letter"):
            self._by_letter: dict[str, list[str]] = defaultdict(list)
            for key in self._values:
                self._by_letter[key[:1]].append(key)
        return self._by_letter

    def _index_values(self, column: LinkedColumn) -> LinkedColumn:
        """Make the values of a column findable; give the column with what they say of its kind."""
        noun = column.row_noun
        if noun and not any(
            noun == relation_words(other) for other in self.catalog.relations if other is not column.relation
        ):
            column = replace(column, numbers=self._is_unique(column.relation.name, column.name))
        if column.may_be_flag and {*map(str, self._read(column.relation.name, column.name, 3))} == {"0", "1"}:
            return replace(column, kind="boolean", yes=("1",), no=("0",))
        if column.kind == "date" and self._is_unique(column.relation.name, column.name):
            days = self.days_of(column)
            return replace(column, distinct=len(days)) if len({*days}) == len(days) else column
        if column.kind != "text" or column.column.private:
            return column
        if column.is_identifier and column.column.kind is not ColumnKind.ENUM and column.column.type != "text":
            return column
        values = column.column.values or tuple(self._read(column.relation.name, column.name, MOST_VALUES))
        column = with_values(column, values)
        if column.kind != "text":
            return column
        if len(values) == MOST_VALUES and column.names_rows and column.calls:
            values = tuple(self._read(column.relation.name, column.name, MOST_NAMES))
            column = with_values(column, values)
        for value in values:
            if value.casefold() in NO_VALUE:
                continue
            self._add_value(column, value, "")
            for item in dict.fromkeys(value.split(column.mark)) if column.mark and column.mark in value else ():
                self._add_value(column, item.strip(), "item")
        named = values if column.names_rows and not column.mark else ()
        heads = {value: value_key(value.split(",")[0]) for value in named}
        shared = Counter(heads.values())
        for value, head in heads.items():
            if shared[head] == 1:  # "Nike" of "Nike, Inc."
                self._add_other(column, value, head)
        if column.is_category or column.column.array:
            self._index_forms(column, values)
            for value in values:
                for group in english().same_values:
                    for other in group if value.casefold() in group else ():
                        self._add_other(column, value, other)
        self._index_codes(column, values)
        return column

    def _add_value(self, column: LinkedColumn, value: str, how: str) -> None:
        key = value_key(value)
        words = key.split()
        if not 0 < len(words) <= LONGEST_VALUE:
            return
        known = self._values[key]
        meaning = ValueMeaning(column, value, "item" if column.mark and not how else how)
        if any(m.column is column and m.value == value for m in known):
            return
        known.append(meaning)
        self._first[words[0]] = max(self._first[words[0]], len(words))
        if not column.names_rows or "name" not in column.roles:
            kind_words = tuple(stem(word) for word in words)
            self._by_stems[kind_words].append(meaning)
            self._first[kind_words[0]] = max(self._first[kind_words[0]], len(words))
        for word in words if len(words) > 1 and column.distinct <= MOST_VALUES else ():
            self._parts[word].add(meaning)

    def _index_forms(self, column: LinkedColumn, values: Sequence[str]) -> None:
        """Index the values of a kind by other forms of their word, and by words that begin with them."""
        codes = all(value.isalpha() and len(value) <= 7 for value in values if value.casefold() not in NO_VALUE)
        for value in values:
            if value.isalpha() and len(value) >= _SHORTEST_WORD:
                for form in derived_forms(stem(value)):
                    self._forms[form].add(ValueMeaning(column, value, "form"))
            elif len(words := value_key(value).split()) > 1 and value[:1].isupper():  # "SF"
                self._add_other(column, value, "".join(word[0] for word in words))
            if codes and len(value) >= _SHORTEST_CODE and len(values) <= 30:
                self._forms["code:" + fold(value)].add(ValueMeaning(column, value, "code"))

    def _index_codes(self, column: LinkedColumn, values: Sequence[str]) -> None:
        """Index codes of countries, continents, states and languages by their names, and names by their adjectives."""
        held = {value for value in values if value.casefold() not in NO_VALUE}
        if not held:
            return
        for kind, called in place_codes():
            if kind == "language" and "language" not in column.words and "lang" not in column.words:
                continue
            known = held & called.keys()
            least = 0.6 if kind in column.words or kind == "language" else _CODED
            if len(known) < 2 or len(known) < least * len(held):
                continue
            for value in known:
                for name in called[value]:
                    self._add_other(column, value, name)
            return
        named = [name for name in held if name in _adjectives()]
        if len(named) >= 3:
            for value in named:
                for name in _adjectives()[value]:
                    self._add_other(column, value, name)

    def _add_other(self, column: LinkedColumn, value: str, name: str) -> None:
        key = value_key(name)
        if (
            not key
            or key == value_key(value)
            or any(m.column is column and m.value == value for m in self._values[key])
        ):
            return
        self._values[key].append(ValueMeaning(column, value, "form"))
        first = key.split()[0]
        self._first[first] = max(self._first[first], len(key.split()))


def _holds(value: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    return any(value[i : i + len(parts)] == parts for i in range(len(value) - len(parts) + 1))


@cache
def _places() -> Mapping[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]:
    """Return the codes and the names of each country, state, continent and language."""
    data = read_data("places")
    return {kind: tuple(map(_called, filter(None, lines.split("\n")))) for kind, lines in data.items()}


def _called(line: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    codes, names = line.split(":")
    return tuple(codes.split()), tuple(name.strip() for name in names.split(","))


@cache
def place_codes() -> tuple[tuple[str, Mapping[str, tuple[str, ...]]], ...]:
    """Return for each kind of place, and each kind of its codes, what these stand for."""
    return tuple(
        (kind, {codes[i]: names for codes, names in places})
        for kind, places in _places().items()
        for i in range(len(places[0][0]))
    )


@cache
def _adjectives() -> Mapping[str, tuple[str, ...]]:
    """Return the names of countries and continents, with what else each is called."""
    listed = [names for kind in ("country", "continent") for _, names in _places()[kind]]
    return {name: names for names in listed for name in (names[0], *names[2:])}
