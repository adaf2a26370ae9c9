"""Our agent as a generator: it writes SUQL over the tables that were found, or the database, and its rows reply."""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.agent.dialects import dialect_notes
from almanaq.agent.parser import Failure
from almanaq.agent.prompting import complete, json_object
from almanaq.agent.queries import QueryEngine
from almanaq.agent.responder import Found, respond_prompt
from almanaq.agent.schema_text import schema_text
from almanaq.agent.tables import SmallTables
from almanaq.agent.turn import run_in_thread
from almanaq.corpus.files.shape import clean_header
from almanaq.corpus.table import Table
from almanaq.errors import AlmanaqError, BudgetExceeded, ModelCallError, ModelError, QueryError
from almanaq.models.budget import spending
from almanaq.models.prompts import prompt_file
from almanaq.models.protocols import LanguageModel, Models, Prompt, TextCall, Usage
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import is_text_call
from almanaq_bench.generation.context import sqlite_dialect
from almanaq_bench.generation.protocols import (
    WRITTEN_QUERY,
    WRITTEN_REPLY,
    GenerationRequest,
    Reply,
    of_prompt,
    of_text_call,
)
from almanaq_bench.prompts import bench_prompt, bench_prompt_version

REPAIRS = 2
"""How often a rejected query is rewritten."""


def exact_query(question: str, engine: QueryEngine, model: LanguageModel, *, hint: str = "") -> str:
    """Return a query over the engine's tables that reads no prose; the last one written where none was accepted.

    Raises:
        ModelCallError: the model gave no query that can be read.
    """
    schema = schema_text(engine.catalog, SmallTables(engine)(engine.catalog))
    failures: list[Failure] = []
    while True:
        reply = (
            json_object(complete(model, exact_prompt(schema, question, hint, failures, dialect=engine.dialect)).text)
            or {}
        )
        suql = str(reply.get("suql") or "").strip().rstrip(";").strip()
        if not suql:
            raise ModelCallError(
                f"{model.name} gave no readable query; ask again, or choose another model with --model"
            )
        refused = _find_fault(suql, engine)
        if refused is None or len(failures) == REPAIRS:
            return suql
        failures.append(Failure(suql, refused))


def exact_prompt(
    schema: str, question: str, hint: str = "", failures: Sequence[Failure] = (), *, dialect: str = "duckdb"
) -> Prompt:
    """Return the request for a query in the dialect of the engine that holds the database."""
    values = {
        "dialect": dialect_notes(dialect).name,
        "schema": schema,
        "question": question,
        "hint": hint,
        "failures": failures,
    }
    return bench_prompt("exact", values)


def _find_fault(suql: str, engine: QueryEngine) -> str | None:
    """Return why a query is not accepted; None where it is."""
    try:
        engine.check(suql)
        calls = nodes_of(sqlglot.parse_one(suql, read=engine.dialect), exp.Anonymous)
    except (QueryError, SqlglotError) as error:
        return str(error)
    if any(is_text_call(call) for call in calls):
        return "it reads prose: answer() and summary() are not available"
    return None


_PROMPTS = "almanaq.agent.prompts"
_ANSWERS = 3  # rows whose values make an answer


@dataclass(frozen=True)
class AgentGenerator:
    """Asks the agent of `almanaq.connect`, with `local` or with a language model.

    An answer is the values of the first rows; a sentence is the agent's own. A statement is put to each table as a text
    call, and the first table that says something decides. SQL is a query in SQLite's dialect: with a language model one
    for exactly what is asked, that reads no prose and is not run; of `local` the one that it answers with.
    """

    models: Models
    name: str = "agent"

    @property
    def prompts(self) -> Mapping[str, str]:
        """The versions of the agent's prompt files; none where there is no language model."""
        if self.models.language is None:
            return {}
        names = sorted(file.name.removesuffix(".jinja") for file in files(_PROMPTS).iterdir() if ".jinja" in file.name)
        return {"exact": bench_prompt_version("exact")} | {name: prompt_file(name, _PROMPTS).version for name in names}

    @property
    def model(self) -> str:
        """The name of the model behind the agent."""
        return self.models.name

    async def reply(self, asked: GenerationRequest) -> Reply:
        """Return the agent's reply with all that it cost; what it cannot do is this reply's fault."""
        with spending() as spent:
            reply = await self._reply(asked)
        return replace(reply, usage=spent.usage)

    def expected(self, asked: Sequence[GenerationRequest]) -> Usage:
        """Return what the replies are expected to take: a query each and its wording, or a call for each table."""
        if self.models.language is None:
            return Usage()
        return sum(map(_estimate_usage, asked), Usage())

    async def _reply(self, asked: GenerationRequest) -> Reply:
        try:
            if asked.role == "verify":
                return await self._verdict(asked)
            return await run_in_thread(self._query if asked.role == "sql" else self._answer, asked)
        except (BudgetExceeded, ModelError) as error:
            if isinstance(error, ModelCallError):
                return Reply("", fault=str(error))
            raise
        except AlmanaqError as error:
            return Reply("", fault=" ".join(str(error).split()))

    async def _verdict(self, asked: GenerationRequest) -> Reply:
        for text in asked.texts:
            question = f"Is it true that {asked.question}?"
            reply = await self.models.reader.read(TextCall("answer", (text,), question, options=("Yes", "No")))
            if reply.value is not None:
                return Reply("true" if reply.value == "Yes" else "false")
        return Reply("not enough")

    def _answer(self, asked: GenerationRequest) -> Reply:
        from almanaq import connect

        if not asked.tables:
            return Reply("")
        with tempfile.TemporaryDirectory() as folder:
            for place, table in enumerate(asked.tables):
                _write(table, Path(folder), place)
            with connect(folder, model=self.models) as connection:
                response = connection.ask(asked.question)
        if response.status == "failed":
            return Reply("", response.answer, response.suql or "")
        values = dict.fromkeys(str(row[0]) for row in response.rows[:_ANSWERS] if row and row[0] is not None)
        return Reply(response.answer if asked.sentence else ", ".join(values), "", response.suql or "")

    def _query(self, asked: GenerationRequest) -> Reply:
        from almanaq import connect

        if asked.database is None:
            return Reply("", fault="the database is missing")
        language = self.models.language
        with connect(str(asked.database), model=self.models) as connection:
            if language is not None:
                return Reply(sqlite_dialect(exact_query(asked.question, connection.engine, language, hint=asked.hint)))
            response = connection.ask(asked.question)
        if not response.suql:
            return Reply("", fault=response.answer)
        return Reply(sqlite_dialect(response.suql))


def _estimate_usage(asked: GenerationRequest) -> Usage:
    if asked.role == "verify":
        return sum((of_text_call((text,), asked.question) for text in asked.texts[:1]), Usage())
    schema = "\n".join(asked.texts)
    query = of_prompt(exact_prompt(schema, asked.question, asked.hint), WRITTEN_QUERY)
    return (
        query
        if asked.role == "sql"
        else query + of_prompt(respond_prompt(Found(asked.question, schema, (), ())), WRITTEN_REPLY)
    )


def _write(table: Table, folder: Path, place: int) -> None:
    """Write a table as CSV, named after its title, so that its columns get types as those of any file."""
    name = re.sub(r"\W+", "_", table.title or table.id.table).strip("_").lower()[:40] or "table"
    header = clean_header(list(table.header), name).names
    with (folder / f"{name}_{place + 1}.csv").open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([header, *table.rows])
