"""Which words of a question were taken for a column that is not called so."""

from __future__ import annotations

from collections.abc import Sequence

from almanaq.agent.local_old.recognize.spans import HOW, Span
from almanaq.agent.local_old.recognize.tokens import Token
from almanaq.agent.local_old.recognize.words import words
from almanaq.agent.local_old.schema_index import Place
from almanaq.agent.local_old.spoken import also_called
from almanaq.agent.local_old.words import identifier_stems, stems


def readings(tokens: Sequence[Token], spans: Sequence[Span], used: Sequence[Place]) -> tuple[str, ...]:
    """Return a sentence for each column that a question calls by other words than its name or description."""
    found = []
    for span in spans:
        places = [place for place, _ in span.data if place in used] if span.kind == "C" and span.said != HOW else []
        inside = [token for token in tokens[span.first : span.last] if token.folded not in ("of", "the")]
        if places and not any(_is_called(token.stem, place) for token in inside for place in places):
            written = " ".join(token.text for token in tokens[span.first : span.last])
            found.append(f"I took “{written}” for the column {places[0].column.name}.")
    return tuple(dict.fromkeys(found))


def _is_called(word: str, place: Place) -> bool:
    """Return whether a word is one of a column's name or description, whole, shortened or in one piece with others."""
    own = {*identifier_stems(place.column.name), *place.stems, *stems(place.column.description)}
    own |= {part for name in also_called(place.column.description) for part in name}
    own |= {part for name in own for part in words().compounds.get(name, ())}
    whole = "".join(identifier_stems(place.column.name))
    known = words().abbreviations
    return word in whole or any(_shares(word, part) or _shares(word, known.get(part, part)) for part in own)


def _shares(word: str, part: str) -> bool:
    """Return whether two words begin alike, as forms of one word and abbreviations do."""
    return word.startswith(part[:3]) or part.startswith(word[:3])
