"""`almanaq verdicts` and `almanaq test`: answers that were checked, kept and run again."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import typer

from almanaq.cli.options import SOURCE_HELP, Chosen, connect_source, name_source, take_options
from almanaq.cli.output import write_text
from almanaq.cli.terminal import say
from almanaq.errors import UsageError, suggest


@take_options
def verdicts(
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help=SOURCE_HELP)] = None,
    db: Annotated[str | None, typer.Option("--db", metavar="SOURCE", help="The same, as an option.")] = None,
    right: Annotated[
        str | None, typer.Option("--right", metavar="QUESTION", help="Keep the query of --suql as right for QUESTION.")
    ] = None,
    suql: Annotated[
        str | None, typer.Option("--suql", metavar="SUQL", help="The query; without it, the one that ask writes now.")
    ] = None,
    remove: Annotated[str | None, typer.Option("--remove", metavar="QUESTION", help="Forget a question.")] = None,
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who says so; default: the user.")] = "",
    export: Annotated[bool, typer.Option("--export", help="Write all to SOURCE.examples.toml.")] = False,
    *,
    chosen: Chosen,
) -> None:
    """List the questions whose queries a person checked, keep another, or export them.

    A question that is the same but for values, numbers and dates is answered by the checked query, without a model.
    """
    from almanaq.agent.checked import examples_path, write_checked

    named = name_source(source, db, command="verdicts")
    if suql is not None and right is None:
        raise UsageError("--suql needs --right QUESTION: what the query answers")
    with connect_source(named, chosen) as connection:
        if right is not None:
            query = suql if suql is not None else connection.ask(right).suql
            if query is None:
                raise UsageError("no query was written for that question: give one with --suql")
            connection.confirm(right, query, by=by or getpass.getuser())
        if remove is not None:
            kept = [each.question for each in connection.checked.all()]
            if remove not in kept:
                raise UsageError(f"--remove: {remove!r} is not kept{suggest(remove, kept)}")
            connection.checked.remove(remove)
            if any(question == remove for question, _ in connection.examples):
                say(f"{examples_path(named)} still answers it: delete it there too, or --export again")
        checked = connection.checked.all()
        if export:
            if not Path(named).expanduser().exists():
                raise UsageError(f"--export needs a file or folder, and {named!r} is neither")
            target = examples_path(named)
            others = tuple(pair for pair in connection.examples if pair[0] not in {each.question for each in checked})
            write_text(write_checked(checked, others), str(target))
            say(f"written: {target}")
            return
        for each in checked:
            write_text(f"{each.on}  {each.by}  {each.question}\n    {each.suql}\n", None)


@take_options
def rerun(
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help=SOURCE_HELP)] = None,
    db: Annotated[str | None, typer.Option("--db", metavar="SOURCE", help="The same, as an option.")] = None,
    *,
    chosen: Chosen,
) -> None:
    """Run every checked query again; exit 1 where one cannot run any more, or gives other rows."""
    from almanaq.agent.checked import Checked, compare_checked

    changed = 0
    with connect_source(name_source(source, db, command="test"), chosen) as connection:
        checked = {each.question: each for each in connection.checked.all()}
        written = {q: Checked(q, suql) for q, suql in connection.examples if suql is not None and q not in checked}
        if not (written or checked):
            say("no question of this source was checked yet: almanaq verdicts --right QUESTION keeps one")
        for each in (*written.values(), *checked.values()):
            found = compare_checked(each, connection.engine)
            changed += found != "same"
            write_text(f"{found}  {each.question}\n", None)
    if changed:
        raise typer.Exit(1)
