"""`almanaq sql`: formats, purity of stdout, parameters, files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

NAMES = "SELECT name, rating FROM places WHERE city = 'Paris' ORDER BY name"


def test_json_is_the_contract(almanaq, places, conforms):
    run = almanaq("sql", NAMES, "--db", places, "--format", "json")
    assert (run.returncode, run.stderr) == (0, "")
    record = json.loads(run.stdout)
    conforms("sql", record)
    assert record["columns"] == ["name", "rating"]
    assert record["rows"] == [["Alba", 4.5], ["Coda", 4.0]]
    assert record["evidence"] == [[], []]
    assert record["trace"]["text_calls"] == 0
    assert record["trace"]["exact"] is True


def test_csv_is_the_rows_and_nothing_else(almanaq, places):
    run = almanaq("sql", "SELECT name, rating, notes FROM places ORDER BY id DESC", "--db", places, "--format", "csv")
    assert (run.returncode, run.stderr) == (0, "")
    header, first, second, *_ = csv.reader(io.StringIO(run.stdout))
    assert header == ["name", "rating", "notes"]
    assert first == ["Duna", "", ""]
    assert second[2] == "Dogs get a bowl of water before their owners get a menu."


def test_table_is_for_people(almanaq, places):
    run = almanaq("sql", NAMES, "--db", places)
    assert run.returncode == 0
    assert "Alba" in run.stdout
    assert "Coda" in run.stdout
    assert "2 rows" in run.stdout
    assert "\x1b[" not in run.stdout


@pytest.mark.parametrize("name", ["rows.json", "rows.csv", "rows.parquet", "rows.txt"])
def test_out_takes_its_format_from_the_suffix(almanaq, places, tmp_path, name):
    run = almanaq("sql", NAMES, "--db", places, "--out", name)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    content = (tmp_path / name).read_bytes()
    if name.endswith("parquet"):
        assert pq.read_table(tmp_path / name).to_pylist()[0] == {"name": "Alba", "rating": 4.5}
    else:
        assert b"Alba" in content
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_failed_query_leaves_the_old_file(almanaq, places, tmp_path, refused):
    (tmp_path / "rows.json").write_text("old")
    refused(almanaq("sql", "SELECT nothing FROM places", "--db", places, "--out", "rows.json"), 1, "nothing")
    assert (tmp_path / "rows.json").read_text() == "old"


def test_values_that_json_lacks(almanaq, places):
    suql = (
        "SELECT opened::date, 1.10::decimal(10, 2), 12345678901234567890.123456789::decimal(38, 9), "
        "'NaN'::double precision, NULL, true FROM places WHERE id = 1"
    )
    run = almanaq("sql", suql, "--db", places, "--format", "json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["rows"] == [["2001-02-03", 1.1, "12345678901234567890.123456789", "NaN", None, True]]


def test_params_stand_for_question_marks_in_order(almanaq, places):
    suql = "SELECT name FROM places WHERE city = ? AND rating > ? ORDER BY name"
    run = almanaq("sql", suql, "--db", places, "--param", "Paris", "--param", "4.2", "--format", "csv")
    assert (run.returncode, run.stdout) == (0, "name\nAlba\n"), run.stderr


def test_params_must_match_the_question_marks(almanaq, places, refused):
    suql = "SELECT name FROM places WHERE city = ?"
    refused(almanaq("sql", suql, "--db", places), 2, "parameter")
    refused(almanaq("sql", suql, "--db", places, "--param", "Paris", "--param", "Lyon"), 2, "parameter")


def test_a_parameter_is_a_value_not_a_text_of_the_query(almanaq, places):
    run = almanaq(
        "sql", "SELECT count(*) AS n FROM places WHERE name = ?", "--db", places,
        "--param", "x' OR '1' = '1", "--format", "csv",
    )  # fmt: skip
    assert (run.returncode, run.stdout) == (0, "n\n0\n"), run.stderr


def test_explain_runs_nothing_and_names_its_stages(almanaq, places):
    suql = "SELECT name FROM places WHERE city = 'Paris' AND answer(notes, 'are dogs welcome?') = 'Yes'"
    text = almanaq("sql", suql, "--db", places, "--explain")
    assert text.returncode == 0, text.stderr
    assert "are dogs welcome?" in text.stdout
    assert len(almanaq("sql", suql, "--db", places, "--explain", "--verbose").stdout) > len(text.stdout)
    run = almanaq("sql", suql, "--db", places, "--explain", "--format", "json")
    assert run.returncode == 0, run.stderr
    stages = json.loads(run.stdout)["stages"]
    assert stages
    assert all(isinstance(stage, dict) for stage in stages)


def test_evidence_quotes_the_text(almanaq, places, conforms):
    suql = "SELECT name, answer(notes, 'are dogs welcome?') FROM places WHERE id = 3"
    run = almanaq("sql", suql, "--db", places, "--format", "json")
    assert run.returncode == 0, run.stderr
    record = json.loads(run.stdout)
    conforms("sql", record)
    notes = "Dogs get a bowl of water before their owners get a menu."
    for quote in record["evidence"][0]:
        assert notes[quote["start"] : quote["start"] + len(quote["quote"])] == quote["quote"]
        assert (quote["relation"], quote["column"]) == ("places", "notes")


def test_settings_file_and_environment(almanaq, places, tmp_path, refused):
    (tmp_path / "almanaq.toml").write_text('modle = "local"\n')
    refused(almanaq("sql", NAMES, "--db", places), 2, "almanaq.toml", "'modle'", "did you mean 'model'")
    (tmp_path / "almanaq.toml").write_text('order = "sideways"\n')
    refused(almanaq("sql", NAMES, "--db", places), 2, "almanaq.toml", "order", "sideways")
    run = almanaq("sql", NAMES, "--db", places, env={"ALMANAQ_ORDER": "table"})
    assert run.returncode == 0, run.stderr
    (tmp_path / "almanaq.toml").write_text("order = \n")
    refused(almanaq("sql", NAMES, "--db", places), 2, "almanaq.toml", "not valid TOML")


def test_the_schema_of_a_source_is_toml_that_can_be_edited(almanaq, places):
    import tomllib

    run = almanaq("schema", places)
    assert (run.returncode, run.stderr) == (0, "")
    assert tomllib.loads(run.stdout)
    Path(f"{places}.almanaq.toml").write_text(run.stdout)
    again = almanaq("schema", places)
    assert again.stdout == run.stdout


def test_the_command_takes_a_flag_and_a_setting(almanaq, tmp_path):
    (tmp_path / "t.csv").write_text("id\n3\n")
    query = ("sql", "SELECT id / 2 AS half FROM t", "--db", "t.csv", "--format", "csv")
    assert almanaq(*query).stdout == "half\n1.5\n"
    assert almanaq(*query, "--dialect", "postgres").stdout == "half\n1\n"
    (tmp_path / "almanaq.toml").write_text('dialect = "postgres"\n')
    assert almanaq(*query).stdout == "half\n1\n"
    assert "did you mean 'postgres'" in almanaq(*query, "--dialect", "postgrs").stderr
