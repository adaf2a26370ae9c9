"""Templates to words: `[a|b]` chooses, `{slot}` is filled, and the verb and article beside a slot agree with it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache

from tools.sample.dice import Dice
from tools.sample.grammar import Concept, read_toml
from tools.sample.restaurants import WEEKDAYS, Restaurant

_CHOICE = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")
_SLOT = re.compile(
    r"(?P<article>\b[Aa] )?\{(?P<name>\w+)\}"
    r"(?P<verb> (?:is|was|has|tastes|needs|comes|seems|leans|looks|deserves|fills)\b)?"
)
_PLURAL_VERB = {"is": "are", "was": "were", "has": "have"}
_MASS = ("hummus", "couscous", "bolognese", "swiss", "grass", "loco moco", "kouign-amann", "cleanse", "kimchi")
_MANY = ("gnocchi", "agnolotti", "escargots", "mussels", "mantu", "cannoli", "gyoza")
_ADJECTIVES = re.compile(
    "chinese|taiwanese|thai|vietnamese|japanese|korean|indian|burmese|filipino|mexican|peruvian|italian|american|"
    "californian|french|greek|mediterranean|afghan|ethiopian|moroccan|spanish|caribbean|hawaiian"
)
_DRINK = re.compile(r"latte|cappuccino|boba|milk tea|affogato")

Slots = Mapping[str, Sequence[str]]


def slots_of(restaurant: Restaurant) -> dict[str, Sequence[str]]:
    """Return the words that each slot may take for a restaurant; a slot that makes no sense for it is absent."""
    concept = restaurant.concept
    mains = _mains(restaurant.dishes, concept) or _mains(concept.food, concept) or list(restaurant.dishes)
    adjective = [t.title() for t in concept.tags[:1] if _ADJECTIVES.fullmatch(t)]
    savory = mains if concept.kind != "cafe" and concept.name != "sushi" else []
    return {
        **_general(),
        "weekday": [d for d in WEEKDAYS if d != restaurant.closed],
        "name": [restaurant.name],
        "city": [restaurant.city],
        "street": [restaurant.street],
        "dish": mains,
        "dish2": mains,
        "savory": savory,
        "savory2": savory,
        "dessert": concept.desserts,
        "drink": concept.drinks,
        "baked": concept.baked,
        "cuisine": adjective,
        "pizza": concept.pizza,
    }


def _mains(dishes: Sequence[str], concept: Concept) -> list[str]:
    """Return what one eats: a latte is never undercooked."""
    return [d for d in dishes if d not in concept.desserts and not _DRINK.search(d)]


def fits(template: str, slots: Slots, said: Collection[str] = ()) -> bool:
    """Tell whether every slot of the template has words, and its food words that are not in `said`."""
    names = _names(template)
    food = [n for n in names if n.startswith(("dish", "savory"))]
    left = [w for w in slots[food[0]] if w not in said] if food else []
    return all(slots.get(n) for n in names) and len(left) >= len(set(food))


@cache
def _names(template: str) -> tuple[str, ...]:
    return tuple(match["name"] for match in _SLOT.finditer(template))


def fill(template: str, slots: Slots, dice: Dice, said: set[str] | None = None) -> str:
    """Return the template in words.

    No slot takes a word in `said` while it has others, and `said` grows by its words.
    """
    text = _CHOICE.sub(lambda m: dice.pick(m[1].split("|")), template)
    chosen: dict[str, str] = {}
    said = set() if said is None else said

    def put(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in chosen:
            options = [w for w in slots[name] if w not in said] or list(slots[name])
            chosen[name] = dice.pick(options)
            said.add(chosen[name])
        word = chosen[name]
        return _article(match["article"], word) + word + _verb(match["verb"], word)

    return _SLOT.sub(put, text)


def is_plural(words: str) -> bool:
    """Tell whether the head of a dish's name is plural ("clams with beans" is, "pie with apples" is not)."""
    head = re.split(r" (?:with|and|on|in|of|al|à|a la) ", words)[0].split()[-1].lower()
    if head in _MASS or words.lower() in _MASS:
        return False
    if words.startswith(("oysters ", "eggs ", "moules ")):
        return True
    return head in _MANY or (head.endswith("s") and not head.endswith(("ss", "us"))) or " and fries" in words


def _article(article: str | None, word: str) -> str:
    if not article:
        return ""
    return article[0] + ("n " if word[0].lower() in "aeio" else " ")


def _verb(verb: str | None, word: str) -> str:
    if not verb or not is_plural(word):
        return verb or ""
    bare = verb.strip()
    return " " + (_PLURAL_VERB.get(bare) or bare.removesuffix("s"))


@lru_cache(maxsize=1)
def _general() -> dict[str, list[str]]:
    return dict(read_toml("slots.toml"))
