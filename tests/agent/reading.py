"""What a question over tables has to become."""

from __future__ import annotations

import almanaq


def assert_read(connection: almanaq.Connection, question: str, expected: str) -> None:
    """Assert that a question is answered, by a query that holds some text."""
    reply = connection.ask(question)
    assert reply.suql is not None, reply.answer
    assert expected in reply.suql
