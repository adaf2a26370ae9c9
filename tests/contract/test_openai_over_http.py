"""`--model openai:…` against StandInServer: the same path as with a real server, its faults and its bill included."""

from __future__ import annotations

import json
import time

import pytest

from almanaq_bench.testing import Faults, StandInServer, replies_from

SUQL = "SELECT name FROM places WHERE answer(notes, 'are dogs welcome?') = 'Yes'"
TEXTS = 3  # the fourth note is empty, and nothing is asked about it


def dogs(request):
    """Answer as the prompt's JSON schema asks, by whether dogs are named in the document."""
    properties = request["response_format"]["json_schema"]["schema"]["properties"]
    document = request["messages"][-1]["content"].partition("<untrusted")[2]
    yes = "Dogs" in document
    literals = properties.get("verdicts", {}).get("properties", {})
    reply = {"value": "Yes" if yes else "No", "verdicts": dict.fromkeys(literals, "yes" if yes else "no")}
    reply["quotes"] = [{"passage": 1, "quote": "Dogs get a bowl of water"}] if yes else []
    return {name: reply[name] for name in properties}


@pytest.fixture
def server():
    with StandInServer(dogs) as running:
        yield running


def ask(almanaq, server, places, *more, suql=SUQL, env=None, model="openai:any"):
    # Each text alone, where a test does not say otherwise: its calls are counted.
    key = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "secret-key", "ALMANAQ_BATCH": "1"}
    arguments = ("--db", places, "--model", model, "--format", "json", *more)
    return almanaq("sql", suql, *arguments, env={**key, **(env or {})})


def test_rows_evidence_and_bill(almanaq, server, places, conforms):
    run = ask(almanaq, server, places)
    assert (run.returncode, run.stderr) == (0, "")
    record = json.loads(run.stdout)
    conforms("sql", record)
    assert record["rows"] == [["Coda"]]
    assert record["evidence"][0][0]["quote"] == "Dogs get a bowl of water"
    trace = record["trace"]
    assert trace["text_calls"] == server.ledger.calls == TEXTS
    assert trace["input_tokens"] == server.ledger.input_tokens
    assert trace["output_tokens"] == server.ledger.output_tokens
    assert [entry["column"] for entry in trace["columns_sent"]] == ["places.notes"]
    assert trace["columns_sent"][0]["cells"] == TEXTS


def test_the_cache_asks_nothing_twice(almanaq, server, places):
    ask(almanaq, server, places)
    record = json.loads(ask(almanaq, server, places).stdout)
    assert record["rows"] == [["Coda"]]
    assert record["trace"]["text_calls"] == 0
    assert record["trace"]["cached_calls"] == TEXTS
    assert server.ledger.calls == TEXTS
    ask(almanaq, server, places, "--no-cache")
    assert server.ledger.calls == 2 * TEXTS


def test_a_batch_makes_fewer_calls(almanaq, places, conforms, refused):
    with StandInServer(replies_from(lambda text, _: "Yes" if "Dogs" in text else "No")) as server:
        run = ask(almanaq, server, places, "--batch", "8")
        assert (run.returncode, run.stderr) == (0, "")
        record = json.loads(run.stdout)
        conforms("sql", record)
        assert record["rows"] == [["Coda"]]
        assert record["trace"]["text_calls"] == TEXTS
        assert server.ledger.calls < TEXTS
        refused(ask(almanaq, server, places, "--batch", "8", model="local"), 2, "batch", "local")


def test_a_budget_refuses_before_the_first_call(almanaq, server, places, refused):
    refused(ask(almanaq, server, places, "--max-calls", "1"), 3, "1", "--max-calls")
    refused(ask(almanaq, server, places, "--max-calls", "0"), 3, "0")
    refused(ask(almanaq, server, places, env={"ALMANAQ_MAX_CALLS": "1"}), 3)
    assert server.ledger.calls == 0


def test_a_budget_of_the_right_size_is_enough(almanaq, server, places):
    assert ask(almanaq, server, places, "--max-calls", str(TEXTS)).returncode == 0


def test_a_failure_that_passes_is_retried(almanaq, places):
    with StandInServer(dogs, faults=Faults(["error", "too_many", "cut"], retry_after=0.01)) as server:
        run = ask(almanaq, server, places)
        assert (run.returncode, json.loads(run.stdout)["rows"]) == (0, [["Coda"]])
        assert server.ledger.calls == TEXTS + 3


def test_garbage_is_unknown_and_reported(almanaq, places, refused):
    with StandInServer(dogs, faults=Faults(rates={"not_json": 1.0})) as server:
        refused(ask(almanaq, server, places), 1, "none of", "a reply not in the form asked for")
        refused(ask(almanaq, server, places, "--strict"), 1)
    with StandInServer(dogs, faults=Faults(["not_json"] * (TEXTS + 1))) as server:
        run = ask(almanaq, server, places)
        assert run.returncode == 0, run.stderr
        trace = json.loads(run.stdout)["trace"]
        assert trace["unknown_calls"] in (1, 2)
        assert trace["exact"] is False
        assert "a reply not in the form asked for" in run.stderr


def test_a_failed_call_is_not_cached(almanaq, places):
    with StandInServer(dogs, faults=Faults(["not_json"] * 20)) as server:
        for _ in range(20):
            if server.ledger.calls < 24:  # a call that its query gives up may leave its fault to another
                ask(almanaq, server, places)
        assert server.ledger.calls >= 20
        run = ask(almanaq, server, places)
        assert json.loads(run.stdout)["rows"] == [["Coda"]]


def test_a_deadline_interrupts_a_model_that_never_replies(almanaq, places, refused):
    with StandInServer(dogs, faults=Faults(rates={"hang": 1.0})) as server:
        started = time.monotonic()
        refused(ask(almanaq, server, places, "--deadline", "1"), 1, "1")
        assert time.monotonic() - started < 60  # and not the hour that the server takes


def test_a_wrong_key_names_the_setting_and_not_the_key(almanaq, places, refused):
    with StandInServer(dogs, key="another") as server:
        message = refused(ask(almanaq, server, places), 1, "OPENAI_API_KEY")
        assert "secret-key" not in message


def test_no_key_names_the_setting(almanaq, server, places, refused):
    gone = {"OPENAI_API_KEY": None, "OPENAI_BASE_URL": None}
    refused(ask(almanaq, server, places, env=gone), 1, "OPENAI_API_KEY")


def test_a_server_of_ones_own_may_need_no_key(almanaq, server, places):
    run = ask(almanaq, server, places, env={"OPENAI_API_KEY": None})
    assert (run.returncode, json.loads(run.stdout)["rows"]) == (0, [["Coda"]])


def test_an_unknown_model_is_named(almanaq, places, refused):
    with StandInServer(dogs, models=("gpt-small",)) as server:
        refused(ask(almanaq, server, places, model="openai:gpt-smal"), 1, "gpt-smal")


def test_a_server_that_is_not_there(almanaq, server, places, refused):
    gone = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    refused(ask(almanaq, server, places, env=gone), 1, "OPENAI_BASE_URL", "127.0.0.1:9")


def test_private_columns_never_leave(almanaq, server, places, refused, tmp_path):
    (tmp_path / "private.toml").write_text('[places.columns.notes]\nkind = "free_text"\nprivate = true\n')
    refused(ask(almanaq, server, places, "--schema", "private.toml"), 1, "notes", "private")
    assert server.ledger.calls == 0


def test_settings_of_the_server_may_stand_in_a_file_that_was_allowed(almanaq, server, places, tmp_path):
    lines = ['model = "openai:any"', f'openai_base_url = "{server.url}"', 'openai_api_key = "k"', "batch = 1"]
    (tmp_path / "almanaq.toml").write_text("\n".join(lines))
    assert almanaq("trust").returncode == 0
    run = almanaq("sql", SUQL, "--db", places, "--format", "csv")
    assert (run.returncode, run.stdout) == (0, "name\nCoda\n"), run.stderr
