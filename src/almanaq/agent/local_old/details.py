"""Questions about rows that were shown before: "is the second one good for kids?"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from almanaq.agent.history import Turn
from almanaq.agent.local_old import sql, trees
from almanaq.agent.local_old.facts import facts, name_place
from almanaq.agent.local_old.fragments import remainder
from almanaq.agent.local_old.lexicon import UNITS, cue
from almanaq.agent.local_old.recognize.tokens import tokenize
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.references import Reference, resolve, spans
from almanaq.agent.local_old.schema_index import Place
from almanaq.agent.local_old.search.linking import link
from almanaq.agent.local_old.search.wishes import Wishes
from almanaq.agent.local_old.understand import understand
from almanaq.agent.local_old.words import singular
from almanaq.agent.parser import Parsed
from almanaq.suql.catalog.relations import Relation

_ASKING = re.compile(
    r"\b(?:what|who|where|when|which|how|is|are|does|do|did|can|could|has|have|was|were|tell)\b", re.IGNORECASE
)
_EMPTY = re.compile(r"\b(?:the|one|and|show|see|take|like|choose|want|give|me|for|that)\b", re.IGNORECASE)
_PLURAL = re.compile(r"\b(do|have|are|were) (?=they\b)", re.IGNORECASE)
_SINGULAR = {"do": "does", "have": "has", "are": "is", "were": "was"}
_FACTS = 8


def detail(question: str, vocabulary: Vocabulary, history: Sequence[Turn]) -> Parsed | None:
    """Return the query for what is asked of rows shown before; None where their relation is gone."""
    reference = resolve(question, history)
    if reference is None:
        nothing = "I have shown nothing yet that this could speak of. What shall I look for?"
        return Parsed("clarify", reply=nothing, kind="detail")
    main = vocabulary.index.catalog.find(reference.shown.relation)
    if main is None:
        return None
    own = vocabulary.index.places[main.name]
    notes = () if not reference.words else (f"By “{reference.words.strip()}” I took {reference.names}.",)
    again = _asked_before(question, history)
    related = None if again is not None else _related(_clause(question), reference, vocabulary, main)
    if related:
        return Parsed("query", related, kind="detail", notes=notes)
    if again is not None:
        items: Sequence[str] = again
    elif related is not None:
        return Parsed("no_query", reply=_untold(question, reference, own), kind="detail")
    elif cue("about").search(question) or not _has_content(question):
        items = _everything(own)
    else:
        items = _asked(_clause(question), reference, vocabulary, main)
        if not items:
            return Parsed("no_query", reply=_untold(question, reference, own), kind="detail")
    name = sql.column(name_place(own), False)
    tree = exp.select(*dict.fromkeys([name, *items]), dialect="postgres").from_(sql.name(main.name))
    tree = trees.with_conditions(tree, [trees.only(reference.shown)])
    return Parsed("query", trees.write(tree), kind="detail", notes=notes)


def _untold(question: str, reference: Reference, own: Sequence[Place]) -> str:
    """Say that no column tells what is asked of rows, and which columns there are."""
    known = ", ".join(" ".join(p.stems) for p in own if p.kind != "prose" and not p.column.private)
    return f"I do not know what “{question.strip()}” asks of {reference.names}, so I ran nothing. Known are: {known}."


def _asked_before(question: str, history: Sequence[Turn]) -> list[str] | None:
    """Return what was asked of another row in the turn before, when this one only names a row: "and the first?"."""
    last = history[-1] if history else None
    if last is None or last.kind != "detail" or not last.suql or _has_content(question):
        return None
    tree = trees.read(last.suql)
    return [trees.write(item) for item in tree.expressions[1:]] if tree else None


def _has_content(question: str) -> bool:
    """Return whether a question asks for anything but the row itself."""
    bare = remainder(question)
    for start, end in reversed(spans(bare)):
        bare = bare[:start] + bare[end:]
    return bool(re.search(r"\w{3,}", _EMPTY.sub("", bare)))


def _everything(own: Sequence[Place]) -> list[str]:
    """Return what is worth telling of one row: its facts, and what its prose says in short."""
    plain = [p for p in own if p.kind != "prose" and not p.identifier and not p.column.private]
    named = name_place(own)
    told = [p for p in facts(own, plain, most=_FACTS) if p is not named][:_FACTS]
    prose = _prose(own)
    return [*(sql.column(p, False) for p in told), *([f"summary({sql.column(prose, False)})"] if prose else [])]


def _clause(question: str) -> str:
    """Return the part of a turn that asks: "I like the second. What's the address?"."""
    parts = [p.strip() for p in re.split(r"(?<=[.!;?,])\s+", question.replace("\u2019", "'").strip()) if p.strip()]
    asking = [p for p in parts if _ASKING.search(p)]
    return asking[-1] if asking else question.strip()


def _asked(clause: str, reference: Reference, vocabulary: Vocabulary, main: Relation) -> list[str]:
    """Return the SELECT items for what a clause asks of a row, which it is made to name."""
    places, name = vocabulary.index.places[main.name], reference.shown.names[0]
    if unit := _by_unit(clause, places):
        return unit
    links = link(_named(clause, name), vocabulary)
    wishes = Wishes(links, vocabulary, main)
    tree = trees.read(wishes.suql())
    of_prose = _from_prose(clause, main, places)
    if tree is None or tree.args.get("joins") or not any(v.text.strip("\"'") == name for v in links.values):
        return of_prose
    if wishes.unused:
        return of_prose
    asked = _items(tree, main, name_place(places).column.name)
    return asked or of_prose


def _items(tree: exp.Select, main: Relation, own: str) -> list[str]:
    """Return what a query shows of a row and asks of it, but for `own`, the column of its name."""
    asked = [] if trees.aggregates(tree) else [trees.write(i) for i in tree.expressions]
    for condition in trees.conditions(tree):
        if own not in trees.columns(condition) or trees.reads_text(condition):
            asked += _shown_instead(condition, main)
    return [re.sub(r'"(this [^"]*)"', r"\1", item) for item in asked if item.strip('"') != own]


def _related(clause: str, reference: Reference, vocabulary: Vocabulary, main: Relation) -> str | None:
    """Return the query for rows of another relation that belong to the one referred to: "who directed it?"; "" where
    that would tell of one row what is asked of each of several.
    """
    name = reference.shown.names[0]
    named = link(_named(clause, name), vocabulary)
    asked = [r for span in link(clause, vocabulary).relations for r in span.data if r != main]
    # What is left of a clause that names another relation is its verb, which asks nothing of any prose.
    suql = Wishes(named, vocabulary, asked[0]).suql() if asked else understand(named.question, vocabulary).suql
    tree = trees.without_text(found) if suql and (found := trees.read(suql)) else None
    if tree is None or not (tree.args.get("joins") or trees.table_name(tree) != main.name):
        return None
    if len(reference.shown.keys) > 1 and tree.args.get("limit") is not None:
        return ""  # the last order of each of them, and not of all together
    own = name_place(vocabulary.index.places[main.name]).column.name
    meant = [
        node
        for node in tree.find_all(exp.EQ)
        if isinstance(node.this, exp.Column) and node.this.name == own and node.expression.name == name
    ]
    if len(meant) != 1:
        return None
    meant[0].replace(trees.only(reference.shown, meant[0].this.table or None))
    return trees.write(tree)


def _by_unit(clause: str, own: Sequence[Place]) -> list[str]:
    """Return the column that a verb asks for, as "earn" does for a salary and "cost" for a price."""
    roles = [role for word in tokenize(clause) for role in UNITS.get(word.stem, ())]
    found = [p for role in roles for p in own if role in p.roles and p.kind in ("number", "text") and not p.identifier]
    return [sql.column(found[0], False)] if found else []


def _shown_instead(condition: exp.Expr, main: Relation) -> list[str]:
    """Return what a condition looks at, to be shown: whether "it is cheap" is told by its price."""
    calls = [trees.write(node) for node in condition.find_all(exp.Anonymous)]
    if calls:
        return calls
    columns = [column for column in condition.find_all(exp.Column) if main.column(column.name)]
    return [sql.name(column.name) for column in columns]


def _from_prose(clause: str, main: Relation, places: Sequence[Place]) -> list[str]:
    """Return the question to the prose of a row; nothing where it has none."""
    prose = _prose(places)
    if prose is None:
        return []
    asked = _swapped(clause, f"this {singular(main.name)}").rstrip("?.! ") + "?"
    return [f"answer({sql.column(prose, False)}, {sql.text(asked[:1].lower() + asked[1:])})"]


def _prose(places: Sequence[Place]) -> Place | None:
    """Return the text that tells most of a row: first those of many passages, last lists of dishes."""
    prose = (p for p in places if p.kind == "prose")
    return min(prose, key=lambda p: (not p.column.array, "dishes" in p.roles), default=None)


def _named(clause: str, name: str) -> str:
    """Return a clause with the row's name, in quotes, where it was referred to; at its end where it was not."""
    quoted = '"' + name.replace('"', "") + '"'
    if not spans(clause):
        return f"{clause.rstrip('?.! ')} of {quoted}?"
    return _swapped(clause, quoted)


def _swapped(clause: str, into: str) -> str:
    """Return a clause with other words for the row it refers to, and its verb in the singular."""
    text = re.sub(r"^(?:(?:and|so|but|ok|okay|then|now)\b[, ]*)+", "", clause.strip(), flags=re.I)
    text = _PLURAL.sub(lambda match: _SINGULAR[match[1].casefold()] + " ", text)
    text = re.sub(r"\b(it|they|he|she)'(?:s|re)\b", r"\1 is", text, flags=re.I)
    for start, end in reversed(spans(text)):
        words = text[start:end].casefold()
        swapped = f"at {into}" if words == "there" else into
        text = text[:start] + swapped + text[end:]
    return re.sub(r"\b(at|in|to) at\b", r"\1", text)
