"""`almanaq SOURCE`, `sql -f FILE` and `sql -`: several queries, commands, completion, and how much is printed."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from almanaq.cli.shell import begins_query
from almanaq.cli.sql import complete_statements, split


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A source of 2,000 rows, and one table of 60 columns."""
    folder = tmp_path / "many"
    folder.mkdir()
    (folder / "rows.csv").write_text("id,said\n" + "".join(f"{i},label {i}\n" for i in range(2_000)))
    names = [f"figure_{i}" for i in range(60)]
    line = ",".join(str(i) for i in range(60))
    (folder / "wide.csv").write_text(",".join(names) + "\n" + f"{line}\n" * 5)
    (folder / "texts.csv").write_text('id,body\n1,"' + "Some words of a long text. " * 60 + '"\n')
    return folder


def test_a_result_of_many_rows_is_cut_and_says_so(almanaq, many):
    cut, whole = (almanaq("sql", "SELECT * FROM rows ORDER BY id", "--db", many, *more) for more in ((), ("--all",)))
    assert (cut.returncode, whole.returncode) == (0, 0)
    assert "first 40 of 2,000 rows: --all prints everything" in cut.stdout
    assert "2,000 rows ·" in cut.stdout
    assert cut.stdout.count("label ") == 40
    assert whole.stdout.count("label ") == 2_000
    assert "first" not in whole.stdout


def test_files_get_everything(almanaq, many, tmp_path):
    for name in ("all.txt", "all.csv"):
        assert almanaq("sql", "SELECT * FROM rows", "--db", many, "--out", name).returncode == 0
        assert (tmp_path / name).read_text().count("label ") == 2_000


def test_columns_that_do_not_fit_are_left_out_or_printed_downwards(almanaq, many):
    cut = almanaq("sql", "SELECT * FROM wide", "--db", many).stdout
    assert "of 60 columns: --all prints everything" in cut
    assert max(map(len, cut.splitlines())) <= 100
    for more in ((), ("--all",)):
        query = "SELECT * FROM wide" + ("" if more else " LIMIT 2")
        lines = almanaq("sql", query, "--db", many, *more).stdout.splitlines()
        assert [line.split() for line in lines if line.startswith("figure_59")] == [["figure_59", "59"]] * (
            5 if more else 2
        )


def test_long_cells_are_cut_with_a_mark(almanaq, many):
    cut, whole = (almanaq("sql", "SELECT id, body FROM texts", "--db", many, *more).stdout for more in ((), ("--all",)))
    assert "…" in cut
    assert len(cut) < 1_000
    assert "…" not in whole
    assert whole.count("words") == 60


QUERIES = "-- two queries\nSELECT name FROM places WHERE id = 1;\nSELECT ';' AS \"a;b\", name\nFROM places WHERE id = 2"


def test_queries_of_a_file_and_of_standard_input(almanaq, places, tmp_path):
    (tmp_path / "queries.sql").write_text(QUERIES)
    runs = [
        almanaq("sql", "-f", "queries.sql", "--db", places, "--format", "csv"),
        almanaq("sql", "-", "--db", places, "--format", "csv", input=QUERIES),
        almanaq("sql", "--file", "-", "--db", places, "--format", "csv", input=QUERIES),
    ]
    assert [(run.returncode, run.stdout) for run in runs] == [(0, "name\nAlba\na;b,name\n;,Brio\n")] * 3


def test_the_first_query_that_fails_ends_a_file(almanaq, places):
    run = almanaq("sql", "-", "--db", places, "--format", "csv", input="SELECT 1; SELECT nmae FROM places; SELECT 2")
    assert (run.returncode, run.stdout) == (1, "1\n1\n")
    assert '"nmae"' in run.stderr


@pytest.mark.parametrize(
    ("arguments", "given", "said"),
    [
        (["--db", "places"], "", "-f FILE"),
        (["SELECT 1", "-f", "x.sql", "--db", "places"], "", "-f FILE"),
        (["-f", "nothing.sql", "--db", "places"], "", "cannot be read"),
        (["-", "--db", "places"], "-- nothing\n;", "holds no query"),
        (["-", "--db", "-"], "SELECT 1", "standard input can be either"),
        (["-", "--db", "places", "--out", "a.csv"], "SELECT 1; SELECT 2", "--out takes one query"),
        (["SELECT 1", "--db", "places", "--out", "a.xlsx"], "", "spreadsheets cannot be written"),
        (["SELECT 1", "--db", "places", "--out", "a.xlsx", "--format", "csv"], "", "spreadsheets cannot be written"),
        (["SELECT 1", "--db", "places", "--out", "a.data"], "", "unknown ending .data"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_written(almanaq, places, tmp_path, refused, arguments, given, said):
    refused(almanaq("sql", *arguments, input=given), 2, said)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["places"]


def test_a_format_that_is_said_goes_with_any_other_ending(almanaq, places, tmp_path):
    assert almanaq("sql", "SELECT 1 AS a", "--db", places, "--out", "a.data", "--format", "csv").returncode == 0
    assert (tmp_path / "a.data").read_text() == "a\n1\n"


def test_a_source_alone_takes_queries_and_commands(almanaq, places):
    typed = ".tables\n.schema places\n.mode csv\nSELECT name\nFROM places\nWHERE id = 1;\n.mode json\nSELECT 2 AS n"
    run = almanaq(places, input=typed)
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert lines[0].startswith("cities, 2 rows: city, country")
    assert any(line.split()[:1] == ["notes"] for line in lines)
    assert lines[-3:-1] == ["name", "Alba"]
    assert json.loads(lines[-1])["rows"] == [[2]]


def test_commands_say_something_or_nothing_wrong(almanaq, places):
    commands = (".help", ".explain SELECT name FROM places", ".all", ".mode line", ".quit", "SELECT broken")
    run = almanaq("shell", places, input="\n".join(commands))
    assert (run.returncode, run.stderr) == (0, "")


def test_rows_one_below_the_other(almanaq, places):
    run = almanaq(places, input=".mode line\nSELECT id, name FROM places WHERE id < 3 ORDER BY id;")
    assert [line.split() for line in run.stdout.splitlines()][:4] == [
        ["—", "row", "1", "—"], ["id", "1"], ["name", "Alba"], ["—", "row", "2", "—"],
    ]  # fmt: skip


def test_a_question_at_the_prompt(almanaq, places):
    run = almanaq(places, input=".ask How many places are in Paris?\n")
    assert run.returncode == 0
    assert "2" in run.stdout


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [(".tabels", 2, "'.tables'"), ("SELECT nmae FROM places;", 1, "'name'"), (".mode xml", 2, "unknown mode")],
)
def test_a_script_ends_with_its_first_error(almanaq, places, refused, typed, code, said):
    refused(almanaq(places, input=f"{typed}\nSELECT 1;"), code, said)


def test_what_is_neither_command_nor_source_is_refused(almanaq, refused):
    refused(almanaq("slq"), 2, "No such command")
    refused(almanaq("./nothing.csv"), 1, "nothing.csv")


def test_the_users_shell_completes_commands(installed):
    words = {"_ALMANAQ_COMPLETE": "complete_bash", "COMP_WORDS": "almanaq sche", "COMP_CWORD": "1"}
    assert installed(env=words).stdout.split() == ["schema"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_typing_at_a_terminal(environment, places):
    import pty

    master, slave = pty.openpty()
    command = [str(Path(sys.executable).with_name("almanaq")), str(places)]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env={**environment, "TERM": "dumb"})
    os.close(slave)
    seen = expect(master, "", "almanaq> ")
    assert ".help" in seen
    for typed, shown in (
        ("SELECT nmae FROM places;\n", "'name'"),
        ("SELECT na\t FROM pla\t\n", "...> "),
        ("WHERE id = 1;\n", "Alba"),
        (".tab\t\n", "cities, 2 rows"),
        ("how many cities are there?\n", "2 cities. I searched for the number of cities"),
        ("help\n", ".explain QUERY"),
        ("clear\n", ""),
    ):
        os.write(master, typed.encode())
        expect(master, shown, "> ")
    os.write(master, b"quit\n")
    assert process.wait(60) == 0
    os.close(master)
    history = Path(environment["ALMANAQ_CACHE_DIR"]) / "history"
    assert "WHERE id = 1;" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0


def expect(master: int, words: str, prompt: str) -> str:
    """Read from a terminal until words, and then the prompt, have come."""
    seen, until = "", time.monotonic() + 60
    while words not in seen or prompt not in seen[seen.index(words) :]:
        assert time.monotonic() < until, seen
        if select.select([master], [], [], 1)[0]:
            seen += os.read(master, 10_000).decode(errors="replace")
    return seen


@pytest.mark.parametrize(
    ("line", "query"),
    [
        ("SELECT name", True),
        ("(SELECT 1)", True),
        ("-- a comment", True),
        ("WITH a AS (SELECT 1)", True),
        ('with recursive "a b"(x) as (', True),
        ("with", True),
        ("FROM cities", True),
        ("from cities where x = 1", True),
        ("DROP TABLE cities;", True),
        ("describe cities;", True),
        ("with whom does Ann live?", False),
        ("from which town is Ann?", False),
        ("show me the cities", False),
        ("how many are there", False),
        ("which of them is the oldest?", False),
    ],
)
def test_a_line_that_begins_no_query_is_a_question(line, query):
    assert begins_query(line) is query


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", "{}", "how many cities are there?"),
        ("{}", "how many cities are there?"),
        ("how many cities are there?", "{}"),
        ("ask", "how many cities are there?", "{}"),
    ],
)
def test_a_question_and_its_source_stand_in_either_order(almanaq, places, arguments):
    run = almanaq(*(each.format(places) for each in arguments))
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("2 cities. I searched for the number of cities")


@pytest.mark.parametrize(
    ("text", "complete", "rest"),
    [
        ("SELECT 1", [], "SELECT 1"),
        ("SELECT 1; SELECT 2", ["SELECT 1"], " SELECT 2"),
        ("SELECT ';'; ;", ["SELECT ';'"], ""),
        ("SELECT ';", [], "SELECT ';"),
        ("SELECT 1 -- ; not yet\n;", ["SELECT 1 -- ; not yet"], ""),
        ("SELECT $$;$$;", ["SELECT $$;$$"], ""),
        ("/* ; */ SELECT 1;", ["/* ; */ SELECT 1"], ""),
    ],
)
def test_where_statements_end(text, complete, rest):
    assert complete_statements(text) == (complete, rest)
    assert [*complete, *([rest.strip()] if rest.strip() else [])] == list(split(text))


def test_a_conversation_lists_sorts_and_exports(almanaq, tmp_path):
    (tmp_path / "people").mkdir()
    rows = "".join(f"{i},Person {i},{20 + i % 60},Paris\n" for i in range(120))
    (tmp_path / "people" / "people.csv").write_text("id,name,age,city\n" + rows)
    said = [
        "export to early.csv",
        "Which people are there?",
        "export to all.csv",
        "export to all.xlsx",
        "list them all",
    ]
    run = almanaq("chat", "--db", "people", input="\n".join(said))
    assert run.returncode == 0
    assert "Traceback" not in run.stderr
    assert [line for line in run.stderr.splitlines() if "table" not in line] == [
        "almanaq: there are no rows to export yet: ask a question first",
        "almanaq: written: all.csv",
        "almanaq: --out all.xlsx: spreadsheets cannot be written; write FILE.csv, which they open",
    ]
    assert (tmp_path / "all.csv").read_text().count("Person") == 120
    cut, whole = run.stdout.split("I found 120")[1:]
    assert "first 10 of 120 rows: “list them all” shows the rest" in cut
    assert (cut.count("Person "), whole.count("Person ")) == (15, 125)


@pytest.mark.parametrize(("more", "printed"), [((), 15), (("--all",), 125)])
def test_a_reply_shows_the_first_rows(almanaq, tmp_path, more, printed):
    (tmp_path / "people").mkdir()
    rows = "".join(f"{i},Person {i},{20 + i % 60},Paris\n" for i in range(120))
    (tmp_path / "people" / "people.csv").write_text("id,name,age,city\n" + rows)
    run = almanaq("ask", "Which people live in Paris?", "--db", "people", *more)
    assert (run.returncode, run.stdout.count("Person ")) == (0, printed)
    assert ("first 10 of 120 rows: --all prints everything" in run.stdout) is not bool(more)
