"""The published TARGET package's names under their former place: they are in `almanaq_bench.target` now.

Importing this module makes `almanaq.target.evaluators` and its siblings the modules of almanaq-bench themselves, so
that a class has one identity under both names.
"""

from __future__ import annotations

import sys

from almanaq.benchmark import import_bench

_MODULES = (
    "data_models", "dataset_loaders", "dictionary_keys", "evaluators", "generators", "retrievers", "tasks",
)  # fmt: skip

sys.modules[__name__] = import_bench("target", __name__)
for _name in _MODULES:
    sys.modules[f"{__name__}.{_name}"] = import_bench(f"target.{_name}", __name__)
