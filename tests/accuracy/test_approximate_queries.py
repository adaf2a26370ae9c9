"""Queries under targets: what they ask, what they say, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import almanaq
from almanaq import Accuracy, Options
from almanaq.errors import BudgetExceeded, RefusedQueryError, UsageError
from almanaq.models.protocols import Quote
from almanaq.testing import FunctionModel
from almanaq_bench.testing import StandInServer, replies_from

ROWS = 400
QUERY = "SELECT id FROM notes WHERE answer(text, 'is it good?') = 'Yes'"


class Vectors:
    """An embedder that sees, with some noise, whether a text is good."""

    name, remote = "vectors", False

    def __init__(self, sight=6.0):
        self.sight = sight

    def embed(self, texts):
        found = []
        for text in texts:
            noise = np.random.default_rng(list(text.encode())).normal(size=8)
            noise[0] += self.sight * (" good " in text)
            found.append(noise / np.linalg.norm(noise))
        return np.array(found, np.float32)


def good(row):
    return row % 3 == 0


def notes(rows=ROWS):
    texts = [f"note {row} is {'good' if good(row) else 'poor'} at {row * 7919 % 1013}" for row in range(rows)]
    return {"notes": {"id": list(range(rows)), "stars": [row % 5 for row in range(rows)], "text": texts}}


def model():
    return FunctionModel(lambda text, question: "Yes" if " good " in text else "No")


class Quoting(FunctionModel):
    """Quotes the first word of each text."""

    async def read(self, call):
        return replace(await super().read(call), quotes=(Quote(0, 0, call.passages[0].split()[0]),))


def opened(reader=None, rows=ROWS, **options):
    options = {"embedder": Vectors(), "cache": False, "order": "table"} | options
    return almanaq.connect(notes(rows), model=reader or model(), **options)


TARGETS = Accuracy(recall=0.9, precision=0.9, proxy="regression", seed=3)


def test_fewer_rows_are_asked_and_the_targets_are_reached():
    reader = model()
    with opened(reader) as connection:
        result = connection.sql(QUERY, accuracy=TARGETS)
    found, exact = {row[0] for row in result}, {row for row in range(ROWS) if good(row)}
    assert len(found & exact) >= 0.9 * len(exact)
    assert len(found & exact) >= 0.9 * len(found)
    assert reader.calls < 0.8 * ROWS
    inference = result.trace.inference
    assert inference.certificate.asked == reader.calls == result.trace.text_calls
    assert inference.rows == ROWS
    assert inference.certificate.certified
    assert not result.trace.exact
    assert result.trace.candidate_rows == ROWS


def test_an_inferred_row_carries_no_quote_and_says_so():
    with opened(Quoting(lambda text, _: "Yes" if " good " in text else "No")) as connection:
        result = connection.sql(QUERY, accuracy=TARGETS)
    assert sum(result.inferred) == result.trace.inference.certificate.accepted > 0
    assert len(result.inferred) == len(result)
    evidence = {True: set(), False: set()}
    for inferred, found in zip(result.inferred, result.evidence, strict=True):
        evidence[inferred].add(bool(found))
    assert evidence == {True: {False}, False: {True}}
    assert result[:2].inferred == result.inferred[:2]


def test_what_was_inferred_never_enters_the_cache(monkeypatch, tmp_path):
    """Over one cache, an exact query after an approximate one still asks about each row that was not asked about."""
    monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path))
    good_or_not = replies_from(lambda text, question: "Yes" if " good " in text else "No")
    with StandInServer(good_or_not) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        with opened("openai:stand-in", cache=True, max_calls=2 * ROWS, batch=1) as connection:
            inferred = connection.sql(QUERY, accuracy=TARGETS)
            asked = server.ledger.calls
            exact = connection.sql(QUERY)
        assert asked == inferred.trace.inference.certificate.asked < ROWS
        assert sum(inferred.inferred) > 0
        assert exact.trace.cached_calls == asked
        assert exact.trace.text_calls == server.ledger.calls - asked == ROWS - asked
    assert [row[0] for row in exact] == [row for row in range(ROWS) if good(row)]


def test_without_targets_everything_is_as_before():
    with opened() as exact, opened(accuracy=TARGETS) as targets:
        plain = exact.sql(QUERY)
        assert plain.inferred == ()
        assert plain.trace.exact
        assert plain.trace.inference is None
        assert str(exact.explain(QUERY)) == str(exact.explain(QUERY, options=exact.engine.options))
        assert len(plain) == sum(map(good, range(ROWS)))
        assert targets.sql(QUERY).inferred


def test_a_proxy_that_saves_nothing_is_said_to():
    with opened() as connection:
        useful = connection.sql(QUERY, accuracy=TARGETS)
        dear = connection.sql(QUERY, accuracy=Accuracy(recall=1.0, precision=1.0, proxy="regression"))
    assert not any("exact query is as cheap" in warning for warning in useful.trace.warnings)
    assert any("exact query is as cheap" in warning for warning in dear.trace.warnings)


def test_the_same_seed_gives_the_same_rows_at_any_concurrency():
    found = []
    for concurrency in (1, 7, 64):
        with opened(concurrency=concurrency) as connection:
            result = connection.sql(QUERY, accuracy=TARGETS)
            found.append((result.rows, result.inferred, result.trace.inference))
    assert found[0] == found[1] == found[2]


def test_structured_conditions_are_decided_without_a_model():
    reader = model()
    with opened(reader) as connection:
        result = connection.sql(
            "SELECT id FROM notes WHERE stars = 1 OR (stars < 3 AND answer(text, 'is it good?') = 'Yes')",
            accuracy=TARGETS,
        )
    found = {row[0] for row in result}
    assert {row for row in range(ROWS) if row % 5 == 1} <= found
    assert result.trace.inference.rows == sum(row % 5 in (0, 2) for row in range(ROWS))
    assert reader.calls <= result.trace.inference.rows


def test_counts_are_of_the_rows_that_were_kept():
    with opened() as connection:
        rows = connection.sql(QUERY, accuracy=TARGETS)
        counted = connection.sql(QUERY.replace("SELECT id", "SELECT count(*)"), accuracy=TARGETS)
    assert counted[0] == (len(rows),)
    assert counted.inferred == (True,)


def test_a_limit_stays_exact():
    with opened() as connection:
        result = connection.sql(QUERY + " LIMIT 5", accuracy=TARGETS)
    assert [row[0] for row in result] == [0, 3, 6, 9, 12]
    assert result.trace.exact
    assert not any(result.inferred)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT id, summary(text) FROM notes WHERE answer(text, 'is it good?') = 'Yes'", "summary"),
        ("SELECT id, answer(text, 'what is it?') FROM notes WHERE answer(text, 'is it good?') = 'Yes'", "answer"),
        (QUERY + " ORDER BY stars, id LIMIT 3", "ORDER BY with LIMIT"),
        (
            "SELECT id FROM notes WHERE answer(text, 'is it good?') = 'Yes' AND id NOT IN "
            "(SELECT id FROM notes WHERE answer(text, 'is it poor?') = 'Yes')",
            "several text filters",
        ),
    ],
)
def test_what_cannot_be_inferred_is_refused_by_name(query, why):
    reader = model()
    with opened(reader) as connection:
        with pytest.raises(RefusedQueryError, match=why):
            connection.sql(query, accuracy=TARGETS)
        with pytest.raises(RefusedQueryError, match=why):
            connection.explain(query, options=Options(accuracy=TARGETS))
    assert reader.calls == 0


@pytest.mark.parametrize("budget", [0, 1, 59, 150, 160])
def test_a_budget_that_ends_early_is_an_error_with_the_rows_that_are_sure(budget):
    _stopped(budget, Vectors(), TARGETS)


def test_a_budget_may_end_at_every_batch_of_an_audit():
    embedder, targets = Vectors(sight=2.2), Accuracy(recall=0.9, precision=0.9, proxy="regression", seed=0)
    with opened(embedder=embedder) as connection:
        whole = connection.sql(QUERY, options=Options(accuracy=targets))
        needed, expected = whole.trace.text_calls, whole.trace.inference.expected
        assert needed - expected >= 30  # more than was expected: a tail is asked ten rows at a time
        sizes = [len(_stopped(budget, embedder, targets)) for budget in (*range(expected, needed, 10), needed - 1)]
        again = connection.sql(QUERY, options=Options(accuracy=targets, max_calls=needed))
    assert sizes == sorted(sizes)
    assert 0 < sizes[0] < len(whole) - sum(whole.inferred)
    assert (again.rows, again.inferred) == (whole.rows, whole.inferred)


def _stopped(budget, embedder, targets):
    reader = model()
    with opened(reader, embedder=embedder) as connection, pytest.raises(BudgetExceeded) as stopped:
        connection.sql(QUERY, options=Options(accuracy=targets, max_calls=budget))
    assert reader.calls <= budget
    partial = stopped.value.partial
    if partial is None:
        return ()
    assert all(good(row[0]) for row in partial)
    assert not any(partial.inferred)
    assert partial.trace.inference is None or not partial.trace.inference.certificate.certified
    return partial


def test_the_calls_that_are_expected_are_near_those_that_are_made():
    near = []
    with opened(embedder=Vectors(sight=2.2)) as connection:
        for target in (0.8, 0.9):
            for seed in range(4):
                targets = Accuracy(recall=target, precision=target, proxy="regression", seed=seed)
                trace = connection.sql(QUERY, accuracy=targets).trace
                near.append(abs(trace.inference.expected / trace.text_calls - 1) <= 0.25)
    assert sum(near) >= 0.8 * len(near)


def test_few_rows_are_all_asked():
    reader = model()
    with opened(reader, rows=40) as connection:
        result = connection.sql(QUERY, accuracy=TARGETS)
    assert [row[0] for row in result] == [row for row in range(40) if good(row)]
    assert reader.calls == 40
    assert result.trace.exact


def test_an_unknown_proxy_is_an_error_before_any_call():
    reader = model()
    with opened(reader) as connection, pytest.raises(UsageError, match="regression"):
        connection.sql(QUERY, accuracy=Accuracy(proxy="regresion"))
    assert reader.calls == 0


def test_explain_and_analyze_tell_what_is_asked_and_what_is_sure():
    with opened() as connection:
        plan = str(connection.explain(QUERY, options=Options(accuracy=TARGETS)))
        assert "text filter (approximate)" in plan
        assert "recall 0.9 and precision 0.9 are sure with probability 0.9" in plan
        assert "seed 3" in plan
        done = connection.analyze(QUERY, options=Options(accuracy=TARGETS))
    figures = next(line.actual for line in done.stages if line.stage == "text filter")
    assert figures["asked"] == figures["calls"] < figures["candidates"] == ROWS
    assert figures["recall at least"] >= 0.9
    assert figures["asked"] + figures["accepted unasked"] + figures["rejected unasked"] == ROWS


def test_a_hint_in_the_query_gives_targets_and_elsewhere_is_an_error():
    hint = "/*+ accuracy(recall=0.9, precision=0.9, proxy=regression, seed=3) */"
    with opened() as connection:
        hinted = connection.sql(QUERY.replace("SELECT", f"SELECT {hint}", 1))
        assert (hinted.rows, hinted.inferred) == (
            (found := connection.sql(QUERY, accuracy=TARGETS)).rows,
            found.inferred,
        )
        inner = QUERY.replace("SELECT", f"SELECT {hint}", 1)
        for elsewhere in (f"{QUERY} {hint}", f"WITH kept AS ({inner}) SELECT * FROM kept"):
            with pytest.raises(UsageError, match="stands behind its first word alone"):
                connection.sql(elsewhere)
        assert connection.sql(f"{QUERY} -- {hint}").trace.exact
        assert connection.sql("SELECT '/*+ accuracy(recall=0.9) */' AS x").rows == [("/*+ accuracy(recall=0.9) */",)]
        with pytest.raises(UsageError, match="recal"):
            connection.sql("SELECT /*+ accuracy(recal=0.9) */ id FROM notes")


class Remote(Vectors):
    remote = True


def test_a_private_column_is_not_sent_to_a_remote_proxy(tmp_path):
    schema = tmp_path / "notes.toml"
    schema.write_text("[notes.columns.text]\nprivate = true\n")
    with opened(embedder=Remote(), schema=str(schema)) as connection, pytest.raises(RefusedQueryError, match="private"):
        connection.sql(QUERY, accuracy=TARGETS)


def test_a_cheaper_model_is_a_proxy(monkeypatch):
    cheap = FunctionModel(lambda text, question: "Yes" if " good " in text and not text.endswith("7") else "No")
    reader = model()
    with opened(reader) as connection:
        models = connection.engine._models
        monkeypatch.setattr(
            connection.engine, "_proxy_models", lambda name: type(models)(name, cheap, models.linker, models.embedder)
        )
        result = connection.sql(QUERY, accuracy=Accuracy(proxy="openai:small", seed=1))
    assert result.trace.inference.certificate.certified
    assert cheap.calls == ROWS
    assert reader.calls < 0.5 * ROWS


@pytest.mark.parametrize(("refuses", "least", "most"), [((), 0.1, 0.5), (("logprobs",), 0.8, 1.0)])
def test_how_likely_a_cheaper_model_finds_a_row_orders_it(refuses, least, most, monkeypatch, tmp_path):
    """A model that says Yes to everything is of use only where its server tells how sure it is."""

    def likely(request):
        good_one = " good " in request["messages"][-1]["content"].split("<untrusted", 1)[1]
        yes = 0.95 if good_one else 0.6
        return {"Yes": yes, "No": 0.9 - yes * 0.9, "null": 0.1 - yes * 0.1}

    monkeypatch.setenv("ALMANAQ_CACHE", str(tmp_path / "replies.sqlite"))
    reader = model()
    with StandInServer(lambda _: '{"value": "Yes", "quotes": []}', probabilities=likely, refuses=refuses) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with opened(reader) as connection:
            result = connection.sql(QUERY, accuracy=Accuracy(proxy="openai:small", seed=1))
    assert result.trace.inference.certificate.certified
    assert least < reader.calls / ROWS <= most
