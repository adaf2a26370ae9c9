"""Which construction of `local` earns its lines: each is switched off in turn, over questions that may be looked at.

    python -m experiments.local.constructions --data-dir DIR --strangers DIR [--functions] [--out FILE] [--answers FILE]

A construction is a pattern of `compose.CONSTRUCTIONS`; with `--functions` also any function that recognizes or decides
something: switched off, it finds nothing. The questions are the open halves of the strangers' sources, of the everyday
databases, of Spider's databases (`fit_confidence.OPEN`), of the restaurants task, and of the labelled turns of
conversations. For each construction the record says how many lines it has, for how many questions it found something,
how many replies are others without it, how many right answers are lost, and how many wrong ones come. Only the
questions for which it found something are asked again; what works once, when a source is opened, is not measured.
`--answers` writes what is made of every question, to compare two states of the code.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sqlite3
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import cache, wraps
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
from experiments.agent.contexts import BEFORE, SOURCES
from experiments.agent.halves import half
from experiments.local import everyday
from experiments.local.fit_confidence import OPEN
from experiments.local.parsing import _even
from experiments.strangers.run import QUESTIONS, gold_rows, is_right
from experiments.strangers.sources import SOURCES as STRANGERS
from experiments.strangers.sources import build

import almanaq
from almanaq.agent.conversation import Agent
from almanaq.agent.history import NO_DATA, Turn
from almanaq.agent.local import LocalDialogue
from almanaq.agent.local import compose as composing
from almanaq.models.model_names import open_models
from almanaq.sample.truth import truth_function
from almanaq.testing import FunctionModel
from almanaq_bench.restaurants.dataset import bundled_restaurants
from almanaq_bench.restaurants.generator import SuqlDialogue
from almanaq_bench.restaurants.play import play

TURNS = Path(__file__).parent.parent / "agent"
PACKAGE = "almanaq.agent.local"
MANY = 150
"""Questions from which on a construction is not switched off: nobody doubts that it is needed."""


@dataclass
class Asked:
    """A question that may be looked at: `ask` gives what was made of it as text, and "right", "wrong" or "declined"."""

    group: str
    words: str
    ask: Callable[[], tuple[str, str]]
    used: set[str] = field(default_factory=set)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data-dir", type=Path, required=True)
    arguments.add_argument("--strangers", type=Path, required=True)
    arguments.add_argument("--out", type=Path)
    arguments.add_argument("--answers", type=Path)
    arguments.add_argument("--functions", action="store_true", help="switch off every function too; takes an hour")
    given = arguments.parse_args()
    with ExitStack() as stack:
        asked = list(questions(given.data_dir, given.strangers, stack))
        if given.answers is not None:
            lines = [json.dumps([each.group, each.words, *each.ask()], ensure_ascii=False) for each in asked]
            given.answers.write_text("\n".join(lines) + "\n", encoding="utf-8")
            return
        text = written(measure(asked, [*patterns(), *(functions() if given.functions else ())]))
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")


# --- questions --------------------------------------------------------------------------------------------------------


def questions(data: Path, strangers: Path, stack: ExitStack) -> Iterator[Asked]:
    """Yield every question that may be looked at, over sources that stay open as long as `stack`."""
    yield from _of_strangers(strangers, stack)
    yield from _everyday(stack)
    yield from _spider(data, stack)
    yield from _turns(data, stack)
    yield from _conversations(stack)


def _of_strangers(folder: Path, stack: ExitStack) -> Iterator[Asked]:
    for source in STRANGERS:
        if source.half == "open":
            opened = build(source, folder)
            ask = _judged(stack.enter_context(almanaq.connect(str(opened), model="local", cache=False)))
            for each in tomllib.loads((QUESTIONS / f"{source.name}.toml").read_text("utf-8"))["asked"]:
                gold = gold_rows(opened, each["sql"]) if each.get("sql") else None
                yield Asked("strangers", each["question"], ask(each["question"], gold))


def _everyday(stack: ExitStack) -> Iterator[Asked]:
    for file in sorted(everyday.SOURCES.glob("*")):
        source = tomllib.loads(file.read_text("utf-8"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with duckdb.connect() as gold:
            everyday.tables(gold, source)
            opened = str(everyday.written(gold, source, folder))
            ask = _judged(stack.enter_context(almanaq.connect(opened, model="local", cache=False)), source["today"])
            for each in source["asked"]:
                if everyday.half(each["question"]) == "development":
                    rows = gold.sql(each["sql"]).fetchall()
                    yield Asked("everyday", each["question"], ask(each["question"], rows))


def _spider(data: Path, stack: ExitStack) -> Iterator[Asked]:
    rows = pq.read_table(data / "spider" / "queries_validation.parquet").to_pylist()
    for name in OPEN:
        file = data / "spider" / "database" / name / f"{name}.sqlite"
        ask = _judged(stack.enter_context(almanaq.connect(str(file), model="local", cache=False)))
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as database:
            database.text_factory = lambda raw: raw.decode("utf-8", "replace")
            for row in (row for row in rows if row["database_id"] == name):
                gold = database.execute(row["answer"]).fetchall()
                yield Asked("spider", row["query"], ask(row["query"], gold))


def _turns(data: Path, stack: ExitStack) -> Iterator[Asked]:
    """Yield the labelled turns, right where they are told apart, and the questions of the paper's annotators, who said
    nothing of rows: these are only compared."""
    labelled = tomllib.loads((TURNS / "turns.toml").read_text("utf-8"))
    listed = [(label, turn) for label, turns in labelled.items() for turn in half(turns, lambda turn: turn[1], "dev")]
    for file in ("turns_independent.toml", "turns_paraphrases.toml"):
        more = tomllib.loads((TURNS / file).read_text("utf-8"))
        listed += [(label, turn) for label, turns in more.items() for turn in turns]
    dialogues = {}
    for name, source in SOURCES.items():
        connection = stack.enter_context(almanaq.connect(source, model="local", cache=False))
        dialogues[name] = (LocalDialogue(connection.engine), connection.catalog)
    for label, (context, words) in listed:
        history = () if context.endswith("0") else (BEFORE[context[0]],)
        yield Asked("turns", words, _told_apart(*dialogues[context[0]], words, history, label))
    rows = pq.read_table(data / "suql_restaurants" / "queries_single_turn.parquet").to_pylist()
    for row in (row for row in rows if _even(row["query_id"])):
        yield Asked("annotators", row["query"], _told_apart(*dialogues["r"], row["query"], (), ""))


def _conversations(stack: ExitStack) -> Iterator[Asked]:
    data = bundled_restaurants()
    models, reader = (
        open_models("local", embedder="lexical"),
        open_models(FunctionModel(truth_function()), embedder="lexical", cache=False),
    )
    connection = stack.enter_context(almanaq.connect(data.source(), model=reader, cache=False))
    for kind in ("single-turn-dev", "conversations-dev"):
        for each in data.conversations(kind):

            def ask(each: Any = each) -> tuple[str, str]:
                dialogue = SuqlDialogue(Agent(connection.engine, models), data.restaurants)
                records, _ = play(each, dialogue, data.restaurants)
                made = [(r.kind, r.judged, r.query, r.answer, r.given) for r in records]
                missed = sum(r.judged in ("entities", "count", "no data") and not r.good for r in records)
                return json.dumps(made, ensure_ascii=False), f"{missed} wrong" if missed else "right"

            yield Asked("restaurants", " / ".join(turn.say for turn in each.turns), ask)


def _judged(connection: Any, today: date | None = None) -> Callable[[str, Any], Callable[[], tuple[str, str]]]:
    """Return what asks a source, and judges the rows of the query by those of the right one."""
    dialogue = LocalDialogue(connection.engine, **({} if today is None else {"today": lambda: today}))

    @cache
    def rows(suql: str) -> Any:
        try:
            return connection.sql(suql).rows
        except almanaq.AlmanaqError:
            return None

    def asking(words: str, gold: Iterable[Sequence[Any]] | None) -> Callable[[], tuple[str, str]]:
        @cache
        def outcome(suql: str) -> str:
            found = rows(suql)
            if found is None or gold is None:
                return "declined" if found is None else "wrong"
            return "right" if is_right(found, suql, list(gold)) else "wrong"

        def ask() -> tuple[str, str]:
            made, suql = _made(dialogue, connection.catalog, words, ())
            return made, outcome(suql) if suql and "answer(" not in suql else "declined"

        return ask

    return asking


def _told_apart(
    dialogue: LocalDialogue, catalog: Any, words: str, history: tuple[Turn, ...], label: str
) -> Callable[[], tuple[str, str]]:
    def ask() -> tuple[str, str]:
        made, _ = _made(dialogue, catalog, words, history)
        return made, "right" if not label or json.loads(made)[0] == label else "wrong"

    return ask


def _made(dialogue: LocalDialogue, catalog: Any, words: str, history: tuple[Turn, ...]) -> tuple[str, str | None]:
    """Return what was made of a turn, as text, and its query where it has one."""
    for kept in dialogue._parser._vocabularies.values():
        kept.kept.clear()
    kind = dialogue.classify(words, catalog, history)
    parsed = dialogue.parse(words, catalog, history)
    made = [kind, parsed.kind, parsed.status, parsed.suql, parsed.reply, parsed.unused, parsed.corrections]
    made += [parsed.notes, parsed.readings, parsed.keep]
    return json.dumps(made, ensure_ascii=False), None if kind in NO_DATA or parsed.status != "query" else parsed.suql


# --- ablation ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Construction:
    """Something that can be switched off: a function, one of its patterns where it has some, its lines, what holds it.

    Attributes:
        holder: the module or class that has it as `attribute`; for a pattern its place in the table.
        neutral: gives what stands for "nothing found".
    """

    named: str
    pattern: str
    lines: int
    holder: Any
    attribute: str
    neutral: Callable[[], Any]

    @property
    def key(self) -> str:
        return f"{self.named} {self.pattern}"


def patterns() -> Iterator[Construction]:
    """Yield every pattern."""
    for i, (pattern, take) in enumerate(composing.CONSTRUCTIONS):
        named = f"{take.__module__.removeprefix(PACKAGE)[1:]}.{take.__name__}"
        yield Construction(named, pattern.pattern, len(inspect.getsource(take).splitlines()), i, "", lambda: False)


def functions() -> Iterator[Construction]:
    """Yield every function of the package that may find nothing."""
    for name, module in sorted(sys.modules.items()):
        if name.startswith(PACKAGE):
            for holder in (module, *(c for c in vars(module).values() if isinstance(c, type) and c.__module__ == name)):
                yield from _functions(holder, name)


def _functions(holder: Any, module: str) -> Iterator[Construction]:
    for attribute, value in list(vars(holder).items()):
        if inspect.isfunction(value) and value.__module__ == module and not attribute.startswith("__"):
            neutral = _neutral(str(value.__annotations__.get("return", "")))
            if neutral is not None:
                lines = len(inspect.getsource(value).splitlines())
                named = f"{module.removeprefix(PACKAGE).lstrip('.')}.{value.__qualname__}"
                yield Construction(named, "", lines, holder, attribute, neutral)


def _neutral(returned: str) -> Callable[[], Any] | None:
    """Return what gives "nothing" of an annotated type; None where there is no such thing."""
    if returned.endswith("| None"):
        return lambda: None
    for start, empty in (
        ("tuple[", tuple), ("list[", list), ("dict[", dict), ("set[", set), ("frozenset[", frozenset),
        ("Sequence[", tuple), ("Iterator[", lambda: iter(())), ("Iterable[", lambda: iter(())), ("bool", bool),
    ):  # fmt: skip
        if returned.startswith(start):
            is_pair = start == "tuple[" and not returned.endswith(", ...]")
            return None if is_pair else empty
    return None


@contextmanager
def replaced(one: Construction, by: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """Put another function in the place of a construction, wherever it was imported."""
    if isinstance(one.holder, int):
        before = composing.CONSTRUCTIONS
        pattern, take = before[one.holder]
        composing.CONSTRUCTIONS = (*before[: one.holder], (pattern, by(take)), *before[one.holder + 1 :])
        try:
            yield
        finally:
            composing.CONSTRUCTIONS = before
        return
    own = vars(one.holder)[one.attribute]
    other = wraps(own)(by(own))
    held = [one.holder]
    if inspect.ismodule(one.holder):
        held = [m for n, m in sys.modules.items() if n.startswith("almanaq") and vars(m).get(one.attribute) is own]
    for each in held:
        setattr(each, one.attribute, other)
    try:
        yield
    finally:
        for each in held:
            setattr(each, one.attribute, own)


def measure(asked: Sequence[Asked], listed: Sequence[Construction]) -> dict[str, Any]:
    """Return what every construction is worth, those that nothing is lost without first."""
    now: Asked | None = None
    with ExitStack() as watched:
        for one in listed:

            def noting(own: Callable[..., Any], one: Construction = one) -> Callable[..., Any]:
                def called(*args: Any, **named: Any) -> Any:
                    value = own(*args, **named)
                    if value and now is not None:
                        now.used.add(one.key)
                    return value

                return called

            watched.enter_context(replaced(one, noting))
        before = {}
        for now in asked:
            before[id(now)] = now.ask()
    found = []
    for one in listed:
        using = [each for each in asked if one.key in each.used]
        row: dict[str, Any] = {"construction": one.named, "pattern": one.pattern, "lines": one.lines}
        row["questions"] = len(using)
        if len(using) < MANY:
            row |= _without(one, using, before)
        found.append(row)
        print(row, file=sys.stderr)
    found.sort(key=lambda row: (row.get("right lost", MANY), row["questions"], row["construction"]))
    return {
        "command": "python -m experiments.local.constructions --data-dir DIR --strangers DIR",
        "questions": dict(Counter(each.group for each in asked)),
        "constructions": found,
    }


def _without(one: Construction, using: Sequence[Asked], before: Mapping[int, tuple[str, str]]) -> dict[str, Any]:
    """Ask questions again without a construction, and count what is lost by it."""
    changed = lost = wrong = 0

    def nothing(_: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *_, **__: one.neutral()

    with replaced(one, nothing):
        for each in using:
            try:
                made, outcome = each.ask()
            except Exception:  # what cannot be done without has no alternative
                made, outcome = "", "raised"
            text, was = before[id(each)]
            changed += made != text
            lost += was == "right" and outcome != "right"
            wrong += outcome != was and outcome not in ("right", "declined")
    return {"replies changed": changed, "right lost": lost, "wrong gained": wrong}


def written(record: dict[str, Any]) -> str:
    """Return a record as JSON with a line for each construction."""
    rows = ",\n  ".join(json.dumps(row) for row in record["constructions"])
    head = json.dumps({**record, "constructions": []}, indent=1)
    return head.removesuffix("[]\n}") + f"[\n  {rows}\n ]\n}}"


if __name__ == "__main__":
    main()
