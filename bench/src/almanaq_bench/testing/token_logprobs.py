"""The log probabilities that a stand-in server tells of the tokens of a reply."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

Alternatives = Mapping[str, float]


def tokens_of(text: str, probabilities: Mapping[str, float]) -> list[dict[str, object]]:
    """Return the tokens of a JSON reply in the protocol's form; its `value` has these probabilities of verdicts.

    The quotation mark and the word are tokens of their own, as most tokenizers have it.
    """
    return [_token_record(token, alternatives) for token, alternatives in _tokens(text, probabilities)]


def _tokens(text: str, probabilities: Mapping[str, float]) -> Iterator[tuple[str, Alternatives]]:
    begun = re.search(r'"value":\s*', text)
    if begun is None:
        yield text, {text: 1.0}
        return
    total = sum(chance for verdict, chance in probabilities.items() if verdict != "null")
    yield text[: begun.end()], {text[: begun.end()]: 1.0}
    rest = text[begun.end() :]
    first = '"' if rest.startswith('"') else "null"
    yield first, {'"': total, "null": probabilities.get("null", 0.0)}
    rest = rest.removeprefix(first)
    if first == '"':
        word = rest.partition('"')[0]
        yield word, {verdict: chance / total for verdict, chance in probabilities.items() if verdict != "null"}
        rest = rest.removeprefix(word)
    yield rest, {rest: 1.0}


def _token_record(token: str, alternatives: Alternatives) -> dict[str, object]:
    top = [{"token": other, "logprob": _log(chance)} for other, chance in alternatives.items()]
    return {"token": token, "logprob": _log(alternatives.get(token, 0.0)), "top_logprobs": top}


def _log(chance: float) -> float:
    return math.log(chance) if chance > 0 else -9999.0
