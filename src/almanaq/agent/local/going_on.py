"""Turns that go on from figures, or ask for figures of the rows found before: each is read as the whole question."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from sqlglot import exp

from almanaq.agent.history import Turn, TurnKind
from almanaq.agent.local import trees
from almanaq.agent.local.edits import excludes
from almanaq.agent.local.listing import Listing, listing
from almanaq.agent.local.recognize.vocabulary import Vocabulary
from almanaq.agent.local.references import last_search, last_shown
from almanaq.agent.local.restated import Words, core, goes_on, is_fragment, lessened, restated
from almanaq.agent.local.rows_before import main_relation, restricted, rows_of
from almanaq.agent.local.standing import Standing, standing
from almanaq.agent.local.words import stems
from almanaq.agent.parser import Parsed

Reads = Callable[[str], Parsed]
_THEY = re.compile(r"\b(?:they|them|their|theirs|those|these)\b|\bhow many are there\b", re.IGNORECASE)
_HOW_MANY = re.compile(r"\bhow many (?:are there|(?:are|of) (?:they|them|those|these)(?: are)?)\b", re.IGNORECASE)
_OWN_QUESTION = re.compile(
    r"(?:which|who|whom|whose|where|when|why|list|show|give|find|is|are|do|does|did|has|have|can|could)\b", re.I
)
_FIRST = re.compile(r"(?:the )?(?:first|top) (\d+)(?: (?:rows|ones|of (?:them|those|these)))?", re.IGNORECASE)
_WHICH = "Do you mean of"
_SHORT = 12
"""Most words of a turn that goes on from another."""
_DIRECTION = re.compile(
    r"(?:(?:sort|order|rank)(?: (?:it|them|these|those))?(?: in)? )?(?:(?P<down>(?:high|larg|bigg|great)est first"
    r"|desc(?:ending)?(?: order)?)|(?:low|small)est first|asc(?:ending)?(?: order)?)",
    re.IGNORECASE,
)
_COUNTS = re.compile(r"how (?:many|much)\b", re.IGNORECASE)
_CALLED = {
    exp.Sum: "sum total",
    exp.Avg: "average mean avg",
    exp.Count: "count number amount",
    exp.Min: "minimum min lowest",
    exp.Max: "maximum max highest",
    exp.PercentileCont: "median",
}


def going_on(question: str, history: Sequence[Turn], vocabulary: Vocabulary, reads: Reads) -> Parsed | None:
    """Return what a turn means that goes on from figures or asks for some of rows; None for any other turn.

    Args:
        reads: gives the query of a whole question over tables, or why there is none.
    """
    stands = standing(history)
    if stands is None:
        return None
    anew = _anew(question, stands)
    if anew is not None and history[-1].suql is None and anew.suql is not None:
        return replace(anew, readings=(f"I go on from “{stands.question}”.",))  # not from what I declined
    if anew is not None or listing(question) is not None:
        return anew
    words = Words(question, vocabulary)
    return _of_rows(words, stands, history, reads) or _restated(words, stands, reads) or _of_which(words, stands, reads)


def _anew(question: str, stands: Standing) -> Parsed | None:
    """Return the same figures in another order, or the first of them."""
    if not stands.gives_figures:
        return None
    wanted = listing(question)
    if wanted is not None:
        return _sorted(wanted, stands) if wanted.by else None
    if direction := _DIRECTION.fullmatch(core(question)):
        return _sorted(Listing("", down=direction["down"] is not None), stands)
    first = _FIRST.fullmatch(core(question))
    return _cut(int(first[1]), stands) if first else None


def _sorted(wanted: Listing, stands: Standing) -> Parsed:
    """Return the figures in another order: by what is shown beside them, or by the figures themselves."""
    tree = stands.tree
    assert tree is not None
    shown = [item.unalias() for item in tree.expressions]
    said = set(stems(wanted.by.rsplit(",")[-1]))
    by = [item for item in shown if said <= set(stems(_called(item)))]
    by = by if said else [item for item in shown if item.find(exp.AggFunc)]
    if len(by) != 1:
        listed = ", ".join(_name(item) for item in shown)
        by_what = f"Nothing that is shown is called “{wanted.by}”" if wanted.by else "Several things are shown"
        reply = f"{by_what}. I can sort by {listed}. By what shall I sort?"
        return Parsed("clarify", reply=reply, kind="again")
    changed = tree.copy()
    changed.set("order", trees.ordered(tree, [(trees.write(by[0]), wanted.down)], None).args["order"])
    return _found(changed, "again", stands.question, stands.of)


def _cut(most: int, stands: Standing) -> Parsed | None:
    """Return the first of the figures; which these are, their order says."""
    tree = stands.tree
    if tree is None or tree.args.get("order") is None:
        return None
    return _found(trees.limited(tree, most), "again", stands.question, stands.of)


def _called(item: exp.Expr) -> str:
    """Return every word by which an output may be called."""
    names = [column.name for column in item.find_all(exp.Column)]
    kinds = [words for kind, words in _CALLED.items() if item.find(kind) is not None]
    return " ".join((*kinds, *names)).replace("_", " ")


def _name(item: exp.Expr) -> str:
    """Return the name by which an output is offered."""
    column = " ".join(column.name.replace("_", " ") for column in item.find_all(exp.Column))
    kinds = [words.split()[0] for kind, words in _CALLED.items() if item.find(kind) is not None]
    return " of ".join(filter(None, (*kinds, column)))


def _of_rows(words: Words, stands: Standing, history: Sequence[Turn], reads: Reads) -> Parsed | None:
    """Return figures of the rows found before: "what is their total amount?", "how many are there per city?"."""
    refers = _THEY.search(words.text)
    measure = re.search("A|H", words.kinds)
    counts = words.kinds.strip("w&") == "H"  # "count them" is another kind of turn
    if refers is None or measure is None or counts or words.text.split()[0].casefold() == "only":
        return None
    turn = last_search(history)
    tree = trees.read(turn.meant or turn.suql or "") if turn is not None else None
    if stands.tree is None:
        return _nobody(refers.group())
    if turn is None or tree is None:
        return None
    if "R" in words.kinds and words.range(words.kinds.index("R"), words.kinds.index("R") + 1)[1] < refers.start():
        if refers.group().casefold() == "their":
            return None  # "customers with their total amount"
    catalog = words.vocabulary.index.catalog
    main = main_relation(tree, catalog)
    noun = main.name.replace("_", " ") if main is not None else ""
    asked = words.text
    if _HOW_MANY.search(asked):
        if "B" not in words.kinds:
            return None  # "how many of them speak Spanish?"
        asked = _HOW_MANY.sub(f"how many {noun}", asked)
    read = reads(asked)
    found = trees.read(read.suql) if read.suql and read.status == "query" else None
    if found is None or not trees.aggregates(found):
        return None
    rows = rows_of(tree, turn.shown or last_shown(history), catalog)
    limited = restricted(found, rows, words.vocabulary) if rows is not None else None
    if limited is None or rows is None:
        return _nobody(refers.group())
    return replace(_found(limited, "detail", asked, rows), readings=read.readings)


def _nobody(said: str) -> Parsed:
    reply = f"I cannot tell which rows “{said.strip()}” means here, so I ran nothing. Ask it as a whole question."
    return Parsed("no_query", reply=reply, kind="detail")


def _of_which(words: Words, stands: Standing, reads: Reads) -> Parsed | None:
    """Ask of which rows figures are wanted that may be those of the rows found before: "how many copies in total?"."""
    among = stands.of if stands.of is not None else stands.tree
    if (
        _THEY.search(words.text)
        or among is None
        or (stands.gives_figures and stands.of is None)
        or not trees.conditions(among)
    ):
        return None
    bare = set(words.kinds) <= set("wAHCB&U") and re.search("[AH].*C", words.kinds) is not None
    if not bare or any(map(trees.reads_text, trees.conditions(among))):
        return None
    read = reads(words.text)
    tree = trees.read(read.suql) if read.status == "query" and read.suql else None
    catalog = words.vocabulary.index.catalog
    main, other = main_relation(among, catalog), main_relation(tree, catalog) if tree is not None else None
    if tree is None or main is None or other is None or not trees.aggregates(tree):
        return None
    if restricted(tree, trees.showing(among, ["*"]), words.vocabulary) is None:
        return None
    name, all_of = (each.name.replace("_", " ") for each in (main, other))
    return Parsed("clarify", reply=f"{_WHICH} the {name} found before, or of all {all_of}?", asked=words.text)


def asks_of_which(turn: Turn) -> bool:
    """Return whether a turn was asked back of which rows figures are wanted."""
    return turn.status == "clarify" and turn.answer.startswith(_WHICH)


def chosen(answer: str, last: Turn) -> str | None:
    """Return the question whose rows an answer chooses, if that was asked back: "those", "of all"."""
    if not asks_of_which(last):
        return None
    said = set(re.findall(r"\w+", answer.casefold())) - set(re.findall(r"\w+", "i mean only just the ones please"))
    first = said & set("those these them found before first 1 1st former".split())
    second = said & set("all every second 2 2nd latter".split())
    if bool(first) == bool(second) or said - first - second - set(re.findall(r"\w+", last.answer)):
        return None
    return last.asked if second else f"{last.asked.rstrip('?.! ')} among those"


def _restated(words: Words, stands: Standing, reads: Reads) -> Parsed | None:
    """Return what a question becomes with a few words more, or others: "only in 2024", "and by city?"."""
    said = Words(core(words.text), words.vocabulary)
    opened = goes_on(words.text)
    if not said.text or _OWN_QUESTION.match(said.text) or (_COUNTS.match(said.text) and not opened):
        return None
    if said.kinds.strip("w&") == "C" and stands.gives_figures and not opened:
        return _unclear(said, f"“{stands.question}”")
    if not (opened and len(said.text.split()) < _SHORT) and not is_fragment(said):
        return None
    if not stands.question:
        return _unclear(said, "the last query") if stands.gives_figures else None
    ranks = said.kinds.strip("w&") == "S" and stands.tree is not None and stands.tree.args.get("order") is not None
    if stands.tree is not None and not stands.gives_figures and not (ranks and opened):
        return _of_other_days(said, stands, reads)
    question = Words(stands.question, words.vocabulary)
    others = _other_rows(said, stands.of)
    tried: Iterator[str] = iter([stands.question]) if others is not None else restated(said, question)
    rows = others or stands.of
    why = None
    for text in tried:
        read = reads(text)
        tree = trees.read(read.suql) if read.status == "query" and read.suql else None
        limited = restricted(tree, rows, words.vocabulary) if tree is not None and rows is not None else tree
        if limited is not None and not _contradicts(limited):
            kind: TurnKind = "narrow" if text.startswith(stands.question.rstrip("?.! ")) else "replace"
            found = _found(_in_order(limited, stands.tree), kind, text, rows)
            return replace(found, readings=(f"I read it as “{text}”.", *read.readings))
        why = why or (f"I read it as “{text}”. {read.reply}" if read.reply else None)
    return Parsed("no_query", reply=why, kind="replace") if why else _unclear(said, f"“{stands.question}”")


def _unclear(said: Words, changed: str) -> Parsed:
    reply = f"I do not understand how “{said.text}” changes {changed}, so I ran nothing. Ask it as a whole question."
    return Parsed("no_query", reply=reply, kind="replace")


def retold(follows: Parsed, history: Sequence[Turn], vocabulary: Vocabulary, reads: Reads) -> Parsed:
    """Return figures without a condition together with the question that now asks for them, if one does."""
    stands = standing(history)
    if stands is None or not stands.gives_figures or not stands.question or not follows.suql:
        return follows
    for text in lessened(Words(stands.question, vocabulary)):
        read = reads(text)
        if read.suql is not None and _same(read.suql, follows.suql):
            return replace(follows, asked=text)
    return follows


def _same(one: str, other: str) -> bool:
    """Return whether two queries differ in the order of their conditions, and in parentheses, at most."""
    told = []
    for tree in (trees.read(one), trees.read(other)):
        if tree is None:
            return False
        told.append((trees.write(trees.with_conditions(tree, [])), {trees.write(c) for c in _parts(tree)}))
    return bool(told[0] == told[1])


def _parts(tree: exp.Select) -> Iterator[exp.Expr]:
    for condition in trees.conditions(tree):
        yield from condition.unnest().flatten() if isinstance(condition.unnest(), exp.And) else (condition,)


def _of_other_days(said: Words, stands: Standing, reads: Reads) -> Parsed | None:
    """Return the rows of a list that are of some days; None where their column is not certain."""
    if said.kinds.strip("w&") != "D" or not stands.question:
        return None
    whole = restated(said, Words(stands.question, said.vocabulary))
    read = next((read for read in map(reads, whole) if read.suql), None)
    return None if read is None or read.status != "query" else replace(read, kind="replace")


def _contradicts(tree: exp.Select) -> bool:
    """Return whether no row can fulfil two of the conditions."""
    return any(excludes(one, other) for one, other in combinations(trees.conditions(tree), 2))


def _other_rows(said: Words, of: exp.Select | None) -> exp.Select | None:
    """Return rows chosen by another value of the column by which those before were chosen: "and in Basel?"."""
    values = [span for span in said.spans if span.kind == "V"]
    if of is None or len(values) != 1 or said.kinds.strip("w&") != "V":
        return None
    main = main_relation(of, said.vocabulary.index.catalog)
    for place, value in values[0].data:
        for old in trees.conditions(of):
            if isinstance(old, exp.EQ) and old.this.name == place.column.name and place.relation == main:
                new = exp.EQ(this=old.this.copy(), expression=trees.literal(value))
                return trees.with_conditions(of, [new if c is old else c for c in trees.conditions(of)])
    return None


def _in_order(tree: exp.Select, before: exp.Select | None) -> exp.Select:
    """Return a query in the order that an earlier one was put in, where it shows what that is by."""
    order = before.args.get("order") if before is not None else None
    if before is None or order is None or tree.args.get("order") is not None:
        return tree
    shown = {trees.write(item) for item in tree.expressions}
    if any(trees.write(each.this) not in shown for each in order.expressions):
        return tree
    changed = trees.limited(tree, trees.limit_of(before))
    changed.set("order", order.copy())
    return changed


def _found(tree: exp.Select, kind: TurnKind, asked: str, of: exp.Select | None) -> Parsed:
    return Parsed("query", trees.write(tree), kind=kind, asked=asked, of=trees.write(of) if of is not None else "")
