"""What other packages add by entry points: models, databases, retrievers and commands, loaded when named.

An entry point of the group `almanaq.models` names a provider (`NAME:MODEL`) and gives a callable that takes what stands
behind the colon; one of `almanaq.databases` names the scheme of a URL and gives a callable that takes the URL and
`schema=`; one of `almanaq.retrievers` names a retriever and gives it, its class, a `RetrieverOpener`, or a mapping of
these by name; one of `almanaq.commands` names a command of `almanaq` and gives a `typer.Typer`.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from almanaq.errors import AlmanaqError, UsageError

Group = Literal["almanaq.models", "almanaq.databases", "almanaq.retrievers", "almanaq.commands"]


def plugin_names(group: Group) -> list[str]:
    """Return the names that installed packages add to a group; none of them is imported."""
    return sorted({point.name for point in entry_points(group=group)})


def load_plugin(group: Group, name: str) -> Any | None:
    """Return what an entry point stands for, None where no package has one of that name."""
    points = list(entry_points(group=group, name=name))
    if not points:
        return None
    if len({point.value for point in points}) > 1:
        raise UsageError(
            f"several packages add {name!r} to {group}: {', '.join(sorted(map(_describe_point, points)))}; remove one"
        )
    try:
        return points[0].load()
    except Exception as error:  # another package may raise anything
        raise UsageError(f"{_describe_point(points[0])} cannot be loaded: {type(error).__name__}: {error}") from error


def call_plugin(group: Group, name: str, *args: Any, **kwargs: Any) -> Any | None:
    """Return what an entry point's callable makes, None where no package has one of that name."""
    make = load_plugin(group, name)
    if make is None:
        return None
    try:
        return make(*args, **kwargs)
    except AlmanaqError:
        raise
    except Exception as error:
        raise UsageError(f"the plug-in {name!r} of {group} failed: {type(error).__name__}: {error}") from error


def _describe_point(point: EntryPoint) -> str:
    package = point.dist.name if point.dist is not None else "?"
    return f"the plug-in {point.name!r} of the package {package!r} ({point.value})"
