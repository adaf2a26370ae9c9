"""Messages that no query answers: small talk, other languages, questions about the source. No model is asked."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from almanaq.agent.describe import words
from almanaq.agent.linking.english import english
from almanaq.agent.linking.words import fold, stem, stems
from almanaq.suql.catalog.relations import Catalog, ColumnKind, Relation

_PRAISE = "great|perfect|cool|awesome|nice|super|lovely|wonderful|excellent|brilliant|amazing|good|fine|helpful|useful"
Kind = Literal["greeting", "thanks", "goodbye", "about", "language", "acknowledgement", "empty"]

_KINDS: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    (
        "greeting",
        (
            r"(hi|hiya|hello|hey|good (morning|afternoon|evening)|howdy|greetings)( there| everyone| all)?"
            r"( how are you( doing)?( today)?)?",
            r"how are you( doing)?( today)?|how is it going|what is up",
        ),
    ),
    (
        "thanks",
        (
            rf"((ok|okay|no|oh|{_PRAISE}) )*(thanks|thank you|thx|many thanks|cheers|much appreciated)( you| so| very)*"
            r"( much| a lot)?( again)?( dear| mate| friend| everyone| all)?( for .{0,40}| that .{0,40})?( bye)?",
        ),
    ),
    (
        "goodbye",
        (
            r"(good ?bye|bye( bye)?|see you( later| soon)?|good night|that is all|i am done|quit|exit)"
            r"( i need| then| now| thanks| thank you| for (now|today))*|(wish me|good) luck"
            r"|have a (good|nice|great|lovely) (day|evening|night|weekend|one|time)",
        ),
    ),
    (
        "about",
        (
            r"(who|what) are you|what can you (do|answer|help( me)? with)|how do you work|help( me)?",
            r"are you (a |an )?(bot|robot|human|machine|ai|person|real).*|what is your name|what can i ask( you)?",
            r"who (made|built|created) you",
        ),
    ),
    (
        "language",
        (
            r"(do|can) you (speak|understand|talk|answer in|write) (in )?\w+",
            r"habla .*|parlez.*|sprichst.*|sprechen.*",
        ),
    ),
    (
        "acknowledgement",
        (
            rf"(?:h+m+ )*(ok|okay|{_PRAISE}|yes|no|sure|alright|got it|sounds good|i see|wow|never ?mind|lol)"
            r"( ok| okay| great| then| that is all)*",
            r"((you|that|this|it) )?((have|has|is|are|was|been|sounds|looks|so|very|really|such|a|an|of) )+"
            rf"(({_PRAISE})( help)?|help)",
            r"((can you )?tell me a joke|sing .*|i love you|you are (great|awesome|helpful|nice|funny).*)",
            r"(i|we) will (let (you|\w+ \w+) (know|decide|choose)|(talk|think|chat|sleep|decide|discuss|call|ask|book)"
            r"( (it|this|that|them|there|about|over|on|with|(my|our|the) \w+|a table|together|first))*)"
            r"( (now|then|soon|later|tonight|tomorrow))*|(you|that|this|it) help(s|ed)( me| us)?( a lot| very much)?",
            r"(i|we) will (take|go with|try|choose) (it|(that|this|the (first|second|third|last))( one)?)",
        ),
    ),
)
_COMPILED = tuple((kind, re.compile("|".join(f"(?:{p})" for p in patterns))) for kind, patterns in _KINDS)
_TELLS = re.compile(r"(?:you|he|she|they|that|this|it)\b.*")
"""What may stand beside thanks and asks for nothing: "you have been most helpful"."""
_SHORT = {"'s": " is", "'m": " am", "'re": " are", "'ve": " have", "'ll": " will"}
_SHORT |= {"whats": "what is", "thats": "that is"}


def small_talk(text: str) -> Kind | None:
    """Return the kind of small talk that a text consists of; None when it says anything else."""
    plain = text.casefold().replace("\u2019", "'")
    for short, full in _SHORT.items():
        plain = plain.replace(short, full)
    parts = [_without_marks(part) for part in re.split(r"[.!,;]| and ", plain) if part.strip()]
    plain = _without_marks(plain)
    if not plain:
        return "empty"
    kinds = [_kind(part) for part in parts if part]
    if len(parts) > 1 and all(kinds):
        return _kind(parts[-1] or parts[0])
    told = all(kind or _TELLS.fullmatch(part) for kind, part in zip(kinds, filter(None, parts), strict=True))
    if "thanks" in kinds and "?" not in text and told:
        return "thanks"
    return _kind(plain)


def _without_marks(text: str) -> str:
    return " ".join(re.sub(r"[^\w ]+", " ", text).split())


def _kind(plain: str) -> Kind | None:
    return next((kind for kind, pattern in _COMPILED if pattern.fullmatch(plain)), None)


# In which language a question is, as far as its commonest words and its letters tell.

_FEWEST = 2
"""Words of another language that a question has to have."""


def detect_language(question: str) -> str | None:
    """Return the name of the language of a question, in English; None for English, and where nothing tells."""
    profiles, scripts = _read_languages()
    letters = [letter for letter in question if letter.isalpha()]
    for name, blocks in scripts.items():
        in_script = sum(unicodedata.name(letter, "").split()[0].split("-")[0] in blocks for letter in letters)
        if in_script > len(letters) / 2:
            return name
    said = re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", question.casefold())
    own_words = sum(word in _english() for word in said)
    found = {name: sum(word in profile for word in said) for name, profile in profiles.items()}
    name, most = max(found.items(), key=lambda pair: pair[1])
    return name if most >= _FEWEST and most > 2 * own_words and most >= len(said) / 4 else None


def decline_language(language: str) -> str:
    """Say that a question is in another language than is understood here."""
    return (
        f"Your question seems to be in {language}. Without a language model I understand English alone, so I ran "
        "nothing: please ask in English, or name a model with --model."
    )


@cache
def _english() -> frozenset[str]:
    known = english()
    return known.silent | {word for phrase in known.phrases for word in phrase}


@cache
def _read_languages() -> tuple[Mapping[str, frozenset[str]], Mapping[str, frozenset[str]]]:
    data = tomllib.loads(files("almanaq.agent").joinpath("languages.toml").read_text("utf-8"))
    scripts = {name: frozenset(blocks.split()) for name, blocks in data.pop("scripts").items()}
    return {name: frozenset(said.split()) for name, said in data.items()}, scripts


# Questions about the source itself: which tables and columns there are, what can be asked.

_THINGS = r"(?:columns?|fields?|attributes?|variables?|tables?|sheets?|data ?sets?)"
_WORDS = (
    "names? are do does is can in of there you it have has this the exist available i use ask about table data we here"
)
_FILLING = rf"(?: (?:{'|'.join(_WORDS.split())}))*"
_ABOUT = re.compile(
    rf"(?:so |and |ok |please )*(?:(?:what|which)(?: are)?(?: the| your)? {_THINGS}\b{_FILLING}"
    rf"|(?:list|show|name|tell|give|describe)(?: me)?(?: all)?(?: the| your| its)? {_THINGS}\b{_FILLING})"
    r"(?: (?:(?:in|of|for|does|do) )?(?:the |table )?\w+)?(?: have| table)?[?.! ]*",
)
_TABLES = re.compile(r"\b(?:tables?|sheets?|data ?sets?)\b")
_ASK = re.compile(
    r"(?:what|which questions?|what (?:kind|sort) of (?:things|questions)) (?:can|could|may) i (?:ask|query|know)\b.*"
    r"|what (?:is|'s) (?:in|inside) (?:here|this|the (?:data|file|database|table|source))\b.*"
    r"|what (?:data|information) (?:do you have|is there|is here|is available)\b.*"
    r"|what do you know(?! about (?!(?:this|the|your)\b))\b.*|describe (?:the )?(?:data|source|database|schema)\b.*"
    r"|(?:show me |what is )?(?:the )?schema[?.! ]*"
)
_MOST_COLUMNS, _MOST_TABLES = 40, 30


def answer_about_source(question: str, catalog: Catalog) -> str | None:
    """Return the reply to a question about tables and columns; None for any other question."""
    said = " ".join(fold(question).replace("what's", "what is").split())
    if _ASK.fullmatch(said):
        return f"{_all_of(catalog)} {_examples(catalog)}".strip()
    if _ABOUT.fullmatch(said) is None:
        return None
    named = [r for r in catalog.relations if set(stems(r.name)) & {stem(word) for word in said.split()} - {"table"}]
    if _TABLES.search(said) and not named and "column" not in said:
        return _tables(catalog)
    return " ".join(_columns(relation) for relation in named) if named else _all_of(catalog)


def _tables(catalog: Catalog) -> str:
    names = [words(r.name) + (f" ({r.rows:,} rows)" if r.rows is not None else "") for r in catalog.relations]
    more = f" and {len(names) - _MOST_TABLES} more" if len(names) > _MOST_TABLES else ""
    return f"The {'table is' if len(names) == 1 else 'tables are'} {', '.join(names[:_MOST_TABLES])}{more}."


def _all_of(catalog: Catalog) -> str:
    if not catalog.relations:
        return "It holds no tables."
    if len(catalog.relations) > 6:
        return f"{_tables(catalog)} Ask for the columns of one of them."
    return " ".join(_columns(relation) for relation in catalog.relations)


def _columns(relation: Relation) -> str:
    names = [words(column.name) for column in relation.columns]
    more = f" and {len(names) - _MOST_COLUMNS} more" if len(names) > _MOST_COLUMNS else ""
    return f"The columns of {words(relation.name)} are {', '.join(names[:_MOST_COLUMNS])}{more}."


def _examples(catalog: Catalog) -> str:
    """Return two questions that the first table can answer."""
    relation = next(iter(catalog.relations), None)
    if relation is None:
        return ""
    kinds = [c for c in relation.columns if c.type == "text" and c.kind is not ColumnKind.FREE_TEXT][1:2]
    asked = [f"“how many {words(relation.name)} are there?”"]
    asked += [f"“how many {words(relation.name)} are there per {words(column.name)}?”" for column in kinds]
    return f"You may ask {' or '.join(asked)}"
