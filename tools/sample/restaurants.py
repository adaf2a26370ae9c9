"""Restaurants with everything but their reviews: structured columns and the hidden truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tools.sample.dice import Dice
from tools.sample.grammar import CITIES, PRICES, Concept, attributes, concepts, read_toml

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HELD_OUT_EVERY = 4  # every fourth restaurant is reviewed in held-out wordings, and no other


@dataclass(frozen=True, slots=True)
class Restaurant:
    """One restaurant; `truth` holds the attributes that its reviews speak of, the others are not mentioned."""

    id: int
    name: str
    concept: Concept
    cuisines: tuple[str, ...]
    price: str
    rating: float
    city: str
    street: str
    address: str
    phone: str
    dishes: tuple[str, ...]
    opening_hours: str
    closed: str | None
    truth: Mapping[str, bool]

    @property
    def held_out(self) -> bool:
        """Whether its reviews use the held-out wordings."""
        return self.id % HELD_OUT_EVERY == 0


@dataclass(frozen=True, slots=True)
class _Lot:
    """A place for a restaurant, before the dice are thrown for it."""

    concept: Concept
    city: str
    name: str
    plant: Mapping[str, Any]


def restaurants(seed: int) -> list[Restaurant]:
    """Return all restaurants, in the order of their ids."""
    lots = Dice(seed, "order").shuffled(_lots(seed))
    lines: Counter[str] = Counter()
    return [_restaurant(i, lot, Dice(seed, "restaurant", i), lines) for i, lot in enumerate(lots, 1)]


def _lots(seed: int) -> list[_Lot]:
    plants: list[dict[str, Any]] = list(read_toml("planted.toml")["restaurant"])
    lots = []
    for concept in concepts().values():
        names = Dice(seed, "names", concept.name).shuffled(concept.names)
        for city, count in zip(CITIES, concept.count, strict=True):
            mine = [p for p in plants if (p["concept"], p["city"]) == (concept.name, city)]
            if len(mine) > count:
                raise ValueError(f"planted.toml wants {len(mine)} {concept.name} in {city}, concepts.toml has {count}")
            for i in range(count):
                lots.append(_Lot(concept, city, names.pop(), mine[i] if i < len(mine) else {}))
    return lots


def _restaurant(number: int, lot: _Lot, dice: Dice, lines: Counter[str]) -> Restaurant:
    rating = lot.plant.get("rating") or _rating(dice)
    truth = _truth(lot, rating, dice)
    price = lot.plant.get("price") or dice.weighted(PRICES, lot.concept.prices)
    street, address = _address(lot.city, truth, dice)
    closed = dice.pick(WEEKDAYS[:3]) if dice.chance(0.3) else None
    return Restaurant(
        id=number,
        name=lot.name,
        concept=lot.concept,
        cuisines=_cuisines(lot.concept, dice),
        price=price,
        rating=rating,
        city=lot.city,
        street=street,
        address=address,
        phone=_phone(lot.city, lines),
        dishes=_dishes(lot, dice),
        opening_hours=_hours(lot.concept, truth, closed, dice),
        closed=closed,
        truth=truth,
    )


def _rating(dice: Dice) -> float:
    """Return a rating like those of review sites: mostly 3.4 to 4.5."""
    middle = sum(dice.uniform(3.0, 4.9) for _ in range(3)) / 3
    return round(min(4.8, max(2.2, 3.97 + (middle - 3.95) * 1.7)), 1)


def _truth(lot: _Lot, rating: float, dice: Dice) -> dict[str, bool]:
    table = read_toml("leanings.toml")
    truth: dict[str, bool] = {}
    for name in attributes():
        entry = table[name]
        mentioned, holds = entry.get(lot.concept.name) or entry.get(lot.concept.kind) or entry["default"]
        tilt = (rating - 4.0) * 0.35 if name in ("good_service", "good_desserts") else 0.0
        said, true = dice.chance(mentioned), dice.chance(holds + tilt)
        if said and (lot.city == "San Francisco" or not name.endswith("_view")):
            truth[name] = true
    return _coherent(truth, lot.plant.get("attributes", {}))


def _coherent(truth: dict[str, bool], planted: Mapping[str, bool]) -> dict[str, bool]:
    """Take away what would contradict what stands; the planted attributes stand first."""
    for name, value in planted.items():
        truth[name] = value
    if truth.get("golden_gate_view"):
        truth["water_view"] = True
    for strong, weak in _RIVALS:
        if truth.get(strong) and truth.get(weak):
            truth.pop(strong if weak in planted else weak)
    return {name: truth[name] for name in attributes() if name in truth}


_RIVALS = (("quiet", "live_music"), ("quiet", "upbeat_atmosphere"), ("romantic", "kid_friendly"))


def _address(city: str, truth: Mapping[str, bool], dice: Dice) -> tuple[str, str]:
    place = read_toml("places.toml")[city]
    streets = place["waterfront"] if truth.get("water_view") else place["streets"]
    street, code = dice.pick(streets)
    number = dice.between(11, 399) * (1 if truth.get("water_view") else dice.between(1, 7))
    return street, f"{number} {street}, {city}, CA {code}"


def _phone(city: str, lines: Counter[str]) -> str:
    """Return the next number of the range that is kept for fiction, 555-0100 to 555-0199."""
    code = next(c for c in read_toml("places.toml")[city]["area_codes"] if lines[c] < 100)
    lines[code] += 1
    return f"({code}) 555-01{lines[code] - 1:02d}"


def _cuisines(concept: Concept, dice: Dice) -> tuple[str, ...]:
    more = dice.sample(concept.extra, dice.between(0, min(2, len(concept.extra))))
    return tuple(dict.fromkeys((*concept.tags, *more)))


def _dishes(lot: _Lot, dice: Dice) -> tuple[str, ...]:
    wanted = lot.plant.get("dishes", [])
    mains = [d for d in dice.sample(lot.concept.food, dice.between(4, 6)) if d not in wanted]
    return tuple(dice.shuffled([*wanted, *mains]) + dice.sample(lot.concept.desserts, dice.between(0, 2)))


def _hours(concept: Concept, truth: Mapping[str, bool], closed: str | None, dice: Dice) -> str:
    opens, closes = _open_close(concept.kind, truth, dice)
    if concept.name == "brunch":
        opens, closes = "7:30 AM", "3:00 PM"
    late = truth.get("late_night")
    weekend = closes if late is not None or concept.kind == "cafe" or concept.name == "brunch" else "10:30 PM"
    text = f"Mon-Thu {opens}-{closes}; Fri-Sun {opens}-{weekend}" if weekend != closes else f"daily {opens}-{closes}"
    return f"{text}; closed {closed}" if closed else text


def _open_close(kind: str, truth: Mapping[str, bool], dice: Dice) -> tuple[str, str]:
    if kind == "cafe":
        return dice.pick(("6:30 AM", "7:00 AM")), dice.pick(("5:00 PM", "6:00 PM", "7:00 PM"))
    if truth.get("late_night") is not None:
        return "11:00 AM", dice.pick(("1:30 AM", "2:00 AM")) if truth["late_night"] else "8:30 PM"
    noon = truth.get("lunch_special") is not None or truth.get("fresh_baked_goods") is not None
    opens = "7:00 AM" if truth.get("fresh_baked_goods") is not None else "11:00 AM"
    if kind in ("fine", "bar", "sit_down") and not noon:
        opens = dice.pick(("3:00 PM", "4:00 PM")) if kind == "bar" else dice.pick(("11:30 AM", "5:00 PM"))
    return opens, dice.pick(("9:00 PM", "9:30 PM", "10:00 PM"))
