"""Figures of the rows found before: those that a question speaks of, or may speak of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from almanaq.agent.history import Turn
from almanaq.agent.local_old import trees
from almanaq.agent.local_old.references import last_search, last_shown
from almanaq.agent.local_old.restated import Words
from almanaq.agent.local_old.rows_before import main_relation, restricted, rows_of
from almanaq.agent.local_old.standing import Reads, Standing, query_of, tree_of
from almanaq.agent.parser import Parsed

_THEY = re.compile(r"\b(?:they|them|their|theirs|those|these)\b|\bhow many are there\b", re.IGNORECASE)
_HOW_MANY = re.compile(r"\bhow many (?:are there|(?:are|of) (?:they|them|those|these)(?: are)?)\b", re.IGNORECASE)
_WHICH = "Do you mean of"


def of_rows(words: Words, stands: Standing, history: Sequence[Turn], reads: Reads) -> Parsed | None:
    """Return figures of the rows found before: "what is their total amount?", "how many are there per city?"."""
    refers = _refers(words)
    if refers is None:
        return None
    turn = last_search(history)
    tree = trees.read(turn.meant or turn.suql or "") if turn is not None else None
    if stands.tree is None:
        return _nobody(refers)
    asked = _asked(words, tree) if tree is not None else None
    if turn is None or tree is None or asked is None:
        return None
    read = reads(asked)
    found = tree_of(read)
    if found is None or not trees.aggregates(found):
        return None
    rows = rows_of(tree, turn.shown or last_shown(history), words.vocabulary.index.catalog)
    limited = restricted(found, rows, words.vocabulary) if rows is not None else None
    if limited is None:
        return _nobody(refers)
    return replace(query_of(limited, "detail", asked, rows), readings=read.readings)


def _refers(words: Words) -> str | None:
    """Return the words of a question for figures that mean rows found before; None where it has none."""
    refers = _THEY.search(words.text)
    counts = words.kinds.strip("w&") == "H"  # "count them" is another kind of turn
    if refers is None or counts or not set("AH") & set(words.kinds) or words.text.split()[0].casefold() == "only":
        return None
    noun = words.found(re.compile("R"))
    if noun is not None and noun[1] < refers.start() and refers.group().casefold() == "their":
        return None  # "customers with their total amount"
    return refers.group()


def _asked(words: Words, tree: exp.Select) -> str | None:
    """Return a question with the name of the rows for "are there"; None where it only counts some of them."""
    if not _HOW_MANY.search(words.text):
        return words.text
    if "B" not in words.kinds:
        return None  # "how many of them speak Spanish?"
    main = main_relation(tree, words.vocabulary.index.catalog)
    return _HOW_MANY.sub(f"how many {main.name.replace('_', ' ') if main is not None else ''}", words.text)


def _nobody(said: str) -> Parsed:
    reply = f"I cannot tell which rows “{said.strip()}” means here, so I ran nothing. Ask it as a whole question."
    return Parsed("no_query", reply=reply, kind="detail")


def left_out(words: Words) -> Parsed | None:
    """Return a refusal where a question with "their" would be read as if it were of all rows; None for others."""
    refers = _THEY.search(words.text)
    noun = words.found(re.compile("[RVC]"))
    if refers is None or (noun is not None and noun[1] < refers.start()):
        return None  # "customers and their orders"
    return _nobody(refers.group())


def of_which(words: Words, stands: Standing, reads: Reads) -> Parsed | None:
    """Ask of which rows figures are wanted that may be those of the rows found before: "how many copies in total?"."""
    among = stands.tree if stands.lists else stands.of
    names_none = set(words.kinds) <= set("wAHC&U") and re.search("[AH].*C", words.kinds) is not None
    if among is None or not names_none or _THEY.search(words.text):
        return None
    conditions, tree = trees.conditions(among), tree_of(reads(words.text))
    if not conditions or any(map(trees.reads_text, conditions)) or tree is None or not trees.aggregates(tree):
        return None
    catalog = words.vocabulary.index.catalog
    main, other = main_relation(among, catalog), main_relation(tree, catalog)
    if main is None or other is None or restricted(tree, trees.showing(among, ["*"]), words.vocabulary) is None:
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
