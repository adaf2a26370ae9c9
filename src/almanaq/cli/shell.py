"""`almanaq SOURCE`: queries and questions at a prompt, or from standard input."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.options import SOURCE_HELP, Chosen, connect_source, take_options
from almanaq.cli.output import Format
from almanaq.cli.sql import Output, complete_statements, run_query, split
from almanaq.cli.terminal import Amount, console, say
from almanaq.display import visible
from almanaq.errors import AlmanaqError, UsageError, suggest

if TYPE_CHECKING:
    from almanaq.agent.conversation import Chat
    from almanaq.connection import Connection


_KINDS = {"free_text": "  prose, for answer()", "enum": "  one of few values"}
MODES = ("table", "line", "csv", "json")
HELP = """\
A query ends with a semicolon:  SELECT … ;   It may take several lines. At a prompt, any other line is a question,
which goes on from those before it; clear forgets them and empties the screen.

.tables             the relations, with their rows and columns
.schema [RELATION]  the columns and their types
.ask QUESTION       a question in plain words
.explain QUERY      the plan of a query, without running it
.mode MODE          how rows are printed: table, line (one below the other), csv or json
.all [off]          print every row and column from now on; off: the first 40
.help               this
.quit               leave; so does the end of the input"""


class Session:
    """Runs queries and commands over a connection; `stops`: raise an error, else a person types: print it."""

    def __init__(self, connection: Connection, *, stops: bool) -> None:
        self.connection, self._stops = connection, stops
        self._mode = "table"
        self._all = False
        self.pending = ""
        self._chat: Chat | None = None
        self.commands: dict[str, Callable[[str], None]] = {
            ".tables": self._tables,
            ".schema": self._schema,
            ".ask": self._ask,
            ".explain": self._explain,
            ".mode": self._set_mode,
            ".all": self._set_all,
            ".help": lambda _: say(HELP),
            ".clear": lambda _: self._clear(),
        }

    def feed(self, line: str) -> bool:
        """Take a line: run the queries that it ends, or carry out its command; False for the one that leaves."""
        if not self.pending.strip() and line.lstrip().startswith("."):
            return self._command(line.strip())
        if not self._stops and not self.pending.strip() and line.strip() and not begins_query(line):
            word = line.strip().casefold().rstrip("?!.")
            return self._command(f".{word}" if word in _PLAIN_COMMANDS else f".ask {line.strip()}")
        found, self.pending = complete_statements(self.pending + line.rstrip("\r\n") + "\n")
        for query in found:
            self._report_errors(partial(self._run, query))
        return True

    def finish(self) -> None:
        for query in split(self.pending):
            self._report_errors(partial(self._run, query))

    def _command(self, line: str) -> bool:
        name, _, rest = line.partition(" ")
        if name in (".quit", ".exit"):
            return False
        self._report_errors(lambda: self._do_command(name, rest.strip().rstrip(";")))
        return True

    def _do_command(self, name: str, rest: str) -> None:
        if name not in self.commands:
            raise UsageError(f"there is no command {name}{suggest(name, [*self.commands, '.quit'])}")
        self.commands[name](rest)

    def _report_errors(self, work: Callable[[], None]) -> None:
        if self._stops:
            work()
            return
        try:
            work()
        except AlmanaqError as problem:
            print(f"almanaq: {visible(str(problem))}", file=sys.stderr)
        except KeyboardInterrupt:
            print("almanaq: interrupted", file=sys.stderr)

    def _run(self, query: str) -> None:
        more = "printing all rows and columns from now on"
        amount = Amount(None if self._all else Amount().rows, lines=self._mode == "line", more=more)
        format = Format.table if self._mode == "line" else Format(self._mode)
        run_query(self.connection, (query, ()), Output(format, amount=amount))

    def _tables(self, _: str) -> None:
        for relation in self.connection.catalog.relations:
            columns = ", ".join(column.name for column in relation.columns)
            rows = "" if relation.rows is None else f", {relation.rows:,} rows"
            say(f"{relation.name}{rows}: {columns}")

    def _schema(self, name: str) -> None:
        catalog = self.connection.catalog
        for relation in [catalog.relation(name)] if name else catalog.relations:
            say(relation.name)
            for column in relation.columns:
                say(f"  {column.name}  {column.type}{_KINDS.get(column.kind.value, '')}")

    def _ask(self, question: str) -> None:
        from almanaq.cli.ask import EVERYTHING, FIRST, print_stream

        if not question:
            raise UsageError(".ask QUESTION: the question is missing")
        self._chat = self._chat or self.connection.chat()
        response = print_stream(self._chat.stream(question), console(), EVERYTHING if self._all else FIRST)
        if response.error is not None:
            raise response.error

    def _clear(self) -> None:
        self._chat = None
        console().clear()

    def _explain(self, query: str) -> None:
        if not query:
            raise UsageError(".explain QUERY: the query is missing")
        say(str(self.connection.explain(query)).rstrip("\n"))

    def _set_mode(self, mode: str) -> None:
        if mode not in MODES:
            raise UsageError(f".mode {mode}: unknown mode{suggest(mode, MODES)}")
        self._mode = mode

    def _set_all(self, wanted: str) -> None:
        if wanted not in ("", "on", "off"):
            raise UsageError(f".all {wanted}: say .all, or .all off")
        self._all = wanted != "off"


_PLAIN_COMMANDS = frozenset({"help", "clear", "exit", "quit"})
_QUERY = re.compile(
    r"\s*(?:[(;]|--|/\*|(?:select|values|pivot|unpivot|summarize|explain|insert|update|delete|create|alter|drop|copy)\b"
    r"|with\s+(?:recursive\s+)?(?:\w+|\"[^\"]*\")(?:\s*\(.*?\))?\s+as\b|(?:with|from|table|describe|show)\b(?=.*;\s*$)"
    r"|(?:with|from)\s*$|from\s+[\w.\"]+\s*(?:$|\b(?:select|where|join|as)\b))",
    re.IGNORECASE | re.DOTALL,
)


def begins_query(line: str) -> bool:
    """Return whether a line begins a statement of SQL, rather than a sentence.

    >>> begins_query("FROM dogs"), begins_query("from which town is Ann?"), begins_query("with whom does Ann live?")
    (True, False, False)
    """
    return _QUERY.match(line) is not None


_KEPT = 1_000


@contextmanager
def edit_lines(session: Session) -> Iterator[None]:
    """Complete names while lines are typed, and keep the lines in a file that only the user may read."""
    try:
        import readline
    except ImportError:  # Windows: lines are typed all the same
        yield
        return
    from almanaq.models.private_files import default_cache_folder, make_private

    file = default_cache_folder() / "history"
    with suppress(OSError):
        make_private(file)
        readline.read_history_file(file)
    readline.set_history_length(_KEPT)
    readline.set_completer_delims(" \t\n,()=<>;'+-*/")

    def complete_at(text: str, number: int) -> str | None:
        """Return the first, second, … completion, as readline asks for one after another."""
        found = complete_word(text, readline.get_line_buffer(), session)
        return found[number] if number < len(found) else None

    readline.set_completer(complete_at)
    # The library that macOS has in its place takes other words.
    libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
    try:
        yield
    finally:
        with suppress(OSError):
            readline.write_history_file(file)


def complete_word(text: str, line: str, session: Session) -> list[str]:
    from almanaq.completion import complete

    if line.lstrip().startswith(".") and " " not in line.lstrip():
        return sorted(name for name in [*session.commands, ".quit"] if name.startswith(text))
    with suppress(AlmanaqError):
        found = complete(session.connection, line, len(line))
        # readline replaces its own word, and keeps only what continues it.
        before, part = line[len(line) - len(text) : found.start], line[found.start :].strip('"').casefold()
        return [before + each.text for each in found.items if each.text.strip('"').casefold().startswith(part)]
    return []


PROMPT, MORE = "almanaq> ", "     ...> "


@take_options
def shell(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE_HELP)],
    *,
    chosen: Chosen,
) -> None:
    """Type queries; `almanaq SOURCE` does the same.

    A query ends with a semicolon and may take several lines; lines that start with a dot are commands (.help). Names
    are completed by the Tab key, and earlier lines come back with the arrow keys. Queries from a pipe are run one
    after another up to the first that fails.
    """
    interactive = sys.stdin.isatty()
    with connect_source(source, chosen) as connection:
        session = Session(connection, stops=not interactive)
        if interactive:
            say(f"{source}: ask in plain words, or type queries that end with a semicolon; .help lists commands")
        for line in _read_lines(session) if interactive else sys.stdin:
            if not session.feed(line):
                return
        session.finish()


def _read_lines(session: Session) -> Iterator[str]:
    """Yield the lines that a person types; Ctrl-C takes back what was begun."""
    with edit_lines(session):
        while True:
            try:
                yield input(MORE if session.pending.strip() else PROMPT)
            except EOFError:
                print()
                return
            except KeyboardInterrupt:
                print()
                session.pending = ""
