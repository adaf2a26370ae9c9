"""The benchmark. `TARGET` is the paper's API; importing this package loads nothing until one of its names is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from almanaq_bench.paper_api import TARGET, CustomTask, get_task_names

__all__ = ["TARGET", "CustomTask", "get_task_names"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from almanaq_bench import paper_api

    return getattr(paper_api, name)
