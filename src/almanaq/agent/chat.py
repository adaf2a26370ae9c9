"""Chat: a conversation that remembers its turns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from almanaq.agent.conversation import Agent
from almanaq.agent.events import Event, Finished
from almanaq.agent.history import History
from almanaq.agent.response import Response


class Chat:
    """A conversation with one source: each question is understood after those before it.

    A turn that fails is remembered as one that failed; what was said before it stays.

    Args:
        agent: answers the questions; several conversations may share it.
        history: turns to go on from, the oldest first.

    Attributes:
        history: the turns so far.
    """

    def __init__(self, agent: Agent, history: History = ()) -> None:
        self._agent = agent
        self.history = history

    def ask(self, question: str) -> Response:
        """Give the reply to the next question."""
        return self._remember(self._agent.respond(question, self.history))

    def stream(self, question: str) -> Iterator[Event]:
        """Yield what happens while the next question is answered; the last event, Finished, holds the reply."""
        for event in self._agent.events(question, self.history):
            if isinstance(event, Finished):
                self._remember(event.response)
            yield event

    async def astream(self, question: str) -> AsyncIterator[Event]:
        """Yield the events in asynchronous code."""
        async for event in self._agent.aevents(question, self.history):
            if isinstance(event, Finished):
                self._remember(event.response)
            yield event

    def _remember(self, response: Response) -> Response:
        self.history = (*self.history, response.turn())
        return response
