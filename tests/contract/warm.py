"""A process that has imported what the command needs, and forks for every command: a start costs a tenth.

Each command runs in a process of its own, with its own arguments, environment, folder and standard streams, through
the entry point of the installed script. Requests and replies are lines of JSON; where fork is missing, or
ALMANAQ_TEST_PROCESSES is set, the fixture starts the installed script instead. No thread may run before the fork, so
nothing stays open here, and torch is not imported.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import sys
from typing import Any

import duckdb
import typer.main

from almanaq.cli.app import app
from almanaq.engines.duckdb.functions import FunctionCatalog

MODULES = (
    "almanaq.agent.conversation", "almanaq.agent.local", "almanaq.agent.responder", "almanaq_bench.runner",
    "almanaq.charts.choose", "almanaq.cli.options", "almanaq.cli.sql", "almanaq.connection",
    "almanaq.encode", "almanaq.models.providers", "almanaq.models.extractive.polarity",
    "almanaq.models.extractive.reader", "almanaq.models.openai", "almanaq.models.model_names",
    "almanaq.retrieval.retriever_names", "almanaq.settings", "almanaq.engines.files.load",
    "almanaq.engines.open_source", "almanaq.suql.catalog.term_files", "almanaq.suql.engine", "openai", "pandas",
    "pyarrow.dataset", "pyarrow.parquet", "rich.console", "rich.table", "sqlglot.dialects.duckdb",
    "sqlglot.dialects.postgres",
)  # fmt: skip


def serve() -> None:
    """Answer requests until stdin ends."""
    for name in MODULES:
        importlib.import_module(name)
    with duckdb.connect() as connection:
        FunctionCatalog.read(connection, owned=True)  # a fifth of what a short query takes
    list(typer.main.get_command(app).commands.values())  # builds each, a tenth
    gc.freeze()  # a third of what a question takes: each child would look at every object, and so copy its page
    answer_requests()
    gc.unfreeze()  # or DuckDB reports its objects as leaked


def answer_requests() -> None:
    """Fork for every line of stdin."""
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(run(request))
        print(json.dumps({"pid": child}), flush=True)
        _, status = os.waitpid(child, 0)
        print(json.dumps({"code": os.waitstatus_to_exitcode(status)}), flush=True)


def run(request: dict[str, Any]) -> int:
    """Become the command that was asked for, and give its exit code."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    for number, (path, flags) in enumerate(
        ((request["stdin"], os.O_RDONLY), (request["stdout"], os.O_WRONLY), (request["stderr"], os.O_WRONLY))
    ):
        os.dup2(os.open(path, flags), number)
    sys.stdin, sys.stdout = io.TextIOWrapper(open(0, "rb")), io.TextIOWrapper(open(1, "wb"))  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(open(2, "wb", 0), write_through=True)  # noqa: SIM115
    sys.argv = ["almanaq", *request["arguments"]]
    from almanaq.cli import main

    try:
        code: Any = main()
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    serve()
