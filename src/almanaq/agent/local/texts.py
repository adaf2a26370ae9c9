"""Questions to prose: "reviews that mention bleeding" asks each text what its reader can tell."""

from __future__ import annotations

from sqlglot import exp

from almanaq.agent.linking.columns import LinkedColumn
from almanaq.agent.linking.spans import Span
from almanaq.agent.local.expressions import answer, text
from almanaq.agent.local.sentence import Sentence
from almanaq.agent.local.world import World
from almanaq.suql.catalog.relations import Relation

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


def text_tests(sentence: Sentence, world: World, main: Relation, extra: list[exp.Expr]) -> None:
    """Add the condition that a text says something, and use the words that say what."""
    column = prose_column(world, main)
    if column is None:
        return
    items = sentence.items
    for i, item in enumerate(items):
        word = sentence.text(i)
        if item.kind not in ("unknown", "silent", "column") or (word not in _MENTION and word not in _JUDGE):
            continue
        if item.kind == "column" and any(getattr(n, "sureness", 0) > 0.9 for n in item.meanings):
            continue
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
        return


def _prose_of(span: Span, main: Relation) -> LinkedColumn | None:
    """Return the column of prose of a relation that a span names."""
    found = (getattr(named, "thing", None) for named in span.meanings)
    return next((c for c in found if isinstance(c, LinkedColumn) and c.relation is main and c.kind == "prose"), None)


def prose_column(world: World, main: Relation) -> LinkedColumn | None:
    """Return the column of prose of a relation, the longest kind of text first; None where it has none."""
    found = [c for c in world.columns(main.name) if c.kind == "prose" and not c.column.private]
    found.sort(key=lambda c: ("review" not in c.words and "reviews" not in c.roles, not c.column.array))
    return found[0] if found else None
