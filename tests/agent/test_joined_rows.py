"""What `local` adds up over several tables: no row is lost for want of a partner, none counts twice."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import almanaq

DECLINED = ("clarify", "no_query")
NAMES = ("Ann Holt", "Bo Rask", "Cy Lund")
REGIONS = ("North", "South")
TOWNS = ("Vik", "Moss")


@dataclass(frozen=True)
class World:
    """Deliveries of growers, who bring them to depots; keys repeat, are missing, or lead nowhere."""

    deliveries: Sequence[tuple[int, int | None, int | None]]
    growers: Sequence[tuple[int | None, str | None, str | None, int | None]]
    depots: Sequence[tuple[int | None, str | None]]

    def tables(self) -> dict[str, pa.Table]:
        return {
            "deliveries": _table(self.deliveries, delivery_id=pa.int64(), grower_id=pa.int64(), kilos=pa.int64()),
            "growers": _table(
                self.growers, grower_id=pa.int64(), name=pa.string(), region=pa.string(), depot_id=pa.int64()
            ),
            "depots": _table(self.depots, depot_id=pa.int64(), town=pa.string()),
        }

    def partners(self, delivery: tuple[int, int | None, int | None]) -> list[Any]:
        return [grower for grower in self.growers if grower[0] is not None and grower[0] == delivery[1]]

    def towns(self, delivery: tuple[int, int | None, int | None]) -> list[str | None]:
        found = [d[1] for g in self.partners(delivery) for d in self.depots if d[0] is not None and d[0] == g[3]]
        return found or [None]


def _table(rows: Sequence[Sequence[Any]], **types: pa.DataType) -> pa.Table:
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(types.values())]
    return pa.table(dict(zip(types, columns, strict=True)))


def _grouped(world: World, of: Callable[[Any], Any], work: Callable[[list[int | None]], Any]) -> Counter[Any]:
    groups: dict[Any, list[int | None]] = defaultdict(list)
    for delivery in world.deliveries:
        groups[of(delivery)].append(delivery[2])
    return Counter((key[-1] if isinstance(key, tuple) else key, work(kilos)) for key, kilos in groups.items())


def _sum(kilos: list[int | None]) -> int | None:
    known = [each for each in kilos if each is not None]
    return sum(known) if known else None


def _mean(kilos: list[int | None]) -> float | None:
    known = [each for each in kilos if each is not None]
    return round(sum(known) / len(known), 6) if known else None


def _grower(world: World, delivery: Any) -> Any:
    found = world.partners(delivery)
    return found[0][:2] if found else (None, None)


def _region(world: World, delivery: Any) -> Any:
    found = world.partners(delivery)
    return found[0][2] if found else None


GROUPED: dict[str, tuple[Callable[[World, Any], Any], Callable[[list[int | None]], Any]]] = {
    "total kilos by grower": (_grower, _sum),
    "total kilos per region": (_region, _sum),
    "average kilos by region": (_region, _mean),
    "how many deliveries per grower": (_grower, len),
    "number of deliveries by region": (_region, len),
    "total kilos by town": (lambda world, delivery: world.towns(delivery)[0], _sum),
}
CHOSEN: dict[str, tuple[Callable[[World, Any], bool], Callable[[list[int | None]], Any]]] = {
    "total kilos": (lambda world, d: True, _sum),
    "how many deliveries are there": (lambda world, d: True, len),
    "total kilos of deliveries from the region North": (
        lambda world, d: any(g[2] == "North" for g in world.partners(d)),
        _sum,
    ),
    "how many deliveries are from the region South": (
        lambda world, d: any(g[2] == "South" for g in world.partners(d)),
        len,
    ),
    "how many deliveries are from the town Vik": (lambda world, d: "Vik" in world.towns(d), len),
    "total kilos of all deliveries of growers": (lambda world, d: True, _sum),
}
KEYS = st.sampled_from([1, 2, 3, 4, None])
worlds = st.builds(
    World,
    st.lists(st.tuples(st.just(0), KEYS, st.sampled_from([100, 250, 500, None])), min_size=1, max_size=6),
    st.lists(
        st.tuples(
            KEYS, st.sampled_from((*NAMES, None)), st.sampled_from((*REGIONS, None)), st.sampled_from([1, 2, 3, None])
        ),
        min_size=1,
        max_size=5,
    ),
    st.lists(st.tuples(st.sampled_from([1, 2, None]), st.sampled_from((*TOWNS, None))), min_size=1, max_size=3),
).map(lambda w: World([(i, *d[1:]) for i, d in enumerate(w.deliveries)], w.growers, w.depots))
PLAIN = World(
    [(0, 1, 100), (1, 1, 250), (2, 2, 500), (3, None, 500), (4, 9, 100)],
    [(1, "Ann Holt", "North", 1), (2, "Bo Rask", "South", 2), (3, "Cy Lund", "South", None)],
    [(1, "Vik"), (2, "Moss")],
)
"""No key repeats; two deliveries are of nobody."""


def _rounded(row: Sequence[Any]) -> tuple[Any, Any]:
    value = row[-1]
    return row[-2], round(value, 6) if isinstance(value, float) else None if value is None else int(value)


def _check(world: World) -> list[str]:
    """Ask everything; give the questions that were answered."""
    answered = []
    with almanaq.connect(world.tables(), model="local", cache=False) as connection:
        for question, (of, work) in GROUPED.items():
            response = connection.ask(question)
            if response.status not in DECLINED:
                answered.append(question)
                expected = _grouped(world, lambda d, of=of: of(world, d), work)
                assert Counter(map(_rounded, response.rows)) == expected, (question, response.suql)
        for question, (chosen, work) in CHOSEN.items():
            response = connection.ask(question)
            if response.status not in DECLINED:
                answered.append(question)
                expected = work([d[2] for d in world.deliveries if chosen(world, d)])
                assert [_rounded((None, *row))[1] for row in response.rows] == [expected], (question, response.suql)
        response = connection.ask("which grower has the most deliveries")
        if response.status not in DECLINED:
            counts = Counter(g[:2] for d in world.deliveries for g in world.partners(d) if g[1] is not None)
            most = {(name, n) for (_, name), n in counts.items() if n == max(counts.values())}
            assert {_rounded(row) for row in response.rows} <= most, response.suql
            assert bool(response.rows) == bool(most)
            answered.append("which grower has the most deliveries")
    return answered


TWICE = World(
    [(0, 1, 100), (1, 2, 500), (2, None, 500)],
    [(1, "Ann Holt", "North", 1), (1, "Bo Rask", "North", 1), (2, "Cy Lund", "South", 2)],
    [(1, "Vik"), (1, "Vik"), (2, "Moss")],
)
"""One key is that of two growers, and one that of two depots."""


@given(worlds)
@example(TWICE)
@settings(max_examples=2, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
def test_what_is_answered_is_what_counting_by_hand_gives(world):
    _check(world)


def test_rows_without_a_partner_are_answered_for():
    answered = _check(PLAIN)
    left = {*GROUPED, *CHOSEN, "which grower has the most deliveries"} - set(answered)
    assert left == {"total kilos of all deliveries of growers"}  # two deliveries are of no grower


@pytest.mark.parametrize("question", ["total kilos by grower", "which grower has the most deliveries"])
def test_a_column_of_the_rows_themselves_goes_before_a_table_of_that_name(question):
    tables = PLAIN.tables()
    named = pa.array(["Ann Holt", "Ann Holt", "Ann Holt", "Bo Rask", "Dan Ek"])
    tables["deliveries"] = tables["deliveries"].append_column("grower", named)
    with almanaq.connect(tables, model="local", cache=False) as connection:
        response = connection.ask(question)
        assert response.rows, response.answer
        assert "JOIN" not in response.suql
        assert response.rows[0][0] == "Ann Holt" or len(response.rows) == 3


@pytest.mark.parametrize(
    "question", ["growers with their number of deliveries", "growers and their number of deliveries"]
)
def test_rows_that_are_listed_beside_a_number_of_others_are_not_dropped(question):
    with almanaq.connect(PLAIN.tables(), model="local", cache=False) as connection:
        assert connection.ask(question).status in DECLINED


def test_a_column_that_is_called_as_its_table_names_its_rows():
    tables = {
        "shops": pa.table({"id": [1, 2, 3], "shop": ["Alpha", "Beta", "Gamma"], "city": ["Rome", "Rome", "Oslo"]}),
        "orders": pa.table({"order_id": [1, 2, 3, 4, 5], "shop_id": [1, 1, 2, 3, 3]}),
    }
    with almanaq.connect(tables, model="local", cache=False) as connection:
        response = connection.ask("which shop has the most orders?")
        assert response.rows[0][-2:] in [("Alpha", 2), ("Gamma", 2)], response.answer


SORTED = {
    "average kilos by grade and checked": {("A", True, 150.0), ("B", False, 300.0), ("B", True, 200.0)},
}


@pytest.mark.parametrize("question", SORTED)
def test_each_part_of_a_question_plays_one_part(question):
    """A column that says yes or no may group, or be done by somebody; what is counted or shared has to be said."""
    tables = PLAIN.tables()
    tables["deliveries"] = _table(
        [(0, 1, 100, "A", True), (1, 1, 200, "A", True), (2, 2, 300, "B", False), (3, 3, 200, "B", True)],
        delivery_id=pa.int64(),
        grower_id=pa.int64(),
        kilos=pa.int64(),
        grade=pa.string(),
        checked=pa.bool_(),
    )
    with almanaq.connect(tables, model="local", cache=False) as connection:
        response = connection.ask(question)
        assert (set(response.rows) or None) == SORTED[question], response.suql or response.answer


def test_what_a_row_has_several_of_is_not_shown_beside_it():
    tables = {
        "lamps": pa.table(
            {
                "lamp_id": [1, 2, 3],
                "name": ["Aster", "Birch", "Cedar"],
                "about": [f"A lamp of brass number {i}, made by hand and sold in the old town." for i in range(3)],
            }
        ),
        "watts": pa.table({"id": [1, 1, 2], "lamp_id": [1, 1, 2], "level": [5, 9, 7]}),
        "makers": pa.table({"lamp_id": [1, 1, 2], "maker": ["Orla", "Pihl", "Orla"], "town": ["Ry", "Ry", "Ebe"]}),
    }
    questions = [
        "lamps with level",
        "level of Aster",
        "lamps by maker",
        "lamps of Orla by level",
        "brass lamps from Ry",
    ]
    with almanaq.connect(tables, model="local", cache=False) as connection:
        for question in questions:
            response = connection.ask(question)
            assert response.status != "failed", response.answer
            assert not response.suql or len(response.rows) <= 3
