"""almanaq for llm: the command `llm almanaq`, and a toolbox for its models."""

from __future__ import annotations

import json
from typing import Any

import click
import llm


class Almanaq(llm.Toolbox):
    """Answers questions about one source of tables: Almanaq("shop.duckdb").

    Args:
        source: whatever `almanaq.connect` takes as text.
        model: almanaq's own model.
        max_calls: most model calls of a tool call.
    """

    def __init__(self, source: str, model: str = "local", max_calls: int = 200) -> None:
        self._source, self._model, self._max_calls = source, model, max_calls
        self._tools: Any = None

    def _call(self, name: str, **given: Any) -> str:
        if self._tools is None:
            import almanaq
            from almanaq.mcp.tools import Tools

            self._tools = Tools(almanaq.connect(self._source, model=self._model, max_calls=self._max_calls))
        return json.dumps(self._tools.call(name, given), ensure_ascii=False)

    def schema(self, table: str = "") -> str:
        """List the tables; or the columns of one table, with their types and kinds."""
        return self._call("describe_table", table=table) if table else self._call("find_tables", limit=50)

    def query(self, suql: str) -> str:
        """Run one read-only SELECT of PostgreSQL's; answer(text, 'question') and summary(text) read prose."""
        return self._call("run_query", suql=suql)

    def ask(self, question: str) -> str:
        """Answer a question in plain words from the tables, with the quotes that the answer rests on."""
        return self._call("ask", question=question)


@llm.hookimpl
def register_tools(register: Any) -> None:
    """Give llm the toolbox."""
    register(Almanaq)


@llm.hookimpl
def register_commands(cli: Any) -> None:
    """Give llm the command."""

    @cli.command(name="almanaq")
    @click.argument("source")
    @click.argument("question")
    @click.option("--model", default="local", help="almanaq's model")
    def ask(source: str, question: str, model: str) -> None:
        """Ask a question about a source of tables."""
        import almanaq
        from almanaq.display import visible
        from almanaq.errors import AlmanaqError

        try:
            with almanaq.connect(source, model=model) as connection:
                reply = connection.ask(question)
        except AlmanaqError as error:
            raise click.ClickException(visible(str(error))) from error
        if reply.error is not None:
            raise click.ClickException(visible(str(reply.error)))
        click.echo(visible(reply.answer))
        if reply.suql:
            click.echo(visible(f"\n{reply.suql}"))
