"""What the project's own tests share."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is part of `make check`."""
    for item in items:
        if item.nodeid.startswith("tests/project/") and not {"slow", "nightly"} & {m.name for m in item.iter_markers()}:
            item.add_marker("checked")


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def script():
    """Load a module of scripts/, which is no package; its modules find each other as when one of them is run."""
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(ROOT / "scripts")

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"scripts_{name}", ROOT / "scripts" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield load
    patch.undo()
