"""The tokens of a question with every span that was recognized: worked out once a turn, whoever asks."""

from __future__ import annotations

from almanaq.agent.local.once import once
from almanaq.agent.local.recognize.spans import Span, recognize
from almanaq.agent.local.recognize.tokens import Token, tokenize
from almanaq.agent.local.recognize.vocabulary import Vocabulary


@once
def heard(question: str, vocabulary: Vocabulary) -> tuple[tuple[Token, ...], list[Span]]:
    """Return the tokens of a question and all spans of them."""
    tokens = tokenize(question)
    return tokens, recognize(tokens, vocabulary, question, vocabulary.index.today())
