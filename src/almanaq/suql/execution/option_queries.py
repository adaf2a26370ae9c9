"""Options of answers that queries give: ARRAY(SELECT …), run before the first call that names them."""

from __future__ import annotations

from almanaq.engines.protocols import Session
from almanaq.suql.execution.calls import TextCalls
from almanaq.suql.execution.render import Renderer
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.plan.stages import TextStage


async def find_options(stage: TextStage, calls: TextCalls, session: Session, renderer: Renderer) -> None:
    """Ask the database for the options that a stage's answers have from queries; tell the calls."""
    for site in (item.site for item in stage.inputs):
        if site.options_from is not None and calls.options_of(site) is None:
            found = await in_thread(session.fetch, renderer.sql(site.options_from))
            calls.know_options(site, found.column(0).to_pylist())
