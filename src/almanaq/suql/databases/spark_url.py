"""The address of a Spark Connect server: `sc://host:15002/;token=…;catalog=…;schema=…;folder=…`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from almanaq.errors import UsageError, suggest
from almanaq.suql.databases.url import hide

_OWN = ("catalog", "schema", "folder")
_SPARK = ("token", "user_id", "user_agent", "use_ssl", "session_id", "x-")
_FORM = re.compile(r"(?:spark\+)?sc://(?P<host>[^/;]+)/?(?P<parameters>(?:;[^;]*)*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SparkURL:
    """A server's address, and what of it is looked at.

    Attributes:
        server: the address as pyspark takes it, which may hold a token.
        shown: the address as messages show it.
        catalog: the catalog to read; "" takes the server's current one.
        schemas: the schemas to read; none takes all.
        folder: a folder that the cluster's processes share, for what lies between two steps; "" where there is none.
    """

    server: str
    shown: str
    catalog: str = ""
    schemas: tuple[str, ...] = ()
    folder: str = ""
    token: str = ""

    def hide(self, message: str) -> str:
        """Return a message without the token."""
        return hide(message, self.token)


def read_spark_url(url: str) -> SparkURL:
    """Return what an address says.

    Raises:
        UsageError: it is not of that form, or has a parameter that nobody knows.
    """
    found = _FORM.fullmatch(url)
    if found is None:
        raise UsageError("a Spark Connect address has the form sc://host:15002/;name=value;…")
    given: dict[str, str] = {}
    for written in filter(None, found["parameters"].split(";")):
        name, _, value = written.partition("=")
        if name not in (*_OWN, *_SPARK) and not name.startswith("x-"):
            raise UsageError(f"a Spark Connect address has no parameter {name!r}{suggest(name, (*_OWN, *_SPARK[:-1]))}")
        given[name] = value
    rest = "".join(f";{name}={value}" for name, value in given.items() if name not in _OWN)
    host = found["host"]
    return SparkURL(
        server=f"sc://{host}/{rest}",
        shown=f"sc://{host}",
        catalog=given.get("catalog", ""),
        schemas=tuple(filter(None, given.get("schema", "").split(","))),
        folder=given.get("folder", ""),
        token=given.get("token", ""),
    )
