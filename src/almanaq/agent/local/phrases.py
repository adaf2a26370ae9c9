"""Phrases: the words of a search that nothing structured covers, as yes-or-no questions to a text."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from importlib.resources import files
from itertools import pairwise

from almanaq.agent.linking.columns import relation_words
from almanaq.agent.linking.english import SPELLED
from almanaq.agent.linking.words import Token, singular, stems, word_set
from almanaq.suql.catalog.relations import Catalog
from almanaq.text.words import without_small

PACKS = (("almanaq.sample", "places.toml", "concepts.toml"),)
"""Where packs are: a package, and its files of words and of what texts are read for."""


@dataclass(frozen=True, slots=True)
class Domain:
    """What a search understands besides English in general; nothing where no pack speaks of the rows.

    Attributes:
        rows: words of the names of relations that it speaks of.
        foods: things that a column of dishes holds; `dish_cues` words before one.
        occasions: what or whom a row is good for.
        counted: nouns that stand with an article in the singular.
        companions: who comes along: told rather than asked, it still is a wish; `pets` have to be let in.
        empty: nouns that say nothing by themselves.
        ordinary: words that are part of an option's name and say nothing without the rest of it.
        serving: verbs of what a row does, each with its plain form.
        matters: what a reader of the texts knows to answer: by the stems of the words that ask for it, or for its
            opposite, its name and whether for itself.
    """

    rows: frozenset[str] = frozenset()
    foods: frozenset[str] = frozenset()
    occasions: frozenset[str] = frozenset()
    counted: frozenset[str] = frozenset()
    companions: frozenset[str] = frozenset()
    pets: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()
    ordinary: frozenset[str] = frozenset()
    dish_cues: frozenset[str] = frozenset()
    serving: Mapping[str, str] = field(default_factory=dict)
    matters: Mapping[tuple[str, ...], tuple[str, bool]] = field(default_factory=dict)


NONE = Domain()


def domain_of(catalog: Catalog) -> Domain:
    """Return the pack that speaks of the rows of a source."""
    named = {word for relation in catalog.relations for word in relation_words(relation)}
    return next((pack for pack in _packs() if pack.rows & named), NONE)


@cache
def _packs() -> tuple[Domain, ...]:
    found = []
    for package, name, concepts in PACKS:
        data, known = (tomllib.loads(files(package).joinpath(each).read_text("utf-8")) for each in (name, concepts))
        lists = {
            each.name: word_set(data[each.name]) for each in fields(Domain) if isinstance(data.get(each.name), str)
        }
        parts = ((name, part, each) for part in ("weak", "ask_not", "ask", "ask_other") for name, each in known.items())
        matters = {
            without_small(stems(said)): (name if part != "ask_other" else "", part != "ask_not")
            for name, part, each in parts
            for said in each.get(part, ())
        }
        found.append(Domain(serving=data["serving"], matters=matters, **lists))
    return tuple(found)


_ENDS = frozenset((*".,;:!?", "so", "but", "because", "where", "which", "that"))
"""What ends a part of a turn that tells something of its own."""
_LONGEST_MATTER = 5
"""Words of the longest run that asks for a matter."""
AMOUNT = "amount"
"""The label of amounts that nothing structured took, which a wish may hold."""


@dataclass
class TokenUse:
    """The tokens of one question, each with what it was taken for (None for nothing yet).

    Attributes:
        domain: words of the domain that the source is about.
        partial: it goes on from a search, so that a noun alone is a wish.
        dishes: what a list of dishes holds, by the stems of its words and of every run of several.
    """

    question: str
    tokens: tuple[Token, ...]
    used: list[str | None]
    domain: Domain = NONE
    partial: bool = False
    dishes: frozenset[tuple[str, ...]] = frozenset()

    def free(self, first: int, last: int) -> bool:
        """Return whether no token from `first` to `last` (exclusive) is taken."""
        return not any(label not in (None, AMOUNT) for label in self.used[first:last])

    def take(self, first: int, last: int, label: str) -> None:
        """Mark tokens as taken for something."""
        self.used[first:last] = [label] * (min(last, len(self.used)) - first)

    def folded(self, i: int) -> str:
        """Return token i in lower case, "" outside the question."""
        return self.tokens[i].folded if 0 <= i < len(self.tokens) else ""

    @cached_property
    def in_matters(self) -> frozenset[int]:
        """The places of words that ask for a matter together: "little ones", though each says nothing."""
        said = [token.stem for token in self.tokens]
        runs = ((i, k) for i in range(len(said)) for k in range(i + 2, min(i + _LONGEST_MATTER, len(said)) + 1))
        known = ((i, k) for i, k in runs if without_small(said[i:k]) in self.domain.matters and self.free(i, k))
        return frozenset(at for i, k in known for at in range(i, k) if self.folded(at) not in search_words().quality)

    def tells(self, i: int) -> bool:
        """Return whether word i stands where the asker tells of people, and wants or denies nothing."""
        words, ends = search_words(), [k for k in range(len(self.tokens)) if self.folded(k) in _ENDS]
        first = max((k + 1 for k in ends if k <= i), default=0)
        last = min((k for k in ends if k >= i), default=len(self.tokens))
        said = [self.folded(k) for k in range(first, last)]
        said = said[next((k for k, word in enumerate(said) if word not in words.leading), 0) :]
        wants = not (words.wanting | words.negations).isdisjoint(said) or ("has", "to") in pairwise(said)
        return bool(said) and said[0] in words.tellers and not wants

    def stem(self, i: int) -> str:
        """Return the stem of token i, "" outside the question."""
        return self.tokens[i].stem if 0 <= i < len(self.tokens) else ""

    def text(self, first: int, last: int) -> str:
        """Return the question's own text from token `first` to `last` (exclusive)."""
        return self.question[self.tokens[first].start : self.tokens[last - 1].end] if first < last else ""


@dataclass(frozen=True, slots=True)
class SearchWords:
    """The word lists of `search.toml`, whose comments say what each is."""

    ignored: frozenset[str]
    tellers: frozenset[str]
    wanting: frozenset[str]
    unable: frozenset[str]
    leading: frozenset[str]
    glue: frozenset[str]
    entity_words: frozenset[str]
    quality: frozenset[str]
    highly: frozenset[str]
    negations: frozenset[str]
    adjectives: frozenset[str]
    not_adjectives: frozenset[str]
    adjective_endings: tuple[str, ...]
    owning: frozenset[str]
    verbs: frozenset[str]
    moving: frozenset[str]

    def is_adjective(self, word: str) -> bool:
        """Guess whether a word is an adjective, by a short list and by its ending."""
        if word in self.not_adjectives or word.endswith("ment"):
            return False
        return word in self.adjectives or word.endswith(self.adjective_endings)


@cache
def search_words() -> SearchWords:
    """Return the words of searches."""
    text = files("almanaq.agent.local").joinpath("search.toml").read_text("utf-8")
    data = {name: word_set(said) for name, said in tomllib.loads(text).items()}
    endings: Sequence[str] = sorted(data.pop("adjective_endings"))
    return SearchWords(adjective_endings=tuple(endings), **data)


_COMING = ("", "with", "for", "to")
"""Words before those who come along."""
_DETERMINED = ("a", "an", "the", "your", "any")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A yes/no question made of words `first` to `last` (exclusive).

    Attributes:
        question: begins with a verb and ends with "?".
        wanted: False when the asker wants it not to be so.
        dish: it is about food or drink.
    """

    first: int
    last: int
    words: str
    question: str
    wanted: bool
    dish: bool


def phrases(use: TokenUse, noun: str) -> tuple[Phrase, ...]:
    """Return the questions that the unlinked words ask of one row (`noun`), where they are marked as wishes."""
    whole = [(first, last) for first, last in runs(use) if AMOUNT in use.used[first:last]]  # "a wait under 20 minutes"
    known = [(i, k) for i, k in _known(use) if not any(first <= i < last for first, last in whole)]
    rest = replace(use, used=list(use.used))
    for first, last in known:
        rest.take(first, last, "known")
    found = [_phrase(use, first, last, noun) for first, last in known]
    found += [_phrase(rest, first, last, noun) for first, last in runs(rest)]
    once: dict[object, Phrase] = {}  # "toddlers … kid friendly" is one wish
    for phrase in filter(None, found):
        name, meant = matter_of(phrase.words, use.domain) or ("", True)
        wish = (name, meant is phrase.wanted) if name else phrase.question
        if wish not in once or _names_company(use, {*once[wish].words.split()}):
            once[wish] = phrase
    return tuple(sorted(once.values(), key=lambda phrase: phrase.first))


def _known(use: TokenUse) -> Iterator[tuple[int, int]]:
    """Yield spans of unlinked words that ask for a matter or a dish, the longest from each word on."""
    said, i = [token.stem.replace("-", "") for token in use.tokens], 0
    while i < len(said):
        ends = range(min(i + _LONGEST_MATTER, len(said)), i, -1)
        known = (k for k in ends if use.free(i, k) and _is_known(said[i:k], use, i))
        last = next(known, i)
        if last > i:
            yield i, last
        i = max(last, i + 1)


def _is_known(said: Sequence[str], use: TokenUse, first: int) -> bool:
    listed = tuple(said) in use.dishes and not use.domain.empty.issuperset(said)
    listed = listed and (len(said) > 1 or _cue(use, first)[0] != "")
    return listed or without_small([*filter(None, said)]) in use.domain.matters


def runs(use: TokenUse) -> Iterator[tuple[int, int]]:
    """Yield spans of unlinked words that hold content, glue words inside included."""
    i = 0
    while i < len(use.tokens):
        if not content(use, i) or (use.stem(i) in use.domain.empty and not content(use, i + 1)):  # "dinner by the sea"
            i += 1
            continue
        last = k = i + 1
        while k < len(use.tokens) and use.free(k, k + 1):
            if content(use, k):
                last = k + 1
            elif use.folded(k) not in search_words().glue and not (use.folded(k) == "or" and content(use, k + 1)):
                break
            k += 1
        said = (k for k in range(i, last) if content(use, k) and use.used[k] != AMOUNT)
        if any(use.stem(k) not in use.domain.empty for k in said):
            yield i, last
        i = last


def content(use: TokenUse, i: int) -> bool:
    """Return whether word i is unlinked and carries meaning of its own."""
    if not use.free(i, i + 1):
        return False
    folded, words = use.folded(i), search_words()
    cues = words.owning | words.negations | words.unable | words.glue | words.quality | words.ignored
    if (i < len(use.used) and use.used[i] == AMOUNT) or i in use.in_matters:
        return True
    return folded not in cues and folded not in use.domain.serving and folded[:1].isalnum()


def _phrase(use: TokenUse, first: int, last: int, noun: str) -> Phrase | None:
    cue, wanted = _cue(use, first)
    opening = first - 1 if cue and use.folded(first - 1) in ("a", "an", "the") else first
    words = _address_reader(use.text(opening, last))
    said = {use.folded(k) for k in range(first, last) if use.stem(k) not in use.domain.empty}
    listed = (cue or last - first > 1) and tuple(t.stem for t in use.tokens[first:last]) in use.dishes
    eaten = use.folded(last - 1) in use.domain.foods and "to" not in said  # unlike "allergic to fish"
    dish = bool(listed) or eaten
    dish = dish or (cue in use.domain.dish_cues and not all(map(search_words().is_adjective, said)))  # "food late"
    matter = _longest_run(words, use.domain)
    told = use.tells(first) and not _of_company(use, said)
    if matter and (told or not use.domain.matters[matter][0]):
        return None  # "that works for us", "our book club" ask for no place to work, or to book
    # "Fresh bread" is an opinion, which a list of dishes does not hold.
    dish = dish and not search_words().is_adjective(use.folded(first)) and not matter
    if matter and cue in ("to", "doing", "about") and use.folded(first - 1) != cue.replace("doing", "to"):
        cue = ""  # "to look at the water" asks for the water
    cue = "serve" if dish and cue in ("can", "for", "to", "doing", "about", "with") else cue  # "where can I get dosa?"
    if not wanted and use.domain.matters.get(("no", *matter), ("", False))[1]:
        wanted = True  # "without gluten" asks for what has none
    praised = opening == first and use.folded(first - 1) in search_words().quality
    cue = cue or ("with" if praised or (use.partial and first == 0 and (matter or not use.domain.matters)) else "")
    if cue == "with" and praised:
        words, dish = f"{use.folded(first - 1)} {words}", False
    if use.domain.matters and not matter and use.used[last : last + 1] == ["known"]:
        return None  # "handles bigger", of groups
    acts = not cue and last - first > 1 and use.folded(first - 1) in ("they", "that", "which", "who")
    if acts and not search_words().is_adjective(use.folded(first)):
        verb, rest = use.folded(first), words[len(use.folded(first)) :]
        verb = verb if use.folded(first - 1) == "they" else singular(verb)
        return Phrase(first, last, words, f"does this {noun} {verb}{rest}?", wanted, dish)
    if (use.domain.matters or told) and not (matter or (wanted and _is_wish(use, first, last, cue, said, dish=dish))):
        return None
    question = _question(words, cue, noun, use.domain, dish=dish)
    return None if question is None else Phrase(first, last, words, question, wanted, dish)


def _is_wish(use: TokenUse, first: int, last: int, cue: str, said: set[str], *, dish: bool) -> bool:
    """Return whether words that ask for no matter are a wish all the same: as what a row has or serves, or alone."""
    if _names_company(use, said) or use.tells(first):
        return False
    words = search_words()
    alone = use.partial and all(
        use.folded(k) in words.ignored or not use.folded(k)[:1].isalnum()
        for k in (*range(first), *range(last, len(use.tokens)))
    )
    where = cue == "can" and last - first > 1 and "where" in (use.folded(k) for k in range(first - 5, first))
    names = not words.is_adjective(use.folded(last - 1)) and not use.folded(last - 1).endswith(("ing", "ed"))
    return dish or alone or where or (names and cue in ("with", "near", *use.domain.serving.values()))


def _of_company(use: TokenUse, said: set[str]) -> set[str]:
    """Return the words that say for whom or when."""
    return {word for word in said if _stem_in(word, use.domain.occasions | use.domain.companions)}


def _names_company(use: TokenUse, said: set[str]) -> bool:
    """Return whether words say only for whom or when: "for a business lunch" asks for nothing that texts tell."""
    words, others = search_words(), said - _of_company(use, said)
    beside = words.glue | words.ignored | SPELLED.keys()
    told = all(word in beside or word.isdigit() or words.is_adjective(word) for word in others)
    return len(others) < len(said) and told


def _cue(use: TokenUse, first: int) -> tuple[str, bool]:
    """Return the word before a phrase that says how it belongs to the row, and whether it is wanted."""
    cue, wanted, words = "", True, search_words()
    for k in range(first - 1, max(first - 7, -1), -1):
        word = use.folded(k)
        if use.used[k] not in (None, "not") and word != "one":
            break
        if word in ("has", "have") and not _is_of_row(use, k):
            break  # "we have a baby" does not, either
        if word in words.unable | words.negations:
            wanted = not wanted
            cue = cue or ("with" if word in ("without", "no") else "")
        elif not cue and word == "near":
            cue = "near"
        elif not cue and word == "to" and use.used[k - 1] is None and use.folded(k - 1) not in words.entity_words:
            cue = "doing"  # "I need to plan" is no place to plan
        elif not cue and (word in words.owning or word in use.domain.serving or word in ("for", "to", "about", "can")):
            cue = "with" if word in words.owning else use.domain.serving.get(word, word)
        elif word not in words.glue | words.ignored | words.quality | words.negations:
            break
    return cue, wanted


def _is_of_row(use: TokenUse, k: int) -> bool:
    """Return whether verb k is said of rows: "they have", "that has", "do any have", "where can I have"."""
    before, near = use.folded(k - 1), {use.folded(i) for i in range(k - 4, k)}
    of_row = before in search_words().entity_words | {"that", "which", "who", "it", "they", "must", "should", ""}
    return of_row or (k > 0 and use.used[k - 1] is not None) or bool(near & {"do", "does", "can", "could"})


def _address_reader(text: str) -> str:
    """Turn the asker's own pronouns to the second person: the question is put to a reader of the text."""
    text = re.sub(r"\b(my|our)\b", "your", text, flags=re.IGNORECASE)
    return re.sub(r"\b(me|us|I|we)\b", "you", text)


def matter_of(words: str, domain: Domain) -> tuple[str, bool] | None:
    """Return the matter that words ask for and whether for it, not its opposite: that of the longest run of words."""
    found = domain.matters.get(_longest_run(words, domain))
    return found if found and found[0] else None


def _longest_run(words: str, domain: Domain) -> tuple[str, ...]:
    """Return the stems of the longest run of words that ask for a matter; () where none do."""
    said = stems(words)
    runs = (without_small(said[i : i + n]) for n in range(len(said), 0, -1) for i in range(len(said) - n + 1))
    return next((run for run in runs if run in domain.matters), ())


def _question(words: str, cue: str, noun: str, domain: Domain, *, dish: bool) -> str | None:
    """Ask what the phrase wants, as the first wording that fits has it; None where nothing says that it is wanted."""
    matters = matter_of(words, domain) is not None
    stated = re.match(r"(?:the )?(.+?) (?:(?:should|must|(?:(?:has|have|needs?) )?to) be|is|(are)) (.+)$", words)
    if stated:
        described = any(map(search_words().is_adjective, stated[3].casefold().split()))
        describes = matters or described or re.search(r"\d", stated[3])
        return f"{stated[2] or 'is'} the {stated[1]} {stated[3]}?" if describes else None
    row, (first, *more) = f"this {noun}", words.split()
    rest, opening, head = " ".join(more), first.casefold(), [first, *more][-1].casefold()
    does, owned = opening in search_words().verbs, cue == "with"
    asked = (
        # The noun that it stood beside is linked: "have a romantic Italian dinner".
        (rest and (opening == "open" or more[0] == "with"), f"is {row} {words}?"),
        (
            (len(more) < 2 - matters if owned else cue == "to" and not more) and search_words().is_adjective(head),
            f"is {row} {head}?",
        ),
        (cue == "can", f"can you {words} {'to' if opening in search_words().moving else 'at'} {row}?"),
        (head in domain.pets and cue in _COMING and not does, f"does {row} welcome {words}?"),
        (owned and head in domain.companions, f"is {row} good for {words}?"),
        (does and rest and cue not in ("to", "doing"), f"does {row} {opening.removesuffix('s')} {rest}".rstrip() + "?"),
        (
            search_words().is_adjective(opening) and more[:1] == ["to"] and not does and more[1:],
            f"is {row} {words if matters else f'{opening} enough {rest}'}?",
        ),
        (cue in ("serve", "offer"), f"does {row} {cue} {words}?"),
        (cue == "near" or opening in ("close", "near", "next"), f"is {row} {'near ' * (cue == 'near')}{words}?"),
        (cue == "about", f"is {row} about {words}?"),
        (cue == "for" or (not cue and _stem_in(head, domain.occasions)), f"is {row} good for {words}?"),
        (
            cue == "to" or (cue == "doing" and (matters or _stem_in(head, domain.occasions))),
            f"is {row} a good place to {words}?",
        ),
        (search_words().is_adjective(head) and not owned, f"is {row} {words}?"),
        (dish and not cue, f"does {row} serve {words}?"),
    )
    article = "a " if head in domain.counted and opening not in _DETERMINED and not re.search(r"\d", words) else ""
    owns = f"does {row} have {article}{words}?" if owned or matters or head in domain.counted else None
    return next((question for fits, question in asked if fits), owns)


def _stem_in(word: str, known: frozenset[str]) -> bool:
    return word in known or word.removesuffix("s") in known or word.removesuffix("ies") + "y" in known
