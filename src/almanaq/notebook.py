"""The extension for notebooks, `%load_ext almanaq.notebook`: %almanaq, %%suql, %ask; progress in one display."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NoReturn

from almanaq import display
from almanaq.display import describe_progress
from almanaq.errors import AlmanaqError, BudgetExceeded, MissingExtraError, UsageError
from almanaq.jobs import show_progress
from almanaq.options import OPTIONS, QUERY_OPTIONS, Option, Options, choose_options
from almanaq.suql.execution.report import Interrupted
from almanaq.suql.result import Result

if TYPE_CHECKING:
    from almanaq.agent.conversation import Chat
    from almanaq.agent.response import Response
    from almanaq.connection import Connection

_NAME = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*<<\s*$")
_ASKED = re.compile(r"(?P<before>[ \t]*(?:\w+[ \t]*=[ \t]*)?)%ask[ \t]+(?P<question>.*\?)\s*")


def load_ipython_extension(shell: Any) -> None:
    """Register the magics with a running IPython; it calls this for `%load_ext almanaq.notebook`."""
    if find_spec("IPython") is None:
        raise MissingExtraError("ipython", "notebook", "the notebook extension")
    magics = Magics(shell)
    shell.register_magic_function(_with_short_errors(magics.almanaq), "line", "almanaq")
    shell.register_magic_function(_with_short_errors(magics.ask), "line", "ask")
    shell.register_magic_function(_with_short_errors(magics.suql), "line_cell", "suql")
    if _keep_question_marks not in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.append(_keep_question_marks)


def _keep_question_marks(lines: list[str]) -> list[str]:
    """Write `%ask …?` as the call that it stands for: IPython would look up the last word, as it does for `len?`."""
    call = "{0[before]}get_ipython().run_line_magic('ask', {0[question]!r})\n"
    return [call.format(asked) if (asked := _ASKED.fullmatch(line)) else line for line in lines]


def _with_short_errors(magic: Callable[..., Any]) -> Callable[..., Any]:
    """Have IPython show the message of an error alone: the frames below a magic say nothing of the cell."""

    @wraps(magic)
    def run(*given: Any) -> Any:
        try:
            return magic(*given)
        except AlmanaqError as error:
            said = [f"{type(error).__name__}: {error}"]
            error._render_traceback_ = lambda: said  # type: ignore[attr-defined]
            raise

    return run


@dataclass(eq=False)
class Magics:
    """The magics of one shell; the connection that %almanaq opened serves the others."""

    shell: Any
    connection: Connection | None = None
    chat: Chat | None = None

    def almanaq(self, line: str) -> None:
        """%almanaq SOURCE [--model NAME] [--max-calls N] …: open a source, or a variable's tables."""
        from almanaq.connection import connect

        parser = _Parser("%almanaq")
        parser.add_argument("source")
        parser.add_options(OPTIONS.values())
        given = vars(parser.parse_args(shlex.split(line)))
        source = given.pop("source")
        opened = connect(self.shell.user_ns.get(source, source), **given)
        if self.connection is not None:
            self.connection.close()
        self.connection, self.chat = opened, opened.chat()
        for relation in opened.catalog.relations:
            rows = "" if relation.rows is None else f"{relation.rows:,} rows, "
            print(f"{relation.name}: {rows}{len(relation.columns)} columns")

    def suql(self, line: str, cell: str | None = None) -> Any:
        """%%suql [--explain] [--max-calls N] … [name <<]: run the query of a cell; `name <<` keeps its result."""
        named = _NAME.search(line)
        parser = _Parser("%%suql")
        parser.add_argument("--explain", action="store_true")
        parser.add_options(QUERY_OPTIONS)
        # As a line magic, the whole line is the query.
        given = vars(parser.parse_args([] if cell is None else shlex.split(line[: named.start()] if named else line)))
        explains, query = given.pop("explain"), line if cell is None else cell
        options = choose_options(None, given)
        shown = self._open().explain(query, options=options) if explains else self._run(query, options)
        if named is None:
            return shown
        self.shell.user_ns[named["name"]] = shown
        return None

    def ask(self, line: str) -> Response:
        """%ask QUESTION: answer a question in plain words; it is understood after those before it."""
        if not line.strip():
            raise UsageError("%ask takes a question: %ask Which places are quiet?")
        if self.chat is None:
            self._open()
        assert self.chat is not None
        with progress():
            return self.chat.ask(line.strip())

    def _open(self) -> Connection:
        if self.connection is None:
            raise UsageError("there is no source yet: %almanaq SOURCE opens one")
        return self.connection

    def _run(self, query: str, options: Options) -> Any:
        connection = self._open()
        try:
            with progress():
                return connection.sql(query, options=options)
        except (Interrupted, BudgetExceeded) as stopped:
            # Nothing at all must not look like a result without rows.
            if not (isinstance(stopped.partial, Result) and len(stopped.partial)):
                raise
            reason = "interrupted" if isinstance(stopped, Interrupted) else str(stopped)
            print(f"{reason}: these rows are in the result, but may not be all of it")
            return stopped.partial


class _Parser(argparse.ArgumentParser):
    def __init__(self, magic: str) -> None:
        super().__init__(prog=magic, add_help=False, allow_abbrev=False)

    def add_options(self, options: Iterable[Option]) -> None:
        """Take the options that a URL may hold, other than switches; what is not given is left out."""
        for option in options:
            if option.is_set_by("url") and option.python_type is not bool:
                kind, choices = option.parse or option.python_type, option.choices or None
                self.add_argument(
                    option.spelling, dest=option.name, type=kind, choices=choices, default=argparse.SUPPRESS
                )

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}")


@contextmanager
def progress() -> Iterator[None]:
    """Show how far queries are in one display, which is empty in the end; Ctrl-C gives the rows that are sure."""
    update = _display()

    def show(*reached: Any) -> None:
        update(describe_progress(*reached))

    with show_progress(show, keeps=True):
        try:
            yield
        finally:
            update("")


def _display() -> Callable[[str], None]:
    """Return what shows words in the place of those before; nothing is shown until there are some."""
    from IPython import display as ipython

    show: Callable[..., Any] = ipython.display
    handles: list[Any] = []

    def update(words: str) -> None:
        shown = {"text/plain": words, "text/html": display.block(display.paragraph(words)) if words else ""}
        if handles:
            if handles[0] is not None:  # outside a shell there is none
                handles[0].update(shown, raw=True)
        elif words:
            handles.append(show(shown, raw=True, display_id=True))

    return update
