"""The members of WITH, kept apart from the query so that each stage carries those that it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.catalog.sources import find_cte
from almanaq.suql.plan.references import quoted
from almanaq.suql.plan.sites import Site
from almanaq.suql.plan.stages import LogicalStage, Materialize, TextBlock
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import has_text


class CommonTables:
    """The members of WITH met so far, under names of their own.

    Args:
        name: gives a new name of a kind.
        compile_query: gives an equivalent of a query without text functions.
    """

    def __init__(self, name: Callable[[str], str], compile_query: Callable[[exp.Query], exp.Query]) -> None:
        self._name, self._compile = name, compile_query
        self._members: dict[str, exp.CTE] = {}
        self._recursive = False

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def hoist(self, query: exp.Query) -> None:
        """Take a query's WITH away and keep its members."""
        with_ = query.args.get("with_")
        if with_ is None:
            return
        self._recursive |= bool(with_.args.get("recursive"))
        references: dict[int, list[exp.Table]] = {}
        for table in nodes_of(query, exp.Table):
            references.setdefault(id(find_cte(table)), []).append(table)
        for cte in list(with_.expressions):
            name = self._name(f"cte_{cte.alias}")
            for reference in references.get(id(cte), ()):
                reference.set("this", quoted(name))
            cte.args["alias"].set("this", quoted(name))
            if has_text(cte.this):
                _check_recursion(cte, name)
                cte.this.replace(self._compile(cte.this))
            self._members[name] = cte
        query.set("with_", None)

    def attach(self, query: exp.Query) -> exp.Query:
        """Return a query the members that it needs."""
        query.set("with_", self._needed([query]))
        return query

    def attach_to_stage(self, stage: LogicalStage) -> LogicalStage:
        """Return a stage the members that its SQL needs."""
        if isinstance(stage, Materialize):
            return replace(stage, select=self.attach(stage.select))
        if not isinstance(stage, TextBlock):
            return stage  # it reads tables that were made before
        parts = [stage.source, *stage.outputs, *stage.order, *([stage.where] if stage.where is not None else [])]
        parts += [node for site in stage.sites for node in (site.document, site.question)]
        sites = tuple(map(self._attach_to_site, stage.sites))
        return replace(stage, sites=sites, with_=self._needed(parts))

    def _attach_to_site(self, site: Site) -> Site:
        return site if site.options_from is None else replace(site, options_from=self.attach(site.options_from))

    def _needed(self, nodes: list[exp.Expr]) -> exp.With | None:
        needed: set[str] = set()
        pending = list(nodes)
        while pending:
            for name in {t.name for t in nodes_of(pending.pop(), exp.Table) if t.name in self._members} - needed:
                needed.add(name)
                pending.append(self._members[name])
        members = [cte.copy() for name, cte in self._members.items() if name in needed]
        return exp.With(expressions=members, recursive=self._recursive) if members else None


def _check_recursion(cte: exp.CTE, name: str) -> None:
    """Refuse text functions in the part of a recursive member that reads the member: each step would ask anew."""
    arms = [cte.this.this, cte.this.expression] if isinstance(cte.this, exp.SetOperation) else []
    if any(has_text(arm) and any(table.name == name for table in nodes_of(arm, exp.Table)) for arm in arms):
        raise UnsupportedError(
            "text functions in the part of WITH RECURSIVE that refers to itself are not supported: answer them in a "
            "member of WITH before it, which that part may join"
        )
