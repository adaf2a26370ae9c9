"""Every span that is recognized in a question; worked out once a turn, whoever asks."""

from __future__ import annotations

from datetime import date

from almanaq.agent.local_old.once_a_turn import once_a_turn
from almanaq.agent.local_old.recognize import amounts, names
from almanaq.agent.local_old.recognize.spans import Span
from almanaq.agent.local_old.recognize.tokens import Token, tokenize
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary

_RECOGNIZERS = (
    *(
        names.named,
        names.values,
        amounts.phrases,
        amounts.numbers,
        amounts.apart,
        amounts.superlatives,
        amounts.chosen,
        amounts.in_units,
        amounts.sorting,
        names.verbs,
        names.asked_for,
        names.lone,
        names.other_forms,
        names.glossed,
    ),
)
_NAMING = "CRVN?"
"""Kinds of spans that may be made of a name: what stands in quotation marks is no word of the question."""


def _is_of_amount(span: Span, tokens: tuple[Token, ...], vocabulary: Vocabulary) -> bool:
    """Return whether "amount of" or "total amount of" may speak of a column called so."""
    said = {token.text.casefold() for token in tokens[span.first : span.last]}
    return "amount" in said and any(quality == 1 for _, quality in vocabulary.columns_named(("amount",)))


@once_a_turn
def heard(question: str, vocabulary: Vocabulary) -> tuple[tuple[Token, ...], list[Span]]:
    """Return the tokens of a question and all spans of them."""
    tokens = tokenize(question)
    return tokens, recognize(tokens, vocabulary, question, vocabulary.index.today())


def recognize(tokens: tuple[Token, ...], vocabulary: Vocabulary, question: str, today: date) -> list[Span]:
    """Return every span of a question."""
    spans = [span for recognizer in _RECOGNIZERS for span in recognizer(tokens, vocabulary)]
    spans += amounts.ordinals(tokens, spans)
    spans = [span for span in spans if not (span.kind in "AH" and _is_of_amount(span, tokens, vocabulary))]
    quoted = names.quoted(tokens)
    spelled = [span for span in spans if span.kind in _NAMING or quoted.isdisjoint(range(span.first, span.last))]
    strange = [Span(i, i + 1, "?", tokens[i].text, -1.0) for i in sorted(quoted)]
    written = (*amounts.days(tokens, question, today), *names.holdings(tokens, vocabulary, question))
    return [*spelled, *strange, *written]
