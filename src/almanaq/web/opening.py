"""What a server works with, opened over a connection: the store of answers beside the caches."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from almanaq.models.private_files import default_cache_folder
from almanaq.web.columns import sees
from almanaq.web.service import Limits, Service
from almanaq.web.store import AnswerStore
from almanaq.web.supervisor import Worker

if TYPE_CHECKING:
    from almanaq.connection import Connection

FILE = "answers.sqlite"
MOST_MB = 512


def open_service(
    connection: Connection,
    source: str,
    limits: Limits | None = None,
    *,
    store_mb: int | None = MOST_MB,
    worker: Worker | None = None,
) -> Service:
    """Return the service over a connection.

    Args:
        source: as it was named; a password in it is not shown.
        store_mb: what kept answers may take; None: they are kept in memory only.
        worker: what is known of the supervisor; None: there is none.
    """
    from almanaq.models.http import redact_address

    shown = redact_address(source) if "://" in source else source
    file = None if store_mb is None else default_cache_folder() / FILE
    store = AnswerStore(
        file, _identity(source), most_bytes=(store_mb or MOST_MB) * 1_000_000, sees=partial(sees, connection)
    )
    return Service(shown, connection, store, limits or Limits(), worker or Worker())


def _identity(source: str) -> str:
    """Return what two servers over one source have in common, without a password in it."""
    path = Path(source).expanduser()
    return hashlib.sha256((str(path.resolve()) if path.exists() else source).encode()).hexdigest()[:32]
