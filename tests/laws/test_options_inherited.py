"""A query's own options change what they name, and nothing else."""

from dataclasses import replace
from typing import Any

import pytest

import almanaq
from almanaq.options import Accuracy, Options
from almanaq.suql.accuracy.estimates import Counting
from almanaq.testing import FunctionModel

_SET: dict[str, Any] = {
    "order": "table",
    "speculation": 3.0,
    "max_calls": 5,
    "max_money": 1.5,
    "confirm_above": 7,
    "strict": True,
    "check": True,
    "link": False,
    "deadline": 9.0,
    "passages": 2,
    "candidates": 7,
    "concurrency": 3,
    "accuracy": Accuracy(recall=0.9),
    "counting": Counting(None, 30, 0.95, 0, None),
    "max_rows": 4,
    "max_result_mb": 8,
    "confidence": 0.5,
    "allow_functions": ("f",),
    "dialect": "mysql",
}
_NAMES = sorted(set(Options.__dataclass_fields__) - {"given"})


@pytest.mark.parametrize("name", _NAMES)
def test_what_is_not_named_is_inherited(name: str) -> None:
    base, default = Options(**_SET), getattr(Options(), name)
    assert getattr(base, name) != default
    for other in _NAMES:
        if other != name:
            own = Options(**{other: _SET[other]})
            assert getattr(own.over(base), name) == _SET[name]
            assert getattr(replace(own, **{other: _SET[other]}).over(base), name) == _SET[name]
    assert getattr(Options(**{name: default}).over(base), name) == default


def test_a_query_with_options_keeps_the_budget_of_its_connection() -> None:
    model = FunctionModel(lambda text, question: "Yes")
    rows = {"t": {"body": [f"text {n}" for n in range(20)]}}
    query = "SELECT * FROM t WHERE answer(body, 'urgent?') = 'Yes'"
    with almanaq.connect(rows, model=model, cache=False, max_calls=5) as con:
        with pytest.raises(almanaq.BudgetExceeded):
            con.sql(query, options=Options(order="table"))
        assert len(con.sql(query, options=Options(max_calls=None)).rows) == 20
