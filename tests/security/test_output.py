"""Where results are written, and what of them reaches a terminal, a spreadsheet or a report."""

from __future__ import annotations

import ast
import io
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import almanaq.cli
from almanaq.cli.app import app
from almanaq.cli.output import Format, check_out, open_out, rows_writer
from almanaq.display import STEERING, visible, visible_json
from almanaq.encode import CsvWriter, encode_text
from almanaq.engines.table_corpus import read_corpus
from almanaq.errors import UsageError
from almanaq.retrieval.stored import build_index
from almanaq_bench.report.page import _inline

BIDI = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]


def written(out: Path | str, content: bytes = b"new") -> None:
    with open_out(str(out)) as file:
        file.write(content)


# --- where -----------------------------------------------------------------------------------------------------------


def test_a_regular_file_is_replaced_whole_and_keeps_its_rights(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("old")
    out.chmod(0o640)
    with open(out) as old:
        written(out)
        assert old.read() == "old", "who reads the old file reads all of it"
    assert (out.read_bytes(), stat.S_IMODE(out.stat().st_mode)) == (b"new", 0o640)


def test_what_ends_in_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("old")

    def fail() -> None:
        with open_out(str(out)) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (out.read_text(), list(tmp_path.iterdir())) == ("old", [out])


@pytest.mark.parametrize("target", ["file", "nothing", "folder", "pipe", "link"])
def test_no_symbolic_link_is_followed(tmp_path: Path, target: str) -> None:
    kept = tmp_path / "kept"
    {
        "file": lambda: kept.write_text("old"),
        "nothing": lambda: None,
        "folder": kept.mkdir,
        "pipe": lambda: os.mkfifo(kept),
        "link": lambda: kept.symlink_to("/dev/null"),
    }[target]()
    link = tmp_path / "out.csv"
    link.symlink_to(kept)
    with pytest.raises(UsageError, match=r"symbolic link|folder"):
        check_out(str(link))
    with pytest.raises(UsageError, match=r"symbolic link|folder"):
        written(link)
    assert link.is_symlink()
    if target == "file":
        assert kept.read_text() == "old"


@pytest.mark.parametrize("source", ["a.csv", ".", "../{name}", "*.csv", "a.csv,b.csv", "link/a.csv", "link"])
def test_no_file_of_the_source_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv", "rows.out"):
        Path(name).write_text("id\n1\n")
    Path("link").symlink_to(tmp_path, target_is_directory=True)
    for out in ("a.csv", "./a.csv", "link/a.csv", str(tmp_path / "a.csv")):
        with pytest.raises(UsageError, match="is a file of the source"):
            check_out(out, source.format(name=tmp_path.name))
    for out in ("new.csv", "rows.out"):
        check_out(out, source.format(name=tmp_path.name))


def test_commands_write_over_no_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id\n1\n")

    def run(*arguments: str, input: str = "") -> str:
        done = CliRunner().invoke(app, [*arguments], input=input)
        return done.output + str(done.exception or "")

    assert "is a file of the source" not in run("sql", "SELECT 7 AS z", "a.csv", "--materialize", "m.duckdb")
    for source, flag in (("a.csv", "--out"), ("m.duckdb", "--materialize"), ("sqlite:///s.sqlite", "--out")):
        target = source.removeprefix("sqlite:///")
        Path(target).touch()
        content = Path(target).read_bytes()
        format = ["--format", "csv"] if flag == "--out" else []
        said = run("sql", "SELECT 8 AS z", source, flag, target, *format)
        assert f"{flag} {target}: is a file of the source" in said
        assert Path(target).read_bytes() == content
    said = run("chat", "a.csv", input="How many rows are there?\nexport to a.csv\n")
    assert "is a file of the source" in said
    assert Path("a.csv").read_text() == "id\n1\n"


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    written(pipe)
    reader.join(30)
    assert found == [b"new"]
    assert pipe.is_fifo()


def test_devices_are_written_to_and_stay(tmp_path: Path) -> None:
    written("/dev/null")
    assert Path("/dev/null").is_char_device()
    with open(tmp_path / "held", "w+b") as held:
        written(f"/dev/fd/{held.fileno()}")
        assert (tmp_path / "held").read_bytes() == b"new"


def test_a_socket_is_refused(tmp_path: Path) -> None:
    import socket

    place = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        with pytest.raises(UsageError, match="name a file"):
            written(place)
    assert place.is_socket()


# --- terminals -------------------------------------------------------------------------------------------------------


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


EVIL = "\x1b]0;title\x07" + "".join(map(chr, [*range(0x7F, 0xA0), *BIDI]))


@pytest.mark.parametrize("code", BIDI)
def test_what_turns_text_around_is_written_out(code: int) -> None:
    assert visible(f"a{chr(code)}b") == f"a\\u{code:04x}b"


def test_csv_steers_no_terminal_and_is_exact_in_a_file() -> None:
    table = pa.table({"a": [EVIL], f"b{EVIL}": [["x", EVIL]]})
    for file in (Terminal(), io.BytesIO()):
        write = rows_writer(file, Format.csv)
        write(table)
        write(None)
        text = file.getvalue().decode()
        assert bool(STEERING.search(text)) != file.isatty()
        assert (EVIL in text) != file.isatty()


def test_json_on_a_terminal_is_the_same_value_and_does_not_steer() -> None:
    text = json.dumps([EVIL, "é", "\u200d"], ensure_ascii=False)
    shown = visible_json(text)
    assert STEERING.search(shown) is None
    assert json.loads(shown) == json.loads(text)
    assert "é" in shown


def test_half_a_character_loses_no_result() -> None:
    assert encode_text("a\ud800b\udcffc").decode("utf-8", "replace").startswith("a\ufffdb")
    assert encode_text("a\udcffb") == b"a\xffb"


# --- spreadsheets and reports ----------------------------------------------------------------------------------------


def test_no_text_is_a_formula_where_that_is_asked_for() -> None:
    cells = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\ufeff=1", "\uff1d1", "a=1", "", None, -1.5, True]
    for no_formulas in (True, False):
        file = io.BytesIO()
        CsvWriter(file, no_formulas=no_formulas).write([[cell] for cell in cells])
        lines = file.getvalue().decode().replace('"', "").replace("\r", "").split("\n")
        assert sum(line.startswith("'") for line in lines) == (9 if no_formulas else 0)
        assert {"a=1", "-1.5", "true"} <= set(lines)


@pytest.mark.parametrize(
    "text",
    [
        "![x](https://evil.example/p.png)",
        "[x](javascript:alert(1))",
        "\\[x](javascript:alert(1))",
        "\\\\[x](javascript:alert(1))",
        "![x][ref]\n\n[ref]: https://evil.example/p.png",
        "<img src=x>",
        "<javascript:alert(1)>",
        "a | b",
        "`` ` ``[x](y)",
        "\u202e!\u200f[x](y)",
    ],
)
def test_text_of_others_is_no_markup_in_a_markdown_report(text: str) -> None:
    line = _inline(text)
    assert "\n" not in line
    assert "<" not in line
    assert STEERING.search(line) is None
    bare = line.replace("\\\\", "")  # what is left before a mark of markup is the backslash that takes its meaning
    assert all(bare[at - 1] == "\\" for at, mark in enumerate(bare) if mark in "[]!`|")


def test_commands_print_through_what_makes_text_harmless() -> None:
    """Nothing but words of ours reaches stdout by `print`: what holds a value goes through `say` and `write_json`."""
    folder = Path(almanaq.cli.__file__).parent
    found = []
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            printed = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
            if printed and not any(each.arg == "file" for each in node.keywords):
                made = [each for each in node.args if not isinstance(each, ast.Constant)]
                found += [f"{path.relative_to(folder)}:{node.lineno}"] if made else []
    assert [place.partition(":")[0] for place in found] == ["terminal.py"]


@pytest.mark.sampled(4)
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only there a disk is full at will")
@pytest.mark.parametrize(
    "command", ["schema t.csv", "sql --db t.csv --format json", "find soup --corpus t.csv", "--version"]
)
def test_output_that_has_no_room_is_told_and_is_no_defect(tmp_path, command):
    (tmp_path / "t.csv").write_text("n,s\n1,soup\n")
    words = [*command.split(), *(["SELECT 1 AS n"] if command.startswith("sql") else [])]
    with open("/dev/full", "w") as full:
        run = [sys.executable, "-m", "almanaq", *words]
        done = subprocess.run(run, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert "the output cannot be written (No space left on device)" in done.stderr
    assert "defect" not in done.stderr


_PIPED = {
    "json": ["sql", "SELECT range i FROM range(99000)", "t.csv", "--format", "json"],
    "csv": ["sql", "SELECT range i FROM range(99000)", "t.csv", "--format", "csv"],
    "table": ["sql", "SELECT range i FROM range(99)", "t.csv", "--all"],
    "schema": ["schema", "t.csv"],
    "find": ["find", "soup", "t.csv"],
    "help": ["--help"],
    "error": ["schema", "nowhere.csv"],
}


@pytest.mark.sampled(3)
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGPIPE")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", _PIPED)
def test_where_the_reader_is_gone_the_exit_code_says_so(tmp_path: Path, command: str, unbuffered: str) -> None:
    (tmp_path / "t.csv").write_text("n,s\n1,soup\n")
    reader, writer = os.pipe()
    os.close(reader)
    streams = {"stdout": writer, "stderr": writer if command == "error" else subprocess.PIPE}
    run = [sys.executable, "-m", "almanaq", *_PIPED[command]]
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(run, **streams, text=True, cwd=tmp_path, env=env, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr or "") == (141, "")


@pytest.mark.sampled(2)
@pytest.mark.skipif(os.name == "nt", reason="a shell is asked")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_streams_to_nowhere(tmp_path: Path, closed: str) -> None:
    (tmp_path / "t.csv").write_text("n,s\n1,soup\n")
    words = ["sql", "SELECT n FROM t", "t.csv", "--format", "csv"]
    run = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "almanaq", *words]
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("" if ">&- " in f"{closed} ".replace("2>&-", "") else "n\n1\n")


def test_letters_that_the_output_lacks_are_escaped_and_bytes_that_are_no_text_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("n,s\n1,soup\n")
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}

    def run(query: str, input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        words = [sys.executable, "-m", "almanaq", "sql", query, "t.csv"]
        return subprocess.run(words, input=input, capture_output=True, cwd=tmp_path, env=env, check=False)

    done = run("SELECT 'ünï' AS t")
    assert (done.returncode, rb"\xfcn\xef" in done.stdout) == (0, True), done.stderr
    done = run("-", b"SELECT '\xff' AS t")
    assert (done.returncode, b"standard input: is not UTF-8 text" in done.stderr) == (2, True), done.stderr


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="modes of files are not the system's way")
def test_what_a_command_writes_is_its_users_alone(tmp_path):
    (tmp_path / "t.csv").write_text("n,s\n1,soup\n")
    (tmp_path / "t.csv").chmod(0o600)
    words = ["sql", "SELECT n, s FROM t", "--db", "t.csv", "--materialize", "made.duckdb"]
    run = ["sh", "-c", 'umask 0; exec "$@"', "sh", sys.executable, "-m", "almanaq", *words]
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert "made.duckdb" in {path.name for path in made}
    assert [path.name for path in made if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="modes of files are not the system's way")
def test_an_index_made_from_python_is_its_users_alone(tmp_path):
    before = os.umask(0)
    try:
        (tmp_path / "t.csv").write_text("n,s\n1,soup\n")
        corpus = read_corpus(tmp_path / "t.csv")
        build_index([corpus.read(each) for each in corpus.ids], tmp_path / "made", ("cells",))
    finally:
        os.umask(before)
    held = [path for path in (tmp_path / "made").rglob("*") if path.is_file() and path.name != ".lock"]
    assert held
    assert [path.name for path in held if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
