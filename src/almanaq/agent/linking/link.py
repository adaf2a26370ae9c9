"""link: a question → spans with what they may mean in a catalog, and the covers that use every word once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from almanaq.agent.linking.amounts import averages, comparisons, numbers, orders, periods, superlatives
from almanaq.agent.linking.columns import LinkedColumn, relation_words
from almanaq.agent.linking.english import SHORTEST_CORRECTED, SPELLED, english, share_root
from almanaq.agent.linking.index import LONGEST_VALUE, CatalogIndex, Named, ValueMeaning
from almanaq.agent.linking.spans import Kind, Span, best_covers
from almanaq.agent.linking.words import Token, fold, is_plural, stem, stems, tokenize, value_key
from almanaq.text.words import edit_distance

_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|(?<!\w)['‘]([^'’]+)['’](?!\w)")
_NOT_ALONE = frozenset("name value number type code date time day year month id amount total level list".split())
_PHRASE_SCORES = {"silent": 0.5, "and": 0.9, "by": 0.95, "not": 0.95, "part": 0.55, "distinct": 0.9, "direction": 1.0}
_BESIDE = 0.13
_OPPOSITE = ("in", "un", "non", "dis", "ir", "im")
_TERM = 1.16
"""How much more a word means what somebody defined than a column or relation of its name."""
_CALLED = 1.2
"""How much more a word means a value beside the name of its column than what it does in questions."""
_LOOSE = 300
"""Values of a list column beyond which its items may be any words."""
_SILENT, _HAVING, _UNKNOWN, _ROWS = 0.4, 0.35, 0.05, 0.75
_PADDING = frozenset(("figure", "number", "code", "value", "field", "column"))
_PADDING_OF = {
    "number": frozenset("score speed level amount content reading result time class group".split()),
    "date": frozenset(("date", "day", "time")),
    "text": frozenset(("status", "type", "category", "name", "class", "group", "color", "colour")),
}
"""What may be said after the name of a column, and adds nothing: of all columns, and of those of a kind."""
_KIND = re.compile(r"(?i:full|whole|entire|own|same|here|now)\b(?! (?i:list|table|data|details|info|name))")
"""Silent words that may be values: "full members", but not "the full list"."""
_COUNTING = frozenset(("many", "of", "all", "the"))
_WHICH = frozenset("which what list show all the many every each give find any of".split())


@dataclass(frozen=True, slots=True)
class Holding:
    """What a text is to hold: `form` is a pattern with X for the text ("%X%", "X%"), `columns` where it may be."""

    columns: tuple[Named, ...]
    form: str
    text: str


@dataclass(frozen=True, slots=True)
class Links:
    """What the words of a question may mean.

    Attributes:
        spans: every meaning of every run of words; `covers` the best ways to use each word once, the best first.
    """

    question: str
    tokens: tuple[Token, ...]
    spans: tuple[Span, ...]
    covers: tuple[tuple[Span, ...], ...]

    def text(self, span: Span) -> str:
        """Return the words of a span as they are written."""
        return self.question[self.tokens[span.first].start : self.tokens[span.last - 1].end]

    @property
    def unknown(self) -> tuple[str, ...]:
        """The words of the best cover that mean nothing here."""
        return tuple(self.text(span) for span in self.covers[0] if span.kind == "unknown") if self.covers else ()


def link(question: str, index: CatalogIndex) -> Links:
    """Return what the words of a question mean in a catalog.

    >>> from almanaq.suql.catalog.relations import Catalog, Column, Relation
    >>> dogs = Relation("dogs", ("dogs",), (Column("name", "text"), Column("age", "integer")))
    >>> index = CatalogIndex(Catalog((dogs,)), lambda relation, column, limit: ["Rex", "Bella"])
    >>> [(span.kind, span.first, span.last) for span in link("how old is Bella", index).covers[0]]
    [('column', 0, 2), ('silent', 2, 3), ('value', 3, 4)]
    """
    tokens = tokenize(question)
    links = _link(tokens, question, index)
    corrected = _correct(links, index)
    return links if corrected is None else _link(corrected, question, index, tokens)


def _correct(links: Links, index: CatalogIndex) -> tuple[Token, ...] | None:
    """Return the tokens with misspelt words of English put right ("avrage"); None where there are none."""
    unknown = {span.first for span in links.covers[0] if span.kind == "unknown"} if links.covers else set()
    corrected = list(links.tokens)
    for i in unknown:
        word = links.tokens[i].folded
        if not word.isalpha() or len(word) < SHORTEST_CORRECTED or english().is_common(word):
            continue
        near = [known for known in english().vocabulary if known[0] == word[0] and edit_distance(word, known, 1) == 1]
        if len(near) == 1 and index.nearest_name(word) is None:
            corrected[i] = replace(corrected[i], folded=near[0], stem=stem(near[0]))
    return tuple(corrected) if corrected != list(links.tokens) else None


def _link(
    tokens: tuple[Token, ...], question: str, index: CatalogIndex, written: tuple[Token, ...] | None = None
) -> Links:
    """Link tokens; those that are not as `written` mark what comes of them."""
    found = [*_phrases(tokens, index), *numbers(tokens), *comparisons(tokens), *superlatives(tokens), *averages(tokens)]
    found += [*orders(tokens), *periods(tokens, question, index.today())]
    found += _names(tokens, index)
    found += _values(tokens, question, index)
    found += _price_signs(tokens, index)
    found += _quoted(tokens, question, index)
    found += _holdings(tokens, question, index)
    covers = best_covers([*found, *_silent_or_unknown(tokens)], len(tokens), 1)
    unsaid = [span for span in covers[0] if span.kind == "unknown" or span.how == "verb"] if covers else []
    if unsaid:
        found += _other_forms(tokens, question, index, [span for span in unsaid if span.kind == "unknown"])
    found += _row_nouns(tokens)
    for i in [i for i, token in enumerate(written or ()) if token != tokens[i]]:
        how = f"misspelt:{tokens[i].folded}"
        found = [replace(s, how=s.how or how) if s.first <= i < s.last else s for s in found]
    spans = (*found, *_silent_or_unknown(tokens))
    return Links(question, tokens, spans, tuple(best_covers(spans, len(tokens))))


def _silent_or_unknown(tokens: Sequence[Token]) -> Iterator[Span]:
    known = english()
    for i, token in enumerate(tokens):
        article = token.text != "A" or not i  # "berth A"
        noun = is_plural(token) and (not i or tokens[i - 1].folded in _COUNTING)  # "how many stocks"
        verb = "verb" if token.folded in known.verbs_of_having and not noun else ""
        if (token.folded in known.silent and article and token.text != "US") or not token.is_word:
            yield Span(i, i + 1, "silent", (), _SILENT, verb)
        elif verb:
            yield Span(i, i + 1, "silent", (), _HAVING, verb)
        else:
            yield Span(i, i + 1, "unknown", (), _UNKNOWN)


def _row_nouns(tokens: Sequence[Token]) -> Iterator[Span]:
    """Yield the words that mean the rows of any table, as "records" does, where they are no verb."""
    for i, token in enumerate(tokens):
        if is_plural(token) and token.stem in english().row_nouns and token.folded in english().silent:
            yield Span(i, i + 1, "noun", (), _ROWS, "row")


def _phrases(tokens: Sequence[Token], index: CatalogIndex) -> Iterator[Span]:
    """Yield what the phrases of English do."""
    known = english()
    for first in range(len(tokens)):
        for last in range(first + 1, min(first + known.longest, len(tokens)) + 1):
            kind, detail = known.phrases.get(tuple(t.folded for t in tokens[first:last]), ("", ""))
            if kind in ("", "operator", "after", "average", "superlative", "extreme"):
                continue
            if kind == "count" and not _counts(tokens, first, index):
                continue
            if kind == "by" and first and tokens[first].folded == "every" and tokens[first - 1].folded in _WHICH:
                continue  # "list every boat"
            after = tuple(token.stem for token in tokens[last : last + 1])
            if kind == "distinct" and last - first > 1 and index.relations_named(after):
                if index.columns_named((tokens[first].stem,)) or index.columns_like(tokens[first].stem):
                    continue  # what kinds of jobs there are, a column of their kind says
            if kind == "share" and first and tokens[first - 1].folded in ("highest", "lowest", "average", "largest"):
                continue
            each = _PHRASE_SCORES.get(kind, 1.0)
            meaning = {"count": "COUNT"}.get(kind, detail)
            made: Kind = kind  # type: ignore[assignment]
            yield Span(first, last, made, (meaning,), each * (last - first) + 0.06 * (last - first > 1))


def _counts(tokens: Sequence[Token], at: int, index: CatalogIndex) -> bool:
    """Return whether "number of" counts: not where "number" belongs to a column, as in "phone number of"."""
    word = tokens[at].folded
    if word == "amount" and index.columns_named(("amount",)):
        return False
    if word not in ("number", "numbers", "count", "amount") or not at:
        return True
    before = tokens[at - 1]
    if before.folded in english().silent or before.folded in ("total", "by", "per", "average"):
        return True
    return not index.columns_named((before.stem, tokens[at].stem)) and not index.columns_named((before.stem,))


def _names(tokens: Sequence[Token], index: CatalogIndex) -> Iterator[Span]:
    """Yield the terms, relations and columns that runs of words name."""
    known = english()
    for first, token in enumerate(tokens):
        if not token.is_word:
            continue
        words: list[str] = []
        last = first
        while last < len(tokens) and len(words) < index.longest_name + 1:
            if tokens[last].is_word:
                words.append(tokens[last].stem)
            elif tokens[last].text not in "-_/.()#" or last == first:
                break
            last += 1
            if not tokens[last - 1].is_word:
                continue
            key, size = tuple(words), last - first
            joined = ("".join(words),) if 1 < len(words) < 4 else key
            silent = all(t.folded in known.silent or not t.is_word for t in tokens[first:last])
            if terms := index.terms_named(key):
                yield Span(first, last, "term", tuple(terms), _TERM * size)
            tables = index.relations_named(key) or index.relations_named(joined)
            opens = not first or tokens[first - 1].text in ".?!" or tokens[first - 1].folded == "please"
            verb = opens and bool(tables) and not tables[0].how and not is_plural(token)
            verb = verb or tokens[first].folded in ("it", "us", "in")
            if tables and not (silent and verb):  # "list the owners", beside a `price_list`
                best = max(named.sureness for named in tables)
                meant = tuple(named.thing for named in tables if named.sureness > best - 0.2)
                yield Span(first, last, "table", meant, best * size, tables[0].how)
            named = index.columns_named(key)
            if first and len(key) > 2 and key[1] in ("of", "for"):
                whole = index.columns_named((tokens[first - 1].stem, key[0]))
                named = [] if whole and not whole[0].how else named  # "template ids for documents"
            if joined != key and (not named or named[0].how == "part"):
                named = [n for n in index.columns_named(joined) if n.how != "part"] or named
            if not named or (silent and named[0].sureness < 0.95):
                continue
            if silent and key[0] in ("a", "i", "to", "no", "in", "is", "as", "it"):
                continue
            if key == ("no",) and (not first or tokens[first - 1].folded != "the"):
                continue  # "no open orders" are none, though a column is called `order_no`
            if last < len(tokens) and (said := tokens[last].stem) in _padding_of(named[0]):
                alone = [n for n in index.columns_named((said,)) if n.how != "part"]
                padded = index.columns_named((*key, said)) or alone
                last, size = (last, size) if padded else (last + 1, size + 1)  # "the carrier code" is the carrier
            best = named[0].sureness + _BESIDE * (best_fits(named[0], tokens, first))
            close = tuple(each for each in named if each.sureness > named[0].sureness - 0.3)
            weight = best * size * (0.99 if not silent else 0.7)
            yield Span(first, last, "column", close, weight, named[0].how)
    yield from _measures(tokens, index)


def _padding_of(named: Named) -> frozenset[str]:
    """Return the words that may follow what names a column, and add nothing to it."""
    of_kind = _PADDING_OF.get(getattr(named.thing, "kind", ""), frozenset())
    return of_kind if named.how == "part" else _PADDING | of_kind


def best_fits(named: Named, tokens: Sequence[Token], first: int) -> bool:
    """Return whether a column goes before what else has its name: after "total", or where it says yes or no."""
    column = named.thing
    if not isinstance(column, LinkedColumn) or named.sureness < 0.9:
        return False
    kind = english().phrases.get((tokens[first - 1].folded,), ("",))[0] if first else ""
    return column.kind == "boolean" or (column.is_measurable and kind in ("aggregate", "extreme"))


def _measures(tokens: Sequence[Token], index: CatalogIndex) -> Iterator[Span]:
    """Yield the columns that "how tall" and "how much does it cost" ask for."""
    known = english()
    for i, token in enumerate(tokens[:-1]):
        if token.folded != "how" or tokens[i + 1].folded not in known.measures:
            continue
        measured = known.measures[tokens[i + 1].folded]
        found = index.measured_by(measured, index.columns)
        named = tuple(Named(column, 0.95 - 0.05 * k) for k, (column, _) in enumerate(found[:4]))
        if named:
            yield Span(i, i + 2, "column", named, 1.9, "asked")


def _values(tokens: Sequence[Token], question: str, index: CatalogIndex) -> Iterator[Span]:
    """Yield the values that runs of words spell."""
    for first, token in enumerate(tokens):
        if not token.is_word:
            continue
        most = max(index.longest_from(token.folded), index.longest_from(token.stem))
        if not most:
            continue
        words = 0
        for last in range(first + 1, min(first + 2 * LONGEST_VALUE, len(tokens)) + 1):
            words += tokens[last - 1].is_word
            if words > most:
                break
            mark = tokens[last - 1]
            if not mark.is_word and mark.text not in ")'.!+-#*" and mark.folded != "'s":  # "Men's"
                continue
            text = question[token.start : tokens[last - 1].end]
            inside = [t for t in tokens[first:last] if t.is_word]
            functional = all(_is_function_word(t) and not _KIND.match(question, t.start) for t in inside)
            around = (*tokens[max(first - 1, 0) : first], *tokens[last : last + 1])
            beside = {t.stem for t in around if not is_plural(t)}
            spelled = signed_alike(index.values_spelled(text), question, token.start, tokens[last - 1].end)
            before = tokens[first - 1].stem if first else ""  # "deck a"
            written = [m for m in spelled if m.value == text or (len(text) == 1 and m.column.words[-1] == before)]
            digits = all(t.folded.isdigit() for t in inside)
            called = [m for m in written if functional and m.column.words[-1] in beside]
            called += [m for m in written if digits and m.column.words[-1] == before]  # "family 166", a text
            if called:  # "the First team", whose column is called so, is not the one that is first
                yield Span(first, last, "value", tuple(called), _CALLED * (last - first))
                continue
            found = [m for m in spelled if _may_mean(m, text, functional, inside)]
            if found:
                exact = any(m.value == text for m in found)
                score = (1.0 + 0.05 * exact + 0.1 * (len(inside) > 1)) * (last - first)
                spoken = [t for t in inside if t.folded not in english().silent]
                lower = len(spoken) == 1 and not exact and all(t.text.islower() for t in inside)
                if digits:
                    score = 0.88 * (last - first)
                elif lower and all(is_name(m) or (m.how == "item" and not m.column.is_category) for m in found):
                    score *= 0.6
                elif all(m.how == "item" and m.column.distinct > _LOOSE for m in found):
                    score *= 0.8
                yield Span(
                    first, last, "value", tuple(found), score, "form" if all(m.how == "form" for m in found) else ""
                )
            elif not functional and last - first == len(inside):
                key = tuple(t.stem for t in inside)
                kinds = [m for m in index.values_of_stems(key) if _may_mean(m, text, functional, inside)]
                if kinds:
                    yield Span(first, last, "value", tuple(kinds), 0.96 * (last - first), "plural")


def signed_alike(
    meant: Sequence[ValueMeaning], said: str, first: int = 0, last: int | None = None
) -> list[ValueMeaning]:
    """Return the values that end in the signs that stand after a word: "B-" is no "B", and "C#" no "C++".

    Where none of them has signs, those said are none of a value; where each has some and none is said, all are meant.
    """
    signs = _signs(said[first:]) if last is None else _signs(said[first:last] + _signs(said[last:], opening=True))
    signed = [m for m in meant if _signs(m.value)]
    if not signed or (not signs and len(signed) == len(meant)):
        return [*meant]
    return [m for m in meant if _signs(m.value) == signs]


def _signs(text: str, *, opening: bool = False) -> str:
    """Return the signs at the end of a text; the `opening` ones where no word follows them at once."""
    match = re.match(r"([+#*-]*)(?!\w)", text) if opening else re.search(r"([+#*-]*)$", text)
    return match[1] if match else ""


def _price_signs(tokens: Sequence[Token], index: CatalogIndex) -> Iterator[Span]:
    """Yield the steps of a scale of prices that signs stand for: "$$" is the second."""
    scales = [column for columns in index.columns.values() for column in columns if column.scale]
    for i, token in enumerate(tokens):
        amount = any(other.text[0].isdigit() for other in tokens[max(i - 1, 0) : i + 2])
        found = tuple(ValueMeaning(c, c.scale[len(token.text) - 1]) for c in scales if len(token.text) <= len(c.scale))
        if set(token.text) == {"$"} and found and not amount:
            yield Span(i, i + 1, "value", found, 1.0)


def _is_function_word(token: Token) -> bool:
    """Return whether a word does something in questions: it is never a value by itself."""
    language = english()
    kind, _ = language.phrases.get((token.folded,), ("", ""))
    does = kind in (
        "aggregate",
        "count",
        "extreme",
        "superlative",
        "order",
        "by",
        "not",
        "share",
        "part",
        "distinct",
        "and",
    )
    measured = token.folded.endswith("est") and language.measured_by(token.folded) is not None
    return does or measured or token.folded in language.silent or token.folded in ("latest", "newest", "maximum")


def is_name(meaning: ValueMeaning) -> bool:
    """Return whether a value is the name of one row, which people write with a capital, rather than a kind."""
    kinds = len(meaning.column.relation.columns) <= 2  # a key and what it stands for
    return (meaning.column.names_rows and not kinds) or meaning.column.distinct > 1000


def _may_mean(meaning: ValueMeaning, text: str, functional: bool, inside: Sequence[Token]) -> bool:
    """Return whether words may mean a value: function words never do, a code only as it is written."""
    if functional:
        exact = meaning.value == text
        if not text[:1].isupper():
            return exact and len(inside) > 1 and meaning.column.is_category  # "on display"
        return (exact and (len(inside) > 1 or (meaning.column.is_category and inside[0].start > 0))) or (
            text.isupper() and len(text) > 1
        )
    value = meaning.value
    coded = len(value) <= 3 and value.isupper() and value != text and not meaning.how
    if len(inside) == 1 and coded and not meaning.column.is_category:
        return False
    if len(inside) == 1 and inside[0].folded.isdigit():
        return value == text and (len(value) > 4 or meaning.column.is_category)
    return True


def _quoted(tokens: Sequence[Token], question: str, index: CatalogIndex) -> Iterator[Span]:
    """Yield what stands in quotation marks: a value, or the part of one."""
    for match in _QUOTED.finditer(question):
        inside = [i for i, t in enumerate(tokens) if match.start() <= t.start and t.end <= match.end()]
        text = next(filter(None, match.groups()))
        found = signed_alike(index.values_spelled(text), text)
        how = ""
        if not found:
            found, how = index.values_holding(tuple(value_key(text).split())), "part"
            found = [ValueMeaning(m.column, m.value, "part") for m in found[:200]]
        if inside and found:
            yield Span(inside[0], inside[-1] + 1, "value", tuple(found), 1.3 * len(inside), how)


def _holdings(tokens: Sequence[Token], question: str, index: CatalogIndex) -> Iterator[Span]:
    """Yield what a text is to hold, as "names that start with S" says."""
    for pattern, form in english().holdings:
        for match in pattern.finditer(question):
            # What prose is said to say is asked of a reader.
            kinds = ("text",) if "said" in match.groupdict() else ("text", "prose")
            named = index.columns_named(stems(match["column"]))
            columns = tuple(n for n in named if isinstance(n.thing, LinkedColumn) and n.thing.kind in kinds)
            inside = [i for i, t in enumerate(tokens) if match.start() <= t.start and t.end <= match.end()]
            text = match["text"].strip().strip("\"'“”‘’`").strip()
            if text == match["text"].strip() and "contain" in match[0] and _is_held(text, match[0], index):
                continue  # drinks that contain gin do not say so in their name
            if columns and inside and text:
                holding = Holding(columns, form, text)
                yield Span(inside[0], inside[-1] + 1, "hold", (holding,), 1.05 * len(inside) + 0.5)


def _is_held(text: str, said: str, index: CatalogIndex) -> bool:
    """Return whether a text is a value by itself, and nothing says that it is a part of a word."""
    literal = {"word", "words", "letter", "letters", "string", "substring", "text", "phrase"} & set(
        said.casefold().split()
    )
    return not literal and bool(index.values_spelled(text) or index.values_of_stems(stems(text)))


def _other_forms(
    tokens: Sequence[Token], question: str, index: CatalogIndex, unknown: Sequence[Span]
) -> Iterator[Span]:
    """Yield what unknown words mean by another form: a verb of a column, an adjective of a value, a part of a name."""
    known = english()
    gaps = {span.first for span in unknown}
    candidates = gaps | {
        i for i, t in enumerate(tokens) if t.folded in known.verbs_of_having or t.folded in known.verbs
    }
    for i in sorted(candidates):
        token = tokens[i]
        named = index.columns_like(token.folded)
        if named and token.folded not in _NOT_ALONE:
            padded = i + 1 in gaps and tokens[i + 1].stem in _padding_of(named[0])  # "reading score" of `read`
            weight = (1 + padded) * named[0].sureness * (1.0 if i in gaps else 0.8)
            yield Span(
                i,
                i + 1 + padded,
                "column",
                tuple(n for n in named if n.sureness > named[0].sureness - 0.15),
                weight,
                named[0].how,
            )
        if i not in gaps:
            continue
        for prefix in _OPPOSITE if not named else ():
            said = stem(token.folded.removeprefix(prefix))
            opposed = index.columns_named((said,)) if token.folded.startswith(prefix) else []
            if opposed and getattr(opposed[0].thing, "kind", "") == "boolean":
                yield Span(i, i + 1, "column", tuple(opposed[:1]), 0.9, "opposite")  # "inactive"
        if values := index.values_like(token.folded):
            yield Span(i, i + 1, "value", tuple(values), 0.78, "form")
        for relation in index.catalog.relations:
            own = relation_words(relation)[-1:]
            whole = "".join(own)
            begins = whole.startswith(token.stem) or (len(own) == 1 and own[0].startswith(token.stem))
            if len(token.stem) > 3 and whole != token.stem and whole.endswith(token.stem):
                yield Span(i, i + 1, "table", (relation,), 0.9, "part")  # "strikes" of `birdstrikes`
            elif len(token.folded) > 4 and own and (share_root(token.folded, own[0]) or begins):
                yield Span(i, i + 1, "table", (relation,), 0.8, "root")
        if token.folded in known.row_nouns or stem(token.folded) in known.row_nouns:
            yield Span(i, i + 1, "noun", (), 0.5, "row")
        elif is_plural(token) or (i and tokens[i - 1].folded in ("which", "what", "each", "per", "every", "a")):
            before = {t.folded for t in tokens[max(0, i - 3) : i]}
            counted = i and (tokens[i - 1].folded.isdigit() or tokens[i - 1].folded in SPELLED)
            if not i or before & _WHICH or counted:
                yield Span(i, i + 1, "noun", (), 0.32, "unnamed")
    yield from _parts_of_values(tokens, question, index, gaps)
    for i in sorted(gaps):
        word = tokens[i].folded
        if len(word) < 4 or not word.isalpha():
            continue
        near = None if english().is_common(word) else index.nearest_name(word)
        if near is not None:
            if tables := index.relations_named((near,)):
                yield Span(i, i + 1, "table", tuple(n.thing for n in tables), 0.6, f"misspelt:{near}")
            elif columns := index.columns_named((near,)):
                yield Span(i, i + 1, "column", tuple(columns), 0.6, f"misspelt:{near}")
        elif len(word) > 5 and not english().is_common(word) and (values := index.nearest_values(word)):
            if not tokens[i].text[:1].isupper() and not values[0].column.is_category:
                continue
            yield Span(i, i + 1, "value", tuple(values), 0.55, f"misspelt:{values[0].value}")


def _are_one_name(pair: Sequence[Token], index: CatalogIndex) -> bool:
    """Return whether two capitalized words are the name of one thing, of which no value holds both: "Ida Berg"."""
    one, other = ({*index.values_holding((token.folded,))} for token in pair)
    return all(token.text[:1].isupper() for token in pair) and not one & other


def _parts_of_values(tokens: Sequence[Token], question: str, index: CatalogIndex, gaps: set[int]) -> Iterator[Span]:
    """Yield runs of words, unknown ones among them, that values only hold: "Williams" of "Serena Williams"."""
    known = english()
    for first in sorted(gaps):
        if any(_are_one_name(tokens[i : i + 2], index) for i in (first - 1, first) if {i, i + 1} <= gaps):
            continue  # nobody is called so
        for last in range(min(first + 4, len(tokens)), first, -1):
            inside = tokens[first:last]
            if not all(t.is_word for t in inside) or inside[-1].folded in known.silent:
                continue
            found = index.values_holding(tuple(t.folded for t in inside))
            if not found and len(inside) == 2 and first + 1 in gaps:  # "onshore wind" of Wind Onshore
                held, also = (index.values_holding((t.folded,)) for t in inside)
                found = [m for m in held if m in also and m.column.is_category]
            if not found and len(inside) > 1:
                continue
            if not found:
                break
            kinds = len(inside) > 1 and all(m.column.is_category for m in found)  # "hard coal"
            one = len({fold(m.value) for m in found}) == 1 and (found[0].value.isupper() or kinds)
            named = inside[0].text[:1].isupper() or one  # a value in capitals, or words of one, need no case
            meant = tuple(ValueMeaning(m.column, m.value, "part") for m in found[:500])
            yield Span(first, last, "value", meant, (0.72 if named else 0.3) * len(inside), "part")
            break
        for begin in range(max(first - 1, 0), min(first + 1, len(tokens) - 1)):
            pair = tokens[begin : begin + 2]
            called = {begin, begin + 1} <= gaps or all(token.text[:1].isupper() for token in pair)
            if called and (near := index.nearest_values(question[pair[0].start : pair[1].end])):
                yield Span(begin, begin + 2, "value", tuple(near), 1.3, f"misspelt:{near[0].value}")
