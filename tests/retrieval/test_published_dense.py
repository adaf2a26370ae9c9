"""The paper's dense retrievers over real HTTP, against a server that counts what it is asked."""

import re
from pathlib import Path

import pytest
from small_corpora import CORPUS, FILMS, RIVERS, table
from typer.testing import CliRunner

from almanaq.cli.app import app
from almanaq.errors import BudgetExceeded, ModelError, UsageError
from almanaq.models.budget import Budget, estimate_tokens
from almanaq.retrieval.retriever_names import RetrieverParts, open_retriever
from almanaq_bench.retrievers.target_dense import format_markdown, summary_prompt
from almanaq_bench.testing import StandInServer
from almanaq_bench.testing.faults import Faults


def reply(request):
    """Summarise a table by its own words; what fences it is drawn anew for each prompt, and is no word."""
    words = re.findall(r"[a-z]+(?![\w>])", request["messages"][1]["content"].lower())
    return {"title": "Table", "summary": " ".join(words)}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ALMANAQ_PRICES", str(tmp_path / "prices.toml"))
    monkeypatch.delenv("ALMANAQ_MODEL", raising=False)
    (tmp_path / "prices.toml").write_text('["gpt-4o-mini"]\ninput = 0.15\noutput = 0.6\n')
    with StandInServer(reply) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        yield running


class Named:
    name = "local"  # what a run has that names no embedder

    def embed(self, texts):
        raise AssertionError("the paper's embedder is asked")


def parts(tmp_path: Path, told: list[str], **more) -> RetrieverParts:
    return RetrieverParts(Named, tmp_path / "vectors", tell=told.append, **more)


@pytest.mark.parametrize("name", ["openai-embedding", "openai-embedding-header"])
def test_markdown_is_embedded_by_the_papers_model(server, tmp_path: Path, name: str) -> None:
    told: list[str] = []
    opened = open_retriever(name, parts(tmp_path, told))
    assert opened.embedder == "openai:text-embedding-3-small"
    index = opened.retriever.index(CORPUS, [])
    assert server.ledger.calls == 1
    assert told == [
        f"embedding 3 texts with openai:text-embedding-3-small: 1 calls, about {foreseen(name)} tokens, price unknown"
    ]
    (ranking,) = index.search(["| river | length_km |"], 2)
    assert ranking[0].id == RIVERS.id
    assert ranking[0].score >= ranking[1].score
    open_retriever(name, parts(tmp_path, told)).retriever.index(CORPUS, [])
    assert server.ledger.calls == 2  # the question; tables are embedded once ever
    assert len(told) == 1


def foreseen(name: str) -> int:
    return sum(estimate_tokens(format_markdown(each, 100 if name == "openai-embedding" else 0)) for each in CORPUS)


def test_markdown_has_the_header_and_as_many_rows_as_fit() -> None:
    assert format_markdown(FILMS, 0) == "| Year | Film |\n"
    assert format_markdown(FILMS, 1) == "| Year | Film |\n| --- | --- |\n| 1950 | Rashomon |\n"
    long = table("long", header=("a",), rows=[("x" * 1000,)] * 150)
    assert format_markdown(long, 100).count("xxx\n") + format_markdown(long, 100).count("x |\n") == 30
    assert format_markdown(table("huge", header=("a",), rows=[("x" * 1_000_000,)]), 100).startswith("| a |\n")
    assert len(format_markdown(table("huge", header=("a",), rows=[("x" * 1_000_000,)]), 100)) < 100


def test_summaries_are_written_once_and_embedded(server, tmp_path: Path) -> None:
    told: list[str] = []
    index = open_retriever("llm-summary", parts(tmp_path, told)).retriever.index(CORPUS, [])
    assert server.ledger.calls == 4  # three tables, one request for their vectors
    assert told[0].startswith("summaries of 3 tables with openai:gpt-4o-mini: 3 calls, about ")
    assert told[0].endswith(" 0.00027 dollars")
    assert "text-embedding-ada-002" in told[1]
    assert index.search(["nile amazon river"], 1)[0][0].id == RIVERS.id
    before = server.ledger.calls
    open_retriever("llm-summary", parts(tmp_path, told)).retriever.index(CORPUS, [])
    assert server.ledger.calls == before
    assert len(told) == 2


def test_a_table_is_shown_by_header_and_ten_rows_and_not_by_its_title() -> None:
    many = table("t", "A title", ("n",), [(f"row{number}",) for number in range(30)])
    shown = summary_prompt(many).messages[1].content
    assert "row9" in shown
    assert "row10" not in shown
    assert "A title" not in shown


@pytest.mark.parametrize("name", ["openai-embedding", "llm-summary"])
def test_a_budget_refuses_before_the_first_call(server, tmp_path: Path, name: str) -> None:
    budget = Budget(0, setting="--max-calls")
    with pytest.raises(BudgetExceeded, match="--max-calls"):
        open_retriever(name, parts(tmp_path, [], budget=budget)).retriever.index(CORPUS, [])
    assert server.ledger.calls == 0


@pytest.mark.parametrize("name", ["openai-embedding", "llm-summary"])
def test_find_keeps_to_its_budget_too(server, tmp_path: Path, name: str) -> None:
    (tmp_path / "films.csv").write_text("title,year\nRan,1985\n")
    asked = ["find", "which films?", "--corpus", str(tmp_path / "films.csv"), "--retriever", name, "--max-calls", "0"]
    assert isinstance(CliRunner().invoke(app, asked).exception, BudgetExceeded)
    assert server.ledger.calls == 0


def test_a_summary_that_fails_fails_the_index_and_the_rest_is_kept(
    server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(request):
        return "no" if "Nile" in request["messages"][1]["content"] else reply(request)

    with StandInServer(broken, faults=Faults(["slow", None, "slow"], slow=0.3)) as bad:
        monkeypatch.setenv("OPENAI_BASE_URL", bad.url)
        with pytest.raises(ModelError, match="llm-summary: a table has no summary"):
            open_retriever("llm-summary", parts(tmp_path, [])).retriever.index(CORPUS, [])
        asked = bad.ledger.calls
        with pytest.raises(ModelError):
            open_retriever("llm-summary", parts(tmp_path, [])).retriever.index(CORPUS, [])
        assert bad.ledger.calls - asked == 2  # the one that failed, and its repair


def test_another_embedder_takes_its_place_and_is_named(server, tmp_path: Path) -> None:
    from small_corpora import BagOfWords

    opened = open_retriever("openai-embedding", RetrieverParts(BagOfWords, tmp_path / "vectors"))
    assert "embeds with bag-of-words, where the paper has openai:text-embedding-3-small" in opened.note
    opened.retriever.index(CORPUS, [])
    assert server.ledger.calls == 0


def test_local_writes_no_summaries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ALMANAQ_MODEL", "oepnai:x")
    with pytest.raises(UsageError, match="oepnai"):
        open_retriever("llm-summary", parts(tmp_path, []))


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("hnsw-openai", "openai:text-embedding-3-small"),
        ("stella", "NovaSearch/stella_en_400M_v5"),
        ("e5", "intfloat/multilingual-e5-large-instruct"),
        ("row-serial", "NovaSearch/stella_en_400M_v5"),
    ],
)
def test_rows_of_the_published_code_by_name(tmp_path: Path, name: str, published: str) -> None:
    """With another embedder, as its weights are not here; the note says whose place that takes."""
    from small_corpora import BagOfWords

    embedder = BagOfWords()
    opened = open_retriever(name, RetrieverParts(lambda: embedder, tmp_path / "vectors"))
    assert opened.note == f"{name} embeds with bag-of-words, where the paper has {published}"
    index = opened.retriever.index(CORPUS, [])
    assert index.search(["Amazon 6,400"], 1)[0][0].id == RIVERS.id
    rows = [text for text in embedder.embedded if text.startswith("River is Nile")]
    assert rows == (["River is Nile, length_km is 6,650"] if name == "row-serial" else [])


def test_a_table_without_rows_is_a_row_of_its_header(tmp_path: Path) -> None:
    from small_corpora import BagOfWords

    embedder = BagOfWords()
    retriever = open_retriever("row-serial", RetrieverParts(lambda: embedder, tmp_path / "vectors")).retriever
    index = retriever.index([RIVERS, table("empty", header=("mountain", "height"))], [])
    assert index.search(["mountain height"], 1)[0][0].id.table == "empty"


def test_all_rows_are_embedded_by_the_one_that_takes_all() -> None:
    many = table("t", header=("n",), rows=[(f"row{number}",) for number in range(300)])
    assert "row299" in format_markdown(many, 10**9)
    assert "row150" not in format_markdown(many, 100)
