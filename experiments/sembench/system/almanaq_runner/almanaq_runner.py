"""AlmanaqRunner: what SemBench's harness calls for the Movie scenario.

It reads `files/movie/query/almanaq/Q*.sql` and the scenario's two CSV files, without the columns that hold the labels.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pandas as pd
from runner.generic_runner import GenericQueryMetric, GenericRunner

import almanaq
from almanaq.options import Options
from almanaq_bench.sembench.dataset import SembenchData

MOST_CALLS = 100_000
WORKERS = 20


class AlmanaqRunner(GenericRunner):
    """Runs SUQL; each query pays for what it asks: nothing is kept from one to the next.

    Args:
        model_name: a model of the OpenAI protocol at OPENAI_BASE_URL, or with its provider before a colon.
    """

    def __init__(
        self,
        use_case: str,
        scale_factor: int,
        model_name: str = "gpt-5-mini",
        concurrent_llm_worker: int = WORKERS,
        skip_setup: bool = False,
    ) -> None:
        # The scenario loads data into the systems that it knows, and refuses others; we read its files.
        super().__init__(use_case, scale_factor, model_name, concurrent_llm_worker, skip_setup=True)
        if not skip_setup:
            self.scenario_handler.setup_scenario([])
        self._tables = SembenchData(Path(self.data_path)).tables

    def get_system_name(self) -> str:
        """Return the name that files and folders of the harness bear."""
        return "almanaq"

    def execute_query(self, query_id: int) -> Any:
        """Return a query's rows, and what they took."""
        suql = self.scenario_handler.get_query_text(query_id, self.get_system_name())
        model = self.model_name if ":" in self.model_name else f"openai:{self.model_name}"
        options = Options(max_calls=MOST_CALLS, concurrency=self.concurrent_llm_worker)
        started = time.perf_counter()
        with almanaq.connect(self._tables, model=model, cache=False, options=options) as connection:
            result = connection.sql(suql)
        trace = result.trace
        return GenericQueryMetric(
            query_id=query_id,
            status="success",
            execution_time=time.perf_counter() - started,
            results=pd.DataFrame([tuple(row) for row in result.rows], columns=_distinct(result.columns)),
            token_usage=trace.input_tokens + trace.output_tokens,
            money_cost=trace.money,
        )


def _distinct(names: tuple[str, ...]) -> list[str]:
    """Return names of which no two are equal: a pair's rows have two ids of reviews."""
    return [name if name not in names[:i] else f"{name}_{i}" for i, name in enumerate(names)]
