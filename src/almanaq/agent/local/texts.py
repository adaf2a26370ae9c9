"""Texts: what a question asks of the prose of rows, by verbs of saying, or by what no column of searched rows says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from almanaq.agent.linking.columns import LinkedColumn
from almanaq.agent.linking.link import Links
from almanaq.agent.linking.spans import Span, best_covers
from almanaq.agent.linking.words import singular, stems
from almanaq.agent.local.phrases import AMOUNT, Domain, Phrase, TokenUse, domain_of, phrases, search_words
from almanaq.agent.local.sentence import Sentence
from almanaq.agent.local.spec import answer, text
from almanaq.agent.local.world import World
from almanaq.suql.catalog.relations import Relation
from almanaq.text.hours import find_hours, read_hours

_MENTION = frozenset(
    "mention mentions mentioned mentioning say says saying said talk talks talking speak speaks speaking describe "
    "describes describing discuss discusses discussing report reports reporting".split()
)
_JUDGE = {
    **dict.fromkeys(("complain", "complains", "complaining", "complained"), "complain about"),
    **dict.fromkeys(("praise", "praises", "praising", "praised"), "praise"),
    **dict.fromkeys(("recommend", "recommends", "recommending", "recommended"), "recommend"),
}
_ENDS = ("by", "order", "direction", "period", "compare")
_SKIPPED = frozenset(("about", "of", "that", "a", "an", "the", "any", "some", "their", "having", "there", "was", "is"))


def text_tests(sentence: Sentence, world: World, main: Relation, extra: list[exp.Expr]) -> LinkedColumn | None:
    """Add the condition that a text says something, and use the words that say what; return the column of the text.

    What reviews say is a wish, as all that is asked of reviewed rows.
    """
    column = prose_for(world, main, None)
    if column is None or (column.column.array and "reviews" in column.roles):
        return None
    items = sentence.items
    for i, item in enumerate(items):
        word = sentence.text(i)
        if item.kind not in ("unknown", "silent", "column") or (word not in _MENTION and word not in _JUDGE):
            continue
        if item.kind == "column" and any(getattr(n, "sureness", 0) > 0.9 for n in item.meanings):
            continue
        if i and items[i - 1].kind == "column" and _prose_of(items[i - 1], main) is None:
            continue  # what another column says
        first = i + 1
        while first < len(items) and sentence.text(first) in _SKIPPED:
            first += 1
        last = first
        while last < len(items) and items[last].kind not in _ENDS and sentence.text(last) not in ("?", ".", "!", ";"):
            last += 1
        if last <= first:
            continue
        end = last
        named = [k for k in range(first + 1, last) if items[k].kind == "column" and _prose_of(items[k], main)]
        if named and "in" in sentence.words_before(named[0], 2):
            column = _prose_of(items[named[0]], main) or column
            last = next(k for k in range(named[0], first, -1) if sentence.text(k) == "in")
        tokens = sentence.links.tokens
        phrase = sentence.links.question[tokens[items[first].first].start : tokens[items[last - 1].last - 1].end]
        verb = _JUDGE.get(word, "mention")
        negated = next((k for k in range(max(0, i - 3), i) if items[k].kind == "not"), None)
        sentence.take(i, *range(first, end), *([negated] if negated is not None else []))
        asked = answer(column, f"does it {verb} {phrase.strip()}?")
        extra.append(exp.EQ(this=asked, expression=text("No" if negated is not None else "Yes")))
        return column
    return None


_WHEN = re.compile(
    r"\b(?:when|what time|how late|how early|until when)\b.*\b(?:opens?|opened|close[sd]?)\b", re.IGNORECASE
)


def hours_asked(sentence: Sentence, world: World, main: Relation) -> tuple[LinkedColumn, exp.Expr | None] | None:
    """Use the words that say when rows are open; return their column and a test, None for "when is it open?"."""
    question = sentence.links.question
    said = find_hours(question)
    match = said or _WHEN.search(question)
    columns = (c for c in world.columns(main.name) if c.kind == "text" and "hours" in c.roles)
    column = next((c for c in columns if any(map(read_hours, world.index.values_of(c)[:5]))), None)
    if match is None or column is None:
        return None
    tokens = sentence.links.tokens
    ends = [(tokens[s.first].start, tokens[s.last - 1].end) for s in sentence.items]
    inside = [k for k, (start, end) in enumerate(ends) if match.start() < end and start < match.end()]
    if said is None:
        sentence.take(*(k for k in inside if sentence.items[k].kind not in ("value", "table")))
        return column, None
    denied = [k for k in range(max(0, inside[0] - 2), inside[0]) if sentence.items[k].kind == "not"]
    sentence.take(*inside, *denied)
    verb, _, when = said[0].casefold().partition(" ")
    verb = (
        f"is this {singular(main.name)} {verb}" if verb in ("open", "closed") else f"does it {verb.removesuffix('s')}"
    )
    return column, exp.EQ(this=answer(column, f"{verb} {when}?"), expression=text("No" if denied else "Yes"))


def _prose_of(span: Span, main: Relation) -> LinkedColumn | None:
    """Return the column of prose of a relation that a span names."""
    found = (getattr(named, "thing", None) for named in span.meanings)
    return next((c for c in found if isinstance(c, LinkedColumn) and c.relation is main and c.kind == "prose"), None)


_STRUCTURED = frozenset(
    "value table compare than number superlative count not order direction by silent unknown".split()
)
_ENDING = frozenset(("", "?", ".", ",", "!", "in", "at", "near", "and"))
"""Words after which a noun is no part of a longer name."""
_SEEKING = frozenset("find recommend suggest looking search show list name where which any".split())
_LEAST_WORD = 4


def is_searched(world: World, relation: Relation) -> bool:
    """Return whether rows have texts of many passages, as reviews are: people search them by what no column says."""
    return any(c.kind == "prose" and c.column.array for c in world.columns(relation.name))


def search_covers(links: Links, world: World) -> list[tuple[Span, ...]]:
    """Return the covers of a search: only what surely names something structured; all else is for the texts."""
    domain = domain_of(world.catalog)
    use = TokenUse(links.question, links.tokens, [None] * len(links.tokens), domain)
    named = {span.first for span in links.spans if span.kind == "value"}
    kept = [span for span in links.spans if _is_structured(span, use)]
    beside = (s for s in kept if links.text(s).casefold() == "outside" and s.last not in named)  # "sit outside"
    kept += [Span(span.first, span.last, "unknown", (), 2 * span.score) for span in beside]
    kept += _option_values(use, world, domain)
    kept += _dishes_beside_values(use, world, kept)
    return best_covers(kept, len(links.tokens), 1)


def _dishes_beside_values(use: TokenUse, world: World, kept: Sequence[Span]) -> list[Span]:
    """Return what lists of dishes hold where a part of it is a value: "fish tacos" beside "tacos"."""
    dishes = frozenset[tuple[str, ...]]().union(
        *(world.dishes(r) for r in world.catalog.relations if is_searched(world, r))
    )
    said, values = [token.stem for token in use.tokens], [span for span in kept if span.kind == "value"]
    runs = ((i, k) for k in range(2, len(said) + 1) for i in range(max(k - 3, 0), k - 1))
    parts = ((i, k, [s for s in values if i <= s.first and s.last <= k]) for i, k in runs if tuple(said[i:k]) in dishes)
    return [
        Span(i, k, "unknown", (), 3.0)
        for i, k, inside in parts
        if inside and all(s.last - s.first < k - i for s in inside)
    ]


def _is_structured(span: Span, use: TokenUse) -> bool:
    if span.kind in ("silent", "unknown"):
        return True
    if span.kind == "column":
        exact = span.how in ("", "described", "asked") or (
            span.how in ("root", "synonym") and use.folded(span.first) in ("rated", "reviewed")
        )
        prose = all(getattr(n.thing, "kind", "") == "prose" for n in span.meanings)
        return exact and not (prose and use.folded(span.first - 1) in search_words().quality)
    if span.kind == "value":
        judged = use.folded(span.first - 1) in search_words().quality and use.folded(span.last) in _ENDING
        if judged and stems(use.text(span.first, span.last)) in use.domain.matters:
            return False  # "good desserts" are judged by who ate them
        return span.how in ("", "plural", "form") or (span.how.startswith("misspelt") and span.size == 1)
    return span.kind in _STRUCTURED or (span.kind == "aggregate" and use.folded(span.first) != "mean")


def _option_values(use: TokenUse, world: World, domain: Domain) -> list[Span]:
    """Return values of arrays and ENUMs that hold a word: "coffee" is in "coffee & tea"."""
    found = []
    words = search_words()
    for size in (2, 1):
        for first in range(len(use.tokens) - size + 1):
            inside = use.tokens[first : first + size]
            folded = [t.folded for t in inside]
            ordinary = any(w in words.ignored or not w.isalpha() for w in folded)
            ordinary = ordinary or (
                size == 1 and (folded[0] in words.adjectives | domain.ordinary or len(folded[0]) < _LEAST_WORD)
            )
            if ordinary:
                continue
            held = {
                m
                for key in (tuple(folded), tuple(t.stem for t in inside))
                for m in world.index.values_holding(key)
                if m.column.column.array or m.column.column.kind.value == "enum"
            }
            if held:
                found.append(
                    Span(
                        first, first + size, "value", tuple(sorted(held, key=lambda m: m.value)), 0.75 * size, "option"
                    )
                )
    return found


def wishes_of(sentence: Sentence, world: World, main: Relation, partial: bool) -> list[tuple[LinkedColumn, Phrase]]:
    """Return what the words that are left ask of the texts; these are used; `partial` as in TokenUse."""
    labels: list[str | None] = []
    for i, item in enumerate(sentence.items):
        free = item.kind in ("silent", "unknown", "by") or _is_amount(item)
        taken = not free or (sentence.used[i] and item.kind != "silent")
        labels += [item.kind if taken else AMOUNT if _is_amount(item) else None] * item.size
    for i, token in enumerate(sentence.links.tokens):
        if token.folded in ",;?!.":
            labels[i] = "mark"
    use = TokenUse(
        sentence.links.question, sentence.links.tokens, labels, domain_of(world.catalog), partial, world.dishes(main)
    )
    noun = singular(main.name)
    found = phrases(use, noun)
    words = search_words()
    empty = words.ignored | words.entity_words | words.quality | words.owning | words.verbs | words.glue
    empty |= use.domain.serving.keys()
    for i, item in enumerate(sentence.items):
        inside = range(item.first, item.last)
        asked = any(phrase.first <= k < phrase.last for phrase in found for k in inside)
        said = (use.folded(k) in empty or use.stem(k) in use.domain.empty for k in inside)
        told = bool(use.domain.matters) and item.kind in ("unknown", "number") and use.tells(item.first)
        if asked or told or (item.kind == "unknown" and all(said)):
            sentence.take(i)
    return [(column, phrase) for phrase in found if (column := prose_for(world, main, phrase)) is not None]


def _is_amount(span: Span) -> bool:
    """Return whether a span may be part of a wish where no column takes it: "less than ten minutes' wait"."""
    return span.kind == "compare" or (span.kind == "number" and bool(span.meanings[0].unit))


def prose_for(world: World, main: Relation, phrase: Phrase | None) -> LinkedColumn | None:
    """Return the column of prose that a phrase is best asked of; without a phrase the one that says most of a row."""
    found = [c for c in world.columns(main.name) if c.kind == "prose" and not c.column.private]

    def score(column: LinkedColumn) -> float:
        said = set(stems(phrase.words)) if phrase else set()
        taste = 2.0 if phrase and phrase.dish else -2.0
        overlap = len(said & (set(column.words) | column.about)) + taste * ("dishes" in column.roles)
        return overlap + 0.8 * ("reviews" in column.roles) + 0.5 * column.column.array

    return max(found, key=score, default=None)


def seeks(sentence: Sentence, main: Relation) -> bool:
    """Return whether a question says by a noun, or a verb of looking for, that rows are wanted."""
    words = search_words()
    folded = {token.folded for token in sentence.links.tokens}
    named = any(s.kind == "table" and main in s.meanings for s in sentence.items)
    first = sentence.links.tokens[0].folded if sentence.links.tokens else ""
    return named or bool(folded & words.entity_words) or bool(folded & _SEEKING) or first == "who"
