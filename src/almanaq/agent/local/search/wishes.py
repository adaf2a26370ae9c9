"""Wishes: what a search asks of the texts of rows, beside what columns say."""

from __future__ import annotations

from almanaq.agent.linking.columns import LinkedColumn
from almanaq.agent.linking.link import Links
from almanaq.agent.linking.spans import Span, best_covers
from almanaq.agent.linking.words import singular, stems
from almanaq.agent.local.search.asides import drop_asides
from almanaq.agent.local.search.domain import Domain, domain_of
from almanaq.agent.local.search.phrases import Phrase, phrases
from almanaq.agent.local.search.token_use import TokenUse, search_words
from almanaq.agent.local.sentence import Sentence
from almanaq.agent.local.world import World
from almanaq.suql.catalog.relations import Relation

_STRUCTURED = (
    "value",
    "table",
    "compare",
    "number",
    "superlative",
    "count",
    "not",
    "order",
    "direction",
    "by",
    "silent",
    "unknown",
)
_LEAST_WORD = 4


def is_searched(world: World, relation: Relation) -> bool:
    """Return whether rows have texts of many passages, as reviews are: people search them by what no column says."""
    return any(c.kind == "prose" and c.column.array for c in world.columns(relation.name))


def search_covers(links: Links, world: World) -> list[tuple[Span, ...]]:
    """Return the covers of a search: only what surely names something structured; all else is for the texts."""
    domain = domain_of(world.catalog)
    use = TokenUse(links.question, links.tokens, [None] * len(links.tokens), domain)
    kept = [span for span in links.spans if _is_structured(span, use)]
    kept += _option_values(use, world, domain)
    return best_covers(kept, len(links.tokens), 1)


def _is_structured(span: Span, use: TokenUse) -> bool:
    if span.kind in ("silent", "unknown"):
        return True
    if set(range(span.first, span.last)) & use.idioms:
        return False
    if span.kind == "column":
        exact = span.how in ("", "described", "asked") or (
            span.how in ("root", "synonym") and use.folded(span.first) in ("rated", "reviewed")
        )
        prose = all(getattr(n.thing, "kind", "") == "prose" for n in span.meanings)
        return exact and not (prose and _is_praised(use, span.first))
    if span.kind == "value":
        return span.how in ("", "plural", "form") or (span.how.startswith("misspelt") and span.size == 1)
    if span.kind == "superlative" and span.meanings[0].extreme in ("common", "rare"):
        return False
    return span.kind in _STRUCTURED or (span.kind == "aggregate" and use.folded(span.first) != "mean")


def _is_praised(use: TokenUse, i: int) -> bool:
    return use.folded(i - 1) in search_words().quality


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
            if ordinary or set(range(first, first + size)) & use.idioms or _is_praised(use, first):
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


def wishes_of(sentence: Sentence, world: World, main: Relation) -> list[tuple[LinkedColumn, Phrase]]:
    """Return what the words that are left ask of the texts; these and the asides of the asker are used."""
    labels: list[str | None] = []
    for i, item in enumerate(sentence.items):
        taken = item.kind not in ("silent", "unknown") or (sentence.used[i] and item.kind != "silent")
        labels += [item.kind if taken else None] * item.size
    for i, token in enumerate(sentence.links.tokens):
        if token.folded in ",;?!.":
            labels[i] = "mark"
    use = TokenUse(sentence.links.question, sentence.links.tokens, labels, domain_of(world.catalog))
    drop_asides(use)
    noun = singular(main.name)
    found = phrases(use, noun)
    for i, item in enumerate(sentence.items):
        inside = range(item.first, item.last)
        asked = any(phrase.first <= k < phrase.last for phrase in found for k in inside)
        dropped = any(use.used[k] == "dropped" for k in inside)
        words = search_words()
        empty = item.kind == "unknown" and all(
            use.folded(k)
            in words.ignored | words.entity_words | words.quality | words.owning | words.verbs | words.glue
            or use.stem(k) in use.domain.empty
            or use.folded(k) in use.domain.serving
            for k in inside
        )
        if asked or dropped or empty:
            sentence.take(i)
    return [(column, phrase) for phrase in found if (column := prose_for(world, main, phrase)) is not None]


def prose_for(world: World, main: Relation, phrase: Phrase | None) -> LinkedColumn | None:
    """Return the column of prose that a phrase is best asked of; without a phrase the one that says most of a row."""
    found = [c for c in world.columns(main.name) if c.kind == "prose"]

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
    verbs = folded & {
        "find",
        "recommend",
        "suggest",
        "looking",
        "search",
        "show",
        "list",
        "name",
    }
    return named or bool(folded & words.entity_words) or bool(verbs) or first in ("where", "which", "any")
