"""Passwords in the URLs of databases: found, so that no message prints one."""

from __future__ import annotations

import re
from urllib.parse import unquote

from almanaq.errors import SourceError

_PASSWORD = re.compile(r"://[^:/@]*:(?P<url>.+)@|[?&\s]password=(?P<parameter>[^\s&]+)")
_RESERVED = re.compile(r"[/@:?#\[\]\s]")


def find_secret(url: str) -> str:
    """Return the password in a URL, "" when there is none.

    Raises:
        SourceError: it would be read as host or path, and printed by whoever cannot reach them.
    """
    match = _PASSWORD.search(url)
    secret = (match["url"] or match["parameter"]) if match else ""
    if match and match["url"] and _RESERVED.search(secret):
        raise SourceError("the password in the URL must be percent-encoded: / is %2F, @ is %40")
    return secret or ""


def hide(message: str, *secrets: str) -> str:
    """Return a message without any of the secrets, however they are written."""
    for written in {form for secret in secrets for form in (secret, unquote(secret))} - {""}:
        message = message.replace(written, "***")
    return message
