"""`almanaq board`: run a board of `almanaq serve` again, or write it as one HTML file."""

from __future__ import annotations

from contextlib import closing
from enum import StrEnum
from importlib.util import find_spec
from typing import Annotated

import typer

from almanaq.cli.options import SOURCE_HELP, Chosen, connect_source, name_source, take_options
from almanaq.cli.output import check_out, write_text
from almanaq.cli.terminal import say, warn
from almanaq.errors import MissingExtraError


class Action(StrEnum):
    run = "run"
    export = "export"


@take_options
def board(
    action: Annotated[Action, typer.Argument(metavar="run|export", help="Run its queries again, or write it as HTML.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The board, as its address names it.")],
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help=SOURCE_HELP)] = None,
    db: Annotated[str | None, typer.Option("--db", metavar="SOURCE", help="The same.")] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="With export: write to a file.")] = None,
    *,
    chosen: Chosen,
) -> None:
    """Run the queries of a board again, or export it as one HTML file that needs no server.

    Boards are made on the page of almanaq serve, over the same source. Queries that fail keep the rows of before, and
    make the exit code 1.
    """
    named = name_source(source, db, command=f"board {action.value} {name}")
    check_out(out, named)
    if find_spec("fastapi") is None:
        raise MissingExtraError("fastapi", "web", "almanaq board")
    from almanaq.options import Options
    from almanaq.web.boards import Boards
    from almanaq.web.service import open_service
    from almanaq.web.site import export_board

    with connect_source(named, chosen) as connection:
        service = open_service(connection, named)
        with closing(service.store):
            boards = Boards(service)
            if action is Action.export:
                write_text(export_board(boards, boards.get(name)), out)
                return
            done = boards.run(name, Options()).work(lambda *_: None)
    for place, item in enumerate(done["items"]):
        problem = done["failed"].get(str(place))
        if problem is not None:
            warn([f"{item['title']}: {problem['detail']}; it keeps the rows of before"])
        elif item.get("record"):
            say(f"{item['title']}: {item['record'].get('rows_total', 0):,} rows")
    if done["failed"]:
        raise typer.Exit(1)
