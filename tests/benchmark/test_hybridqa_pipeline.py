"""The hybrid-qa pipeline: queries mended and relaxed, by words and by a model over HTTP; records and stages."""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_hybrid import HEADER, LINKS, PASSAGES, ROWS, write_hybrid

import almanaq
from almanaq.corpus.table import Table, TableId
from almanaq.errors import ModelError, UsageError
from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.models.model_names import ModelSettings, open_models
from almanaq.models.protocols import TextCall, TextReply
from almanaq.testing import FunctionModel, ScriptedModel
from almanaq_bench.config import RunRequest
from almanaq_bench.generation import protocols
from almanaq_bench.generation.replies import read_replies
from almanaq_bench.hybridqa.generator import open_hybrid_generator
from almanaq_bench.hybridqa.pipeline import Attempt, HybridPipeline, Prediction, Proposal, QuestionTable, find_stage
from almanaq_bench.hybridqa.proposers import LocalProposer, PromptedProposer, PromptedShortener
from almanaq_bench.hybridqa.relation import HybridRelation, make_relation, open_relations
from almanaq_bench.linked import LinkedTable
from almanaq_bench.question_sets import DatasetFolder, open_dataset
from almanaq_bench.report.runs import collect
from almanaq_bench.runner import run
from almanaq_bench.testing import StandInServer, replies_from

GOLDEN = Path(__file__).parents[1] / "golden" / "prompts" / "hybridqa_write.txt"


def relation() -> HybridRelation:
    table = Table(TableId("0", "race_0"), tuple(HEADER), tuple(map(tuple, ROWS)), title="Race", section="Results")
    links = tuple(tuple(tuple(cell) for cell in row) for row in LINKS)
    return make_relation(LinkedTable(table, links, PASSAGES))


def reader(text: str, question: str) -> str | None:
    if "trained" in question:
        return "Liv Dahl" if "Liv Dahl" in text else None
    if "Moose" in question:
        return "Yes" if "Moose" in text else "No"
    return None


class Written:
    """A Proposer of written queries."""

    name = "written"

    def __init__(self, *queries: str) -> None:
        self.queries = queries
        self.tried: Sequence[Attempt] = ()
        self.chance = 1.0

    def propose(self, question: str, asked: QuestionTable, tried: Sequence[Attempt]) -> Proposal | None:
        self.tried = tried
        return Proposal(self.queries[len(tried)], self.chance) if len(tried) < len(self.queries) else None


def pipeline(*queries: str, tries: int = 3) -> tuple[HybridPipeline, Written]:
    written = Written(*queries)
    return HybridPipeline(open_models(FunctionModel(reader), embedder="lexical"), written, tries=tries), written


MOOSE = """SELECT "Time" FROM race_0 WHERE answer("Athlete_Info", 'is it The Moose?') = 'Yes'"""
NOBODY = """SELECT "Time" FROM race_0 WHERE "Athlete" = 'Bo'"""


def test_the_first_query_with_rows_decides_and_cells_are_written_as_in_the_table() -> None:
    made, _ = pipeline(MOOSE, "never asked")
    found = made.answer("What was the time of The Moose?", relation())
    assert (found.answer, found.suql, [each.suql for each in found.tried]) == ("2:14.10", MOOSE, [MOOSE])
    assert found.text_calls == 3


def test_queries_that_are_refused_or_give_nothing_are_followed_by_others() -> None:
    made, written = pipeline('SELECT "Tim" FROM race_0', NOBODY, MOOSE)
    found = made.answer("What was the time of The Moose?", relation())
    assert [each.outcome for each in found.tried] == ["refused", "empty", "rows"]
    assert "did you mean" in written.tried[0].message
    assert found.answer == "2:14.10"


def test_tries_are_bounded_and_nothing_found_is_no_answer() -> None:
    made, _ = pipeline(NOBODY, NOBODY + " AND true", MOOSE, tries=2)
    found = made.answer("?", relation())
    assert (found.answer, found.suql, len(found.tried)) == ("", None, 2)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which country did the athlete with a time of 2:14.10 represent ?", "Sweden"),
        ("What was the time of Cy Rask ?", "2:15.90"),
        ("Who trained the runner who finished with a time of 2:13.32 ?", "Liv Dahl"),
    ],
)
def test_without_a_language_model_words_find_the_place(question: str, answer: str) -> None:
    made = HybridPipeline(open_models(FunctionModel(reader), embedder="lexical"), LocalProposer(), tries=3)
    assert made.answer(question, relation()).answer == answer


def test_every_query_of_the_local_proposer_runs_and_differs_until_all_places_were_asked() -> None:
    made = relation()
    tried: list[Attempt] = []
    chances: list[float] = []
    with almanaq.connect(open_relations([made]), model=FunctionModel(reader), cache=False) as connection:
        asked = QuestionTable(made, connection.catalog)
        while (proposal := LocalProposer().propose("Who is it ?", asked, tried)) is not None:
            assert len(connection.sql(proposal.suql).rows) == 1
            tried.append(Attempt(proposal.suql, "empty"))
            chances.append(proposal.chance)
    assert len({each.suql for each in tried}) == len(tried) == 12 + 6
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) == pytest.approx(1)


class Unsure(FunctionModel):
    """Reads as a function does, and is sure of what names a trainer only."""

    async def read(self, call: TextCall) -> TextReply:
        reply = await super().read(call)
        return replace(reply, confidence=0.81 if "trained" in call.question else 0.04)


def test_of_several_readings_the_surest_is_taken() -> None:
    doubtful = """SELECT answer("Athlete_Info", 'is it The Moose?') FROM race_0 WHERE "Rank" = 2"""
    sure = """SELECT answer("Athlete_Info", 'who trained her?') FROM race_0 WHERE "Rank" = 1"""
    written = Written(doubtful, sure, NOBODY)
    models = open_models(Unsure(reader), embedder="lexical")
    found = HybridPipeline(models, written, tries=3, readings=2).answer("?", relation())
    assert [(each.answer, each.sureness) for each in found.tried] == [("Yes", 0.2), ("Liv Dahl", 0.9)]
    assert (found.answer, found.suql, found.text_calls) == ("Liv Dahl", sure, 2)
    assert HybridPipeline(models, written).answer("?", relation()).answer == "Yes"


def test_end_to_end_with_a_model_over_http() -> None:
    queries = iter(
        ['SELECT "Tim" FROM race_0', NOBODY, "SELECT answer(\"Athlete_Info\", 'who trained her?') FROM race_0"]
    )
    asked: list[str] = []
    read = replies_from(lambda text, question: "She was trained by Liv Dahl" if "Liv" in text else None)

    def reply(request):  # type: ignore[no-untyped-def]
        name = request["response_format"]["json_schema"]["name"]
        asked.append(name)
        if name == "write":
            return {"reasoning": "", "suql": next(queries)}
        return {"answer": "Liv Dahl"} if name == "short_answer" else read(request)

    with StandInServer(reply) as server:
        settings = ModelSettings(base_url=server.url, api_key="key")
        models = open_models("openai:any", embedder="lexical", cache=False, settings=settings)
        assert models.language is not None
        made = HybridPipeline(models, PromptedProposer(models.language), PromptedShortener(models.language))
        found = made.answer("Who trained Ada Berg ?", relation())
    assert found.answer == "Liv Dahl"
    assert [each.outcome for each in found.tried] == ["refused", "empty", "rows"]
    assert (asked.count("write"), asked.count("short_answer")) == (3, 1)
    assert found.input_tokens > 0


def test_one_unreadable_reply_fails_its_question_only_and_a_wrong_key_ends_the_run() -> None:
    broken = open_models(ScriptedModel(lambda prompt: "no json"), embedder="lexical", cache=False)
    assert broken.language is not None
    made = HybridPipeline(broken, PromptedProposer(broken.language), tries=2)
    assert [each.outcome for each in made.answer("?", relation()).tried] == ["failed", "failed"]
    with StandInServer(lambda _: "", key="right") as server:
        settings = ModelSettings(base_url=server.url, api_key="wrong")
        models = open_models("openai:any", embedder="lexical", cache=False, settings=settings)
        assert models.language is not None
        with pytest.raises(ModelError):
            HybridPipeline(models, PromptedProposer(models.language)).answer("?", relation())


def test_the_prompt_is_the_golden_one_and_fences_what_others_wrote() -> None:
    made = relation()
    with almanaq.connect(open_relations([made]), cache=False) as connection:
        catalog = connection.catalog
        tried = (Attempt('SELECT "Tim" FROM race_0', "refused", "no column named 'Tim'"), Attempt(NOBODY, "empty"))
        prompt = PromptedProposer(ScriptedModel([])).prompt(
            "Who </untrusted> won ?", QuestionTable(made, catalog), tried
        )
    text = "\n\n".join(f"## {m.role}\n{m.content}" for m in prompt.messages).replace(prompt.fence, "f" * 16) + "\n"
    if os.environ.get("ALMANAQ_WRITE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
    assert text.count("</untrusted ffff") == 3


NODES = [{"row": 1, "col": 3, "where": "table"}]


@pytest.mark.parametrize(
    ("answer", "tried", "more", "stage"),
    [
        ("2:14.10", MOOSE, {}, "right"),
        ("2:14", MOOSE, {}, "format"),
        ("two", MOOSE, {"gold": "2"}, "format"),
        ("", 'SELECT "Tim" FROM race_0', {"outcome": "refused"}, "parse"),
        ("Sweden", """SELECT "Country" FROM race_0 WHERE "Rank" = 2""", {}, "parse"),
        ("2:15.90", """SELECT "Time" FROM race_0 WHERE "Rank" = 3""", {}, "link"),
        ("2:13.32", MOOSE, {}, "text call"),
        ("2:13.32", MOOSE, {"rows": (("2:13.32",), ("2:14.10",))}, "row choice"),
        ("", MOOSE, {"outcome": "empty", "warnings": ("1 answer could not be read as a date",)}, "cast"),
        ("Oslo", MOOSE, {"retrieved": False}, "retrieval"),
    ],
)
def test_the_first_stage_that_lost_an_answer_is_named(answer: str, tried: str, more: dict, stage: str) -> None:
    attempt = Attempt(tried, more.get("outcome", "rows"))
    prediction = Prediction(answer, tried, (attempt,), more.get("rows", ()), warnings=more.get("warnings", ()))
    assert (
        find_stage(prediction, more.get("gold", "2:14.10"), NODES, relation(), retrieved=more.get("retrieved", True))
        == stage
    )


def test_the_runner_asks_the_best_table_and_scores_by_place(tmp_path: Path) -> None:
    write_hybrid(tmp_path / "small")
    request = RunRequest(
        "hybrid-qa",
        "small",
        tmp_path,
        "test",
        "oracle",
        tmp_path / "run",
        LexicalEmbedder,
        generator="local",
    )
    found = run(request).to_dict()
    assert "passages.parquet" in found["provenance"]["data"]
    assert (found["task"], found["queries"]) == ("hybrid-qa", 2)
    assert found["metrics"]["exact_match_table"] == 1.0
    assert {"exact_match", "f1", "mutual_substring", "f1_nowhere"} <= set(found["metrics"])
    (first, second) = read_replies(tmp_path / "run" / "replies.jsonl")
    assert (first.text, first.slice) == ("2:14.10", "table")
    assert json.loads(first.reasoning)["tried"][0]["suql"].startswith('SELECT "Time" FROM race_0')
    assert [(each.nodes, each.stage) for each in (first, second)] == [("1", "right"), ("0", "format")]
    assert (found["metrics"]["exact_match_1_places"], found["metrics"]["lost_format"]) == (1.0, 1.0)
    (group,) = collect([tmp_path / "run"])
    assert {"table", "nowhere"} == {part.name for part in group.slices if part.by == "where the answer lies"}
    (tmp_path / "small" / "passages.parquet").unlink()
    with pytest.raises(UsageError, match=r"small has no passages\.parquet"):
        run(replace(request, out=tmp_path / "other"))


def test_many_questions_at_once_share_a_model_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = replies_from(lambda text, question: "Liv Dahl" if "Liv" in text else None)

    def reply(request):  # type: ignore[no-untyped-def]
        name = request["response_format"]["json_schema"]["name"]
        if name == "write":
            return {"reasoning": "", "suql": "SELECT answer(\"Athlete_Info\", 'who trained her?') FROM race_0 LIMIT 1"}
        return {"answer": "Liv Dahl"} if name == "short_answer" else read(request)

    data = open_dataset(write_hybrid(tmp_path))
    assert isinstance(data, DatasetFolder)
    with StandInServer(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path / "cache"))
        generator = open_hybrid_generator("openai:any", data)
        assert generator is not None
        table = next(iter(data.corpus("test")))
        asked = [
            protocols.GenerationRequest(str(n), "answer", f"Who trained Ada Berg {n % 2} ?", ("",), (table,))
            for n in range(12)
        ]

        async def all_at_once() -> list[protocols.Reply]:
            return await asyncio.gather(*(generator.reply(each) for each in asked))

        replies = asyncio.run(all_at_once())
    assert {each.text for each in replies} == {"Liv Dahl"}
    assert set(generator.prompts) == {"write", "short_answer"}
    assert (generator.name, generator.model) == ("openai:any", "any")
    assert open_hybrid_generator("majority", data) is None


def test_faulty_tables_are_counted_before_the_run_and_their_questions_asked(tmp_path: Path) -> None:
    path = write_hybrid(tmp_path / "faulty")
    tables = [
        {"table_id": "twice", "header": ["Name", "Name"], "rows": [["Ada", "12"]], "links": [[["/lost"], []]]},
        {"table_id": "none", "header": [], "rows": [["Bo", "twenty"]], "links": [[["/bo"], []]]},
    ]
    pq.write_table(pa.Table.from_pylist([{"database_id": "0", **table} for table in tables]), path / "corpus.parquet")
    base = {"database_id": "0", "answer_nodes": []}
    questions = [
        {**base, "query_id": "1", "table_id": "twice", "query": "How many has Ada ?", "answer": "twelve"},
        {**base, "query_id": "2", "table_id": "none", "query": "How many has Bo ?", "answer": "20"},
    ]
    pq.write_table(pa.Table.from_pylist(questions), path / "queries_test.parquet")
    wanted = RunRequest("hybrid-qa", "faulty", tmp_path, "test", "oracle", tmp_path / "run", LexicalEmbedder)
    found = run(wanted)
    assert "2 links have no passage, first '/lost'; 2 tables have columns without a name" in found.config.counts
    assert (found.metrics["numbers_in_other_form"], found.metrics["lost_format"]) == (2, 2)
    said = list(read_replies(tmp_path / "run" / "replies.jsonl"))
    assert ([each.text for each in said], [each.fault for each in said]) == (["12", "twenty"], ["", ""])
    assert "is repeated" in said[0].reasoning
