"""What is kept: over restarts, within its size, of its owner alone; and what verdicts become."""

from __future__ import annotations

import os
import tomllib
from dataclasses import replace

import pytest
from tests.web.conftest import CANDLES, Quoting, places, reads_candles
from tests.web.live import live
from tests.web.test_work import until

import almanaq
from almanaq.agent.checked import read_examples
from almanaq.errors import SourceError
from almanaq.testing import FunctionModel, ScriptedModel
from almanaq.web import store
from almanaq.web.service import open_service
from almanaq.web.store import Answer, AnswerStore, new_id
from almanaq.web.verdicts import Accuracy, Verdicts


def answer(number, **more):
    return Answer(f"id{number}", "c", "ask", "Which?", "m", {"suql": "SELECT 1", "evidence": []}, made=number, **more)


def test_a_restarted_server_goes_on_with_the_conversation(tmp_path, monkeypatch):
    monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path))
    replies = []
    for question in ("Which places are in Paris?", "How many of them are there?"):
        with almanaq.connect(places(), model="local", embedder="lexical", cache=False) as connection:
            service = open_service(connection, "places")
            with live(service) as client:
                known = {"conversation": replies[0]["conversation"]} if replies else {}
                replies.append(client.ask(question, **known))
                kept = client.get(f"answers/{replies[0]['id']}").json()
                assert {name: kept[name] for name in replies[0]} == replies[0]
            service.store.close()
    assert replies[1]["rows"] == [[2]]
    assert (tmp_path / "answers.sqlite").stat().st_mode & 0o077 == 0


def pages_held(store):
    """What the pages take that are in use, as SQLite counts them."""
    pages, free, size = (
        store.read(f"PRAGMA {each}", ())[0][0] for each in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


MOST = 400_000


def test_the_oldest_give_way_and_judged_ones_last(tmp_path):
    store = AnswerStore(tmp_path / "a.sqlite", "s", most_bytes=MOST)
    for number in range(40):
        store.put(answer(number, rows=os.urandom(20_000)), {("r", "1", "c", 0): "text"})
        if number == 0:
            Verdicts(store).put("id0", {"kind": "answer"}, "wrong", {})
        assert pages_held(store) <= MOST
    kept = [number for number in range(40) if store.get(f"id{number}")]
    assert kept == [0, *range(kept[1], 40)]
    assert store.read("SELECT count(DISTINCT answer) FROM cell", ())[0][0] == len(kept)
    assert [each.id for each in store.conversation("c")] == [f"id{number}" for number in kept]
    store.close()
    again = AnswerStore(tmp_path / "a.sqlite", "s", most_bytes=MOST)
    again.put(answer(99, rows=os.urandom(300_000)), {})
    assert again.get("id99")
    assert pages_held(again) <= MOST
    with pytest.raises(SourceError, match="--store-mb"):
        again.put(answer(100, rows=os.urandom(MOST)), {})
    assert again.get("id99")
    again.close()


def test_everything_that_is_kept_counts_towards_the_limit(tmp_path):
    store = AnswerStore(tmp_path / "a.sqlite", "s", most_bytes=MOST)
    place = ("r", "k" * 9_000, "c", 0)
    for number in range(5):
        store.put(answer(number), {place: "text"})
    refused = 0
    for number in range(400):  # 800 kB of notes on one answer
        try:
            Verdicts(store).put(
                "id4", {"kind": "row", "key": {"n": number}}, "wrong", {"note": os.urandom(1_000).hex()}
            )
        except SourceError:
            refused += 1
        assert pages_held(store) <= MOST
    assert refused
    assert len(Verdicts(store).of("id4")) == len(Verdicts(store).all()) == 400 - refused
    assert not any(store.get(f"id{number}") for number in range(4))
    store.close()


def test_a_disk_that_is_full_costs_the_link_and_not_the_answer(serve):
    client = serve()
    first = client.ask("How many places are there?")
    with client.service.store.writing() as connection:
        connection.execute("PRAGMA max_page_count = 1")  # no more than there are
    filling = f"SELECT name, '{os.urandom(30_000).hex()}' AS s FROM places ORDER BY id"
    assert client.post("sql", {"suql": filling}).json()["link"] is None
    with client.service.store.writing() as connection:  # what is left of the last page has no room either
        connection.execute(
            "CREATE TEMP TRIGGER full BEFORE INSERT ON answer BEGIN SELECT raise(ABORT, 'disk is full'); END"
        )
    conversation = {"conversation": first["conversation"]}
    for record in (
        client.post("sql", {"suql": "SELECT name FROM places ORDER BY id"}).json(),
        client.ask("Which places are in Paris?"),
        client.ask("Which places are in Lyon?", **conversation),
    ):
        assert (record["id"], record["link"]) == (None, None)
        assert "cannot be used" in record["not_kept"]
        assert record["rows"]
    assert client.get(f"conversations/{first['conversation']}").json()["turns"][0]["id"] == first["id"]
    partial = client.stream("ask", {"question": "Which places are in Paris?"})[-1]
    assert (partial[0], partial[1]["conversation"], partial[1]["link"]) == ("response", None, None)


@pytest.mark.parametrize("limit", ["MOST_ROWS_BYTES", "MOST_KEPT_BYTES"])
def test_rows_that_are_not_all_kept_say_how_many_are(serve, monkeypatch, limit):
    rows = 64
    client = serve({"t": {"n": list(range(rows)), "s": [os.urandom(500).hex() for _ in range(rows)]}})
    body = {"suql": "SELECT n, s FROM t ORDER BY n"}
    whole = client.post("sql", body).json()
    monkeypatch.setattr(store, limit, 20_000)
    part = client.post("sql", body).json()
    full, cut = (client.get(f"answers/{each['id']}/rows?format=json") for each in (whole, part))
    assert (len(full.json()["rows"]), "almanaq-rows" in full.headers) == (rows, False)
    count = len(cut.json()["rows"])
    assert 0 < count < rows == part["rows_total"]
    assert cut.json()["rows"] == full.json()["rows"][:count]
    assert part["rows_kept"] == count
    assert cut.headers["almanaq-rows"] == f"{count} of {rows}"
    assert f"''first-{count}-of-{rows}-rows-SELECT-n-s-FROM-t" in cut.headers["content-disposition"]


def test_a_conversation_that_is_deleted_while_it_goes_on_stays_deleted(serve):
    counted = {"reasoning": "", "suql": "SELECT count(*) FROM places", "needs_data": True, "clarify": None}
    client = serve(model=ScriptedModel({"parse": lambda _: counted, "respond": "Four."}, latency=1.0))
    question = {"question": "How many places are there?"}
    first = client.ask("Which places are in Paris?")["conversation"]
    for known in ({}, {"conversation": first}):
        with client.open_stream("ask", question | known) as events:
            name, begun = next(events)
            assert name == "start"
            own = begun["conversation"]
            until(lambda own=own: own in client.service._under_way)
            assert client("DELETE", f"/api/v1/conversations/{own}").status == 204
            name, last = list(events)[-1]
        assert (last["id"], last["link"]) == (None, None)
        assert "deleted" in last["not_kept"]
        assert client.get(f"conversations/{own}").status == 404
        assert client.get(f"answers/{begun['id']}").status == 404
        assert client.post("ask", question | {"conversation": own}).status == 404
    assert client.service.store.read("SELECT count(*) FROM tally", ())[0][0] == 0


def test_what_is_deleted_is_in_no_file(tmp_path):
    word = "unforgettable-" + os.urandom(8).hex()
    store = AnswerStore(tmp_path / "a.sqlite", "s")
    store.put(answer(1, rows=word.encode() * 50), {("r", word, "c", 0): word})
    Verdicts(store).put("id1", {"kind": "row", "key": {"k": word}}, "wrong", {})
    store.put(replace(answer(2), conversation="other"), {})
    assert any(word.encode() in each.read_bytes() for each in tmp_path.iterdir())
    assert store.forget("c")
    assert not any(word.encode() in each.read_bytes() for each in tmp_path.iterdir())
    assert store.get("id2")
    assert Verdicts(store).all() == []
    store.close()


def test_a_damaged_store_is_told(tmp_path):
    (tmp_path / "a.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(SourceError, match="--no-store"):
        AnswerStore(tmp_path / "a.sqlite", "s")


def test_identifiers_are_not_guessed():
    found = {new_id() for _ in range(1000)}
    assert len(found) == 1000
    assert {len(each) for each in found} == {16}


def judge(client, id, verdict, about, **more):
    reply = client("PUT", f"/api/v1/answers/{id}/verdict", {"verdict": verdict, "about": about, **more})
    assert reply.status == 200, reply.body
    return reply.json()["verdicts"]


def test_a_thing_has_one_verdict_and_it_can_be_taken_back(client):
    id = client.ask("How many places are there?")["id"]
    assert [each["verdict"] for each in judge(client, id, "right", {"kind": "answer"})] == ["right"]
    assert [each["verdict"] for each in judge(client, id, "wrong", {"kind": "answer"}, note="no")] == ["wrong"]
    assert len(judge(client, id, "wrong", {"kind": "row", "key": {"id": 1}})) == 2
    assert judge(client, id, None, {"kind": "answer"})[0]["about"]["kind"] == "row"
    about = client.get("about").json()
    assert about["accuracy"]["judged"] == 1
    assert about["accuracy"]["right"] == 0
    assert about["sampled_accuracy"]["judged"] == 0
    for body in (
        {"verdict": "maybe"},
        {"verdict": "wrong", "about": {"kind": "row"}},
        {"verdict": "wrong", "by": "me"},
    ):
        assert client("PUT", f"/api/v1/answers/{id}/verdict", body).status == 422
    assert client("PUT", "/api/v1/answers/none/verdict", {"verdict": "right"}).status == 404


def test_an_interval_holds_the_share():
    assert Accuracy(0, 0).interval() is None
    for judged in (1, 5, 20, 300):
        for right in range(0, judged + 1, max(1, judged // 5)):
            low, high = Accuracy(judged, right).interval()
            assert 0 <= low <= right / judged <= high <= 1
            assert high - low > 0
    # Newcombe's worked example of Wilson's interval: 81 of 263.
    assert [round(bound, 4) for bound in Accuracy(263, 81).interval()] == [0.2553, 0.3662]


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judged") / "places"
    folder.mkdir()
    folder.joinpath("places.csv").write_text("id,name,city\n1,Alba,Paris\n2,Brio,Lyon\n3,Coda,Paris\n")
    with almanaq.connect(folder, embedder="lexical", cache=False) as connection:
        service = open_service(connection, str(folder), store_mb=None)
        with live(service) as client:
            client.folder, client.service = folder, service
            yield client
        service.store.close()


def outcomes(text, connection):
    """Which of the tests of a file hold, in order."""
    made = {}
    exec(compile(text, "test_judged.py", "exec"), made)
    found = []
    for name in [name for name in made if name.startswith("test_")]:
        try:
            made[name](connection)
            found.append(True)
        except AssertionError:
            found.append(False)
    return found


def test_verdicts_become_tests_that_hold_or_fail(judged):
    paris = judged.ask("Which places are in Paris?")
    count = judged.ask("How many of them are there?", conversation=paris["conversation"])
    judge(judged, paris["id"], "right", {"kind": "answer"})
    judge(judged, paris["id"], "right", {"kind": "row", "key": {"name": "Alba"}})
    judge(judged, paris["id"], "wrong", {"kind": "row", "key": {"name": "Coda"}}, note="it has moved to Nice")
    judge(judged, paris["id"], "wrong", {"kind": "missing", "key": {"name": "Brio"}})
    judge(judged, count["id"], "right", {"kind": "answer"})
    text = judged.get("verdicts/export?format=tests").body
    assert outcomes(text, judged.service.connection) == [True, True, False, False, True]
    assert b"# it has moved to Nice" in text


def test_verdicts_become_examples(judged):
    wrong = judged.ask("Which places are in Lyon?")
    right = "SELECT name FROM places WHERE city = 'Lyon' AND id > 1"
    judge(judged, wrong["id"], "wrong", {"kind": "answer"}, expected={"suql": right})
    text = judged.get("verdicts/export?format=examples").body
    found = {each["question"]: each["suql"] for each in tomllib.loads(text.decode())["example"]}
    assert found["Which places are in Lyon?"] == right
    assert "How many of them are there?" not in found
    file = judged.folder.parent / "places.examples.toml"
    file.write_bytes(text)
    assert {each["question"]: each["suql"] for each in read_examples(file)} == found
    file.unlink()


def test_a_verdict_on_a_quote_names_its_place(serve):
    client = serve(model=Quoting(reads_candles))
    record = client.post("sql", {"suql": CANDLES}).json()
    evidence = record["evidence"][0][0]
    said = judge(client, record["id"], "wrong", {"kind": "quote", "evidence": evidence})
    assert said[0]["about"]["evidence"] == evidence
    assert client.get("verdicts").json()["verdicts"] == said
    assert isinstance(client.service.connection.models.reader, FunctionModel)
