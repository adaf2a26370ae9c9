"""Links the words of a question to relations, columns and values of a schema."""

from __future__ import annotations

import re

from almanaq.agent.local.beyond import link_beyond
from almanaq.agent.local.chatter import drop_chatter
from almanaq.agent.local.dates import link_dates
from almanaq.agent.local.lexicon import ADJECTIVES, IGNORED, NEGATIONS, QUALITY
from almanaq.agent.local.links import ColumnLink, Links, RelationLink, ValueLink
from almanaq.agent.local.money import link_money
from almanaq.agent.local.numbers import link_numbers, number
from almanaq.agent.local.once import once
from almanaq.agent.local.orders import link_orders
from almanaq.agent.local.patterns import link_patterns
from almanaq.agent.local.persons import link_people
from almanaq.agent.local.schema_index import Meaning, Place, SchemaIndex
from almanaq.agent.local.spoken import relation_stems
from almanaq.agent.local.words import PAST, roots, split, stem, stems, word_set
from almanaq.suql.catalog.relations import Relation

_LONGEST = 8
_QUOTED = re.compile(
    "[\"\u201c\u201d\u2018]([^\"\u201c\u201d\u2019]{2,60})[\"\u201c\u201d\u2019]|(?<!\\w)'([^']{2,60})'(?!\\w)"
)
_COLUMN_WORDS = {
    "rated": "rating",
    "phone": "phone",
    "telephone": "phone",
    "called": "name",
    "named": "name",
    "hours": "hours",
    "hour": "hours",
    "website": "site",
    "email": "email",
    "priced": "price",
    "price": "price",
    "rating": "rating",
    "star": "rating",
    "address": "address",
    "located": "address",
    "salary": "pay",
    "name": "name",
    "review": "reviews",
    "city": "city",
    "town": "city",
}
"""Words that name a column by its role."""
_IDIOMS = frozenset(
    word_pair
    for phrases in (
        ("happy hour", "rush hour", "high chair", "wine list", "beer list", "beer garden", "tea light", "dining room"),
        ("price tag", "star chef", "food poisoning", "bar food", "lunch special", "lunch menu", "dinner menu"),
        ("kids menu", "kid menu", "open mic", "open kitchen", "open late", "brick oven", "live music", "dance floor"),
    )
    for word_pair in (tuple(phrase.split()) for phrase in phrases)
)
"""Pairs of words that mean one thing, and nothing that either of them names in a schema."""
_BETWEEN_NOT_AND_VALUE = frozenset(
    """a an the any in of be from is are use uses speak speaks own owns have has contain contains include includes serve
    serves live lives play plays like likes been being yet already currently come comes""".split()
)
_MONEY = frozenset(("pay", "revenue"))
_OF_PERSONS = _MONEY | {"age", "birth", "height", "weight"}
_BEFORE_NOUNS = word_set("the a an which what each every this that any all per many")
_UNDONE = re.compile(r"\bun(\w{2,}(?:ed|id|ld|nt))\b", re.IGNORECASE)
_TITLES = word_set("mr mrs ms miss dr prof professor sir")
_ORDINARY = word_set("room house rooms fast soul middle cream food time")
"""Words that are part of an option's name and say nothing without the rest of it."""


def link(question: str, index: SchemaIndex) -> Links:
    """Give everything that the question's words can be linked to, the longest and surest links first."""
    return _once_linked(question, index).copied()


@once
def _once_linked(question: str, index: SchemaIndex) -> Links:
    return _link(question, index)


def _link(question: str, index: SchemaIndex) -> Links:
    question = _UNDONE.sub(lambda match: _not(match, index), question)
    words = split(question)
    links = Links(question, words, [None] * len(words))
    idioms = _idioms(links)
    for i, word in enumerate(words):
        if word.text in ",;?!":
            links.used[i] = "mark"
    link_patterns(links)
    _quoted(links, index)
    _values(links, index, range(_LONGEST, 1, -1))
    _relations(links, index)
    if any(p.kind == "date" or "year" in p.stems for p in index.all_places()):
        link_dates(links, index.today())
    link_numbers(links)
    link_orders(links)
    _columns(links, index, least=2)
    _values(links, index, range(1, 0, -1))
    _columns(links, index, least=1)
    link_beyond(links)
    _options(links, index)
    _misspelt(links, index)
    _parts_of_names(links, index)
    _roles(links, index)
    _kin(links, index)
    _verbs(links, index)
    link_money(links, index)
    link_people(links, index)
    if links.folded(0) == "how" and links.folded(1) in ("tall", "far", "big", "heavy", "fast") and links.free(1, 2):
        links.take(1, 2, "wh")
    for i in idioms:
        links.used[i] = None
    links.idioms = frozenset(idioms)
    drop_chatter(links)
    links.implied = _implied(links, index)
    links.values.sort(key=lambda v: v.first)
    links.columns.sort(key=lambda c: c.first)
    return links


def _not(match: re.Match[str], index: SchemaIndex) -> str:
    """Give "not paid" for "unpaid" where the data knows "paid" and nothing unpaid."""
    done = stem(match[1])
    known = any(
        done in place.stems or roots(done) & roots(place.stems[0]) for place in index.all_places() if place.stems
    )
    whole = index.meanings((stem(match[0]),))
    return f"not {match[1]}" if not whole and (known or index.meanings((done,))) else match[0]


def _implied(links: Links, index: SchemaIndex) -> tuple[Relation, ...]:
    roles = {role for number in links.numbers for role in number.roles}
    roles |= {role for beyond in links.beyond for role, _ in beyond.order.choices}
    told = _OF_PERSONS if links.folded(0) == "who" else _MONEY
    roles |= {role for order in links.orders for role, _ in order.choices if role in told}
    found = {
        p.relation.name: p.relation
        for p in index.all_places()
        if not p.identifier and ((p.kind == "number" and roles & p.roles) or (p.kind == "date" and links.dates))
    }
    return tuple(found.values())


def _praised(links: Links, i: int) -> bool:
    """Say whether a word names a part of the row, and asks how good it is: "with great desserts"."""
    return links.folded(i - 1) in QUALITY and links.folded(i - 2) in (
        "with",
        "has",
        "have",
        "having",
        "serves",
        "serve",
    )


def _idioms(links: Links) -> list[int]:
    """Take the words of fixed expressions, that they are not linked one by one; give their places."""
    found: list[int] = []
    for i in range(len(links.words) - 1):
        if (links.stem(i), links.stem(i + 1)) in _IDIOMS:
            links.take(i, i + 2, "idiom")
            found += [i, i + 1]
    return found


def _add_value(links: Links, span: tuple[int, int], meanings: tuple[Meaning, ...], how: str = "") -> None:
    first, last = span
    negated = _negated(links, first)
    text = links.text(first, last)
    links.values.append(ValueLink(first, last, text, meanings, how == "part", how == "misspelt", negated))
    links.take(first, last, "value")


def _negated(links: Links, first: int) -> bool:
    """Say whether a negation stands before word `first`, and take it."""
    for k in range(first - 1, max(first - 4, -1), -1):
        word = links.folded(k)
        if word in NEGATIONS or (word == "than" and links.folded(k - 1) == "other"):
            links.take(k, k + 1, "negation")
            return True
        if word == "or" and any(v.negated and v.last == k for v in links.values):
            return True
        if word not in _BETWEEN_NOT_AND_VALUE:
            return False
    return False


def _quoted(links: Links, index: SchemaIndex) -> None:
    for match in _QUOTED.finditer(links.question):
        inside = [i for i, w in enumerate(links.words) if w.start >= match.start() and w.end <= match.end()]
        if not inside or not links.free(inside[0], inside[-1] + 1):
            continue
        parts = stems(match[1] or match[2])
        exact = index.meanings(parts) or index.misspelt(parts)
        found = exact or index.named_like(parts)
        if found:
            _add_value(links, (inside[0], inside[-1] + 1), found, "" if exact else "part")


def _values(links: Links, index: SchemaIndex, lengths: range) -> None:
    for length in lengths:
        for first in range(len(links.words) - length + 1):
            last = first + length
            if links.free(first, last) and not _plain(links, first, last) and not _praised(links, first):
                found = index.meanings(_parts(links, first, last))
                if found:
                    _add_value(links, (first, last), found)


def _parts(links: Links, first: int, last: int) -> tuple[str, ...]:
    return stems(links.text(first, last))


def _plain(links: Links, first: int, last: int) -> bool:
    """Say whether words are too ordinary to be a value: function words, or numbers."""
    for i in range(first, last):
        word = links.words[i]
        proper = word.capitalised and i > 0 and last - first == 1 and word.folded not in ("i", "i'm", "i've")
        if number(word.text) is None and (word.folded not in IGNORED or proper):
            return False
    return last - first < 3


def _options(links: Links, index: SchemaIndex) -> None:
    """Link words that are part of the values of an ENUM, unless they only describe."""
    for first in range(len(links.words) - 1):
        parts = _parts(links, first, first + 2)
        found = index.options_with(*parts) if links.free(first, first + 2) and len(parts) == 2 else ()
        if found and not set(parts) <= IGNORED:
            _add_value(links, (first, first + 2), found)
    for i, word in enumerate(links.words):
        ordinary = word.folded in IGNORED or word.folded in ADJECTIVES | _ORDINARY or len(word.stem) < 4
        if links.free(i, i + 1) and not ordinary and not _praised(links, i) and index.options_with(word.stem):
            _add_value(links, (i, i + 1), index.options_with(word.stem))


def _relations(links: Links, index: SchemaIndex) -> None:
    for i, word in enumerate(links.words):
        if links.free(i, i + 1) and (word.folded not in IGNORED or _names_a_relation(links, i, index)):
            found = index.relations_named(word.stem)
            if found:
                links.relations.append(RelationLink(i, found))
                links.take(i, i + 1, "relation")


def _names_a_relation(links: Links, i: int, index: SchemaIndex) -> bool:
    """Say whether a word that is mostly filler ("places") stands as a noun, and is the whole name of a relation."""
    word = links.words[i]
    before = links.folded(i - 1)
    noun = word.folded != word.stem or before in _BEFORE_NOUNS or (bool(before) and number(before) is not None)
    return noun and any(relation_stems(r) == (word.stem,) for r in index.catalog.relations)


def _columns(links: Links, index: SchemaIndex, least: int) -> None:
    """Link words that spell the whole name of a column of at least that many words."""
    names: dict[tuple[str, ...], list[Place]] = {}
    for place in index.all_places():
        names.setdefault(place.stems, []).append(place)
    for parts in sorted(names, key=lambda p: (-len(p), p)):
        if len(parts) < least or (least == 1 and len(parts) > 1):
            continue
        for first in range(len(links.words) - len(parts) + 1):
            window = tuple(links.stem(first + k) for k in range(len(parts)))
            soft = all(u in (None, "relation") for u in links.used[first : first + len(parts)])
            if window == parts and (links.free(first, first + len(parts)) or (len(parts) > 1 and soft)):
                links.columns.append(ColumnLink(first, first + len(parts), tuple(names[parts]), True))
                links.take(first, first + len(parts), "column")
                links.relations = [r for r in links.relations if not first <= r.first < first + len(parts)]


def _misspelt(links: Links, index: SchemaIndex) -> None:
    for length in (2, 1):
        for first in range(len(links.words) - length + 1):
            last = first + length
            ordinary = any(links.folded(k) in IGNORED or not links.folded(k).isalpha() for k in range(first, last))
            if links.free(first, last) and not ordinary and not _praised(links, first):
                found = index.misspelt(_parts(links, first, last))
                if found:
                    _add_value(links, (first, last), found, "misspelt")


def _parts_of_names(links: Links, index: SchemaIndex) -> None:
    """Link runs of capitalised words that are part of a name."""
    i = 0
    while i < len(links.words):
        end = i
        while (
            end < len(links.words)
            and links.free(end, end + 1)
            and links.words[end].capitalised
            and (end > i or links.folded(end) not in IGNORED)
        ):
            end += 1
        titled = end > i + 1 and links.folded(i).rstrip(".") in _TITLES
        found = index.named_like(_parts(links, i + titled, end)) if end > i else ()
        if found and titled:
            links.take(i, i + 1, "title")
            i += 1
        if found and (i > 0 or end - i > 1):
            _add_value(links, (i, end), found, "part")
        i = max(end, i + 1)


def _roles(links: Links, index: SchemaIndex) -> None:
    """Link words that name a column by part of its name ("phone") or by its role ("located")."""
    for i, word in enumerate(links.words):
        if not links.free(i, i + 1) or (word.folded in IGNORED and word.stem not in _COLUMN_WORDS):
            continue
        role = _COLUMN_WORDS.get(word.folded) or _COLUMN_WORDS.get(word.stem)
        found = [
            p
            for p in index.all_places()
            if p.kind != "prose" and (word.stem in p.stems[-1:] or word.stem in p.stems[:1])
        ]
        found = found or [p for p in index.all_places() if role and role in p.roles and p.kind != "prose"]
        if found:
            links.columns.append(ColumnLink(i, i + 1, tuple(found), False))
            links.take(i, i + 1, "column")


def _kin(links: Links, index: SchemaIndex) -> None:
    """Link verbs that share their stem with a relation's name: "directed" speaks of directors."""
    asks_who = links.folded(0) == "who"
    for i, word in enumerate(links.words):
        if not links.free(i, i + 1) or word.folded in IGNORED or len(word.stem) < 5:
            continue
        root = word.stem.removesuffix("ed").removesuffix("ing")
        kin = roots(word.stem) - {word.stem, root}
        named = [
            r
            for r in index.catalog.relations
            for part in relation_stems(r)
            if (len(root) >= 5 and part.startswith(root)) or part in kin or (asks_who and _agent(part, word.stem))
        ]
        if named:
            links.relations.append(RelationLink(i, tuple(named), verb=True))
            links.take(i, i + 1, "relation")


def _agent(noun: str, verb: str) -> bool:
    """Say whether a noun names who does what a verb says: suppliers supply."""
    return noun.endswith(("er", "or")) and bool(roots(noun) & roots(verb))


def _verbs(links: Links, index: SchemaIndex) -> None:
    """Link verbs that share their root with a column's name: "directed" speaks of `director`, "hired" of a date."""
    for i, word in enumerate(links.words):
        if not links.free(i, i + 1) or word.folded in IGNORED or not word.folded.isalpha() or i == 0:
            continue
        inflected = word.folded.endswith(("ed", "ing")) or word.folded in PAST
        known = roots(word.folded)
        found = [
            p
            for p in index.all_places()
            if p.kind != "prose"
            and any((inflected or part.endswith(("er", "or", "ed"))) and known & roots(part) for part in p.stems)
        ]
        if found:
            links.columns.append(ColumnLink(i, i + 1, tuple(found), False, verb=True))
            links.take(i, i + 1, "column")
