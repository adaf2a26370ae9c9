"""The bundled sample: what is committed is what the generator makes, and it has the shape that the docs promise."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal

import pytest
from tools.sample import generate, grammar
from tools.sample.restaurants import restaurants

from almanaq import sample
from almanaq.errors import UsageError


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return sample.load("restaurants").tables["restaurants"].to_pylist()


def test_the_committed_files_are_what_the_generator_makes():
    assert generate.differences() == []


def test_a_missing_file_is_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generate, "DATA", tmp_path)
    monkeypatch.setattr(generate, "places", list)  # making them takes seconds
    assert generate.main(["--check"]) == 1
    said = capsys.readouterr().err
    assert "restaurants.parquet: differs" in said
    assert "restaurants.almanaq.toml: differs" in said


def test_another_seed_makes_other_reviews_and_keeps_the_laws(rows):
    others = generate.places(7)
    assert [p.reviews[0].text for p in others] != [r["reviews"][0] for r in rows]
    assert len(others) >= 300
    assert all(5 <= len(p.reviews) <= 20 for p in others)


def test_columns_and_kinds():
    loaded = sample.load("restaurants")
    types = {f.name: str(f.type) for f in loaded.tables["restaurants"].schema}
    strings = dict.fromkeys(
        ("name", "price", "address", "popular_dishes", "phone_number", "opening_hours", "location"), "string"
    )
    assert {k: types[k] for k in strings} == strings
    assert types["id"] == types["num_reviews"] == "int32"
    assert types["rating"] == "decimal128(2, 1)"
    assert types["cuisines"].startswith("list<")
    assert types["reviews"].startswith("list<")
    schema = loaded.schema["restaurants"]
    assert schema["key"] == ["id"]
    assert list(schema["columns"]) == list(types)
    kinds = {name: column["kind"] for name, column in schema["columns"].items()}
    assert [n for n, k in kinds.items() if k == "enum"] == ["cuisines", "price"]
    assert [n for n, k in kinds.items() if k == "free_text"] == ["popular_dishes", "reviews"]


def test_values_are_whole_and_coherent(rows):
    columns = sample.load("restaurants").schema["restaurants"]["columns"]
    assert 300 <= len(rows) <= 400
    assert [r["id"] for r in rows] == list(range(1, len(rows) + 1))
    for row in rows:
        assert set(row["cuisines"]) <= set(columns["cuisines"]["values"])
        assert row["price"] in columns["price"]["values"]
        assert Decimal("1") <= row["rating"] <= Decimal("5")
        assert 5 <= len(row["reviews"]) <= 20 <= 20 + row["num_reviews"]
        assert row["num_reviews"] >= len(row["reviews"])
        assert re.fullmatch(r"\((415|628|650|408|669)\) 555-01\d\d", row["phone_number"])
        assert f", {row['location']}, CA 9" in row["address"]
        assert all(row.values())


@pytest.mark.parametrize("column", ["name", "phone_number"])
def test_no_two_restaurants_share(rows, column):
    assert max(Counter(r[column] for r in rows).values()) == 1


def test_each_city_and_price_has_restaurants(rows):
    assert min(Counter(r["location"] for r in rows)[c] for c in grammar.CITIES) >= 40
    assert {r["price"] for r in rows} == set(grammar.PRICES)


def test_common_literals_must_be_linked_not_compared():
    values = set(grammar.cuisines())
    assert 40 <= len(values) <= 80
    assert values.isdisjoint({"coffee", "coffee shop", "burger", "bbq", "steakhouse", "pub", "ethnic"})
    assert {"coffee & tea", "burgers", "barbeque", "steakhouses", "irish pub", "vegan", "sushi"} <= values
    assert all(v == v.lower() for v in values)


def test_a_dish_belongs_to_its_kind_of_restaurant():
    for restaurant in restaurants(generate.SEED):
        assert set(restaurant.dishes) <= {*restaurant.concept.food, *restaurant.concept.desserts}


def test_all_files_together_stay_small():
    assert sum(p.stat().st_size for p in generate.files().values()) < 1_000_000


def test_an_unknown_sample_is_an_error_with_near_names():
    with pytest.raises(UsageError, match="did you mean 'restaurants'"):
        sample.path("restaurant")
    with pytest.raises(UsageError, match="no bundled sample 'movies'"):
        sample.load("movies")


def test_the_command_refuses_other_arguments(capsys):
    assert generate.main(["--chek"]) == 2
    assert "usage" in capsys.readouterr().err
