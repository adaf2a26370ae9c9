"""The command line: one file per command; this one turns errors into messages and exit codes."""

from __future__ import annotations

import errno
import io
import os
import sys
import threading
from pathlib import Path
from typing import TextIO

from almanaq.display import visible
from almanaq.errors import AlmanaqError, BudgetExceeded, OperationalError, SourceError

INTERRUPTED = 130
_NO_ROOM = {errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC)}
"""Error numbers of a disk that takes no more output: not a fault of this program."""


def main() -> int:
    """Run the command line; give its exit code: 0 done, 1 failed, 2 wrong usage, 3 refused or stopped by a budget."""
    if _is_the_program():
        _repair_streams()
        os.umask(os.umask(0o077) | 0o077)  # what it writes holds cells: indexes, tables, records of runs
    try:
        code = _run_app()
    except BrokenPipeError:  # also where a message was to be printed
        from almanaq.cli.app import PIPE_CLOSED

        _discard_output()
        code = PIPE_CLOSED
    if _is_the_program():
        _leave_if_an_engine_works(code)
    return code


def _run_app() -> int:
    """Run the command and print its errors; give its exit code. Raises BrokenPipeError where nobody reads them."""
    from almanaq.cli.options import give_freed_memory_back

    give_freed_memory_back()
    from almanaq.cli.app import app

    try:
        try:
            app(prog_name="almanaq")
        finally:
            sys.stdout.flush()  # a failure at exit could not be reported
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    except AlmanaqError as error:
        return _report(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except MemoryError:
        return _report(OperationalError("not enough memory: narrow the query, or add a LIMIT"))
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno not in _NO_ROOM:
            return _report_defect(error)
        _discard_output(sys.stdout)
        why = f"the output cannot be written ({error.strerror}): make room, or write elsewhere"
        return _report(SourceError(why))
    except Exception as error:
        return _report_defect(error)
    return 0


def _repair_streams() -> None:
    """Open standard streams that were closed, as daemons do, and let those of other encodings escape what they lack.

    The first file that is opened would get the number of a closed one, and be read or written as a standard stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode)  # noqa: SIM115 - it is open as long as the process runs
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # who reads it says that it is not UTF-8


def _discard_output(*streams: TextIO) -> None:
    """Send the rest of the output nowhere: Python would complain once more when it flushes at the exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams or (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())


def _is_the_program() -> bool:
    """Return whether this process was started as the command, and does not merely call it."""
    for place, part in enumerate(sys.orig_argv[1:], 1):
        if part == "-m":
            return sys.orig_argv[place + 1 : place + 2] == ["almanaq"]
        if not part.startswith("-"):
            return Path(part).stem == "almanaq"
    return False


def _leave_if_an_engine_works(code: int) -> None:
    """End the process at once where an engine does not stop, or a thread may hold an engine's objects.

    DuckDB complains of both. Idle threads of our own pool hold nothing.
    """
    leaving = sys.modules.get("almanaq.engines.interruption")
    held = "duckdb" in sys.modules and any(
        t.daemon and not t.name.startswith("almanaq_") for t in threading.enumerate()
    )
    if held or (leaving is not None and leaving.has_detached_work()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _report(error: AlmanaqError) -> int:
    _traceback_if_asked()
    print(f"almanaq: {visible(str(error))}", file=sys.stderr)
    if isinstance(error, BudgetExceeded) and error.partial is not None and not getattr(error.partial, "rows", ()):
        print("almanaq: no rows: none was certain yet", file=sys.stderr)
    return error.exit_code


def _report_defect(error: Exception) -> int:
    _traceback_if_asked()
    text = " ".join(str(error).split())
    print(f"almanaq: unexpected {type(error).__name__}: {visible(text)}", file=sys.stderr)
    if not _debug():
        print("almanaq: this is a bug; set ALMANAQ_DEBUG=1 for a traceback, and please report it", file=sys.stderr)
    return 1


def _traceback_if_asked() -> None:
    if _debug():
        import traceback

        traceback.print_exc()


def _debug() -> bool:
    return os.environ.get("ALMANAQ_DEBUG", "") not in ("", "0")
