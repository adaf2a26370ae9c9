"""Tasks end to end: contexts, generators, replies that are none, a model behind a real server, kills."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_datasets import files, no_embedder, write_dataset

from almanaq.corpus.table import Table, TableId
from almanaq.errors import BenchmarkError, BudgetExceeded, MissingExtraError, ModelError, UsageError
from almanaq.models.budget import Budget
from almanaq.models.model_names import ModelSettings, open_models
from almanaq.testing import ScriptedModel
from almanaq_bench.config import RunRequest
from almanaq_bench.generation import run as generation
from almanaq_bench.generation.context import pack
from almanaq_bench.generation.generators import PromptedGenerator, adapt_generator, verdict_in
from almanaq_bench.generation.protocols import Reply
from almanaq_bench.run_measures import score
from almanaq_bench.runner import run
from almanaq_bench.testing import Faults, StandInServer

FILMS = [("1950", "Rashomon", "Kurosawa"), ("1941", "Citizen Kane", "Welles"), ("1953", "Tokyo Story", "Ozu")]


def write(folder: Path, name: str, rows: list[dict]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")


@pytest.fixture
def sql(tmp_path: Path) -> RunRequest:
    """Two databases, one of them cut down, one question without any."""
    folder = tmp_path / "sqldata" / "spider"
    tables, questions = [], []
    for number, name in enumerate(("films", "reduced")):
        place = folder / "database" / name
        place.mkdir(parents=True)
        with closing(sqlite3.connect(place / f"{name}.sqlite")) as connection, connection:
            connection.execute("CREATE TABLE film (year INTEGER, title TEXT, director TEXT)")
            connection.executemany("INSERT INTO film VALUES (?, ?, ?)", FILMS)
        context = {"table_name": "film", "column_types": ["integer", "text", "text"], "primary_keys": ["year"]}
        context |= {"reduced": "first rows"} if name == "reduced" else {}
        header = ["year", "title", "director"]
        rows = [list(row) for row in FILMS]
        tables.append({"database_id": name, "table_id": "film", "header": header, "rows": rows,
                       "context": json.dumps(context), "split": "test"})  # fmt: skip
        questions += [
            {"query_id": f"{number}{n}", "query": f"director of {title} in {name}", "database_id": name,
             "table_id": ["film"], "answer": f"SELECT title, director FROM film WHERE title = '{title}'",
             "difficulty": ("easy", "hard")[n % 2], "evidence": f"hint {n}"}
            for n, (_, title, _) in enumerate(FILMS)
        ]  # fmt: skip
    gone = {"query_id": "x", "query": "?", "database_id": "gone", "table_id": ["film"], "answer": "", "difficulty": ""}
    write(folder, "corpus", [*tables, tables[0] | {"database_id": "gone"}])
    write(folder, "queries_test", [*questions, gone | {"evidence": ""}])
    return RunRequest(
        "text-to-sql", "spider", folder.parent, "test", "oracle", tmp_path / "out", no_embedder, cutoffs=(1,)
    )


@pytest.fixture
def qa(request_: RunRequest) -> RunRequest:
    return replace(request_, task="question-answering", cutoffs=(1, 2), context_k=2)


@pytest.fixture(autouse=True)
def small_batches_of_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "BATCH", 4)


def replies(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "replies.jsonl").read_text().splitlines()]


def test_local_answers_from_the_best_table(qa: RunRequest) -> None:
    found = run(qa)
    assert found.metrics["exact_match"] == 1.0
    assert found.metrics["recall@1"] == 1.0
    assert found.outcomes == {"ok": 20}
    assert found.note.startswith("nrefs:1")
    assert found.config.generator == "local"
    assert found.intervals["exact_match"] == (1.0, 1.0)
    assert found.intervals.keys() == found.metrics.keys()
    assert run(replace(qa, resume=True)).metrics == found.metrics


@pytest.mark.parametrize(("retriever", "low", "high"), [("none", 0, 0), ("random", 0, 0.6), ("oracle", 1, 1)])
def test_what_the_retrieval_costs_the_answer(qa: RunRequest, retriever: str, low: float, high: float) -> None:
    assert low <= run(replace(qa, retriever=retriever)).metrics["exact_match"] <= high


@pytest.fixture
def facts(qa: RunRequest) -> RunRequest:
    """A statement of each table, every other one true."""
    write_dataset(qa.data_dir / "facts")
    file = qa.data_dir / "facts" / "queries_test.parquet"
    rows = pq.read_table(file).to_pylist()
    for n, row in enumerate(rows):
        row |= {"query": f"item{n} has the value {n if n % 2 else n + 100}", "answer": str(bool(n % 2))}
    write(file.parent, "queries_test", rows)
    return replace(qa, task="fact-verification", dataset="facts")


def test_statements_are_verified(facts: RunRequest) -> None:
    scores = run(facts)
    found = scores.metrics
    assert (found["f1"], found["coverage"]) == (1.0, 1.0)
    assert scores.intervals.keys() == found.keys()
    always = {}
    for name in ("majority", "not-enough"):
        always[name] = run(replace(facts, generator=name, out=facts.out.with_name(name))).metrics
    assert always["majority"]["recall"] == 0.5
    assert (always["not-enough"]["coverage"], always["not-enough"]["f1"]) == (0, 0)


def test_answers_that_are_no_labels_are_no_statements(qa: RunRequest) -> None:
    with pytest.raises(BenchmarkError, match=r"18 of 20 gold answers are neither true nor false, first .*'q2': '2'"):
        run(replace(qa, task="fact-verification"))
    assert not qa.out.exists()


def scripted(sql_of: dict[str, str]):
    def reply(prompt):
        asked = prompt.messages[1].content.rpartition("Question: ")[2]
        return {"reasoning": "r", "sql": next(text for part, text in sql_of.items() if part in asked)}

    return ScriptedModel({"table_sql": reply})


def test_local_writes_queries_over_the_schema(sql: RunRequest) -> None:
    found = run(sql)
    assert found.outcomes["ok"] == 3
    assert all(reply["text"].startswith("SELECT") for reply in replies(sql.out))


def test_queries_are_run_and_judged_where_their_database_is_whole(sql: RunRequest) -> None:
    named = {
        title: f"SELECT title, director FROM film WHERE title LIKE '%{title}%'" for title in ("mon", "Kane", "Tok")
    }
    found = run(replace(sql, replies=PromptedGenerator(scripted(named))))
    assert found.metrics["execution_accuracy"] == 1.0
    assert found.metrics.keys() >= {"execution_accuracy_strict", "execution_accuracy_easy", "execution_accuracy_hard"}
    assert found.intervals.keys() == found.metrics.keys()
    assert found.timings["valid_efficiency_score"] > 0
    assert found.queries == 7
    assert len(replies(sql.out)) == 3
    assert "1 questions whose database is missing, 3 questions of reduced databases" in found.config.counts


def test_a_model_sees_the_schema_and_each_query_ends_as_it_does(sql: RunRequest) -> None:
    model = scripted({
        "Rashomon": "SELECT title, director FROM film WHERE title = 'Rashomon'",
        "Kane": "SELECT director FROM film",
        "Tokyo": "DROP TABLE film",
    })  # fmt: skip
    found = run(replace(sql, replies=PromptedGenerator(model), evidence=True))
    assert found.outcomes == {"ok": 2, "refused": 1}
    assert found.metrics["execution_accuracy"] == pytest.approx(1 / 3)
    shown = model.prompts[0].messages[1].content
    assert "CREATE TABLE film" in shown
    assert "year INTEGER,  -- for example 1950, 1941, 1953" in shown
    assert "PRIMARY KEY (year)" in shown
    assert "Hint: hint 0" in shown
    assert found.config.prompts["table_sql"]
    kinds = [(reply["outcome"], bool(reply["reason"]), reply["reasoning"]) for reply in replies(sql.out)]
    assert kinds == [("ok", False, "r"), ("ok", False, "r"), ("refused", True, "r")]


def test_a_query_for_another_database_is_wrong(sql: RunRequest) -> None:
    model = ScriptedModel({"table_sql": {"reasoning": "", "sql": "SELECT director FROM film"}})
    found = run(replace(sql, replies=PromptedGenerator(model), retriever="bm25", limit=1))
    assert found.outcomes.keys() <= {"ok", "database"}


def test_no_context_has_a_prompt_of_its_own(qa: RunRequest) -> None:
    model = ScriptedModel({"no_context": {"answer": "7"}})
    found = run(replace(qa, retriever="none", replies=PromptedGenerator(model)))
    assert found.metrics["exact_match"] == pytest.approx(1 / 20)


class Raising:
    def generate(self, table_str, query):
        if "item3?" in query:
            raise RuntimeError("out of\nluck")
        if "item4?" in query:
            return 4
        if "item6?" in query:
            return {"query": "6"}
        return None if "item5?" in query else query.split("item")[1].rstrip("?")


def test_the_agent_answers_with_suql_over_what_was_found(qa: RunRequest, sql: RunRequest) -> None:
    file = next(qa.data_dir.rglob(f"{qa.dataset}/queries_test.parquet"))
    asked = [row | {"query": f"value of item{row['answer']}"} for row in pq.read_table(file).to_pylist()]
    pq.write_table(pa.Table.from_pylist(asked), file)
    found = run(replace(qa, generator="agent", retriever="oracle", limit=4))
    assert found.outcomes == {"ok": 4}
    assert found.config.generator == "agent"
    assert all("SELECT" in reply["reasoning"] for reply in replies(qa.out))
    request = replace(sql, generator="agent", out=sql.out.with_name("sql"))
    run(request)
    assert any(reply["text"].startswith("SELECT") for reply in replies(request.out))


def test_the_agent_judges_statements_by_what_each_table_says(facts: RunRequest) -> None:
    run(replace(facts, generator="agent", retriever="oracle", limit=3))
    assert {reply["text"] for reply in replies(facts.out)} <= {"true", "false", "not enough"}


def test_a_generator_may_see_the_retrieved_tables_of_a_database_alone(sql: RunRequest) -> None:
    file = sql.data_dir / "spider" / "corpus.parquet"
    rows = pq.read_table(file).to_pylist()
    write(file.parent, "corpus", [*rows, rows[0] | {"table_id": "studio"}])
    shown = {}
    for schema in ("all", "retrieved"):
        model = ScriptedModel({"table_sql": {"reasoning": "", "sql": "SELECT 1"}})
        request = replace(sql, replies=PromptedGenerator(model), schema=schema, out=sql.out.with_name(schema), limit=3)
        run(request)
        shown[schema] = model.prompts[0].messages[1].content.count("CREATE TABLE")
    assert shown == {"all": 2, "retrieved": 1}


def test_faults_of_a_generator_are_counted_and_the_rest_goes_on(qa: RunRequest) -> None:
    found = run(replace(qa, replies=adapt_generator(Raising(), "raising")))
    assert found.outcomes == {"fault": 3, "no answer": 1, "ok": 16}
    assert found.metrics["exact_match"] == pytest.approx(16 / 20)
    faults = [reply["fault"] for reply in replies(qa.out) if reply["fault"]]
    assert faults == [
        "RuntimeError: out of luck",
        "it gave int, not text",
        "it gave an object without sql_query or content: query",
    ]
    assert found.warnings == (f"3 of 20 replies cannot be used and count 0; the first: {faults[0]}",)


class NoUnicode:
    def generate(self, table_str, query):
        return "SELECT '\ud800'"


def test_replies_that_are_no_unicode_are_kept_readable(qa: RunRequest, sql: RunRequest) -> None:
    for request in (qa, replace(sql, out=sql.out.with_name("sql"))):
        run(replace(request, replies=adapt_generator(NoUnicode(), "no-unicode"), limit=2))
        assert {reply["text"] for reply in replies(request.out)} == {"SELECT '?'"}


def test_replies_off_schema_are_repaired_once_and_then_faults(qa: RunRequest) -> None:
    model = ScriptedModel({"table_answer": lambda prompt: "words" if len(prompt.messages) < 4 else {"answer": 7}})
    assert run(replace(qa, replies=PromptedGenerator(model))).outcomes == {"ok": 20}
    never = ScriptedModel({"table_answer": {"reply": "7"}})
    assert run(replace(qa, replies=PromptedGenerator(never), out=qa.out.with_name("o"))).outcomes == {"fault": 20}


def test_a_model_that_cannot_be_used_ends_the_run_and_nothing_is_lost(qa: RunRequest) -> None:
    def reply(prompt):
        if "item9?" in prompt.messages[1].content:
            return ModelError("the key is wrong")
        return {"answer": "1", "tables": [1]}

    with pytest.raises(ModelError, match="the key is wrong"):
        run(replace(qa, replies=PromptedGenerator(ScriptedModel({"table_answer": reply}))))
    assert len(replies(qa.out)) == 8
    mended = PromptedGenerator(ScriptedModel({"table_answer": {"answer": "1", "tables": []}}))
    assert run(replace(qa, replies=mended, resume=True)).outcomes == {"ok": 20}


def test_a_model_behind_a_server_with_faults(qa: RunRequest, tmp_path: Path) -> None:
    def reply(request) -> str:
        asked = request["messages"][1]["content"].split("item")[1].split("?")[0]
        return json.dumps({"answer": asked, "tables": [1]})

    faults = Faults(rates={"error": 0.1, "malformed": 0.1}, seed=3)
    with StandInServer(reply, faults=faults) as server:
        settings_ = ModelSettings(base_url=server.url, api_key="k", cache_file=tmp_path / "replies.sqlite", attempts=8)
        models = open_models("openai:m", embedder="lexical", settings=settings_)
        found = run(replace(qa, replies=PromptedGenerator(models.language)))
    assert found.metrics["exact_match"] == 1.0
    assert found.timings["calls"] >= 20
    assert found.config.model == "m" or "m" in found.config.model


def test_a_budget_stops_the_run_and_what_was_paid_for_is_kept(qa: RunRequest, tmp_path: Path) -> None:
    def opener(calls: int):
        limits = ModelSettings(
            base_url=server.url, api_key="k", cache_file=tmp_path / "replies.sqlite", budget=Budget(calls)
        )
        return lambda name: open_models(name, embedder="lexical", settings=limits).language

    with StandInServer(lambda _: '{"answer": "1", "tables": []}') as server:
        request = replace(qa, generator="openai:m")
        with pytest.raises(BudgetExceeded):
            run(replace(request, model=opener(10)))
        assert len(replies(qa.out)) == 8
        told: list[str] = []
        assert run(replace(request, model=opener(50), resume=True, tell=told.append)).outcomes == {"ok": 20}
        assert server.ledger.calls <= 22
    assert told[0].startswith("replying to 12 questions with openai:m: 12 calls, about ")


def test_what_the_agent_spends_is_the_servers_bill(qa: RunRequest, tmp_path: Path) -> None:
    def opened(name: str):
        limits = ModelSettings(server.url, "k", cache_file=tmp_path / "replies.sqlite", budget=budget)
        return open_models(name, embedder="lexical", settings=limits).language

    budget = Budget(100)
    suql = "SELECT value FROM {table} WHERE answer(name, 'is it old?') = 'Yes'"

    def reply(request) -> str:
        asked = "".join(message["content"] for message in request["messages"])
        table = re.search(r"list_of_item\d+_\d+", asked)
        query = suql.format(table=table.group()) if table else ""
        return json.dumps({"reasoning": "", "suql": query, "sql": query, "answer": "Yes", "value": "Yes", "quotes": []})

    with StandInServer(reply) as server:
        found = run(replace(qa, generator="agent:openai:m", model=opened, retriever="oracle", limit=3))
        bill = server.ledger
    assert bill.calls >= 6  # for each question the query at least, and a text call
    spent = tuple(found.timings[name] for name in ("calls", "input_tokens", "output_tokens"))
    assert spent == (bill.calls, bill.input_tokens, bill.output_tokens)
    assert budget.usage.calls == bill.calls


def test_with_a_language_model_the_agent_writes_exactly_the_sql_that_is_asked_for(sql: RunRequest) -> None:
    """A query that reads prose, or does not bind, is written anew; none is run, and nobody words its rows."""
    said = iter(["SELECT titel FROM film", "SELECT title FROM film WHERE answer(title, 'old?') = 'Yes'"])

    def reply(request) -> str:
        assert request["response_format"]["json_schema"]["name"] == "exact"
        return json.dumps({"reasoning": "", "suql": next(said, "SELECT title FROM film ORDER BY year;")})

    told: list[str] = []
    with StandInServer(reply, keep_requests=False) as server:
        settings = ModelSettings(server.url, "k", cache_file=sql.out.with_name("r.sqlite"))
        opened = open_models("openai:m", embedder="lexical", settings=settings).language
        request = replace(sql, generator="agent:openai:m", model=lambda _: opened, limit=1, tell=told.append)
        run(request)
        assert server.ledger.calls == 3
    assert [each["text"].split(" ORDER")[0] for each in replies(sql.out)] == ["SELECT title FROM film"]
    assert told[0].startswith("replying to 1 questions with openai:m: 1 calls, about ")


class Slow:
    name, model = "slow", ""
    prompts: dict[str, str] = {}  # noqa: RUF012

    async def reply(self, asked):
        time.sleep(0.003)  # noqa: ASYNC251 - it holds up everything, so that batches end one after the other
        return Reply(asked.question)


def test_replies_of_a_killed_run_equal_an_uninterrupted_ones(qa: RunRequest, tmp_path: Path) -> None:
    request = replace(qa, replies=Slow())
    whole = replace(request, out=tmp_path / "whole")
    run(whole)
    for part in range(4):
        child = os.fork()
        if child == 0:
            try:
                run(replace(request, resume=True))
            finally:
                os._exit(0)
        time.sleep(0.03 + 0.04 * part)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    run(replace(request, resume=True))
    assert files(request.out) == files(whole.out)


def test_what_is_not_installed_is_said_before_anything_is_asked(qa: RunRequest, monkeypatch) -> None:
    from almanaq_bench.evaluation import answers

    monkeypatch.setattr(answers, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"almanaq\[bench\]"):
        run(qa)
    assert not qa.out.exists()


def test_replies_that_are_damaged(qa: RunRequest) -> None:
    run(qa)
    (qa.out / "replies.jsonl").write_text('{"text": "x"}\n')
    with pytest.raises(BenchmarkError, match="line 1: not a reply"):
        score(qa.out)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("locale", "did you mean 'local'"),
        ("json:dumps", "is not a generator: it has neither"),
        ("json:dumbs", "did you mean 'dumps'"),
        ("nowhere:x", "cannot import"),
        ("datetime:date", "it cannot be created: TypeError"),
    ],
)
def test_generators_that_are_not_there(qa: RunRequest, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(replace(qa, generator=name))


def table(name: str, rows: int) -> Table:
    return Table(TableId("d", name), ("a", "b"), (("x" * 20, "y"),) * rows, title=name)


@given(st.lists(st.integers(0, 200), min_size=1, max_size=6), st.integers(300, 5000))
def test_contexts_keep_rank_order_and_the_budget_and_are_never_empty(sizes: list[int], budget: int) -> None:
    packed = pack([table(f"t{n}", size) for n, size in enumerate(sizes)], budget)
    assert 1 <= len(packed) <= len(sizes)
    assert [text.split("\n")[0] for text in packed] == [f"t{n}" for n in range(len(packed))]
    assert sum(map(len, packed)) <= budget + 60
    assert all("| a | b |" in text for text in packed)


def test_a_long_table_leaves_room_for_the_next() -> None:
    first, second = pack([table("long", 5000), table("short", 2)], 2000)
    assert "more rows" in first
    assert "more rows" not in second


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("True", "true"), ("true.", "true"), ("Not true", "false"), ("It is not true that she won", ""),
        ("Not Enough Information", "not enough"), ("False, since she lost", "false"), ("", ""), ("true or false", ""),
    ],
)  # fmt: skip
def test_verdicts_in_free_text(text: str, verdict: str) -> None:
    assert verdict_in(text) == verdict
