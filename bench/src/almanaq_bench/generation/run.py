"""The second half of a run: make contexts, ask the generator, judge its queries, write each batch before the next."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from almanaq.corpus.table import Corpus, Table
from almanaq.errors import AlmanaqError, BenchmarkError
from almanaq.event_loops import run_sync
from almanaq.models.protocols import Usage
from almanaq_bench.cards import find_card
from almanaq_bench.config import CONCURRENCY, RunConfig
from almanaq_bench.cost_forecast import CostForecast
from almanaq_bench.data_paths import is_plain_name
from almanaq_bench.generation.context import (
    database_of,
    database_schema,
    distinct,
    pack,
    read_tables,
    schema_texts,
    tables_by_database,
)
from almanaq_bench.generation.protocols import (
    Expecting,
    GenerationRequest,
    Generator,
    Reply,
    Role,
    failure,
    sample_of,
    times,
)
from almanaq_bench.generation.replies import ReplyRecord, read_replies
from almanaq_bench.hybridqa.places import answer_count, answer_place
from almanaq_bench.question_sets import Question
from almanaq_bench.records import RECORDS, REPLIES, TIMINGS, Appender, Record, read_records
from almanaq_bench.sql.accuracy import (
    Pair,
    execution_accuracy,
    judge_all,
    strict_execution_accuracy,
    valid_efficiency,
)
from almanaq_bench.sql.sandbox import Judged, Limits

BATCH = 32
"""Questions whose replies are written together; more where more are asked at once."""
_COPIES = 2  # so many times as many tables are looked at as are handed on, as some are copies of others

ROLES: Mapping[str, Role] = {
    "question-answering": "answer",
    "hybrid-qa": "answer",
    "fact-verification": "verify",
    "text-to-sql": "sql",
    "restaurants": "entities",
    "sembench-movie": "rows",
}
"""What each task wants of a generator."""


@dataclass(frozen=True, slots=True)
class Databases:
    """The SQLite files of a dataset folder, `database/DB/DB.sqlite`."""

    folder: Path

    def file(self, name: str) -> Path | None:
        """Return the file of a database; None where it is not there, or where its name is a path to another place."""
        if not is_plain_name(name):
            return None
        file = self.folder / "database" / name / f"{name}.sqlite"
        return file if file.is_file() else None

    def leave_out(self, questions: Sequence[Question], corpus: Corpus) -> tuple[tuple[Question, ...], str]:
        """Return the questions whose gold query can be run as it was meant, and say how many others there are.

        A database that is not here cannot be asked; one whose tables are marked as `reduced` gives other rows.
        """
        reduced = {table.id.database for table in corpus if table.context.get("reduced")}
        here = [question for question in questions if self.file(question.gold[0].database) is not None]
        whole = tuple(question for question in here if question.gold[0].database not in reduced)
        parts = [
            f"{count} {what}"
            for count, what in (
                (len(questions) - len(here), "questions whose database is missing"),
                (len(here) - len(whole), "questions of reduced databases"),
            )
            if count
        ]
        return whole, f"excluded from execution accuracy: {', '.join(parts)}" if parts else ""


@dataclass(frozen=True, slots=True)
class Generation:
    """Asks a generator.

    Args:
        out: the run folder, which holds the records of the retrieval.
        databases: for text-to-SQL.
        progress: told after every batch how many of how many questions are done.
        foreseen: is told what the replies are expected to cost, and may refuse it.
        concurrency: most questions that are asked at once.
    """

    out: Path
    config: RunConfig
    generator: Generator
    databases: Databases
    progress: Callable[[int, int], None] | None = None
    limits: Limits | None = None
    foreseen: CostForecast | None = None
    concurrency: int = CONCURRENCY

    def run(self, questions: Sequence[Question], corpus: Corpus) -> None:
        """Write a reply for each question that has none yet.

        Raises:
            ModelError: no call can succeed; the replies of the batches before are written.
            BenchmarkError: the generator failed at every question so far; nothing is written of it.
            BudgetExceeded: they are expected to cost more than the budget allows, and nothing was asked; or did.
        """
        done = {reply.query_id for reply in read_replies(self.out / REPLIES)}
        todo = [question for question in questions if question.id not in done]
        if todo:
            context = self._contexts(todo, corpus)
            self._foresee(todo, context)
            run_sync(self._ask(todo, context))

    def _foresee(self, todo: Sequence[Question], context: Callable[[Question], GenerationRequest]) -> None:
        """Tell what the replies are expected to cost, by a sample of the questions."""
        if self.foreseen is not None and isinstance(self.generator, Expecting):
            chosen = sample_of(todo)
            expected = self.generator.expected([context(question) for question in chosen])
            what = f"replying to {len(todo):,} questions"
            self.foreseen.work(what, self.generator.model.partition(",")[0], times(expected, len(todo) / len(chosen)))

    def _contexts(self, questions: Sequence[Question], corpus: Corpus) -> Callable[[Question], GenerationRequest]:
        """Return what makes the context of a question."""
        found = {record.query_id: record for record in read_records(self.out / RECORDS)}
        if ROLES[self.config.task] == "sql":
            names = {database_of(found[question.id].hits) for question in questions}
            schemas = tables_by_database(corpus, names)
            return lambda question: self._sql_context(question, found[question.id], schemas)
        k = self.config.context_k
        looked_at = {question.id: found[question.id].hits[: k * _COPIES] for question in questions}
        tables = read_tables(corpus, (hit.id for hits in looked_at.values() for hit in hits))
        card = find_card(self.config.dataset)

        def make_request(question: Question) -> GenerationRequest:
            best = distinct([tables[hit.id] for hit in looked_at[question.id]])[:k]
            packed = tuple(pack(best))
            sentence = bool(card and card.sentences)
            role = ROLES[self.config.task]
            return GenerationRequest(question.id, role, question.text, packed, best[: len(packed)], sentence)

        return make_request

    def _sql_context(
        self, question: Question, record: Record, schemas: Mapping[str, Sequence[Table]]
    ) -> GenerationRequest:
        name = database_of(record.hits)
        tables = tuple(schemas.get(name, ()))
        if self.config.schema == "retrieved":
            chosen = {hit.id for hit in record.hits[: self.config.context_k]}
            tables = tuple(table for table in tables if table.id in chosen)
        hint = str(question.fields.get("evidence") or "") if self.config.evidence else ""
        file = self.databases.file(name) if name else None
        texts = tuple(schema_texts(tables) if file is None else database_schema(file, tables))
        return GenerationRequest(question.id, "sql", question.text, texts, tables, hint=hint, database=file)

    async def _ask(self, todo: Sequence[Question], context: Callable[[Question], GenerationRequest]) -> None:
        replies, timings = Appender(self.out / REPLIES), Appender(self.out / TIMINGS)
        gate, size = asyncio.Semaphore(self.concurrency), BATCH * max(1, self.concurrency // CONCURRENCY)
        for start in range(0, len(todo), size):
            batch = todo[start : start + size]
            asked = [context(question) for question in batch]
            started = time.perf_counter()
            outcomes = await asyncio.gather(*(self._one(each, gate) for each in asked))
            seconds = time.perf_counter() - started
            if not start:
                _check_works(outcomes, self.generator.name)
            records, efficiency = self._records(batch, asked, outcomes)
            replies.add(record.to_json() for record in records)
            usage = sum((reply.usage for reply in outcomes), Usage())
            timing = {"stage": "generate", "queries": len(batch), "seconds": seconds, "efficiency": efficiency}
            spent = {name: getattr(usage, name) for name in ("calls", "input_tokens", "output_tokens", "money")}
            timings.add([json.dumps(timing | spent)])
            if self.progress is not None:
                self.progress(min(start + size, len(todo)), len(todo))

    async def _one(self, asked: GenerationRequest, gate: asyncio.Semaphore) -> Reply:
        async with gate:
            try:
                return await self.generator.reply(asked)
            except AlmanaqError:
                raise
            except Exception as error:
                return failure(error)

    def _records(
        self, batch: Sequence[Question], asked: Sequence[GenerationRequest], said: Sequence[Reply]
    ) -> tuple[list[ReplyRecord], list[float]]:
        judged = self._judge(batch, asked, said) if asked[0].role == "sql" else [None] * len(batch)
        made = [
            _record(question, context, reply, verdict)
            for question, context, reply, verdict in zip(batch, asked, said, judged, strict=True)
        ]
        return made, [round(valid_efficiency(each), 4) if each else 0.0 for each in judged]

    def _judge(
        self, batch: Sequence[Question], asked: Sequence[GenerationRequest], said: Sequence[Reply]
    ) -> list[Judged | None]:
        """Run the queries that were written for the right database; those for another are wrong as they are."""
        files = [self.databases.file(question.gold[0].database) for question in batch]
        pairs = {
            place: Pair(file, question.answer, reply.text)
            for place, (file, question, context, reply) in enumerate(zip(files, batch, asked, said, strict=True))
            if file is not None and not reply.fault and (context.database == file or not context.texts)
        }
        done = dict(zip(pairs, judge_all(pairs.values(), self.limits), strict=True))
        return [done.get(place) for place in range(len(batch))]


def _check_works(said: Sequence[Reply], name: str) -> None:
    """Raise BenchmarkError where every reply of the first batch is an exception: what fails always has no score."""
    if all(reply.broken for reply in said):
        asked = f"all {len(said)} questions that it was asked first" if len(said) > 1 else "the question it was asked"
        raise BenchmarkError(
            f"the generator {name} failed at {asked}, so there is no score; the first failure: {said[0].fault}"
        )


def _record(question: Question, asked: GenerationRequest, reply: Reply, judged: Judged | None) -> ReplyRecord:
    outcome, reason = "", ""
    if asked.role == "sql" and not reply.fault:
        outcome = judged.reply.kind if judged else "database"
        reason = judged.reply.reason if judged else f"written for a database other than {question.gold[0].database}"
        if judged and judged.gold.kind != "ok":
            outcome, reason = "gold", f"the gold query fails: {judged.gold.reason}"
    return ReplyRecord(
        question.id,
        asked.role,
        question.answer,
        reply.text,
        reply.fault,
        reply.reasoning,
        len(asked.texts),
        str(question.fields.get("difficulty") or answer_place(question)),
        outcome,
        reason,
        judged is not None and execution_accuracy(judged),
        judged is not None and strict_execution_accuracy(judged, question.answer),
        reply.stage,
        answer_count(question),
    )
