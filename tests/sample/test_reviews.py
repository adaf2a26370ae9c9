"""The reviews: rich wordings, no sentence skeleton in more than 2 % of them, annotations that agree with the truth."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from tools.sample import generate, grammar
from tools.sample.fill import is_plural

from almanaq.sample import load
from almanaq_bench.sample.truth import load_truth

LIMIT = 0.02


@pytest.fixture(scope="module")
def reviews() -> list:
    return [r for place in generate.places() for r in place.reviews]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [t for row in load("restaurants").tables["restaurants"].to_pylist() for t in row["reviews"]]


def _share(groups) -> float:
    groups = list(groups)
    return Counter(item for group in groups for item in set(group)).most_common(1)[0][1] / len(groups)


def test_no_clause_skeleton_as_the_generator_records_it_is_common(reviews):
    """A sentence is one clause or more, so no sentence skeleton is common either."""
    assert _share(r.skeletons for r in reviews) <= LIMIT


@pytest.mark.nightly
def test_no_skeleton_of_the_published_text_is_common(texts):
    """Without the generator's word for it: blank every known value, number and name in the text and count sentences."""
    words = {w for values in grammar.read_toml("slots.toml").values() for w in values} | {*grammar.CITIES}
    for concept in grammar.concepts().values():
        words |= {*concept.food, *concept.desserts, *concept.drinks, *concept.baked, *concept.names, *concept.pizza}
        words |= {t.title() for t in concept.tags}
    words |= {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
    words |= {s for city in grammar.read_toml("places.toml").values() for s, _ in city["streets"]}
    known = re.compile(
        r"\b(?:" + "|".join(map(re.escape, sorted(words, key=len, reverse=True))) + r")\b", re.IGNORECASE
    )

    def skeletons(text: str) -> list[str]:
        blank = re.sub(r"\b(?:is|are|was|were|has|have)\b", "=", re.sub(r"\d+", "#", known.sub("_", text))).lower()
        return [s for s in re.split(r"(?<=[.!?;])\s+", blank) if len(s) > 3]

    assert _share([s.rstrip(".!?;") for s in skeletons(text)] for text in texts) <= LIMIT


def test_reviews_are_different_texts_of_one_paragraph(texts):
    assert len(set(texts)) == len(texts)
    assert not [t for t in texts if "\n" in t or "{" in t or "}" in t or "|" in t or "  " in t]


def test_every_attribute_has_many_wordings_some_held_out():
    assert len(grammar.attributes()) >= 25
    for attribute in grammar.attributes().values():
        for polarity, least in ((True, 8), (False, 6)):
            mine = [w for w in attribute.wordings if w.polarity is polarity]
            held_out = [w for w in mine if w.held_out]
            assert len(mine) >= least, attribute.name
            assert 0.15 <= len(held_out) / len(mine) <= 0.35, attribute.name
    ids = [w.id for a in grammar.attributes().values() for w in a.wordings]
    assert len(set(ids)) == len(ids)


def test_held_out_wordings_stand_in_held_out_restaurants_and_nowhere_else():
    truth = load_truth()
    assert 0.2 <= len(truth.held_out) / len(truth.values) <= 0.3
    assert all(m.held_out is (m.restaurant_id in truth.held_out) for m in truth.mentions)


def test_a_mention_points_at_its_words():
    rows = {r["id"]: r["reviews"] for r in load("restaurants").tables["restaurants"].to_pylist()}
    wordings = {w.id: w for a in grammar.attributes().values() for w in a.wordings}
    for m in load_truth().mentions:
        words, wording = rows[m.restaurant_id][m.review][m.start : m.end], wordings[m.wording]
        assert (wording.attribute, wording.polarity) == (m.attribute, m.polarity)
        fixed = [
            f
            for f in re.split(r"\[[^\]]*\]|\{\w+\}(?: (?:is|was|has|comes|tastes|needs)\b)?", wording.text)
            if f.strip()
        ]
        assert all(part.strip(" ").lower() in words.lower() for part in fixed), (words, wording.text)


def test_the_truth_is_what_most_mentions_say():
    truth = load_truth()
    votes: Counter[tuple[int, str]] = Counter()
    for m in truth.mentions:
        votes[m.restaurant_id, m.attribute] += 1 if m.polarity else -1
    mentioned = {(m.restaurant_id, m.attribute) for m in truth.mentions}
    for number, values in truth.values.items():
        for name, value in values.items():
            assert (value is None) is ((number, name) not in mentioned)
            assert value is None or (votes[number, name] > 0) is value
            assert value is None or votes[number, name] != 0


def test_reviewers_disagree_sometimes_but_never_on_facts():
    said: dict[tuple[int, str], set[bool]] = {}
    for m in load_truth().mentions:
        said.setdefault((m.restaurant_id, m.attribute), set()).add(m.polarity)
    disputed = [name for (_, name), polarities in said.items() if len(polarities) == 2]
    assert 0.02 <= len(disputed) / len(said) <= 0.3
    assert all(grammar.attributes()[name].dissent for name in disputed)


def test_no_review_says_an_attribute_twice_and_many_say_two(reviews):
    names = [[m.wording.attribute for m in r.mentions] for r in reviews]
    assert all(len(set(n)) == len(n) for n in names)
    assert sum(len(n) >= 2 for n in names) / len(names) > 0.4


@pytest.mark.parametrize("words", ["garlic knots", "oysters on the half shell", "eggs Benedict", "gnocchi", "blinis"])
def test_plural_dishes(words):
    assert is_plural(words)


@pytest.mark.parametrize(
    "words", ["pizza", "hummus with lamb", "chicken and waffles", "fish and chips", "couscous royale"]
)
def test_singular_dishes(words):
    assert not is_plural(words)
