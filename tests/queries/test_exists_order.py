"""EXISTS asks no more than it has to: rows that are decided come first, a LIMIT stops it; random tables, same rows."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import almanaq
from almanaq.suql.execution import text_stage
from almanaq.suql.execution.text_stage import SemiJoinQueue
from almanaq.suql.plan import lower
from almanaq.testing import FunctionModel

GOOD = "answer(r.text, 'is it good?') = 'Yes'"
PLAIN = f"SELECT m.id FROM m WHERE EXISTS (SELECT 1 FROM r WHERE r.mid = m.id AND {GOOD})"
EITHER = f"SELECT m.id FROM m WHERE EXISTS (SELECT 1 FROM r WHERE r.mid = m.id AND (r.stars = 5 OR {GOOD}))"
AROUND = f"SELECT m.id FROM m WHERE EXISTS (SELECT 1 FROM r WHERE r.stars >= m.least AND NOT (r.stars < 2 AND {GOOD}))"
NONE = f"SELECT m.id FROM m WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.mid = m.id AND (r.stars > 3 OR {GOOD}))"
TWO = f"SELECT m.id FROM m WHERE m.kind = 'a' AND EXISTS (SELECT 1 FROM r WHERE r.mid = m.id AND {GOOD})"
QUERIES = (PLAIN, EITHER, AROUND, NONE, TWO)


def tables(seed):
    """Draw places and notes about them, some with the same text, some stars unknown."""
    draws = random.Random(seed)
    places, notes, texts = draws.randint(1, 12), draws.randint(1, 40), draws.randint(1, 30)
    share = draws.choice([0, 1, 3, 10])
    word = [f"{'good' if draws.randint(0, 9) < share else 'poor'} {i}" for i in range(texts)]
    return {
        "m": {
            "id": list(range(places)),
            "kind": [draws.choice("ab") for _ in range(places)],
            "least": [draws.randint(1, 5) for _ in range(places)],
        },
        "r": {
            "mid": [draws.randrange(places) for _ in range(notes)],
            "stars": [draws.choice([1, 2, 3, 4, 5, None]) for _ in range(notes)],
            "text": [draws.choice([*word, *word, None]) for _ in range(notes)],
        },
    }


def run(queries, seed, *, speculation=1.0, concurrency=1):
    """Return the rows and the calls of each query over one drawn database."""
    model = FunctionModel(lambda text, _: "Yes" if text.startswith("good") else "No")
    options = almanaq.Options(speculation=speculation, concurrency=concurrency)
    with almanaq.connect(tables(seed), model=model, cache=False, options=options) as con:
        found = [con.sql(query) for query in queries]
    return [(result.rows, result.trace.text_calls) for result in found]


def as_before(monkeypatch):
    """Candidates in the order of the source, all values, and nothing tried because it is known."""
    monkeypatch.setattr(lower, "surely", lambda _: None)
    monkeypatch.setattr(
        text_stage, "SemiJoinQueue", lambda column, most, _, **wanted: SemiJoinQueue(column, most, **wanted)
    )
    monkeypatch.setattr(
        lower, "replace", lambda stage, **named: replace(stage, **({} if "values_wanted" in named else named))
    )


def test_over_random_tables_the_rows_are_the_same_and_the_calls_no_more(monkeypatch):
    seeds = (1, 3, 4)
    both = [*QUERIES, *(f"{query} LIMIT 2" for query in QUERIES)]
    now = [run(both, seed) for seed in seeds]
    as_before(monkeypatch)
    before = [run(QUERIES, seed) for seed in seeds]
    spared, spared_by_limit = Counter(), Counter()
    for found, earlier in zip(now, before, strict=True):
        for query, whole, limited, old in zip(QUERIES, found, found[len(QUERIES) :], earlier, strict=False):
            assert sorted(whole[0]) == sorted(old[0])
            assert len(limited[0]) == len(set(limited[0])) == min(2, len(whole[0]))
            assert set(limited[0]) <= set(whole[0])
            assert limited[1] <= whole[1] <= old[1]
            spared[query] += old[1] - whole[1]
            spared_by_limit[query] += whole[1] - limited[1]
    assert {query for query in QUERIES if spared[query]} >= {EITHER, NONE}
    assert {query for query in QUERIES if spared_by_limit[query]} == {PLAIN, EITHER, TWO}


def test_under_a_limit_a_model_that_costs_nothing_gives_the_same_rows_at_any_concurrency():
    limited = [f"{query} LIMIT 2" for query in (PLAIN, EITHER, TWO)]
    for seed in range(2):
        rows = [[found[0] for found in run(limited, seed, speculation=2.0, concurrency=n)] for n in (1, 3, 64)]
        assert rows[0] == rows[1] == rows[2]


def test_rows_that_the_limit_does_not_want_are_not_asked_about():
    data = {"m": {"id": list(range(100))}, "r": {"mid": list(range(100)) * 6, "text": [f"{i}" for i in range(600)]}}
    query = "SELECT m.id FROM m WHERE EXISTS (SELECT 1 FROM r WHERE r.mid = m.id AND answer(r.text, 'x?') = 'Yes')"
    model = FunctionModel(lambda text, _: "Yes" if int(text) % 7 == 0 else "No")
    with almanaq.connect(data, model=model, cache=False, options=almanaq.Options(speculation=1)) as con:
        assert len(con.sql(f"{query} LIMIT 3")) == 3
        assert model.calls <= 25
        assert "and after 3 values" in str(con.explain(f"{query} LIMIT 3"))
        for other in (f"{query} ORDER BY m.id DESC LIMIT 3", query.replace("m.id", "count(*)", 1) + " LIMIT 3"):
            assert "values of" not in str(con.explain(other)).replace("each value of", "")
            assert "and after" not in str(con.explain(other))


def test_a_text_that_is_known_spares_its_place_the_others():
    """Place 1 waits for the text of its first row; the second has one that place 0 has asked."""
    data = {
        "m": {"id": [0, 1]},
        "r": {"mid": [0, 1, 1], "text": ["good, of both", "poor, of one", "good, of both"]},
    }
    query = f"SELECT m.id FROM m WHERE EXISTS (SELECT 1 FROM r WHERE r.mid = m.id AND {GOOD})"
    slow = FunctionModel(lambda text, _: "Yes" if text.startswith("good") else "No")
    with almanaq.connect(data, model=slow, cache=False, options=almanaq.Options(speculation=1)) as con:
        assert sorted(con.sql(query).rows) == [(0,), (1,)]
    assert slow.calls == 2
