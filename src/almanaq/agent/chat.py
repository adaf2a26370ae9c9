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

    >>> import almanaq
    >>> con = almanaq.connect({"dogs": {"name": ["Rex", "Bella", "Milo"], "age": [7, 3, 5]}})
    >>> chat = con.chat()
    >>> chat.ask("Which dogs are older than 4?").suql
    'SELECT name, age FROM dogs WHERE age > 4'
    >>> chat.ask("How many are there?").suql
    'SELECT COUNT(*) FROM dogs WHERE age > 4'
    >>> [turn.question for turn in chat.history]
    ['Which dogs are older than 4?', 'How many are there?']
    """

    def __init__(self, agent: Agent, history: History = ()) -> None:
        self._agent = agent
        self.history = history

    def ask(self, question: str) -> Response:
        """Return the reply to the next question; a request that fails is a reply, too, with the status `failed`.

        >>> chat.ask("How old is Rex?").rows
        ((7,),)
        """
        return self._remember(self._agent.respond(question, self.history))

    def stream(self, question: str) -> Iterator[Event]:
        """Yield what happens while the next question is answered; the last event, Finished, holds the reply.

        >>> *events, last = chat.stream("How old is Bella?")
        >>> last.response.rows
        ((3,),)
        >>> "query" in {event.kind for event in events}
        True
        """
        for event in self._agent.events(question, self.history):
            if isinstance(event, Finished):
                self._remember(event.response)
            yield event

    async def astream(self, question: str) -> AsyncIterator[Event]:
        """Yield the same events in asynchronous code.

        >>> import asyncio
        >>> async def kinds(question):
        ...     return [event.kind async for event in chat.astream(question)]
        >>> asyncio.run(kinds("How old is Milo?"))[-1]
        'response'
        """
        async for event in self._agent.aevents(question, self.history):
            if isinstance(event, Finished):
                self._remember(event.response)
            yield event

    def _remember(self, response: Response) -> Response:
        self.history = (*self.history, response.turn())
        return response
