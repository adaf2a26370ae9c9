"""The examples in docstrings run and give what they say; what a user meets has one.

An example goes on where that of its class or module ended: a method's may use the `con` that its class's made.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
from functools import cached_property
from pathlib import Path

import pytest

import almanaq

ROOT = Path(__file__).parents[2]
MODULES = [
    ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
    for source in (ROOT / "src", ROOT / "bench" / "src")
    for path in sorted(source.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]
CLASSES = ("Connection", "Cursor", "Result", "Response", "Chat", "Tables", "IndexedTables")
LINES = 12
"""Most lines of code in one example: more is a page of the documentation."""

WITHOUT = {
    "Warning": "never raised",
    "IntegrityError": "nothing here writes, so only a database may raise it",
    "InternalError": "raised by a broken database alone",
    "Connection.engine": "the compiler, for code of our own",
    "Connection.agent": "for code of our own; users have ask and chat",
    "Connection.commit": "does nothing",
    "Connection.rollback": "does nothing",
    "Cursor.setinputsizes": "does nothing",
    "Cursor.setoutputsize": "does nothing",
}
"""What has no example, and why."""


def run_examples(module):
    """Run the examples of a module, those of what stands inside of others after theirs; return how many failed."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    left = {}
    for test in sorted(doctest.DocTestFinder().find(module), key=lambda test: test.name):
        outer = next((name for name in _outer(test.name) if name in left), None)
        test.globs = {**test.globs, **left.get(outer, {})}
        if test.examples:
            runner.run(test, clear_globs=False)
            left[test.name] = test.globs
    return runner.summarize(verbose=False)


def _outer(name):
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def public():
    """Yield each name that a user meets with what it names: functions, classes, and the methods of CLASSES."""
    for name in almanaq.__all__:
        found = getattr(almanaq, name)
        if getattr(found, "__module__", "").startswith("almanaq") and (inspect.isclass(found) or callable(found)):
            yield name, found
    for name in CLASSES:
        for member, found in vars(getattr(almanaq, name)).items():
            if not member.startswith("_") and (
                inspect.isfunction(found) or isinstance(found, property | classmethod | cached_property)
            ):
                yield f"{name}.{member}", found


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name):
    found = run_examples(importlib.import_module(name))
    assert found.attempted
    assert not found.failed


def test_what_a_user_meets_has_an_example():
    without = {name for name, found in public() if ">>> " not in (found.__doc__ or "")}
    assert without == WITHOUT.keys()


def test_an_example_is_short():
    for name in MODULES:
        for test in doctest.DocTestFinder().find(importlib.import_module(name)):
            assert sum(example.source.count("\n") for example in test.examples) <= LINES, test.name


def test_the_page_on_python_gives_what_it_says():
    page = ROOT / "docs" / "python.md"
    found = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 10
    assert not found.failed
