"""The TARGET benchmark for code that was written for its published package: only the import changes.

    from target_benchmark.evaluators import TARGET      ->   from almanaq_bench.target.evaluators import TARGET
    from target_benchmark.retrievers import ...         ->   from almanaq_bench.target.retrievers import ...

The modules are `evaluators`, `retrievers`, `generators`, `tasks`, `dataset_loaders`, `data_models` and
`dictionary_keys`; every name of theirs that is meant for users can be imported from this package as well. Importing it
loads nothing until one of its names is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from almanaq_bench.retrievers.paper_retrievers import (
        AbsCustomEmbeddingRetriever,
        AbsRetrieverBase,
        AbsStandardEmbeddingRetriever,
    )
    from almanaq_bench.target.evaluators import TARGET, get_task_names
    from almanaq_bench.target.generators import AbsGenerator, DefaultGenerator, Text2SQLGenerator
    from almanaq_bench.target.tasks import (
        AbsTask,
        FactVerificationTask,
        QuestionAnsweringTask,
        TableRetrievalTask,
        Text2SQLTask,
    )

__all__ = [
    "TARGET",
    "AbsCustomEmbeddingRetriever",
    "AbsGenerator",
    "AbsRetrieverBase",
    "AbsStandardEmbeddingRetriever",
    "AbsTask",
    "DefaultGenerator",
    "FactVerificationTask",
    "QuestionAnsweringTask",
    "TableRetrievalTask",
    "Text2SQLGenerator",
    "Text2SQLTask",
    "get_task_names",
]

_MODULES = ("evaluators", "retrievers", "generators", "tasks", "dataset_loaders", "data_models")


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for module in _MODULES:
        found = import_module(f"{__name__}.{module}")
        if hasattr(found, name):
            return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
