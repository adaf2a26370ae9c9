"""Makes the agent's prompts from the files in `prompts/`, and gets a model's reply from ordinary code."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextvars import copy_context
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

from almanaq.agent.turn import await_in_turn
from almanaq.event_loops import CancelToken, run_sync
from almanaq.models.prompts import prompt_file
from almanaq.models.protocols import Completion, LanguageModel, Prompt
from almanaq.models.text_calls import MalformedReply, parse_object

_PACKAGE = "almanaq.agent.prompts"


def make_prompt(name: str, values: Mapping[str, object], schema: Mapping[str, object] | None = None) -> Prompt:
    """Return the prompt of the file `prompts/NAME.jinja`, with what people and rows say inside a fence of its own."""
    return prompt_file(name, _PACKAGE).prompt(values, schema=schema)


def complete(model: LanguageModel, prompt: Prompt) -> Completion:
    """Return the model's reply; works inside a running event loop as well as outside one."""
    return run_sync(await_in_turn(lambda: model.complete(prompt)))


def stream(model: LanguageModel, prompt: Prompt) -> Iterator[str]:
    """Yield the model's reply in pieces, as they are written where its server streams; else whole.

    The call is made in a thread of its own; it ends when the consumer stops before the reply does. Raises as
    `complete` does, after the pieces that came before.
    """
    given: SimpleQueue[str | BaseException | None] = SimpleQueue()
    token = CancelToken()

    def ask() -> None:
        reply = StreamedReply(given.put)
        try:
            with token.scope():
                reply.end(complete(model, replace(prompt, pieces=reply)).text)
            given.put(None)
        except BaseException as error:  # the consumer's to see
            given.put(error)

    thread = threading.Thread(target=copy_context().run, args=(ask,), name="almanaq-reply")
    thread.start()
    try:
        while (piece := given.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            yield piece
    finally:
        token.cancel()
        thread.join()


def json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object of a reply, as replies about texts are read; None when there is none to read."""
    try:
        return parse_object(text)
    except MalformedReply:
        return None


_AGAIN = "\n\n(The reply began anew; the whole of it:)\n\n"


class StreamedReply:
    """Gives the text of a reply piece by piece, without white space around it.

    A repeated call continues where the first one broke off, as long as it says the same.
    """

    def __init__(self, give: Callable[[str], None]) -> None:
        self._give, self._shown = give, ""

    def show(self, text: str) -> None:
        """Give what is new of a text that may go on."""
        text = text.strip()
        if len(text) > len(self._shown) and text.startswith(self._shown):
            self._give(text[len(self._shown) :])
            self._shown = text

    def end(self, text: str) -> None:
        """The whole reply is there, also where nothing of it was streamed."""
        text = text.strip()
        if text.startswith(self._shown):
            self.show(text)
        else:
            self._give(_AGAIN + text)
