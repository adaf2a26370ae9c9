"""Files as the command takes them: folders, lists, patterns, standard input and the web, with exit codes."""

from __future__ import annotations

import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.messy import write_bad

COUNT = "SELECT count(*) AS n FROM {}"


def test_a_folder_with_faults_is_opened_with_one_report(almanaq, tmp_path):
    write_bad(tmp_path / "messybad")
    run = almanaq("sql", COUNT.format("good"), "--db", "messybad", "--format", "csv")
    assert (run.returncode, run.stdout.split()) == (0, ["n", "2"])
    (line,) = run.stderr.splitlines()
    assert re.fullmatch(r"almanaq: \d+ notes about these files \(\d+ not opened\): almanaq schema messybad", line)
    assert almanaq("sql", COUNT.format("good"), "--db", "messybad", "--quiet").stderr == ""
    assert "empty.csv: not opened" in almanaq("schema", "messybad").stderr
    (tmp_path / "messybad" / "later.csv").write_text("")
    added, _ = almanaq("sql", COUNT.format("good"), "--db", "messybad").stderr.splitlines()
    assert "later.csv: not opened" in added
    assert len(almanaq("sql", COUNT.format("good"), "--db", "messybad").stderr.splitlines()) == 1
    found = almanaq("find", "who is Ann?", "--corpus", "messybad", "--retriever", "bm25", "--json")
    assert found.returncode == 0
    assert '"good"' in found.stdout
    assert "not opened): almanaq schema messybad" in found.stderr


def test_a_folder_of_faults_only_is_refused(almanaq, refused, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.csv").write_text("")
    refused(almanaq("sql", "SELECT 1", "--db", "d"), 1, "a.csv: not opened", "is empty")


def test_standard_input_lists_and_patterns(almanaq, refused, tmp_path):
    run = almanaq("sql", COUNT.format("stdin"), "--db", "-", "--format", "csv", input="a;b\n1;x\n2;y\n")
    assert (run.returncode, run.stdout.split()) == (0, ["n", "2"])
    run = almanaq("sql", COUNT.format("stdin"), "--db", "-", "--format", "csv", input='[{"a": 1}]')
    assert run.stdout.split() == ["n", "1"]
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text("a,b\nx,y\n")
    for source in ("one.csv,two.csv", "*.csv"):
        run = almanaq("sql", "SELECT one.a FROM one JOIN two USING (b)", "--db", source, "--format", "csv")
        assert (run.returncode, run.stdout.split()) == (0, ["a", "x"]), source
        run = almanaq("find", "x", "--corpus", source, "--retriever", "bm25", "--nearest", "--json")
        assert run.stdout.count("table_id") == 2
    refused(almanaq("sql", "SELECT 1", "--db", "*.parquet"), 1, "no file matches '*.parquet'")
    refused(almanaq("sql", "SELECT 1", "--db", "one.csv,three.csv"), 1, "'three.csv'")
    refused(almanaq("sql", "SELECT 1", "--db", "-", input=""), 1, "standard input is empty")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The address of a server of the folder `site`."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "shops.csv").write_text("id,place\n7,Rome\n")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, format, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_web_is_read_only_when_allowed(almanaq, refused, site):
    source = f"{site}/shops.csv"
    refused(almanaq("sql", COUNT.format("shops"), "--db", source), 2, "--allow-http")
    run = almanaq("sql", "SELECT place FROM shops", "--db", source, "--allow-http", "--format", "csv")
    assert (run.returncode, run.stdout.split()) == (0, ["place", "Rome"]), run.stderr
    refused(almanaq("schema", f"{site}/none.csv", "--allow-http"), 1, "cannot be fetched", "404")
    run = almanaq("schema", source, "--allow-http")
    assert "[shops]" in run.stdout


def test_schema_writes_what_it_found_and_leaves_what_is_there(almanaq, refused, tmp_path):
    (tmp_path / "people.csv").write_text("id,full_name,company\n1,Ann,Acme\n2,Bob,Acme\n")
    run = almanaq("schema", "people.csv", "--write")
    assert run.returncode == 0, run.stderr
    file = tmp_path / "people.csv.almanaq.toml"
    assert 'named_by = "full_name"' in file.read_text()
    file.write_text(file.read_text().replace('"full_name"', '"company"') + "[people.file]\nheader = true\n")
    refused(almanaq("schema", "people.csv", "--write"), 1, "exists already", "--overwrite")
    run = almanaq("schema", "people.csv", "--write", "--overwrite")
    assert run.returncode == 0, run.stderr
    assert 'named_by = "company"' in file.read_text()
    assert "header = true" in file.read_text()
    refused(almanaq("schema", "people.csv", "--overwrite"), 2, "--write")
    refused(almanaq("schema", "sample:restaurants", "--write"), 2, "--write needs a file")
