"""Replies in words, the answer first: by templates or by a language model, with notes on how it was understood."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from almanaq.agent.describe import join_words, words
from almanaq.agent.linking.words import singular
from almanaq.agent.parser import Parsed
from almanaq.agent.prompting import make_prompt, stream
from almanaq.agent.relax import VALUES_SHOWN, ConditionCount
from almanaq.agent.small_talk import detect_language, small_talk
from almanaq.agent.unsupported import find_currencies, say_unsupported
from almanaq.display import label_column, passage_name
from almanaq.errors import ModelCallError
from almanaq.models.protocols import AllOf, LanguageModel
from almanaq.suql.catalog.relations import Catalog, unique_names

if TYPE_CHECKING:
    from almanaq.agent.response import Response
    from almanaq.suql.result import Evidence, Trace

ROWS_SHOWN = 5
_MOST_WORDED, _LENGTH_WORDED = 30, 6_000
"""A model words more rows than are listed, where they are short: as many as these characters hold."""
_FEW_COLUMNS = 6
_CELLS_WORDED = 4
"""A template words a single row of so many cells, where they are short."""
_CELL_LENGTH, _SAID_LENGTH = 160, 800
_BESIDE = 60
"""Characters of the one fact of a single row that stands beside it."""
_LISTED = 8
_LINK = re.compile(r"https?://\S{1,2000}")
_QUOTE_LENGTH = 240
MORE_BELOW = f", the first {ROWS_SHOWN} of them here"
_GROUPED = re.compile(
    r"^(?!.*(?:\bLIMIT\b|\) IN \()).*\b(?:count|sum|avg|min|max|median)\s*\([^()]*\)[^,()]*\sFROM\b.*\bGROUP BY\b",
    re.I | re.S,
)
"""A query whose last output is a figure of all its groups."""
_MONTHS = re.compile(r"^(?!.*\b(?:year|WHERE)\b).*\bEXTRACT\(month\b", re.I | re.S)
_YES_OR_NO = re.compile(
    r"(?:^|[.,;:!?]\s*|\b(?:and|but|or|so)\s+)"
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)(?:n['’]t)?\s+\w",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Found:
    """The rows that a reply speaks of.

    Attributes:
        searched: what was searched, in words; `described` says whether they hold every condition of the query.
        evidence: for each row, the quotes that it rests on.
        notes: what the asker should know: words left out, spellings corrected.
        remarks: how unusual words were understood; they come before the rows.
        relaxed: the condition that was dropped to find rows, in words; None when none was.
        total: how many rows there are without the query's LIMIT, where that is cheap to count.
        cut: a LIMIT ended the search, and how many rows there are is not known.
        suql: the query that ran; `earlier` says in words what the one of the turn before searched.
        read: the columns that were read off texts.
        counted: what the rows are called, where the query only counts them.
        about: what the source says of its columns.
        sentence: the answer as written with the query; `{rows}`, or columns in braces, stand for what is found.
    """

    question: str
    searched: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    evidence: tuple[tuple[Evidence, ...], ...] = ()
    notes: tuple[str, ...] = ()
    relaxed: str | None = None
    total: int | None = None
    cut: bool = False
    remarks: tuple[str, ...] = ()
    suql: str = ""
    earlier: str = ""
    read: frozenset[str] = frozenset()
    sentence: str = ""
    described: bool = False
    counted: str = ""
    about: str = ""


class Responder(Protocol):
    """Words replies. A reply begins with the answer, says what was searched, and claims nothing that was not found."""

    def found(self, found: Found) -> Iterator[str]:
        """Yield the pieces of the reply for at least one row."""

    def no_data(self, question: str, catalog: Catalog) -> str:
        """Return the reply to a message that needs no data."""


class LocalResponder:
    """Words replies by templates: rows as they are, a quote for each."""

    def found(self, found: Found) -> Iterator[str]:
        """Yield up to five rows with their facts and a quote each, what was searched, then notes: a line at a time."""
        yield say_relaxed(found)
        yield "".join(f"{remark}\n" for remark in found.remarks)
        if len(found.rows) == 1 and found.total in (None, 1):
            said, *facts = _one_row(found)
            lines = [f"{said}:", *(f"   {fact}" for fact in facts), "", ""] if facts else [f"{said.rstrip('.')}. "]
            lines[-1] += f"I searched for {found.searched}."
            lines += [f"   {format_quote(e)}" for e in _of(found.evidence, 0)]
        else:
            lines = [_groups(found) or _count(len(found.rows), found.total, cut=found.cut), ""]
            for i, row in enumerate(found.rows[:ROWS_SHOWN]):
                lines += _row(i, row, found)
            lines += ["", f"I searched for {found.searched}."]
        lines += ["", *found.notes] if found.notes else []
        yield from [*(f"{line}\n" for line in lines[:-1]), lines[-1]]

    def no_data(self, question: str, catalog: Catalog) -> str:
        """Return a short honest reply to small talk, or say what the source holds."""
        kind = small_talk(question)
        return _SMALL_TALK.get(kind or "", "") or _UNLINKED + " " + describe_source(catalog)


def say_relaxed(found: Found) -> str:
    """Return the line that says which condition was dropped to find rows; "" when none was."""
    if found.relaxed is None:
        return ""
    return f"Nothing fulfils all of that. I left one condition out: “{found.relaxed}”.\n"


_SMALL_TALK = {
    "greeting": "Hello! Ask me something about the data here, and I will show what I searched for and what I found.",
    "thanks": "You are welcome.",
    "goodbye": "Goodbye.",
    "about": "I answer questions about the tables of this source: I turn a question into a query, run it, and show the "
    "rows with the words they rest on. No language model is at work here; I link the words of a question to the data.",
    "language": "Without a language model I understand questions in English only.",
    "acknowledgement": "All right.",
    "empty": "I did not get a question.",
}
_OF_LOCAL = ("about", "language")
"""Small talk about what answers, which is another program with a language model."""

_NOT_SAID = "the texts do not say"
_UNLINKED = "I searched nothing: no word of your message names anything in this source."


def describe_source(catalog: Catalog) -> str:
    """Return a sentence that names what a source holds."""
    names = [words(r.name) for r in catalog.relations]
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more tables" if len(names) > 8 else "")
    if not names:
        return "It holds no tables."
    return f"Its {'table is' if len(names) == 1 else 'tables are'} {shown}."


def _count(number: int, total: int | None, *, cut: bool) -> str:
    """Return how many rows were found, of how many, and how many are shown."""
    more = MORE_BELOW if number > ROWS_SHOWN else ""
    of = f" of {total:,}" if total is not None and total > number else ""
    unsure = ", and there may be more" if cut else ""
    return f"I found {number:,}{of}{unsure}{more}:"


def _groups(found: Found) -> str:
    """Return which group has the highest figure, and which the lowest; "" where the rows are not all groups of one."""
    values = [row[-1] for row in found.rows]
    if len(found.columns) < 2 or not _GROUPED.search(found.suql) or not all(map(_is_number, values)):
        return ""
    if max(values) == min(values):
        return ""
    keys = [i for i, value in enumerate(found.rows[0]) if isinstance(value, str)] or [*range(len(found.columns) - 1)]
    if len(keys) > 1 and not isinstance(found.rows[0][keys[0]], str):
        return ""  # some may be figures
    ends = (choose(found.rows, key=lambda row: row[-1]) for choose in (max, min))
    most, least = (", ".join(cell(row[i]) for i in keys) for row in ends)
    more = MORE_BELOW if len(found.rows) > ROWS_SHOWN else ""
    figure = f"{_label(found.columns[-1])} is highest for {most} ({cell(max(values))})"
    years = ", each over all years (“by month and year” tells them apart)" if _MONTHS.search(found.suql) else ""
    groups = f"{len(found.rows):,} groups by {' and '.join(_label(found.columns[i]) for i in keys)}{years}{more}"
    return f"{groups}: {figure}, lowest for {least} ({cell(min(values))})."


def _row(i: int, row: Sequence[Any], found: Found) -> list[str]:
    facts = _facts(found, row, 1)
    lines = [f"{i + 1}. {cell(row[0])}" + (f" ({'; '.join(facts)})" if facts else "")]
    return lines + [f"   {format_quote(e)}" for e in _of(found.evidence, i)]


def _facts(found: Found, row: Sequence[Any], first: int) -> list[str]:
    """Return the cells of a row from one on, with their columns.

    One row alone is shown with all its text, and with what is missing unless that is one of many columns.
    """
    whole = len(found.rows) == 1 and len(row) <= _FEW_COLUMNS
    cells = zip(found.columns[first:], row[first:], strict=True)
    shown = [(c, v) for c, v in cells if v is not None or c in found.read or whole]
    most = {c: _SAID_LENGTH if c in found.read or len(found.rows) == 1 else _CELL_LENGTH for c, _ in shown}
    return [f"{_label(c)}: {_NOT_SAID if v is None and c in found.read else cell_of(c, v, most[c])}" for c, v in shown]


def _label(column: str) -> str:
    """Return a column as people read it: the question of an answer stays as it was asked."""
    label = label_column(column)
    return label if column.casefold().startswith("answer(") else words(label)


def _one_row(found: Found) -> list[str]:
    """Return a single row: what it is called, or its figure, with one short fact; then its facts, where it has more."""
    row = found.rows[0]
    if len(row) > 1 and not isinstance(row[0], str):
        facts = _facts(found, row, 0)
        return ["I found one", *facts] if len(facts) > 2 else ["; ".join(facts)]
    facts = _facts(found, row, 1)
    said = _NOT_SAID.capitalize() if row[0] is None and found.read else cell_of(found.columns[0], row[0], _SAID_LENGTH)
    if found.counted:
        return [f"{said} {singular(found.counted) if row[0] == 1 else found.counted}"]
    beside = len(facts) < 2 and len("".join(facts)) <= _BESIDE
    return [said + "".join(f" ({fact})" for fact in facts)] if beside else [said, *facts]


def _of(evidence: Sequence[Sequence[Evidence]], i: int) -> list[Evidence]:
    """Return one quote per question for row i."""
    by_question = {e.question: e for e in reversed(evidence[i] if i < len(evidence) else ()) if e.quote.strip()}
    return list(reversed(list(by_question.values())))


def format_quote(evidence: Evidence) -> str:
    """Return a quote with its column and passage."""
    text = " ".join(evidence.quote.split())
    text = text if len(text) <= _QUOTE_LENGTH else text[: _QUOTE_LENGTH - 1] + "…"
    part = passage_name(evidence.column, evidence.key, words(evidence.column))
    return f"“{text}” ({part} {evidence.passage + 1})"


def cell(value: Any, most: int = _CELL_LENGTH) -> str:
    """Return a cell as people read it: short lists with commas, no needless decimals or midnight, long text cut."""
    if value is None:
        return "not known"
    if isinstance(value, list | tuple):
        if not value:
            return "none"
        more = f" and {len(value) - _LISTED} more" if len(value) > _LISTED else ""
        return ", ".join(cell(v) for v in value[:_LISTED]) + more
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "; ".join(f"{k}: {cell(v)}" for k, v in value.items())
    plain = " ".join(str(value).split()).removesuffix(" 00:00:00")
    text = _round(value) or plain
    whole = len(text) <= most or _LINK.fullmatch(text)
    return text if whole else text[: most - 1] + "…"


def _is_number(value: Any) -> bool:
    return hasattr(value, "as_integer_ratio") and not isinstance(value, bool)


def _round(value: Any) -> str:
    """Return a fraction with two decimals, where it is near 0 with two digits; "" for anything else."""
    if not _is_number(value) or isinstance(value, int) or not abs(value) < 1e15:
        return ""
    return f"{float(value):.2g}" if 0 < abs(value) < 0.1 else f"{value:.2f}".rstrip("0").rstrip(".")


class PromptedResponder:
    """Words replies with a language model; when a call fails, the templates take over and say so."""

    def __init__(self, model: LanguageModel) -> None:
        self._model, self._plain = model, LocalResponder()

    def found(self, found: Found) -> Iterator[str]:
        """Yield the model's wording of the rows, which it sees as fenced data; we report a dropped condition.

        No call is made where the sentence that came with the query can be filled, or for a single short row of a query
        that has words, unless the question asks for yes or no and no cell says it. Other languages always take one.
        """
        if detect_language(found.question) is None:
            if said := fill_sentence(found):
                yield "\n".join([*found.remarks, f"{said} I searched for {found.searched}.", *found.notes])
                return
            worded = found.described and len(found.rows) == 1 and _is_short(found.rows[0])
            settled = worded and len(found.columns) == 1 and isinstance(found.rows[0][0], bool)
            if worded and (settled or not _YES_OR_NO.search(found.question)):
                yield from self._plain.found(found)
                return
        said, prompt = "", respond_prompt(found)
        try:
            for piece in stream(self._model, prompt):
                if not said:
                    yield say_relaxed(found)
                said += piece
                yield piece
        except ModelCallError as error:
            found = replace(found, notes=(*found.notes, f"({self._model.name} could not word this: {error})"))
            yield "\n\n" if said else ""
            said = ""
        if not said:
            yield from self._plain.found(found)
            return
        given = f"{prompt.messages[-1].content} {found.about} {found.relaxed} {len(found.rows)}"
        doubt = say_unsupported(said, given, min(len(found.rows), _MOST_WORDED))
        yield from (f"\n\n{note}" for note in (doubt, *found.notes) if note)

    def no_data(self, question: str, catalog: Catalog) -> str:
        """Return the template: the model has said what else there is to say where it was asked for a query."""
        kind = small_talk(question)
        said = _SMALL_TALK[kind] if kind and kind not in _OF_LOCAL else ""
        return said or f"I searched nothing. {describe_source(catalog)}"


_SLOT = re.compile(r"\{([^{}]+)\}")
_VERDICT = re.compile(r"\W*\b(?:yes|no|not|indeed|never|none|nobody|nothing)\b|\w+n['’]t\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"\d+|\b(?:both|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozens?|half|only one|millions?)\b"
)
_PLURAL = re.compile(r"(?:number of )?((?<=number of ).+s|[a-z]*[^aiusA-Z\W]s)")
_IDENTIFIER = re.compile(r"\b(?:id|uuid|key|code|zip|postcode|phone|isbn|ean|year)\Z")
_MOST_LISTED, _LENGTH_LISTED = ((25, 10), (6, 5), (4, 3)), 1_500
"""How many rows a sentence lists, and how many of more: of names, of names with one fact each, and with several."""


def fill_sentence(found: Found) -> str:
    """Return the sentence that came with a query, filled with the rows; "" where a model must word them.

    That is where texts were read for them, a condition was left out, rows are long, or the sentence, written before
    they were known, says yes, no, a number or a currency that is neither in the request nor in the query.
    """
    slots, own = set(_SLOT.findall(found.sentence)), _SLOT.sub("", found.sentence).casefold()
    asked = f"{found.question} {found.suql}".casefold()
    claims = {*_NUMBER.findall(own)} - {*_NUMBER.findall(asked)} or find_currencies(own, f"{asked} {found.about}")
    verdict = (_VERDICT.search if _YES_OR_NO.search(found.question) else _VERDICT.match)(own)
    if claims or verdict or found.relaxed or found.read or any(found.evidence) or not all(map(_is_short, found.rows)):
        return ""
    filled = {"rows": _list_rows(found)}
    if len(found.rows) == 1:  # of two columns of one name, neither is meant for sure
        pairs = zip(found.columns, found.rows[0], strict=True)
        filled |= {c: cell_of(c, v) for c, v in pairs if v is not None and found.columns.count(c) == 1}
    if not slots or not slots <= set(filled) or len(filled["rows"]) > _LENGTH_LISTED:
        return ""
    return _SLOT.sub(lambda slot: filled[slot[1]], found.sentence) + _say_cut(found)


def _list_rows(found: Found) -> str:
    """Return rows as a part of a sentence, "Creek Fire (county Fresno, 379 acres) and Rye Fire (county Kern, 9 acres)".

    Columns whose one value the question holds are left out, and of many rows all but the first: the table has them.
    """
    columns, asked = list(zip(*found.rows, strict=True)), found.question.casefold()
    rows = len(found.rows)
    told = [rows > 1 and len(set(map(cell, c))) == 1 and _contains_cell(cell(c[0]).casefold(), asked) for c in columns]
    first, *others = [i for i, known in enumerate(told) if not known] or [0]
    most, fewer = _MOST_LISTED[min(len(others), len(_MOST_LISTED) - 1)]
    listed = fewer if rows > most else rows
    texts = [i for i in others if isinstance(found.rows[0][i], str)]
    plain = [] if rows == 1 else others if len(others) == 1 else texts if len(texts) == 1 else []
    said = []
    for row in found.rows[:listed]:
        facts = [
            (cell_of if i in plain else _fact)(found.columns[i], row[i])
            for i in others
            if row[first] is not None or row[i] is not None
        ]
        named = cell_of(found.columns[first], row[first])
        label = f"{_label(found.columns[first])} " if row[first] is None and others else ""
        said.append(label + named + (f" ({', '.join(facts)})" if facts else ""))
    separator = "; " if any("," in cell_of("", value) for value in columns[first][:listed]) else ", "
    return join_words([*said, *([f"{rows - listed:,} more"] if listed < rows else [])], separator)


def _fact(column: str, value: Any) -> str:
    """Return a cell with what it is: "118 races", "first year 1897"."""
    label, said = _label(column), cell_of(column, value)
    counted = _PLURAL.fullmatch(label) if isinstance(value, int | float) and value != 1 else None
    return f"{said} {counted[1]}" if counted else f"{label} {said}"


def cell_of(column: str, value: Any, most: int = _CELL_LENGTH) -> str:
    """Return a cell as a sentence shows it: numbers from 10,000 on with separators, but identifiers as they are."""
    large = hasattr(value, "as_integer_ratio") and 10_000 <= abs(value) < 1e15
    if not large or _IDENTIFIER.search(_label(column)):
        return cell(value, most)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}".rstrip("0").rstrip(".")


def _say_cut(found: Found) -> str:
    """Return what a LIMIT that nobody asked for left out, as a sentence; "" where nothing."""
    if found.total is not None and found.total > len(found.rows):
        return f" These are {len(found.rows):,} of {found.total:,}."
    return " There may be more." if found.cut else ""


def _is_short(row: Sequence[Any]) -> bool:
    return len(row) <= _CELLS_WORDED and all(len(cell(value, _SAID_LENGTH)) <= _CELL_LENGTH for value in row)


def respond_prompt(found: Found) -> Any:
    """Return the prompt that words a reply."""
    rows = _rows_to_word(found)
    quotes = [
        {"row": i + 1, "question": e.question, "quote": e.quote[:_QUOTE_LENGTH]}
        for i in range(len(rows))
        for e in _of(found.evidence, i)
    ]
    return make_prompt(
        "respond",
        {
            "question": found.question[:2000],
            "searched": found.searched if found.described else "",
            "suql": found.suql,
            "earlier": found.earlier,
            "notes": (*found.remarks, *found.notes),
            "rows": rows,
            "more": len(found.rows) - len(rows),
            "quotes": quotes,
        },
    )


def _rows_to_word(found: Found) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    length = 0
    for row in found.rows[:_MOST_WORDED]:
        cells = {c: cell(v, _SAID_LENGTH) for c, v in zip(unique_names(found.columns), row, strict=True)}
        length += sum(map(len, (*cells, *cells.values())))
        if len(rows) >= ROWS_SHOWN and length > _LENGTH_WORDED:
            break
        rows.append(cells)
    return rows


def write_notes(parsed: Parsed, trace: Trace) -> tuple[str, ...]:
    """Return what the asker should know of how the question was understood and the query was run."""
    notes = [*parsed.notes]
    if parsed.unused:
        notes.append("I did not use: " + ", ".join(f"“{w}”" for w in parsed.unused) + ".")
    for _, literal, values in trace.links:
        if tuple(map(str.casefold, values)) != (literal.casefold(),):
            meant = (" and " if isinstance(values, AllOf) else ", ").join(values)
            notes.append(f"“{literal}” was looked up as {meant or 'nothing: no value means the same'}.")
    if trace.unknown_calls:
        notes.append(f"{trace.unknown_calls} texts could not be read; rows may be missing.")
    if trace.partial:
        notes.append("The search was stopped early; rows may be missing.")
    return (*notes, *trace.warnings)


def say_nothing_found(found: Found, counts: Sequence[ConditionCount]) -> str:
    """Say plainly that nothing was found, first what no row holds, and what each other condition keeps out.

    No model words this: it has nothing to word, and might invent something.
    """
    spoken = [each for each in counts if each.words.casefold() != each.condition.casefold()]
    held_by_none = [_say_none(each) for each in spoken if each.passing == 0]
    others = [each for each in spoken if each.passing != 0] if len(counts) > 1 else []
    no_value = ["No value is recorded."] if found.rows else []
    begin = " ".join([*no_value, *held_by_none]) or "I found nothing."
    if len(counts) > 1 and all(each.passing for each in counts):
        begin = "No row is recorded that fulfils all of this, though some fulfil each condition."
    reasons = [f"{str(each)[:1].upper()}{str(each)[1:]}." for each in others]
    reasons += [
        f"0 of {each.rows:,} rows fulfil condition {place} of the query."
        for place, each in enumerate(counts, 1)
        if each.passing == 0 and each not in spoken
    ]
    return "\n".join([*found.remarks, f"{begin} I searched for {found.searched}.", *reasons, *found.notes])


_NOT_PLAIN = re.compile(r"\b(?:not|none|yes|no|nor|or|exist|among|whose)\b")
_NAMED = re.compile(r"(?:(.+) )?name is (.+)")
_PARTS_OF_NAMES = ("first", "last", "middle", "full", "user", "given", "family")


def _say_none(count: ConditionCount) -> str:
    """Return that no row fulfils a condition: "No city is Bonn.", and of a name "No peak is called K2."."""
    rest = "" if count.whole_table else f" among the {count.rows:,} rows that the query combines"
    rest += f"; the column holds {', '.join(count.values)}" if 0 < len(count.values) <= VALUES_SHOWN else ""
    if _NOT_PLAIN.search(count.words):
        return f"No row fulfils: {count.words}{rest}."
    if (named := _NAMED.fullmatch(count.words)) and named[1] not in _PARTS_OF_NAMES:
        return f"{f'No {named[1]}' if named[1] else 'Nothing'} is called {named[2]}{rest}."
    return f"No {count.words}{rest}."


def shows_all_rows(response: Response) -> bool:
    """Return whether the reply holds every cell of every row but NULLs, whole or as one row alone is shown."""
    pairs = (pair for row in response.rows for pair in zip(response.columns, row, strict=True))
    cells = {cell_of(column, value, _SAID_LENGTH) for column, value in pairs if value is not None}
    return bool(response.rows) and all(_contains_cell(cell, response.answer) for cell in cells)


def quotes_not_shown(quotes: Sequence[Evidence], answer: str) -> list[Evidence]:
    """Return the quotes that the reply does not hold."""
    return [quote for quote in quotes if format_quote(quote) not in answer]


def _contains_cell(cell: str, text: str) -> bool:
    """Return whether a text contains a cell, and not as a part of another word or number."""
    return re.search(rf"(?<![\w.]){re.escape(cell)}(?!\w)", text) is not None
