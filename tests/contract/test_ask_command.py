"""`almanaq ask`, `chat`, `demo`: the main job over the bundled sample."""

from __future__ import annotations

import json

import pytest

SAMPLE = ("--db", "sample:restaurants")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "question",
    [
        "Which Italian restaurants are in Palo Alto?",
        "How many restaurants are there in Cupertino?",
        "Which restaurant in Sunnyvale has the best rating?",
    ],
)
def test_a_question_is_answered_with_its_query(almanaq, conforms, question):
    run = almanaq("ask", question, *SAMPLE, "--json")
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    record = json.loads(run.stdout)
    conforms("ask", record)
    assert record["status"] == "answered"
    assert record["rows"]
    assert record["suql"].lstrip().upper().startswith(("SELECT", "WITH"))


def test_a_question_about_reviews_quotes_them(almanaq, conforms):
    run = almanaq("ask", "Which Italian restaurants in San Francisco are romantic?", *SAMPLE, "--json")
    assert run.returncode == 0, run.stderr
    record = json.loads(run.stdout)
    conforms("ask", record)
    assert "answer(" in record["suql"]
    assert len(record["evidence"]) == len(record["rows"])
    if record["rows"]:
        assert all(quotes for quotes in record["evidence"])


def test_a_question_without_an_answer_says_so(almanaq, conforms):
    run = almanaq("ask", "Which Ethiopian restaurants in Cupertino are rated 6?", *SAMPLE, "--json")
    assert run.returncode == 0, run.stderr
    record = json.loads(run.stdout)
    conforms("ask", record)
    assert record["status"] in ("no_result", "clarify")
    assert record["rows"] == []


@pytest.mark.parametrize("question", ["thank you!", "hello"])
def test_small_talk_needs_no_query(almanaq, conforms, question):
    run = almanaq("ask", question, *SAMPLE, "--json")
    assert run.returncode == 0, run.stderr
    record = json.loads(run.stdout)
    conforms("ask", record)
    assert (record["status"], record["rows"]) == ("no_query", [])
    assert not record["suql"]


@pytest.mark.parametrize("question", ["", "   "])
def test_an_empty_question_is_wrong_usage_or_asked_back(almanaq, question):
    run = almanaq("ask", question, *SAMPLE)
    assert run.returncode in (0, 2)
    assert run.stdout.strip() or run.stderr.strip()
    assert "Traceback" not in run.stderr


def test_chat_answers_line_by_line(almanaq):
    lines = "Which Italian restaurants are in Palo Alto?\n\nhow many restaurants are in Cupertino?\nexit\nnot read\n"
    run = almanaq("chat", *SAMPLE, input=lines)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.count("SELECT") == 2


def test_chat_ends_with_its_input(almanaq):
    run = almanaq("chat", *SAMPLE, input="")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.slow
def test_demo_shows_query_plan_rows_and_quote_for_three_questions(almanaq):
    run = almanaq("demo", env={"ALMANAQ_EMBEDDER": None})
    assert run.returncode == 0, run.stderr
    for heading in ("SUQL", "Plan", "Rows", "Evidence", "Reply"):
        assert run.stdout.splitlines().count(heading) == 3
    assert "no rows" not in run.stdout
    assert run.stdout.count('  "') >= 3
    assert max(map(len, run.stdout.splitlines())) <= 100
