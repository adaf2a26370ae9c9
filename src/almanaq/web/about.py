"""What the page's header and a program may know of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from almanaq.errors import SourceError
from almanaq.web.verdicts import Verdict, Verdicts, accuracy

if TYPE_CHECKING:
    from almanaq.web.service import Service


def about_record(service: Service) -> dict[str, Any]:
    """Return the source, the model, what leaves this machine, bounds, and measured accuracy."""
    connection, warnings = service.connection, list(service.connection.warnings)
    models, verdicts = connection.models, list[Verdict]()
    try:
        verdicts = Verdicts(service.store).all()
    except SourceError as error:  # a page without figures is better than none
        warnings.append(str(error))
    return {
        "source": service.source,
        "model": models.name,
        "leaves": leaves(service),
        "paid": bool(models.reader.paid),
        "max_calls": service.calls_allowed,
        "ask_above": service.limits.ask_above if models.reader.paid else None,
        "accuracy": accuracy(verdicts, sampled=False).record(),
        "sampled_accuracy": accuracy(verdicts, sampled=True).record(),
        "warnings": warnings,
    }


def leaves(service: Service) -> list[str]:
    """Return the columns of prose that a query may send to a model on another machine, and what else goes there."""
    connection = service.connection
    if not connection.models.reader.remote:
        return []
    texts = [
        f"{relation.name}.{column.name}"
        for relation in connection.catalog.relations
        for column in relation.columns
        if column.kind.value == "free_text" and not column.private
    ]
    return ["questions", "the schema, with samples", "rows of replies", *texts]
