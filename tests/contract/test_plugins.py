"""Models, databases and retrievers of other packages are found by their entry points, and a broken one is named."""

from __future__ import annotations

import subprocess
import sys

import pytest

import almanaq
from almanaq.models.model_names import open_models
from almanaq.plugins import plugin_names
from almanaq.retrieval.retriever_names import RetrieverParts, open_retriever

MODULE = """
from almanaq.retrieval.bm25 import BM25
from almanaq.engines.duckdb.engine import open_tables
from almanaq.testing import FunctionModel

def model(name):
    return FunctionModel(lambda text, question: name)

def database(url, schema=None):
    return open_tables({"places": {"id": [1], "url": [url]}}, schema=schema)

class Retriever(BM25):
    name = "acme"

def wrong(*args, **kwargs):
    return 3

def failing(*args, **kwargs):
    raise RuntimeError("no licence")
"""
POINTS = """
[almanaq.models]
acme = acme_almanaq:model
wrong = acme_almanaq:wrong
broken = acme_missing:model
[almanaq.databases]
acme = acme_almanaq:database
wrong = acme_almanaq:wrong
failing = acme_almanaq:failing
[almanaq.retrievers]
acme = acme_almanaq:Retriever
broken = acme_almanaq:Missing
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "acme_almanaq.py").write_text(MODULE, encoding="utf-8")
    facts = tmp_path / "acme_almanaq-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-almanaq\nVersion: 1.0\n", encoding="utf-8")
    (facts / "entry_points.txt").write_text(POINTS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("acme_almanaq", None)


@pytest.mark.usefixtures("package")
def test_a_model_a_database_and_a_retriever_of_another_package_are_found_by_name():
    with almanaq.connect("acme://host/db", model="acme:Yes", cache=False) as connection:
        assert connection.sql("SELECT id, url, answer(url, 'is it?') FROM places").rows == [
            (1, "acme://host/db", "Yes")
        ]
    opened = open_retriever("acme", RetrieverParts(lambda: None))
    assert (opened.name, type(opened.retriever).__name__) == ("acme", "Retriever")


@pytest.mark.usefixtures("package")
def test_names_are_listed_without_importing_anything():
    assert plugin_names("almanaq.models") == ["acme", "broken", "wrong"]
    assert "acme_almanaq" not in sys.modules


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda: open_models("broken:x"), "'broken' of the package 'acme-almanaq'.*acme_missing"),
        (lambda: open_models("wrong:x"), "'wrong' gives a int"),
        (
            lambda: open_retriever("broken", RetrieverParts(lambda: None)),
            "'broken' of the package 'acme-almanaq'.*Missing",
        ),
        (lambda: almanaq.connect("wrong://x"), "'wrong' gives a int"),
        (lambda: almanaq.connect("failing://x"), "'failing'.*no licence"),
        (lambda: open_models("acmee:x"), "did you mean"),
        (lambda: open_retriever("acmee", RetrieverParts(lambda: None)), "did you mean 'acme'"),
    ],
)
def test_what_is_broken_is_named(work, said):
    with pytest.raises(almanaq.UsageError, match=said):
        work()


def test_a_broken_plug_in_stops_nothing_else(package):
    code = "import almanaq; print(almanaq.connect({'t': {'n': [1]}}).sql('SELECT n FROM t').rows)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(package)}
    )
    assert run.stdout == "[(1,)]\n"
