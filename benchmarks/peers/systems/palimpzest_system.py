"""Palimpzest: `sem_filter` and `sem_map` of a dataset; in its pipelined order a limit stops it."""

from __future__ import annotations

import requests
from frames import Frames
from loop import serve


class Models(dict):
    """What it fetches from its own server when it is imported, its models' prices and grades: here the same for all."""

    def get(self, name, default=None):
        costs = dict.fromkeys(("usd_per_input_token", "usd_per_output_token", "seconds_per_output_token"), 1e-6)
        return {"provider": name.partition("/")[0], "is_text_model": True, "MMLU_Pro_score": 60.0, **costs}

    def json(self):
        return self


fetch, requests.get = requests.get, lambda url: Models()
import palimpzest as pz  # noqa: E402
from palimpzest.constants import Model  # noqa: E402

requests.get = fetch

ONE_MODEL = {
    "available_models": [Model.GPT_4o_MINI],
    "progress": False,
    # One call a row: not several drafts that are judged, and no draft that is criticised.
    "allow_mixtures": False,
    "allow_critic": False,
    "allow_rag_reduction": False,
}


class Palimpzest(Frames):
    """Rows are records; under a limit each goes through the whole program before the next."""

    def keep(self, rows, column, question, limit=None):
        kept = self._dataset(rows, column).sem_filter(question, depends_on=[column])
        found = self._run(kept if limit is None else kept.limit(limit), pipelined=limit is not None)
        return rows.iloc[sorted(record["place"] for record in found)]

    def value(self, rows, column, question, number=False):
        said = [{"name": "said", "type": float if number else str, "desc": question}]
        found = self._run(self._dataset(rows, column).sem_map(said, depends_on=[column]))
        by_place = {record["place"]: record["said"] for record in found}
        return [by_place[place] for place in range(len(rows))]

    def _dataset(self, rows, column):
        return pz.MemoryDataset("rows", rows.assign(place=range(len(rows)))[["place", column]])

    def _run(self, dataset, pipelined=False):
        config = pz.QueryProcessorConfig(execution_strategy="pipelined" if pipelined else "parallel", **ONE_MODEL)
        return dataset.run(config).to_df().to_dict("records")


serve(Palimpzest().run)
