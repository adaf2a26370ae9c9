"""Recognizers of names: of columns and relations, of values, of verbs that speak of them; and of all other words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from almanaq.agent.local_old.recognize.called import HEADED, OWN
from almanaq.agent.local_old.recognize.spans import COMPUTED, Span
from almanaq.agent.local_old.recognize.tokens import Token, runs
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.recognize.words import words
from almanaq.agent.local_old.schema_index import Meaning
from almanaq.agent.local_old.words import PAST

OTHER_FORM = -0.1
"""The score of a word that is only another form of a column's name, or of a value: anything else goes before."""
_LONGEST_NAME = 6
_ARTICLE_AND_NOUN = 2
_AGGREGATES = ("average", "mean", "avg", "total", "sum", "maximum", "minimum", "max", "min", "median", "number", "how")
_COMPUTING = 9
"""How many of them compute something: the rest count."""
_GENERIC = ("code", "score", "number", "value", "level", "rate", "figure", "amount", "id", "form")
"""Nouns that say nothing beside the name of a column: the "iata code"."""
_HEADS = ("status", "type", "category", "time", "group", "bracket")
"""Nouns that say nothing right after the name of a column: the "conservation status"."""
_JOINING = "or and not no but than".split()
"""Words that are no value where they stand in small letters: OR of Oregon."""
_DID = ("did", "does", "do")
_NONE = ("not", "don't", "doesn't", "without", "never")
_TIMED = "before after since until last first recently latest earliest".split()
_AFTER_COLUMNS = "in by per than above below over under ? .".split()
_AMOUNTS = "more less most least than average above below over under".split()
_BEFORE_ROWS = "on in by at for from to with".split()
"""Words that stand before rows and begin no part of a column's name: "freight on orders" is no `units_on_order`."""
_TELLING_VERBS = ("born", "aged")
"""Verbs that say in which column a value stands."""
_ASKING_FOR = {("used", "for"): ("use",), ("for", "a", "living"): ("occupation", "job", "profession", "work")}
"""Phrases at the end of a question that ask for a column, by the words of its name."""
_HOLDERS = ("table", "tables", "file", "files", "sheet", "dataset")
"""Nouns for what holds rows: a word before them is the name of rows, and no value."""
_ENDS = "?.,;!"
_ORDERS = "show list give find get display return report".split()
_MARKS = ('"', "“", "”", "`", "'")


def named(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize names of columns and relations; "date of birth" and "number of reviews" hold an "of"."""
    for first, last in runs(tokens, _LONGEST_NAME):
        inside = tokens[first:last]
        if len(inside) == 1 and words().phrases.get((inside[0].folded,), ("",))[0] in ("A", "extreme"):
            yield from _called_as_computed(tokens, first, vocabulary)
            continue
        if inside[0].folded in ("of", "the") or inside[-1].folded in ("of", "the"):
            continue
        counting = len(inside) > 2 and inside[1].folded == "of" and inside[0].folded in ("number", "numbers", "count")
        if counting and vocabulary.relations_named(tuple(t.stem for t in inside[2:])):
            continue
        stems = tuple(t.stem for t in inside if t.folded not in ("of", "the") or len(inside) < 3)
        if _is_deed_asked(tokens, first, last, vocabulary):
            continue
        if (
            not _is_of_rows(inside, vocabulary)
            and (column := _column(inside, stems, first, last, vocabulary)) is not None
        ):
            yield column
        relations = vocabulary.relations_named(stems) if not _is_order(tokens, first, last) else ()
        if relations:
            score = relations[0][1] * (last - first) + 0.08
            yield Span(first, last, "R", tuple(r for r, _ in relations), score, " ".join(stems))


def _is_of_rows(inside: Sequence[Token], vocabulary: Vocabulary) -> bool:
    """Return whether words name rows and a column of theirs, "codes of the countries", and not a column called so."""
    at = next((i for i, token in enumerate(inside) if token.folded == "of"), 0)
    rows = [t.stem for t in inside[at + 1 :] if t.folded != "the"] if at else []
    named = {relation.name for relation, quality in vocabulary.relations_named(tuple(rows)) if quality >= OWN}
    own = vocabulary.columns_named(tuple(token.stem for token in inside[:at])) if named else ()
    return any(place.relation.name in named and quality == 1 for place, quality in own)


def _is_order(tokens: Sequence[Token], first: int, last: int) -> bool:
    """Return whether a word begins a sentence and tells to show something: "show", though there is a table of shows."""
    before = tokens[first - 1].folded if first else "."
    return last - first == 1 and tokens[first].folded in _ORDERS and before in (*_ENDS, "please", "only")


def _is_deed_asked(tokens: Sequence[Token], first: int, last: int, vocabulary: Vocabulary) -> bool:
    """Return whether a word is the verb at the end of "what does it support", though rows and a column of theirs are
    called so.
    """
    token, ends = tokens[first], all(each.folded in _ENDS for each in tokens[last:])
    asked = last - first == 1 and ends and any(each.folded in _DID for each in tokens[:first])
    named = [relation.name for relation, _ in vocabulary.relations_named((token.stem,))] if asked else []
    own = vocabulary.columns_named((token.stem,)) if named else ()
    return token.folded == token.stem and any(p.relation.name in named and q == 1 for p, q in own)


def _column(
    inside: Sequence[Token], stems: tuple[str, ...], first: int, last: int, vocabulary: Vocabulary
) -> Span | None:
    """Return the span of a column that words name, unless they are rather words of the language."""
    columns = vocabulary.columns_named(stems)
    opening, alone = inside[0].folded, len(inside) == 1
    if not columns:
        return None
    place, best = columns[0]
    computed = opening in _AGGREGATES and not (len(columns) == 1 and stems[0] in place.stems and best > HEADED)
    if best < 1 and (
        computed or _is_before_rows(inside, vocabulary) or all(t.folded in words().silent for t in inside)
    ):
        return None
    if alone and best < OWN and is_verb(opening):
        near = [place for place, quality in columns if quality == best]
        if len(near) > 1 or near[0].kind == "text":
            return None  # "ordered" is no order_id
    whole = 0.05 * (best == 1.0) + 0.1 * (best < 1 and opening in _AGGREGATES)
    score = (best + whole) * (last - first) + 0.01 * (last - first > 1)
    return Span(first, last, "C", columns, score, COMPUTED if opening in _AGGREGATES[:_COMPUTING] and not alone else "")


def _is_before_rows(inside: Sequence[Token], vocabulary: Vocabulary) -> bool:
    """Return whether words are a preposition and rows that are named in the plural."""
    several = inside[-1].folded != inside[-1].stem
    return several and inside[0].folded in _BEFORE_ROWS and bool(vocabulary.relations_named((inside[-1].stem,)))


def _called_as_computed(tokens: Sequence[Token], at: int, vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize a column called as what computes: `median` of "the median in Austin"."""
    after = tokens[at + 1].folded if at + 1 < len(tokens) else "?"
    named = [(p, q) for p, q in vocabulary.columns_named((tokens[at].stem,)) if q == 1 and p.kind == "number"]
    if named and after in _AFTER_COLUMNS:
        yield Span(at, at + 1, "C", tuple(named), 1.0)


def values(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    silent = words().silent
    for first, last in runs(tokens, _LONGEST_NAME + 2):
        inside = tokens[first:last]
        if all(t.folded in silent or t.number is not None for t in inside) and not _proper(inside, first):
            continue
        if len(inside) == 1 and (inside[0].text in _JOINING or _joins(inside[0])):
            continue
        if last < len(tokens) and tokens[last].folded in _HOLDERS and inside[-1].text.islower():
            continue  # "the medication table"
        if not (inside[0].folded[:1].isalnum() and inside[-1].folded[-1:].isalnum()):
            continue
        text = " ".join(t.text for t in inside)
        if inside[0].text == "the" and _is_whole(inside[-1], vocabulary) and len(inside) == _ARTICLE_AND_NOUN:
            continue  # the finale of a column called so is not the episode "The Finale"
        meant = vocabulary.values_named(text, tuple(t.stem for t in inside if t.folded[:1].isalnum()))
        if meant:
            best = max(quality for _, quality in meant)
            meanings = tuple(m for m, quality in meant if quality == best)
            beside = 0.12 * _is_kind_of_rows(meanings, tokens[last : last + 1], vocabulary)
            yield Span(first, last, "V", meanings, best * (last - first) + 0.1 * (last - first > 1) + beside)


def _is_kind_of_rows(meanings: Sequence[Meaning], after: Sequence[Token], vocabulary: Vocabulary) -> bool:
    """Return whether a value stands before the rows of which it says what kind they are: "reference stations"."""
    rows = [relation for token in after for relation, _ in vocabulary.relations_named((token.stem,))]
    several = all(token.folded != token.stem for token in after)
    return several and any(m[0].relation in rows and vocabulary.is_kind(m[0]) for m in meanings)


def _joins(token: Token) -> bool:
    """Return whether a word in small letters joins or denies others: "by" is no domain of a country."""
    return token.text.islower() and words().phrases.get((token.folded,), ("",))[0] in ("B", "&", "X")


def _proper(inside: Sequence[Token], first: int) -> bool:
    """Return whether words stand as a name does: in capitals, or capitalised within the question."""
    return (
        all(t.text[:1].isupper() for t in inside) and (first > 0 or inside[0].text.isupper()) and inside[0].text != "I"
    )


def quoted(tokens: Sequence[Token]) -> frozenset[int]:
    """Return the tokens that stand as names do, whatever they mean as words: in quotation marks, in
    capitals, or last: "set ALL", "duel deck a?"."""
    shouted = all(t.text.isupper() for t in tokens if len(t.text) > 1 and t.text.isalpha())
    marked = {i for i, t in enumerate(tokens) if len(t.text) > 1 and t.text.isupper() and not shouted}
    marks = [i for i, t in enumerate(tokens) if t.text in _MARKS]
    for first, last in zip(marks[::2], marks[1::2], strict=False):
        marked |= set(range(first + 1, last))
    marked |= {i for i, t in enumerate(tokens[:-1]) if t.text == "a" and tokens[i + 1].text in _ENDS}
    return frozenset(i for i in marked if tokens[i].folded[:1].isalnum() and tokens[i].text != "I")


def holdings(tokens: Sequence[Token], vocabulary: Vocabulary, question: str) -> Iterator[Span]:
    """Recognize what a text is to hold: "with Batman in the title", "names that start with S"."""
    for pattern, form in words().holdings:
        for match in pattern.finditer(question):
            column = [
                i for i, t in enumerate(tokens) if match.start("column") <= t.start and t.end <= match.end("column")
            ]
            inside = [i for i, t in enumerate(tokens) if match.start() <= t.start and t.end <= match.end()]
            if column and (longer := _longer_name(tokens, column, vocabulary)):
                column, inside = longer, [*longer[: -len(column)], *inside]
            named = vocabulary.columns_named(tuple(tokens[i].stem for i in column)) if column else ()
            text = match["text"].strip(" \"'“”‘’`?.")
            if named and text:
                yield Span(inside[0], inside[-1] + 1, "L", (form, text, named), 1.2 * len(inside))


def _longer_name(tokens: Sequence[Token], column: Sequence[int], vocabulary: Vocabulary) -> list[int]:
    """Return the tokens of a column's whole name, where words before those found are a part of it: "product types"."""
    for more in (2, 1):
        wide = list(range(column[0] - more, column[-1] + 1))
        stems = tuple(tokens[i].stem for i in wide) if wide[0] >= 0 else ()
        if stems and any(quality == 1 for _, quality in vocabulary.columns_named(stems)):
            return wide
    return []


def asked_for(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize "used for" as the column of what things are used for, "for a living" as that of somebody's work; where
    no column says it, nobody knows what "for a living" asks, while "used for" may go on: "used for trips".
    """
    for phrase, names in _ASKING_FOR.items():
        named = [each for name in names for each in vocabulary.columns_named((name,)) if each[1] == 1]
        for first in range(len(tokens) - len(phrase) + 1):
            last = first + len(phrase)
            if tuple(token.folded for token in tokens[first:last]) == phrase and (named or phrase[-1] != "for"):
                kind, data = ("C", tuple(named[:1])) if named else ("?", " ".join(phrase))
                yield Span(first, last, kind, data, 1.2 * len(phrase))


def _is_timed(near: Sequence[Token]) -> bool:
    """Return whether the words after a verb tell when: "hired last", "joined before 2020", "born in May"."""
    if not near:
        return False
    first, second = near[0].folded, near[1].folded if len(near) > 1 else ""
    digits = len(near) > 1 and (near[1].number is not None or near[1].text[:1].isupper())
    return (
        first in _TIMED
        or (first in ("in", "on", "from", "between") and digits)
        or (first, second) == ("most", "recently")
    )


def verbs(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize verbs that speak of a column: "earns", "was hired in"."""
    for i, token in enumerate(tokens):
        near = tokens[i + 1 : i + 4]
        timed = _is_timed(near) or tokens[0].folded == "when"
        echoed = vocabulary.verbs.echoed(token.folded) if _is_asked(tokens, i) and not is_verb(token.folded) else ()
        if echoed:
            yield Span(i, i + 1, "C", echoed, 0.93, token.folded)
        if token.folded == "born" and tokens[0].folded == "where":
            yield from (Span(i, i + 1, "C", ((p, OWN),), 0.95, "born") for p in vocabulary.verbs.told_birth())
        places = vocabulary.verbs.spoken_by_verb(token.folded, timed=timed)
        if places and (timed or any(t.number is not None or t.folded in _AMOUNTS for t in near)):
            yield Span(i, i + 1, "C", places, 0.95, token.folded)


def _is_asked(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a word may be the verb of a question: after "did" or "does", or before "for"."""
    if any(token.folded == "for" for token in tokens[at + 1 : at + 2]):
        return True
    before = [token.folded for token in tokens[:at]]
    return "often" not in before and any(word in ("did", "does", "do") for word in before)


def lone(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    """Yield each token by itself: a silent word, a verb of a relation's root, or one that nothing is known of."""
    for i, token in enumerate(tokens):
        if token.folded == "or":
            yield Span(i, i + 1, "|", None, 0.3)
        elif token.folded in words().silent or not token.folded[:1].isalnum():
            yield Span(i, i + 1, "w", token.folded, 0.3)
        elif _is_anybody(tokens, i, vocabulary):
            yield Span(i, i + 1, "w", token.folded, 1.2)
        elif _says_nothing(tokens, i, vocabulary):
            yield Span(i, i + 1, "w", token.folded, 0.1)
        elif token.folded in words().telling:
            yield Span(i, i + 1, "?", token.text, -1.0)
        elif kin := vocabulary.verbs.kin(token.folded, asked=_is_asked(tokens, i)):
            yield Span(i, i + 1, "r", kin, 0.0, token.folded)
        elif is_verb(token.folded) or token.folded in words().linking or token.folded in _TELLING_VERBS:
            yield Span(i, i + 1, "v", token.text, -0.9)
        else:
            yield Span(i, i + 1, "?", token.text, -1.0)


def _is_anybody(tokens: Sequence[Token], at: int, vocabulary: Vocabulary) -> bool:
    """Return whether people are just whoever there is: "where people speak Dutch", "the percentage of people"."""
    before = tuple(token.folded for token in tokens[max(at - 2, 0) : at])
    if tokens[at].folded != "people" or not before:
        return False
    of = before[-1] == "of" and len(before) > 1 and vocabulary.columns_named((tokens[at - 2].stem,))
    numbers = bool(of) and all(place.kind == "number" for place, quality in of or () if quality >= OWN)
    return numbers or before[-1] == "where" or before in (("in", "which"), ("for", "which"))


def _says_nothing(tokens: Sequence[Token], at: int, vocabulary: Vocabulary) -> bool:
    """Return whether a word says nothing more beside the one before it, or those before it."""
    word, before = tokens[at].folded, tokens[:at]
    return (
        word in _GENERIC
        or (word == "date" and at > 0 and _is_dated(before[-1], vocabulary))
        or (word in _HEADS and at > 0 and _is_whole(before[-1], vocabulary))
        or (word == "single" and any(t.folded in _NONE or _is_superlative(t) for t in before))
        or (word in words().doing and any(t.folded in _DID for t in before))
    )


def other_forms(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize single words of which nothing else is known as other forms of a column's name, or of a value."""
    for i, token in enumerate(tokens):
        if token.folded in words().silent or token.folded in words().telling or (token.folded,) in words().phrases:
            continue
        extreme = i > 0 and _is_superlative(tokens[i - 1])  # "least dense" ranks rows
        if codes := vocabulary.forms.values(token.folded) or vocabulary.forms.codes(token.folded):
            yield Span(i, i + 1, "V", codes, OTHER_FORM)
        elif not extreme and not is_verb(token.folded) and (akin := vocabulary.forms.columns(token.folded)):
            yield Span(i, i + 1, "C", akin, OTHER_FORM)


def glossed(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize unknown words that the parentheses after them put in the table's own: "from Hawaii (HI)", "rushing
    yards (ryds)".
    """
    for i, token in enumerate(tokens[1:], 1):
        last = next((j for j in range(i + 1, min(i + 5, len(tokens))) if tokens[j].text == ")"), 0)
        inside = tokens[i + 1 : last] if token.text == "(" else ()
        if not inside or not _is_own(inside, vocabulary) or not _is_strange(tokens[i - 1], vocabulary):
            continue
        yield Span(i - 1, i, "w", "", 0.0)
        before = tokens[i - 2] if i > 1 else token
        plain = before.folded not in words().silent and (before.folded,) not in words().phrases
        if plain and before.text.islower() and not vocabulary.columns_named((before.stem,)):
            yield Span(i - 2, i - 1, "w", "", 1.1)


def _is_own(inside: Sequence[Token], vocabulary: Vocabulary) -> bool:
    """Return whether words are a column's name, or a value as it is written."""
    stems = tuple(token.stem for token in inside)
    text = " ".join(token.text for token in inside)
    whole = any(quality == 1 for _, quality in vocabulary.columns_named(stems))
    return whole or any(value == text for (_, value), _ in vocabulary.values_named(text, stems))


def _is_strange(token: Token, vocabulary: Vocabulary) -> bool:
    """Return whether nothing is known of a word."""
    known = token.folded in words().silent or (token.folded,) in words().phrases
    named = vocabulary.columns_named((token.stem,)) or vocabulary.relations_named((token.stem,))
    return not (known or named or vocabulary.values_named(token.text, (token.stem,)))


def _is_superlative(token: Token) -> bool:
    measured = token.folded.endswith("est") and words().measured(token.folded)
    return bool(measured) or words().phrases.get((token.folded,), ("",))[0] == "extreme"


def _is_whole(token: Token, vocabulary: Vocabulary) -> bool:
    """Return whether a word by itself is the name of a column."""
    return any(quality >= OWN for _, quality in vocabulary.columns_named((token.stem,)))


def _is_dated(token: Token, vocabulary: Vocabulary) -> bool:
    """Return whether a word by itself is the name of a column of dates."""
    return any(quality >= OWN and p.kind == "date" for p, quality in vocabulary.columns_named((token.stem,)))


def is_verb(word: str) -> bool:
    """Guess whether a word is a verb in the past: "placed", "sold"."""
    return word in PAST or (len(word) > 4 and word.endswith("ed"))
