"""Whether a list of dishes has what a question asks for: singular and plural, spellings, related names."""

from __future__ import annotations

import re

_ASK = re.compile(
    r"\b(?:serve|serves|serving|have|has|offer|offers|sell|sells|make|makes|get|find|there|for)\s+"
    r"(?:(?:an?|any|the|some|good|great|tasty|delicious|really|best|fresh|authentic)\s+)*(?P<dish>.+?)"
    r"(?:\s+(?:here|there|at this (?:place|restaurant)))?\s*\??\s*$"
)
_SMALL = ("and", "with", "the", "of", "a")
_RELATED = {
    "ice cream": ("gelato", "sundae", "soft serve", "banana split"),
    "mac and cheese": ("macaroni and cheese", "mac & cheese"),
    "macaroni and cheese": ("mac and cheese",),
    "pizza": ("margherita", "calzone"),
    "burger": ("cheeseburger",),
    "noodle": ("ramen", "soba", "pho", "chow fun", "pad thai", "khao soi"),
    "pasta": ("pappardelle", "linguine", "gnocchi", "agnolotti", "cacio e pepe", "bolognese"),
    "dumpling": ("gyoza", "wonton", "mantu"),
    "coffee": ("latte", "cappuccino", "espresso", "cold brew"),
    "boba": ("bubble tea", "milk tea"),
    "bubble tea": ("boba", "milk tea"),
    "steak": ("ribeye", "filet mignon", "prime rib"),
    "fry": ("fries",),
}


def serves(dishes: str, question: str) -> str | None:
    """Return "Yes" or "No" for a question after a dish, None for a question after anything else."""
    match = _ASK.search(question.lower().strip())
    if not match:
        return None
    wanted = _words(match["dish"])
    options = [wanted, *(_words(r) for name, related in _RELATED.items() if _words(name) == wanted for r in related)]
    have = [_words(dish) for dish in dishes.split(",")]
    found = any(all(any(_is(w, d) for d in dish) for w in option) for option in options for dish in have)
    return "Yes" if found else "No"


def _words(text: str) -> tuple[str, ...]:
    return tuple(_singular(w) for w in re.findall(r"[^\W\d_]+", text.lower()) if w not in _SMALL)


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def _is(wanted: str, word: str) -> bool:
    """Tell whether a word names the wanted thing; a cheeseburger is a burger."""
    return word == wanted or (len(wanted) > 4 and word.endswith(wanted))
