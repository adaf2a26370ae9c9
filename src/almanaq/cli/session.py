"""What is done with the lines of `almanaq SOURCE`: queries are run, and commands carried out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from almanaq.cli.output import Format
from almanaq.cli.rows import Amount
from almanaq.cli.run_query import Output, run_query
from almanaq.cli.statements import complete_statements, split
from almanaq.cli.terminal import console, say
from almanaq.errors import AlmanaqError, UsageError, suggest
from almanaq.visible import visible

if TYPE_CHECKING:
    from almanaq.connection import Connection

_KINDS = {"free_text": "  prose, for answer()", "enum": "  one of few values"}
MODES = ("table", "line", "csv", "json")
HELP = """\
A query ends with a semicolon:  SELECT … ;   It may take several lines.

.tables             the relations, with their rows and columns
.schema [RELATION]  the columns and their types
.ask QUESTION       a question in plain words
.explain QUERY      the plan of a query, which is not run
.mode MODE          how rows are printed: table, line (one below the other), csv or json
.all [off]          print every row and column from now on; off: the first 40
.help               this
.quit               leave; so does the end of the input"""


class Session:
    """Runs queries and commands over one connection.

    Args:
        stops: raise what a query or a command fails with; else it is told, and the next one has its turn.
    """

    def __init__(self, connection: Connection, *, stops: bool) -> None:
        self.connection, self._stops = connection, stops
        self._mode = "table"
        self._all = False
        self._typed = ""
        self.commands: dict[str, Callable[[str], None]] = {
            ".tables": self._tables,
            ".schema": self._schema,
            ".ask": self._ask,
            ".explain": self._explain,
            ".mode": self._set_mode,
            ".all": self._set_all,
            ".help": lambda _: say(HELP),
        }

    @property
    def unfinished(self) -> bool:
        """Whether a query was begun that no semicolon ends yet."""
        return bool(self._typed.strip())

    def feed(self, line: str) -> bool:
        """Take a line: run the queries that it ends, or carry out its command; False for the one that leaves."""
        if not self.unfinished and line.lstrip().startswith("."):
            return self._command(line.strip())
        found, self._typed = complete_statements(self._typed + line.rstrip("\r\n") + "\n")
        for query in found:
            self._guarded(partial(self._run, query))
        return True

    def forget(self) -> None:
        """Drop a query that was begun."""
        self._typed = ""

    def finish(self) -> None:
        """Run a query that the end of the input ends."""
        for query in split(self._typed):
            self._guarded(partial(self._run, query))

    def _command(self, line: str) -> bool:
        name, _, rest = line.partition(" ")
        if name in (".quit", ".exit"):
            return False
        self._guarded(lambda: self._found(name)(rest.strip().rstrip(";")))
        return True

    def _guarded(self, work: Callable[[], None]) -> None:
        if self._stops:
            work()
            return
        try:
            work()
        except AlmanaqError as problem:
            print(f"almanaq: {visible(str(problem))}", file=sys.stderr)
        except KeyboardInterrupt:
            print("almanaq: interrupted", file=sys.stderr)

    def _found(self, name: str) -> Callable[[str], None]:
        if name not in self.commands:
            raise UsageError(f"there is no command {name}{suggest(name, [*self.commands, '.quit'])}")
        return self.commands[name]

    def _run(self, query: str) -> None:
        more = ".all prints everything from now on"
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
                kind = _KINDS.get(column.kind.value, "")
                say(f"  {column.name}  {column.type}{kind}")

    def _ask(self, question: str) -> None:
        from almanaq.cli.ask import EVERYTHING, FIRST, print_stream

        if not question:
            raise UsageError(".ask QUESTION: the question is missing")
        response = print_stream(self.connection.ask_stream(question), console(), EVERYTHING if self._all else FIRST)
        if response.error is not None:
            raise response.error

    def _explain(self, query: str) -> None:
        if not query:
            raise UsageError(".explain QUERY: the query is missing")
        say(str(self.connection.explain(query)).rstrip("\n"))

    def _set_mode(self, mode: str) -> None:
        if mode not in MODES:
            raise UsageError(f".mode {mode}: there is no such mode{suggest(mode, MODES)}")
        self._mode = mode

    def _set_all(self, wanted: str) -> None:
        if wanted not in ("", "on", "off"):
            raise UsageError(f".all {wanted}: say .all, or .all off")
        self._all = wanted != "off"
