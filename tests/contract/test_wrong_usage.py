"""Exit code 2: what the user typed is not a request; a clear message, and nothing on stdout."""

from __future__ import annotations

import pytest

SELECT = "SELECT 1"


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["qsl", SELECT], ["qsl", "sql"]),
        (["sql"], ["SUQL"]),
        (["sql", SELECT], ["--db"]),
        (["sql", SELECT, "--db", "sample:restaurants", "--fromat", "json"], ["--fromat", "--format"]),
        (["sql", SELECT, "--db", "sample:restaurants", "--format", "yaml"], ["yaml", "table", "json", "csv"]),
        (["sql", SELECT, "--db", "sample:restaurants", "--order", "sideways"], ["sideways", "similarity", "table"]),
        (["sql", SELECT, "--db", "sample:restaurants", "--max-calls", "many"], ["--max-calls", "integer"]),
        (["sql", SELECT, "--db", "sample:restaurants", "--max-calls", "-1"], ["max-calls", "-1"]),
        (["sql", SELECT, "--db", "sample:restaurants", "--speculation", "0.5"], ["speculation", "0.5"]),
        (["sql", SELECT, "--db", "sample:restaurants", "--speculation", "nan"], ["speculation"]),
        (["sql", SELECT, "--db", "sample:restaurants", "--explain", "--analyze"], ["--explain", "--analyze"]),
        (["sql", SELECT, "--db", "sample:restaurants", "--verbose"], ["--explain"]),
        (["sql", SELECT, "--db", "sample:restaurants", "--format", "parquet"], ["--out"]),
        (["sql", SELECT, "--db", "sample:restaurants", "--explain", "--format", "csv"], ["csv", "json"]),
        (["sql", SELECT, "--db", "sample:restaurants", "--out", "no/such/folder/rows.csv"], ["no/such/folder"]),
        (["sql", SELECT, "--db", "sample:restaurants", "--out", "-"], ["leave --out out"]),
        (["verdicts", "sample:restaurants", "--suql", SELECT], ["--suql", "--right"]),
        (["verdicts", "sample:restaurants", "--remove", "never asked"], ["--remove", "never asked"]),
        (["verdicts", "sample:restaurants", "--right", " ", "--suql", SELECT], ["the question is empty"]),
        (["sql", SELECT, "--db", "sample:restaurants", "--model", "opnai:gpt"], ["opnai", "openai"]),
        (["sql", SELECT, "--db", "sample:restaurants", "--embedder", "lexcal"], ["lexcal", "lexical"]),
        (["ask", "hello"], ["--db"]),
        (["bench", "run", "--task", "table-retreival"], ["--"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage(almanaq, refused, arguments, parts):
    refused(almanaq(*arguments), 2, *parts)


def test_no_arguments_show_the_help(almanaq):
    run = almanaq()
    assert run.returncode in (0, 2)
    assert "Usage: almanaq" in run.stdout + run.stderr


def test_version(almanaq):
    import almanaq as package

    run = almanaq("--version")
    assert (run.returncode, run.stdout) == (0, f"almanaq {package.__version__}\n")
