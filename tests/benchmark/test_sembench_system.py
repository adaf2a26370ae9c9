"""The runner for SemBench's harness, called as the harness calls it, against a server that answers by the labels."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from tests.benchmark.test_sembench import data_dir as data_dir

from almanaq.models.protocols import TextCall
from almanaq_bench.sembench.dataset import QUERIES, SembenchData, measure_query
from almanaq_bench.sembench.generator import LabelReader
from almanaq_bench.testing import StandInServer
from almanaq_bench.testing.read_requests import replies_from

INSTALL = Path(__file__).parents[2] / "experiments/sembench/system/install.py"
HARNESS = """
from dataclasses import dataclass
from pathlib import Path


@dataclass
class GenericQueryMetric:
    query_id: int
    status: str
    execution_time: float
    results: object
    token_usage: int
    money_cost: float


class Scenario:
    loaded = None

    def __init__(self, queries):
        self.queries = queries

    def setup_scenario(self, systems):
        Scenario.loaded = systems

    def get_query_text(self, query_id, system_name):
        return (self.queries / system_name / f"Q{query_id}.sql").read_text()


class GenericRunner:
    def __init__(self, use_case, scale_factor, model_name, concurrent_llm_worker, skip_setup=False):
        assert skip_setup, "the scenario refuses systems that it does not know"
        files = Path(__file__).parents[2] / "files" / use_case
        self.data_path = files / "data" / f"sf_{scale_factor}"
        self.scenario_handler = Scenario(files / "query")
        self.model_name, self.concurrent_llm_worker = model_name, concurrent_llm_worker
"""


@pytest.fixture
def runner_class(tmp_path, data_dir, monkeypatch):
    harness = tmp_path / "harness"
    (harness / "src/scenario/movie/runner").mkdir(parents=True)
    (harness / "src/runner").mkdir(parents=True)
    (harness / "src/runner/generic_runner.py").write_text(HARNESS)
    (harness / "files/movie/data").mkdir(parents=True)
    (data_dir / "sembench_movie").rename(harness / "files/movie/data/sf_60")
    subprocess.run([sys.executable, str(INSTALL), str(harness)], check=True, capture_output=True)
    monkeypatch.syspath_prepend(str(harness / "src"))
    before = set(sys.modules)
    module = importlib.import_module("scenario.movie.runner.almanaq_runner.almanaq_runner")
    yield module.AlmanaqRunner
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("runner", "scenario"):
            del sys.modules[name]


def test_the_harness_gets_the_rows_that_its_evaluator_reads(runner_class, monkeypatch):
    def answer(text, question):
        options = ("POSITIVE", "NEGATIVE") if "or negative" in question else ()
        return labels.said(TextCall("answer", (text,), question, options=options))

    with StandInServer(replies_from(answer)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        runner = runner_class(use_case="movie", scale_factor=60, model_name="stand-in")
        data = SembenchData(Path(runner.data_path))
        labels = LabelReader(data.labels)
        for number, query in enumerate(QUERIES, 1):
            metric = runner.execute_query(number)
            rows = list(metric.results.itertuples(index=False, name=None))
            assert measure_query(query, rows, data.gold(query))["quality"] == 1.0
            assert metric.status == "success"
            assert metric.token_usage > 0
            assert metric.results.columns.is_unique
    assert runner.scenario_handler.loaded == []


def test_a_folder_that_is_no_harness_is_refused(tmp_path):
    done = subprocess.run([sys.executable, str(INSTALL), str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "no copy of SemBench" in done.stderr
