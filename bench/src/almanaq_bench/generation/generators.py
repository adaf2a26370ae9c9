"""Generators of replies by name: bounds, the local reader, a language model, objects of others."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from almanaq.agent.turn import run_in_thread
from almanaq.corpus.table import Table
from almanaq.errors import AlmanaqError, ModelError, UsageError, suggest
from almanaq.models.prompted_reader import ask_model
from almanaq.models.prompts import prompt_file
from almanaq.models.protocols import LanguageModel, Prompt, Usage
from almanaq.models.retrying import FailedCall
from almanaq.models.text_calls import MalformedReply, parse_object
from almanaq.text.words import stems
from almanaq_bench.generation.context import sqlite_dialect
from almanaq_bench.generation.protocols import (
    VERDICTS,
    WRITTEN_REPLY,
    GenerationRequest,
    Generator,
    Reply,
    failure,
    of_prompt,
)
from almanaq_bench.prompts import SCHEMAS, bench_prompt, bench_prompt_version
from almanaq_bench.question_sets import Question
from almanaq_bench.retrievers.adapters import import_object


@dataclass(frozen=True)
class Constant:
    """Always says the same."""

    name: str
    text: str
    model: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)

    async def reply(self, asked: GenerationRequest) -> Reply:  # noqa: ARG002
        """Return the same reply to all."""
        return Reply(self.text)


@dataclass(frozen=True)
class FirstCell:
    """Says the first cell of the best table; for SQL selects it."""

    name: str = "first-cell"
    model: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)

    async def reply(self, asked: GenerationRequest) -> Reply:
        """Return the first cell of the best table that has one."""
        if asked.role == "verify":
            return Reply("true")
        for table in asked.tables:
            if asked.role == "sql" and table.header:
                column, name = (text.replace('"', '""') for text in (table.header[0], table.id.table))
                return Reply(f'SELECT "{column}" FROM "{name}" LIMIT 1')
            cell = next((cell for row in table.rows for cell in row if cell.strip()), "")
            if cell:
                return Reply(cell)
        return Reply("")


def majority(questions: Sequence[Question]) -> Constant:
    """Return the generator that always says the most frequent gold answer of these questions: a bound, not a method."""
    counts = Counter(question.answer.strip().lower() for question in questions)
    return Constant("majority", counts.most_common(1)[0][0] if counts else "")


class PaperGenerator:
    """An object with `generate(table_str, query)`; called in a thread, so that several may be under way."""

    model = ""

    def __init__(self, made: Any, name: str) -> None:
        self.name = name
        self._made = made

    @property
    def prompts(self) -> Mapping[str, str]:
        """None of ours."""
        return {}

    async def reply(self, asked: GenerationRequest) -> Reply:
        """Return what the object says; anything it raises is this reply's fault."""
        tables = "\n\n".join(asked.texts)
        try:
            reply = await run_in_thread(self._made.generate, tables, asked.question)
            if inspect.isawaitable(reply):
                reply = await reply
        except ModelError:
            raise
        except Exception as error:
            return failure(error)
        if reply is None:
            return Reply("")
        if isinstance(reply, dict):  # the paper's own generators give an object
            keys = ", ".join(map(str, reply)) or "no keys"
            reply = reply.get("sql_query", reply.get("sql", reply.get("content")))
            if reply is None:
                return Reply("", fault=f"it gave an object without sql_query or content: {keys}", broken=True)
        if not isinstance(reply, str):
            return Reply("", fault=f"it gave {type(reply).__name__}, not text", broken=True)
        return Reply(verdict_in(reply)) if asked.role == "verify" else Reply(reply.strip())


def verdict_in(text: str) -> str:
    """Return the verdict that free text states: at its beginning or alone; "" where it states none, or several.

    "Not true" is no "true", and "true" inside a longer explanation is no verdict.
    """
    plain = " ".join(text.lower().strip(" .!\"'*`").split())
    spelled = {
        "true": "true", "supported": "true", "supports": "true", "yes": "true",
        "false": "false", "refuted": "false", "refutes": "false", "no": "false", "not true": "false",
        "not enough information": "not enough", "not enough": "not enough", "not enough info": "not enough",
    }  # fmt: skip
    head = plain.replace(":", ",").replace(";", ",").replace(".", ",").split(",")[0].strip()
    found = spelled.get(plain) or spelled.get(head)
    return found if found in VERDICTS else ""


def import_generator(name: str) -> Generator:
    """Return the generator that `module:object` names: one of ours, or one with `generate(table_str, query)`.

    Raises:
        UsageError: there is no such module or object, it cannot be made, or it is no generator.
    """
    return adapt_generator(import_object(name, "generator"), name)


def adapt_generator(made: Any, name: str) -> Generator:
    """Return an object as a generator. Raises UsageError for one that is none."""
    if callable(getattr(made, "reply", None)) and hasattr(made, "prompts"):
        return made  # type: ignore[no-any-return]
    if callable(getattr(made, "generate", None)):
        return PaperGenerator(made, name)
    raise UsageError(
        f"generator {name!r} is not a generator: it has neither reply(asked) nor generate(table_str, query)"
    )


_LEAST = 0.5
"""Share of a statement's words that title, header and best row must hold to settle it."""

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NUMERIC = re.compile(r"\bhow (?:many|much|long|old|far|high|tall)\b|\bnumber\b|\byear\b|\bwhen\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Row:
    """A row, and how much of the question it and its table hold."""

    table: Table
    cells: tuple[str, ...]
    share: float


@dataclass(frozen=True)
class LocalGenerator:
    """Answers with words of a cell, judges by words and numbers, and writes SQL by linking words to the schema."""

    name: str = "local"
    model: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)
    parsers: dict[Path, Callable[[str], str | None]] = field(default_factory=dict, repr=False, compare=False)

    async def reply(self, asked: GenerationRequest) -> Reply:
        """Return the reply at once."""
        if asked.role == "sql":
            return self._sql(asked)
        best = _best_row(asked.question, asked.tables)
        if asked.role == "verify":
            return Reply(_verdict(asked.question, best))
        if best is None:
            return Reply("")
        return Reply(_sentence(asked.question, best) if asked.sentence else _cell(asked.question, best))

    def _sql(self, asked: GenerationRequest) -> Reply:
        if asked.database is None:
            return Reply("", fault="the database is missing")
        if asked.database not in self.parsers:
            self.parsers[asked.database] = _schema_parser(asked.database)
        try:
            suql = self.parsers[asked.database](asked.question)
        except AlmanaqError as error:
            return Reply("", fault=str(error))
        return Reply(
            sqlite_dialect(suql) if suql else "", fault="" if suql else "no word of the question links to the schema"
        )


def _best_row(question: str, tables: Sequence[Table]) -> _Row | None:
    """Return the row that holds most of the question's words, with its table's titles and header.

    The first of equals.
    """
    keys = set(stems(question))
    best: _Row | None = None
    for row in _rows(tables, keys):
        if best is None or row.share > best.share:
            best = row
    return best


def _rows(tables: Sequence[Table], keys: set[str]) -> Iterator[_Row]:
    for table in tables:
        around = keys & set(stems(" ".join((table.title, table.section, *table.header))))
        for cells in table.rows:
            held = around | (keys & set(stems(" ".join(cells))))
            yield _Row(table, cells, len(held) / max(len(keys), 1))


def _verdict(statement: str, best: _Row | None) -> str:
    """Judge a statement: true where its numbers stand in the row that speaks of it too, false where they do not."""
    if best is None or best.share < _LEAST:
        return "not enough"
    numbers = set(_NUMBER.findall(statement))
    held = set(_NUMBER.findall(" ".join((best.table.title, *best.table.header, *best.cells))))
    return "true" if numbers <= held else "false"


def _cell(question: str, best: _Row) -> str:
    """Choose the cell that answers: not itself in the question, under a column that the question names."""
    keys = set(stems(question))
    numeric = bool(_NUMERIC.search(question))

    def fitness(place: int) -> tuple[float, ...]:
        cell, name = best.cells[place], best.table.header[place]
        new = set(stems(cell)) - keys
        named = len(set(stems(name)) & keys)
        return (bool(new), named, bool(_NUMBER.search(cell)) is numeric, -place)

    filled = [place for place, cell in enumerate(best.cells) if cell.strip()]
    return best.cells[max(filled, key=fitness)].strip() if filled else ""


def _sentence(question: str, best: _Row) -> str:
    """Say the row in a sentence, beginning with what the table is about."""
    about = best.table.title or best.table.section
    parts = [
        f"{name} {cell}".strip()
        for name, cell in zip(best.table.header, best.cells, strict=True)
        if cell.strip() and set(stems(cell)) - set(stems(question))
    ]
    return f"{about}: {', '.join(parts)}.".lstrip(": ")


def _schema_parser(database: Path) -> Callable[[str], str | None]:
    """Return what links words of a question to one database, which is read once."""
    from almanaq import connect
    from almanaq.agent.local import LocalDialogue

    connection = connect(str(database), model="local", cache=False)
    parser = LocalDialogue(connection.engine)
    return lambda question: next((each.suql for each in parser.readings(question, connection.catalog)), None)


PROMPTS = ("table_answer", "table_verify", "table_sql", "no_context", "repair")
_NOTHING = "(the schema is missing)"


class PromptedGenerator:
    """Asks a language model. Failures of a call are faults of one reply; those of the model are raised."""

    def __init__(self, model: LanguageModel) -> None:
        self.name = self.model = model.name
        self._model = model

    @property
    def prompts(self) -> Mapping[str, str]:
        """The versions of the prompt files."""
        return {name: bench_prompt_version(name) if name in SCHEMAS else prompt_file(name).version for name in PROMPTS}

    def expected(self, asked: Sequence[GenerationRequest]) -> Usage:
        """Return what a call for each question takes."""
        return sum((of_prompt(_prompt(each)[0], WRITTEN_REPLY) for each in asked), Usage())

    async def reply(self, asked: GenerationRequest) -> Reply:
        """Return the model's reply."""
        prompt, key = _prompt(asked)
        try:
            content, usage, _ = await ask_model(self._model, prompt, _reply_parser(key))
        except FailedCall as failure:
            return Reply("", fault=str(failure), usage=failure.usage)
        text = content[key]
        return Reply("" if text is None else str(text).strip(), "", str(content.get("reasoning", "")), usage)


def _prompt(asked: GenerationRequest) -> tuple[Prompt, str]:
    """Return the request, and the key of its reply that counts."""
    if asked.role == "sql":
        texts = asked.texts or (_NOTHING,)
        values: dict[str, object] = {
            "dialect": "SQLite",
            "tables": texts,
            "hint": asked.hint,
            "question": asked.question,
        }
        return bench_prompt("table_sql", values, max_output_tokens=2048), "sql"
    if not asked.texts:
        choices = VERDICTS[:2] if asked.role == "verify" else ()
        values = {"question": asked.question, "choices": choices, "sentence": asked.sentence}
        return bench_prompt("no_context", values), "answer"
    if asked.role == "verify":
        return bench_prompt("table_verify", {"statement": asked.question, "tables": asked.texts}), "verdict"
    values = {"question": asked.question, "tables": asked.texts, "sentence": asked.sentence}
    return bench_prompt("table_answer", values), "answer"


def _reply_parser(key: str) -> Callable[[str], Mapping[str, object]]:
    def parse(text: str) -> Mapping[str, object]:
        content = parse_object(text)
        if key not in content:
            raise MalformedReply(f"it has no key {key!r}")
        written = content[key]
        if written is not None and not isinstance(written, str | int | float):
            raise MalformedReply(f"{key!r} must be a string")
        if key == "verdict" and str(written).strip().lower() not in VERDICTS:
            raise MalformedReply(f"'verdict' must be one of {', '.join(VERDICTS)}")
        return content

    return parse


GENERATORS = {
    "local": "words of the question, in the tables; no language model",
    "openai:MODEL": "a language model, with our prompts",
    "agent": "our agent, which writes SUQL, with the model that `auto` takes; agent:MODEL with another",
    "linearize@K": "restaurants: the K rows nearest to a search query; linearize@K:openai:MODEL to have it written",
    "majority": "always the most frequent gold answer of the split",
    "not-enough": 'always "not enough"',
    "first-cell": "the first cell of the best table",
}
"""How each generator replies."""


def open_generator(
    name: str,
    questions: Sequence[Question],
    model: Callable[[str], LanguageModel] | None = None,
    batch: int | None = None,
) -> Generator:
    """Open a generator by its name, or by `module:object`.

    Args:
        questions: all that will be asked; `majority` looks at their gold answers.
        model: opens language models by name, within a budget.
        batch: most text calls of the agent that share a request; None: what is usual for the model.

    Raises:
        UsageError: there is no such generator, module or object.
        ModelError: a setting that the model needs is missing.
    """
    if name == "local":
        return LocalGenerator()
    if name == "agent" or name.startswith("agent:"):
        from almanaq.models.batching import Batching
        from almanaq.models.model_names import default_batching, make_models, open_models
        from almanaq_bench.generation.agent import AgentGenerator

        spec = name.partition(":")[2] or "local"
        if spec == "local" or model is None:
            return AgentGenerator(open_models(spec, embedder="lexical"))
        return AgentGenerator(make_models(model(spec), default_batching(spec) if batch is None else Batching.of(batch)))
    if name == "majority":
        return majority(questions)
    if name == "not-enough":
        return Constant(name, "not enough")
    if name == "first-cell":
        return FirstCell()
    if name.startswith("openai:"):
        return PromptedGenerator((model or _open_unbounded)(name))
    if ":" in name:
        return import_generator(name)
    raise UsageError(f"unknown generator {name!r}{suggest(name, GENERATORS)}")


def _open_unbounded(name: str) -> LanguageModel:
    from almanaq.models.model_names import open_models

    language = open_models(name, embedder="lexical").language
    assert language is not None
    return language
