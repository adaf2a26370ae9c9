"""The link stage: literals compared with ENUM columns → the values that mean the same (semantics 11)."""

from __future__ import annotations

import asyncio

from almanaq.models.protocols import AllOf, Linker, LinkRequest
from almanaq.suql.catalog.linking import Link
from almanaq.suql.execution.render import Renderer


async def link_literals(
    links: tuple[Link, ...], linker: Linker, renderer: Renderer
) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Find what each literal means and make it known to the renderer; give (column, literal, values) for the trace."""
    requests = [LinkRequest(link.literal, f"{link.relation}.{link.column}", link.values, link.array) for link in links]
    found = await asyncio.gather(*(linker.link(request) for request in requests))
    known = [_known(link, values) for link, values in zip(links, found, strict=True)]
    renderer.add_links({link.id: link for link in links}, dict(zip((link.id for link in links), known, strict=True)))
    return tuple((request.column, request.literal, values) for request, values in zip(requests, known, strict=True))


def _known(link: Link, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the values that the column has; of values that all have to be there, all or none."""
    if isinstance(values, AllOf):
        return values if set(values) <= set(link.values) else ()
    return tuple(value for value in values if value in link.values)
