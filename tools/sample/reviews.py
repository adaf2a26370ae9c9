"""Reviews of a restaurant: which review speaks of what, and how the sentences are put together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tools.sample.dice import Dice
from tools.sample.fill import Slots, fill, fits, slots_of
from tools.sample.grammar import Wording, attributes, read_toml
from tools.sample.restaurants import Restaurant


@dataclass(frozen=True, slots=True)
class Mention:
    """An attribute in a review: `text[start:end]` of the review is the wording in words."""

    wording: Wording
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Review:
    """One review with what it expresses and its skeletons: the template, slots unfilled, of every clause in it."""

    text: str
    mentions: tuple[Mention, ...]
    skeletons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence or clause in the making: its words, its template, and the wordings at their offsets."""

    text: str
    skeletons: tuple[str, ...]
    mentions: tuple[Mention, ...] = ()
    good: bool | None = None
    kind: str = "mention"

    def moved(self, by: int) -> tuple[Mention, ...]:
        return tuple(Mention(m.wording, m.start + by, m.end + by) for m in self.mentions)


class Reviewers:
    """Writes the reviews of one restaurant after another, using every template about as often as its neighbours."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._filler: dict[str, list[str]] = read_toml("filler.toml")
        self._used: Counter[str] = Counter()
        self._seen: set[str] = set()

    def write(self, restaurant: Restaurant) -> list[Review]:
        """Return the 5 to 20 reviews of a restaurant, which together bear out its truth."""
        dice = Dice(self._seed, "reviews", restaurant.id)
        plan = _plan(restaurant, dice)
        return [self._review(restaurant, said, dice) for said in plan]

    def _review(self, restaurant: Restaurant, said: Sequence[tuple[str, bool]], dice: Dice) -> Review:
        while True:
            stars = restaurant.rating + dice.uniform(-1.3, 1.1)
            pieces = self._pieces(restaurant, said, stars, dice)
            review = _joined(pieces, dice, excited=stars > 4.2)
            if review.text not in self._seen:
                self._seen.add(review.text)
                return review

    def _pieces(
        self, restaurant: Restaurant, spoken: Sequence[tuple[str, bool]], stars: float, dice: Dice
    ) -> list[_Piece]:
        slots, said = slots_of(restaurant), set[str]()
        talk = dice.weighted((0, 1, 2), (25, 50, 25))  # terse, ordinary, talkative

        def filler(kind: str) -> list[_Piece]:
            template = self._least_used([t for t in self._filler[kind] if fits(t, slots, said)], dice)
            if template is None or template in said:
                return []
            said.add(template)
            good = {"food_good": True, "food_bad": False}.get(kind)
            return [_Piece(fill(template, slots, dice, said), (template,), good=good, kind=kind)]

        talking = [self._mention(restaurant, each, slots, dice) for each in spoken]
        courses = dice.between(talk, talk + 1) or (not talking)
        food = [p for _ in range(courses) for p in filler(_food_kind(stars, dice))]
        asides = [p for _ in range(talk) if dice.chance(0.45) for p in filler("anecdote")]
        pieces = _paired(_arranged(talking, food, asides, dice), dice)
        if dice.chance((0.15, 0.45, 0.75)[talk]):
            pieces[:0] = filler("opening")
        if dice.chance((0.2, 0.4, 0.5)[talk]):
            pieces += filler("closing_good" if stars > 3.9 else "closing_mixed" if stars > 3 else "closing_bad")
        return pieces

    def _mention(self, restaurant: Restaurant, said: tuple[str, bool], slots: Slots, dice: Dice) -> _Piece:
        name, value = said
        attribute = attributes()[name]
        choices = {
            w.text: w
            for w in attribute.wordings
            if w.polarity is value and w.held_out is restaurant.held_out and fits(w.text, slots)
        }
        wording = choices[self._least_used(list(choices), dice) or ""]
        text = fill(wording.text, slots, dice)
        good = value is not attribute.true_is_bad
        return _Piece(text, (wording.text,), (Mention(wording, 0, len(text)),), good)

    def _least_used(self, templates: Sequence[str], dice: Dice) -> str | None:
        """Return one of three templates, the one used least: every template stays rare, and no pattern shows."""
        if not templates:
            return None
        chosen = min(dice.sample(templates, 3), key=lambda t: self._used[t])
        self._used[chosen] += 1
        return chosen


def _plan(restaurant: Restaurant, dice: Dice) -> list[list[tuple[str, bool]]]:
    """Return for each review what it says: (attribute, polarity). The truth always has the majority of its mentions."""
    size = 5 + int(15.99 * dice.uniform(0, 1) * dice.uniform(0.35, 1))
    plan: list[list[tuple[str, bool]]] = [[] for _ in range(size)]
    for name, value in restaurant.truth.items():
        count = min(size, 1 + sum(dice.chance(0.13) for _ in range(size)))
        dissent = _dissenters(restaurant, name, count, dice)
        tie_break = {i: dice.uniform(0, 2.5) for i in range(size)}
        authors = sorted(range(size), key=lambda i: len(plan[i]) + tie_break[i])[:count]
        for order, author in enumerate(dice.shuffled(authors)):
            plan[author].append((name, value if order >= dissent else not value))
    return plan


def _dissenters(restaurant: Restaurant, name: str, count: int, dice: Dice) -> int:
    devoted = name == "creative_plant_based" and restaurant.concept.name in ("vegan", "vegetarian")
    if not attributes()[name].dissent or devoted or count < 3 or not dice.chance(0.4):
        return 0
    return dice.between(1, (count - 1) // 2)


def _food_kind(stars: float, dice: Dice) -> str:
    good = min(0.92, max(0.1, (stars - 2.2) / 2.4))
    return dice.weighted(("food_good", "food_mixed", "food_bad"), (good, 0.3 * (1.2 - good), 0.55 * (1 - good)))


def _arranged(talking: Sequence[_Piece], food: Sequence[_Piece], asides: Sequence[_Piece], dice: Dice) -> list[_Piece]:
    """Return the body in an order that people write in: the food in one go more often than not."""
    if dice.chance(0.35):
        return dice.shuffled([*talking, *food, *asides])
    blocks = [dice.shuffled(food), dice.shuffled(talking)]
    ordered = [p for block in dice.shuffled(blocks) for p in block]
    for aside in asides:
        ordered.insert(dice.pick((0, len(ordered), len(ordered) // 2)), aside)
    return ordered


def _joinable(piece: _Piece) -> bool:
    return piece.good is not None and len(piece.text) < 62 and not re.search(r"[,;:]| but | and | so ", piece.text)


def _paired(pieces: Sequence[_Piece], dice: Dice) -> list[_Piece]:
    """Join some neighbours into one sentence: two things said at once."""
    paired: list[_Piece] = []
    for piece in pieces:
        last = paired[-1] if paired else None
        if last and piece.mentions and _joinable(last) and _joinable(piece) and dice.chance(0.6):
            paired[-1] = _compound(last, piece, dice)
        else:
            paired.append(piece)
    return paired


_AGREEING = (", and ", ", plus ", "; ", " and ", ", and on top of that ", "; also, ")
_OPPOSED = (", but ", ", though ", "; still, ", ", yet ", ", although ", "; on the other hand, ")


def _compound(first: _Piece, second: _Piece, dice: Dice) -> _Piece:
    connective = dice.pick(_AGREEING if first.good is second.good else _OPPOSED)
    text = first.text + connective + second.text
    mentions = first.mentions + second.moved(len(first.text) + len(connective))
    return _Piece(text, first.skeletons + second.skeletons, mentions)


_LEADS = {
    True: ("Bonus: ", "Also, ", "Nice touch: ", "And ", "What I liked: ", "I should add that "),
    False: ("Sadly, ", "Be warned: ", "My one gripe: ", "And ", "Heads up: ", "I should add that "),
}
_TURNS = {
    True: ("That said, ", "Still, ", "On the plus side, ", "In its favor, ", "Then again, "),
    False: ("That said, ", "Then again, ", "On the downside, ", "However, ", "The catch: "),
}
_FOOD = ("As for the food, ", "Food-wise, ", "Now the food: ", "On the plate, ", "What we ate: ")
_PRONOUN = re.compile(r"(the|they|there|we|you|our|it|my|their|she|he|everyone|nobody|I) ", re.IGNORECASE)
_ARTICLE = re.compile(r"(The|My|Their|We|They) ")


def _lead(piece: _Piece, before: _Piece | None, dice: Dice) -> str:
    """Return the words that tie a sentence to the one before, mostly none."""
    if piece.good is None:
        return ""
    if before and before.good is (not piece.good) and dice.chance(0.35):
        lead = dice.pick(_TURNS[piece.good])
    elif piece.mentions and before and dice.chance(0.1):
        lead = dice.pick(_LEADS[piece.good])
    elif not piece.mentions and before and before.kind != piece.kind and dice.chance(0.2):
        lead = dice.pick(_FOOD)
    else:
        return ""
    return lead if (lead.endswith(": ") and piece.mentions) or _PRONOUN.match(piece.text) else ""


def _joined(pieces: Sequence[_Piece], dice: Dice, *, excited: bool) -> Review:
    text = ""
    mentions: list[Mention] = []
    before: _Piece | None = None
    for piece in pieces:
        lead = _lead(piece, before, dice)
        words = piece.text if not _ARTICLE.match(piece.text) else piece.text[0].lower() + piece.text[1:]
        words = lead + words if lead else piece.text[:1].upper() + piece.text[1:]
        text += " " if text else ""
        mentions += piece.moved(len(text) + len(lead))
        text += words + _end(piece, dice, excited=excited, last=piece is pieces[-1])
        before = piece
    casual = dice.chance(0.05)
    return Review(text.lower() if casual else text, tuple(mentions), tuple(s for p in pieces for s in p.skeletons))


def _end(piece: _Piece, dice: Dice, *, excited: bool, last: bool) -> str:
    if excited and piece.good and dice.chance(0.15):
        return "!"
    return "..." if not (last or piece.mentions) and dice.chance(0.03) else "."
