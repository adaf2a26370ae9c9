"""What is searched, indexed or prompted holds nothing of a private column: a server is never sent a cell of one."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.messy import write_workbook
from typer.testing import CliRunner

import almanaq
from almanaq.agent.history import Turn
from almanaq.cli.app import app
from almanaq.corpus.schema_places import PrivateTablesError
from almanaq.engines.table_corpus import read_corpus
from almanaq.errors import SourceError, UsageError
from almanaq.models.model_names import open_embedder, open_models
from almanaq.models.protocols import LanguageModel
from almanaq.retrieval.protocols import find_tables
from almanaq.retrieval.retriever_names import RetrieverParts, open_retriever
from almanaq.table_search import FIELDS, Tables, parse_field_names, read_tables
from almanaq_bench.own_dataset import open_card
from almanaq_bench.question_sets import open_dataset
from almanaq_bench.retrievers.openers import NAMES
from almanaq_bench.testing.stand_in_server import Request, StandInServer

KINDS = ("csv", "json", "xlsx", "parquet", "sqlite", "duckdb", "folder")
QUERIES = (
    'SELECT * FROM "{t}"',
    'SELECT "{p}" FROM "{t}"',
    'SELECT "{p}"::int FROM "{t}"',
    'SELECT CAST("{p}" AS date) AS d FROM "{t}"',
    'SELECT count(*) AS n FROM "{t}" WHERE "{p}" = \'nobody\'',
    'SELECT * FROM "{t}" WHERE "{p}" = \'nobody\'',
    'SELECT min("{p}") AS m, count(*) AS n FROM "{t}"',
    'SELECT t AS whole FROM "{t}" AS t',
    'SELECT "{p}", count(*) AS n FROM "{t}" GROUP BY "{p}"',
    'SELECT answer("{p}", \'is it long?\') AS a FROM "{t}"',
    'SELECT "{p}" || nothing FROM "{t}"',
    'SELECT string_agg("{p}", \',\') AS s FROM "{t}"',
)
ALL_FIELDS = (*FIELDS, "description", "keys", "database")
SERVED = (*NAMES, "rerank:openai:tiny")
WITHOUT_SERVER = {"none", "random", "oracle", "bm25", *(name for name in NAMES if name.startswith("target-"))}


@dataclass
class Drawn:
    """A source, and the cells of its columns: every one of them stands nowhere else."""

    path: Path
    private: list[str] = field(default_factory=list)
    public: list[str] = field(default_factory=list)


@dataclass
class ColumnHints:
    """What the server's model writes when it is asked for a query, in turn."""

    suql: str = ""


TOLD = ColumnHints()


def reply(request: Request) -> dict[str, object]:
    """Write the query that was told, a wording, or a table's summary; what else is asked, a server need not know."""
    wanted = json.dumps(request.get("response_format", {}))
    if "suql" in wanted:
        return {"reasoning": "so", "suql": TOLD.suql, "needs_data": True, "clarify": None}
    return {"title": "A table", "summary": "It has columns.", "answer": "I found it.", "value": "Yes", "quotes": []}


@pytest.fixture(scope="module")
def server() -> Iterator[StandInServer]:
    with StandInServer(reply) as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", running.url)
        patch.setenv("OPENAI_API_KEY", "none")
        patch.setenv("ALMANAQ_MODEL", "openai:tiny")
        yield running


def draw(chance: random.Random, folder: Path, kind: str) -> Drawn:
    """Write one to three tables of a kind, of which some columns are private, with their schema file."""
    tables: dict[str, dict[str, list[str]]] = {}
    drawn, marks = Drawn(folder / f"shop.{kind}"), []
    for number in range(chance.randint(1, 3) if kind in ("sqlite", "duckdb", "folder") else 1):
        name = "shop" if kind not in ("sqlite", "duckdb", "folder") else f"t{number}"
        rows = chance.randint(1, 6)
        columns = {f"Column {c}": [f"v{chance.getrandbits(48):012x}" for _ in range(rows)] for c in range(4)}
        tables[name] = columns
        for each in chance.sample(list(columns), chance.randint(1, 3)):
            marks.append(f'[{name}.columns."{each.upper()}"]\nprivate = true\ndescription = "told of {each}"\n')
            drawn.private += columns[each]
        drawn.public += [cell for cells in columns.values() for cell in cells if cell not in drawn.private]
    write(drawn, tables)
    beside = drawn.path.with_name(drawn.path.name + ".almanaq.toml")
    beside.write_text("\n".join(marks))
    return drawn


def write(drawn: Drawn, tables: dict[str, dict[str, list[str]]]) -> None:
    path = drawn.path
    if path.suffix == ".folder":
        drawn.path = path = path.with_suffix("")
        for number, (name, columns) in enumerate(tables.items()):
            place = path / "sub" if number else path
            place.mkdir(parents=True, exist_ok=True)
            write_csv(place / f"{name}.csv", columns)
    elif path.suffix == ".csv":
        write_csv(path, tables["shop"])
    elif path.suffix == ".parquet":
        pq.write_table(pa.table(tables["shop"]), path)
    elif path.suffix == ".json":
        columns = tables["shop"]
        path.write_text(
            json.dumps([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])
        )
    elif path.suffix == ".xlsx":
        columns = tables["shop"]
        write_workbook(path, {"shop": [list(columns), *map(list, zip(*columns.values(), strict=True))]})
    else:
        with closing(sqlite3.connect(path) if path.suffix == ".sqlite" else duckdb.connect(str(path))) as made:
            for name, columns in tables.items():
                named = ", ".join(f'"{column}" TEXT' for column in columns)
                made.execute(f"CREATE TABLE {name} ({named})")
                for cells in zip(*columns.values(), strict=True):
                    made.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(cells))})", cells)
            made.commit()


def write_csv(path: Path, columns: dict[str, list[str]]) -> None:
    path.write_text("\n".join(map(",".join, [list(columns), *zip(*columns.values(), strict=True)])) + "\n")


def sent(server: StandInServer) -> str:
    text = json.dumps([server.ledger.requests, server.ledger.embedded])
    server.ledger.requests.clear()
    server.ledger.embedded.clear()
    return text


def language(name: str) -> LanguageModel:
    model = open_models(name, embedder="lexical").language
    assert model is not None
    return model


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
def test_the_tables_of_a_source_hold_no_private_cell(kind: str, tmp_path: Path) -> None:
    for seed in range(4):
        folder = tmp_path / str(seed)
        folder.mkdir()
        drawn = draw(random.Random(f"{kind} {seed}"), folder, kind)
        tables = list(read_tables(drawn.path))
        held = repr(tables)
        assert not [cell for cell in drawn.private if cell in held], f"{kind}, seed {seed}"
        assert not [cell for cell in drawn.public if cell not in held], f"{kind}, seed {seed}"
        assert all("Column 0" in table.header for table in tables)
        with pytest.raises(PrivateTablesError):
            read_corpus(drawn.path)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SERVED)
def test_no_retriever_sends_a_private_cell(name: str, server: StandInServer, tmp_path: Path) -> None:
    """`dense`, `rerank:openai:…`, `llm-summary` and all others: the law holds of what a server is sent."""
    parts = RetrieverParts(lambda: open_embedder("openai:emb"), None, model=language)
    for seed, kind in enumerate(random.Random(name).sample(KINDS, 2)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        drawn = draw(random.Random(f"{name} {seed}"), folder, kind)
        sent(server)
        index = open_retriever(name, parts).retriever.index(read_tables(drawn.path), parse_field_names(ALL_FIELDS))
        find_tables(index, [f"Which has {drawn.public[0] if drawn.public else 'told'}?"], 3)
        text = sent(server)
        assert not [cell for cell in drawn.private if cell in text], f"{name}, seed {seed}, {kind}"
        if name not in WITHOUT_SERVER and name != "openai-embedding-header" and drawn.public:
            assert drawn.public[-1] in text, f"{name} sent nothing: this test shows nothing"


@pytest.mark.parametrize("kind", ["csv", "sqlite", "folder"])
def test_an_index_and_what_it_finds_hold_no_private_cell(kind: str, server: StandInServer, tmp_path: Path) -> None:
    drawn = draw(random.Random(kind), tmp_path, kind)
    assert drawn.public
    out = tmp_path / "index"
    sent(server)
    made = almanaq.index(drawn.path, out=out, embedder="openai:emb", fields=ALL_FIELDS)
    text = sent(server)
    assert drawn.public[0] in text
    kept = b"".join(file.read_bytes() for file in out.rglob("*") if file.is_file())
    hits = made.find("what is told of a column?", nearest=True)
    hits += almanaq.tables(drawn.path, embedder="openai:emb").find("what is told?", nearest=True)
    shown = repr(hits)
    assert hits
    for cell in drawn.private:
        assert cell not in text
        assert cell.encode() not in kept
        assert cell not in shown


def test_the_commands_find_and_index_send_no_private_cell(server: StandInServer, tmp_path: Path) -> None:
    drawn = draw(random.Random(5), tmp_path, "csv")
    out = str(tmp_path / "index")
    for words in (
        ["find", f"who has {drawn.public[0]}?", "--corpus", str(drawn.path), "--embedder", "openai:emb", "--nearest"],
        ["index", str(drawn.path), "--out", out, "--embedder", "openai:emb"],
        ["index", str(drawn.path), "--out", out, "--update", "--embedder", "openai:emb"],
        ["find", "who?", "--index", out, "--embedder", "openai:emb", "--nearest", "--explain"],
        ["find", "who?", "--corpus", str(drawn.path), "--retriever", "rerank:openai:tiny", "--nearest", "--explain"],
    ):
        sent(server)
        said = CliRunner().invoke(app, words)
        assert said.exit_code == 0, said.output
        text = sent(server) + said.output
        assert not [cell for cell in drawn.private if cell in text], words[0]


def test_a_schema_file_that_is_named_counts_as_one_beside_the_source(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("[data.columns.b]\nprivate = true\n")
    table = pa.table({"a": ["open"], "b": ["closed"]})
    found = almanaq.tables(table, schema=tmp_path / "s.toml", embedder="lexical")
    assert isinstance(found, Tables)
    assert [each.rows for each in found] == [(("open", ""),)]
    with pytest.raises(UsageError, match="schema cannot be combined with an index"):
        almanaq.tables(index=tmp_path, schema=tmp_path / "s.toml")


def test_datasets_that_mark_private_columns_are_not_read(tmp_path: Path) -> None:
    """They are read whole, also by the workers of a cluster and by benchmarks: refused where they are read."""
    corpus = pa.table({"database_id": ["d"], "table_id": ["t"], "header": [["a"]], "rows": [[["x"]]]})
    pq.write_table(corpus, tmp_path / "corpus.parquet")
    assert len(read_tables(tmp_path)) == 1
    (tmp_path / "tables").mkdir()
    write_csv(tmp_path / "tables" / "t.csv", {"a": ["x"]})
    write_csv(tmp_path / "q.csv", {"query": ["x?"], "table_id": ["t"]})
    (tmp_path / "card.yaml").write_text("corpus: tables\nqueries: {test: q.csv}\n")
    assert len(open_card(tmp_path / "card.yaml").corpus("test")) == 1
    (tmp_path / "tables" / "t.almanaq.toml").write_text("[t.columns.a]\nprivate = true\n")
    private = r"t\.a is private"
    with pytest.raises(PrivateTablesError, match=private):
        read_tables(tmp_path)
    with pytest.raises(PrivateTablesError, match=private):
        open_dataset(tmp_path).corpus()
    with pytest.raises(PrivateTablesError, match=private):
        open_card(tmp_path / "card.yaml").corpus("test")


def test_a_mark_that_is_neither_true_nor_false_is_a_fault_and_not_a_leave(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", {"a": ["x"]})
    (tmp_path / "t.almanaq.toml").write_text('[t.columns.a]\nprivate = "yes"\n')
    with pytest.raises(SourceError, match="private must be true or false"):
        read_tables(tmp_path / "t.csv")
    (tmp_path / "t.almanaq.toml").write_text("[t.columns.a\n")
    with pytest.raises(SourceError, match=r"t\.almanaq\.toml"):
        read_tables(tmp_path / "t.csv")


def test_a_public_connection_tells_no_cell_of_a_private_column_among_its_warnings(tmp_path: Path) -> None:
    """`staff.age: 1 of 21 cells are not bigint and read as NULL: 'asthma'` is for whoever opened the file."""
    numbers = [str(each) for each in range(40)]
    write_csv(tmp_path / "t.csv", {"a": [*numbers, "asthma"], "b": [*numbers, "painter"]})
    (tmp_path / "t.almanaq.toml").write_text("[t.columns.a]\nprivate = true\n")
    with almanaq.connect(tmp_path / "t.csv", model="local", cache=False) as connection:
        assert "asthma" in str(connection.warnings)
        assert "asthma" not in str(connection.public().warnings)
        assert "painter" in str(connection.public().warnings)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["csv", "sqlite", "json"])
def test_no_prompt_of_a_conversation_holds_a_private_cell(kind: str, server: StandInServer, tmp_path: Path) -> None:
    """Schemas, examples, small tables, faults of a query, rows for a wording, and all of it in later turns."""
    asked = 0
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        chance = random.Random(f"ask {kind} {seed}")
        drawn = draw(chance, folder, kind)
        sent(server)
        with almanaq.connect(drawn.path, model="openai:tiny", embedder="openai:emb", cache=False) as connection:
            hidden = [(r.name, c.name) for r in connection.catalog.relations for c in r.columns if c.private]
            turns: list[Turn] = []
            for number, form in enumerate(chance.sample(QUERIES, 6)):
                table, column = chance.choice(hidden)
                TOLD.suql = form.format(t=table, p=column)
                response = connection.ask(f"Question {number}: what is there?", turns)
                turns.append(response.turn())
        text = sent(server)
        asked += text.count("Question 5")
        assert not [cell for cell in drawn.private if cell in text], f"{kind}, seed {seed}"
        assert not drawn.public or drawn.public[0] in text
    assert asked
