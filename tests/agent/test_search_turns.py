"""Searches of reviewed rows, in one question and over turns: what they may say, and what a reply may not make up."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

import almanaq
from almanaq.text.hours import is_open

pytestmark = pytest.mark.sampled(2)

STEPS = ("cheap", "moderate", "expensive", "luxury")
NAMES = ("Alder Hall", "Birch House", "Cedar Court", "Dogwood", "Elm Lodge", "Fir Cottage")
HOURS = ("daily 9 AM-5 PM", "Mon-Fri 8 AM-11 PM; closed Wednesday", "Mon-Sat 6 AM-2 PM", "Sat-Sun 10 AM-4 PM")
ROWS = [
    {
        "id": i + 1,
        "name": name,
        "styles": [("spa", "golf", "ski", "beach")[i % 4], ("family", "quiet stay")[i % 2]],
        "price": STEPS[i % 4],
        "rating": 3 + i / 4,
        "opening_hours": HOURS[i % 4],
        "address": f"{i + 1} Main Street",
        "location": ("New Haven", "Salem")[i // 3],
        "reviews": [f"The pool at {name} was warm and we slept well.", "Breakfast was served late."],
    }
    for i, name in enumerate(NAMES)
]
SCHEMA = """
[hotels]
key = ["id"]
[hotels.columns.styles]
kind = "enum"
[hotels.columns.price]
kind = "enum"
[hotels.columns.reviews]
kind = "free_text"
"""


@pytest.fixture(scope="module")
def hotels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[almanaq.Connection]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("hotels")
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "hotels.parquet")
    (folder / "hotels.almanaq.toml").write_text(SCHEMA)
    with almanaq.connect(str(folder / "hotels.parquet"), cache=False) as connection:
        yield connection


def names(reply: almanaq.Response) -> set[object]:
    assert reply.rows is not None, reply.answer
    place = reply.columns.index("name")
    return {row[place] for row in reply.rows}


def test_kinds_are_items_of_lists(hotels: almanaq.Connection) -> None:
    counted = Counter(item for row in ROWS for item in row["styles"])
    assert {row[0] for row in hotels.ask("what styles are there?").rows} == set(counted)
    assert dict(hotels.ask("how many hotels per style").rows) == counted
    best = max(counted, key=lambda item: counted[item])
    assert hotels.ask("which style has the most hotels?").rows[0][1] == counted[best]


@pytest.mark.parametrize("when", ["open on Wednesdays", "closed on Sunday", "open until 9 pm on Monday"])
def test_hours_are_tested(hotels: almanaq.Connection, when: str) -> None:
    fits = {row["name"] for row in ROWS if is_open(row["opening_hours"], f"is it {when}?")}
    assert names(hotels.ask(f"all hotels {when}")) == fits


def test_hours_of_one_row_are_shown(hotels: almanaq.Connection) -> None:
    chat = hotels.chat()
    assert chat.ask("hotels in Salem").rows
    for asked in ("when is the first one open?", "does the first one open before 7 am?", "is it closed on Sundays?"):
        reply = chat.ask(asked)
        assert dict(zip(reply.columns, reply.rows[0], strict=True)).get("opening_hours") == ROWS[3]["opening_hours"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("said", "holds"),
    [("no more than", operator.le), ("at least", operator.ge), ("under", operator.lt), ("above", operator.gt)],
)
def test_steps_are_compared(hotels: almanaq.Connection, said: str, holds: operator.itemgetter, step: str) -> None:
    fits = {row["name"] for row in ROWS if holds(STEPS.index(row["price"]), STEPS.index(step))}
    reply = hotels.ask(f"all hotels {said} {step}")
    assert (names(reply) if reply.rows else set()) == fits


@pytest.mark.parametrize(("step", "fits"), [("cheap", STEPS[1:]), ("expensive", STEPS[:2]), ("luxury", STEPS[:3])])
def test_what_is_not_a_step_is_beyond_it(hotels: almanaq.Connection, step: str, fits: tuple[str, ...]) -> None:
    reply = hotels.ask(f"all hotels that are not very {step}")
    assert {row[reply.columns.index("price")] for row in reply.rows} == set(fits)


@pytest.mark.parametrize("filler", ["would be perfect", "I was hoping", "or whatever", "sounds good right now"])
def test_words_that_wish_for_nothing_ask_nothing_of_texts(hotels: almanaq.Connection, filler: str) -> None:
    reply = hotels.ask(f"hotels in Salem {filler}")
    assert "answer(" not in (reply.suql or "")


def test_what_nobody_asked_for_is_offered(hotels: almanaq.Connection) -> None:
    chat = hotels.chat()
    reply = chat.ask("beach hotels in Salem with a rating above 4.9")
    assert reply.status == "no_result"
    assert not reply.rows
    assert len(reply.readings) == 1
    offered = reply.readings[0].run().rows
    assert offered
    assert chat.ask("yes").rows == tuple(offered)


@pytest.mark.parametrize("turn", ["only cheap ones", "what about Salem?", "with a rating above 4"])
def test_a_wish_stays_where_a_turn_names_a_value(hotels: almanaq.Connection, turn: str) -> None:
    chat = hotels.chat()
    wished = chat.ask("quiet hotels in New Haven").suql or ""
    condition = wished[wished.index("answer(") : wished.index("= 'Yes'")]
    assert condition in (chat.ask(turn).suql or "")


@pytest.mark.parametrize("asked", ["address?", "What's the price?", "where are they?", "the opening hours please"])
def test_columns_alone_are_asked_of_the_rows_shown(hotels: almanaq.Connection, asked: str) -> None:
    chat = hotels.chat()
    shown = names(chat.ask("hotels in Salem"))
    assert names(chat.ask(asked)) == shown


def test_which_of_the_rows_shown(hotels: almanaq.Connection) -> None:
    chat = hotels.chat()
    chat.ask("hotels in Salem")
    assert names(chat.ask("which is better rated?")) == {NAMES[5]}
    assert names(chat.ask("which one is cheaper?")) == {NAMES[4]}
    assert names(chat.ask("the one with the lowest rating")) == {NAMES[3]}
    assert names(chat.ask("what's the cheapest?")) == {NAMES[4]}


@pytest.mark.parametrize("more", ["what other hotels are there?", "do you have anything else?", "any others?"])
def test_others_are_none_of_those_shown(hotels: almanaq.Connection, more: str) -> None:
    chat = hotels.chat()
    shown = names(chat.ask("hotels"))
    assert names(chat.ask(more)) == set(NAMES) - shown


@pytest.mark.parametrize("said", ["NH", "New Haven", "nh"])
def test_initials_of_a_value(hotels: almanaq.Connection, said: str) -> None:
    assert names(hotels.ask(f"all hotels in {said}")) == {row["name"] for row in ROWS if row["location"] == "New Haven"}


@pytest.mark.parametrize(
    "said",
    [
        "the price doesn't matter",
        "at any price",
        "never mind the price",
        "money is no object",
        "the place doesn't have to be cheap",
    ],
)
def test_what_does_not_matter_is_dropped_or_changes_nothing(hotels: almanaq.Connection, said: str) -> None:
    for first, fits in (("cheap hotels in Salem", "Salem"), ("hotels in Salem", "Salem")):
        chat = hotels.chat()
        chat.ask(first)
        assert names(chat.ask(said)) == {row["name"] for row in ROWS if row["location"] == fits}


@pytest.mark.parametrize("said", ["anywhere is fine", "any place is ok", "expand that to all cities"])
def test_any_place_is_each(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    chat.ask("golf hotels in Salem")
    assert names(chat.ask(said)) == {row["name"] for row in ROWS if "golf" in row["styles"]}


@pytest.mark.parametrize("said", ["not in Salem", "leave out Salem", "anywhere but Salem"])
def test_what_is_left_out_of_several_values_leaves_the_others(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    chat.ask("hotels in New Haven or Salem that are family")
    fits = {row["name"] for row in ROWS if row["location"] == "New Haven" and "family" in row["styles"]}
    assert names(chat.ask(said)) == fits


@pytest.mark.parametrize(
    ("said", "fits"),
    [
        ("or golf", lambda styles: {"spa", "golf"} & styles),
        ("it could also be golf", lambda styles: {"spa", "golf"} & styles),
        ("and family too", lambda styles: {"spa", "family"} <= styles),
    ],
)
def test_a_list_holds_either_or_both(hotels: almanaq.Connection, said: str, fits: Callable[[set[str]], bool]) -> None:
    chat = hotels.chat()
    chat.ask("all spa hotels")
    assert names(chat.ask(said)) == {row["name"] for row in ROWS if fits(set(row["styles"]))}


@pytest.mark.parametrize("first", ["hotels in Salem", "tell me about Elm Lodge"])
def test_what_people_say_is_asked_of_the_rows_shown(hotels: almanaq.Connection, first: str) -> None:
    chat = hotels.chat()
    shown = names(chat.ask(first))
    reply = chat.ask("what do people say about the breakfast?")
    assert names(reply) == shown
    assert "'what do people say about the breakfast?'" in (reply.suql or "")


def test_all_is_told_of_a_row_also_after_a_question_about_others(hotels: almanaq.Connection) -> None:
    chat = hotels.chat()
    chat.ask("hotels in Salem")
    asked = chat.ask("what else do they say about the pool?").suql or ""
    assert "'what else do they say about the pool?'" in asked
    assert "summary(reviews)" in (chat.ask("tell me about the first one").suql or "")


def test_a_greeting_asks_for_nothing(hotels: almanaq.Connection) -> None:
    assert hotels.ask("Hi there, hotels in Salem").suql == hotels.ask("hotels in Salem").suql


def column(reply: almanaq.Response, name: str) -> list[object]:
    assert reply.rows is not None, reply.answer
    return [row[reply.columns.index(name)] for row in reply.rows]


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        ("is there anything cheap?", "price", "cheap"),
        ("I want something moderate", "price", "moderate"),
        ("somewhere $$", "price", "moderate"),
        ("keep it moderate please", "price", "moderate"),
        ("Great, thanks! I'd like a golf one", "styles", "golf"),
        ("can you restrict it to golf?", "styles", "golf"),
        ("show only golf hotels", "styles", "golf"),
        ("they should have golf", "styles", "golf"),
        ("she loves golf", "styles", "golf"),
    ],
)
def test_a_search_is_narrowed(hotels: almanaq.Connection, said: str, key: str, value: str) -> None:
    chat = hotels.chat()
    chat.ask("hotels in New Haven")
    fits = {row["name"] for row in ROWS if row["location"] == "New Haven" and value in row[key]}
    assert fits
    assert names(chat.ask(said)) == fits


@pytest.mark.parametrize("said", ["which hotels are cheap?", "Hotel Birch House", "how many hotels are in Salem?"])
def test_what_asks_in_whole_starts_anew(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    chat.ask("hotels in New Haven that are family")
    assert chat.ask(said).rows == hotels.ask(said).rows


@pytest.mark.parametrize("said", ["wait, in Salem", "no wait, Salem", "sorry, I meant Salem", "hmm, Salem then"])
def test_a_correction_replaces_what_it_names(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    chat.ask("family hotels in New Haven")
    fits = {row["name"] for row in ROWS if row["location"] == "Salem" and "family" in row["styles"]}
    assert names(chat.ask(said)) == fits


@pytest.mark.parametrize("signs", range(1, 5))
def test_signs_are_steps_of_a_scale(hotels: almanaq.Connection, signs: int) -> None:
    reply = hotels.ask(f"all hotels that are {'$' * signs}")
    assert set(column(reply, "price")) == {STEPS[signs - 1]}


def test_one_of_several_values_is_dropped(hotels: almanaq.Connection) -> None:
    chat = hotels.chat()
    chat.ask("hotels with golf or ski")
    assert names(chat.ask("forget golf")) == {row["name"] for row in ROWS if "ski" in row["styles"]}


def test_what_is_left_out_does_not_replace_what_is_wanted(hotels: almanaq.Connection) -> None:
    chat = hotels.chat()
    chat.ask("family hotels")
    fits = {row["name"] for row in ROWS if "family" in row["styles"] and "spa" not in row["styles"]}
    assert names(chat.ask("but without spa")) == fits


def test_rows_alike_have_a_kind_of_the_row_and_are_others(hotels: almanaq.Connection) -> None:
    for said in ("similar hotels", "anything like it?", "do you have something like that one?"):
        chat = hotels.chat()
        assert names(chat.ask("tell me about Birch House")) == {NAMES[1]}
        kinds = set(ROWS[1]["styles"])
        assert names(chat.ask(said)) == {r["name"] for r in ROWS if kinds & set(r["styles"])} - {NAMES[1]}


def test_the_same_city_is_that_of_the_row(hotels: almanaq.Connection) -> None:
    chat = hotels.chat()
    chat.ask("tell me about Elm Lodge")
    assert names(chat.ask("any other hotels in the same city?")) == {NAMES[3], NAMES[5]}


def test_the_last_question_is_asked_of_another_row(hotels: almanaq.Connection) -> None:
    chat = hotels.chat()
    chat.ask("hotels in Salem")
    chat.ask("does the first one have a pool?")
    reply = chat.ask("and the second?")
    assert names(reply) == {NAMES[4]}
    assert "pool" in (reply.suql or "")


@pytest.mark.parametrize("said", ["why do people like it?", "what does the last one sell?", "how far is it?"])
def test_what_no_column_says_is_asked_of_the_row_s_texts(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    chat.ask("tell me about Elm Lodge")
    reply = chat.ask(said)
    assert names(reply) == {NAMES[4]}
    assert "answer(reviews, " in (reply.suql or "")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("said", ["nothing above {}", "not above {}"])
def test_what_nothing_is_to_be_is_denied(hotels: almanaq.Connection, said: str, step: str) -> None:
    chat = hotels.chat()
    chat.ask("all hotels")
    fits = {row["name"] for row in ROWS if STEPS.index(row["price"]) <= STEPS.index(step)}
    assert names(chat.ask(said.format(step))) == fits


@pytest.mark.parametrize(
    "said",
    [
        "how many are left?",
        "how many would that be?",
        "so how many is that?",
        "how many is that in total",
        "How many places are we talking about?",
    ],
)
def test_what_was_found_is_counted(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    chat.ask("hotels in Salem")
    assert chat.ask(said).rows == ((sum(row["location"] == "Salem" for row in ROWS),),)


@pytest.mark.parametrize("said", ["golf would be fine too", "golf is ok as well"])
def test_a_value_that_is_fine_too_is_another_one(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    chat.ask("all spa hotels")
    assert names(chat.ask(said)) == {row["name"] for row in ROWS if {"spa", "golf"} & set(row["styles"])}


@pytest.mark.parametrize(
    "said",
    [
        "golf instead of spa",
        "golf rather than spa?",
        "maybe golf would be better than spa",
        "he doesn't like spa... maybe golf?",
        "not spa, sorry. I meant golf",
        "golf hotels, not spa",
        "I'd prefer golf over spa",
        "How about golf? We had spa last year",
        "no? Then golf.",
        "Fine, back to golf",
    ],
)
def test_what_stands_instead_of_a_value_replaces_it(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    chat.ask("all spa hotels in New Haven")
    fits = {row["name"] for row in ROWS if "golf" in row["styles"] and row["location"] == "New Haven"}
    assert names(chat.ask(said)) == fits


@pytest.mark.parametrize("said", ["spa or golf", "both spa and golf", "spa, golf"])
def test_values_that_stand_together_replace_nothing(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    chat.ask("all spa hotels")
    suql = chat.ask(said).suql or ""
    assert "spa" in suql
    assert "golf" in suql


@pytest.mark.parametrize(
    "said",
    [
        "doesnt have to be cheap",
        "ok it isnt important whether it's cheap",
        "the price is not an issue: family though",
        "family. Never mind the price, we won the lottery",
        "what if its not cheap, just family",
        "it can be without the cheap",
    ],
)
def test_a_condition_is_given_up(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    chat.ask("all cheap family hotels in Salem")
    fits = {row["name"] for row in ROWS if row["location"] == "Salem" and "family" in row["styles"]}
    assert names(chat.ask(said)) == fits


@pytest.mark.parametrize("said", ["It can be a hotel in any of the cities, we have a car", "in any of the two cities"])
def test_any_of_the_values_is_each(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    chat.ask("all golf hotels in Salem")
    assert names(chat.ask(said)) == {row["name"] for row in ROWS if "golf" in row["styles"]}


@pytest.mark.parametrize(
    "said",
    [
        "with bread they bake themselves",
        "it's for the kids, they should be happy there",
        "any quiet ones among those?",
        "do they have parking?",
    ],
)
def test_what_narrows_goes_on_from_the_search(restaurants: almanaq.Connection, said: str) -> None:
    chat = restaurants.chat()
    chat.ask("Thai restaurants in San Francisco")
    suql = chat.ask(said).suql or ""
    assert "'thai' = ANY(cuisines) AND location = 'San Francisco' AND answer(" in suql


@pytest.mark.parametrize("point", ["which of these is the best rated?", "phone of the first?", "is Elm Lodge loud?"])
@pytest.mark.parametrize("said", ["family ones", "do you have more?", "can you name a few more?"])
def test_a_turn_about_one_row_ends_no_search(hotels: almanaq.Connection, point: str, said: str) -> None:
    def play(*turns: str) -> str | None:
        chat = hotels.chat()
        return [chat.ask(turn).suql for turn in turns][-1]

    assert play("hotels in Salem", point, said) == play("hotels in Salem", said)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("takes bookings?", "takes bookings?"),
        ("is there a pool?", "is there a pool?"),
        ("and the service?", "the service?"),
        ("and their number please, I'll give them a ring", "phone"),
    ],
)
def test_what_follows_about_one_row_is_asked_of_it(restaurants: almanaq.Connection, said: str, shown: str) -> None:
    chat = restaurants.chat()
    first = chat.ask("Thai restaurants in San Francisco").rows[0][0]
    assert chat.ask("what is the address of the first one?").rows[0][0] == first
    reply = chat.ask(said)
    assert [row[0] for row in reply.rows] == [first]
    assert shown in (reply.suql or "")


@pytest.mark.parametrize(
    "said", ["on which street is the last one?", "how do I get to the last one, whats the address"]
)
def test_the_way_to_a_row_is_its_address(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    chat.ask("hotels in Salem")
    reply = chat.ask(said)
    assert names(reply) == {NAMES[5]}
    assert column(reply, "address") == [ROWS[5]["address"]]


def test_what_is_known_of_a_row_is_told(hotels: almanaq.Connection) -> None:
    assert names(hotels.ask("What do you know about Elm Lodge?")) == {"Elm Lodge"}
    assert "columns" in hotels.ask("What do you know?").answer


def test_a_turn_drops_one_thing_and_asks_for_another(hotels: almanaq.Connection) -> None:
    chat = hotels.chat()
    chat.ask("all cheap hotels in Salem")
    fits = {row["name"] for row in ROWS if row["location"] == "Salem" and "family" in row["styles"]}
    assert names(chat.ask("the price is no issue, but family please")) == fits


@pytest.mark.parametrize("said", ["too expensive", "that is too expensive for me"])
def test_less_is_wanted_of_what_is_too_much(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    shown = {row["name"] for row in ROWS if row["price"] == "moderate"}
    assert names(chat.ask("all moderate hotels")) == shown
    assert names(chat.ask(said)) == {row["name"] for row in ROWS if row["price"] == "cheap"}


@pytest.fixture(scope="module")
def restaurants() -> Iterator[almanaq.Connection]:
    with almanaq.connect("sample:restaurants", model="local", cache=False) as connection:
        yield connection


@pytest.mark.parametrize(
    "said",
    [
        "noise is no problem",
        "without the quiet",
        "it need not be quiet",
        "loud is fine too",
        "quietness isn't really necessary any more",
        "that they are peaceful is less important now",
    ],
)
def test_a_wish_is_given_up_in_other_words(restaurants: almanaq.Connection, said: str) -> None:
    chat = restaurants.chat()
    assert "answer(" in (chat.ask("quiet Thai restaurants").suql or "")
    reply = chat.ask(said)
    assert "answer(" not in (reply.suql or "answer(")
    assert names(reply) <= names(restaurants.ask("all Thai restaurants"))


@pytest.mark.parametrize(
    "said",
    [
        "I'd rather have wifi than a quiet place",
        "She has her earplugs, so forget about the peace and find one with wifi",
        "My ears are bad, quiet doesn't really matter, but I would like wifi",
        "rather than quiet I would like wifi",
    ],
)
def test_a_wish_is_exchanged_for_another(restaurants: almanaq.Connection, said: str) -> None:
    chat = restaurants.chat()
    chat.ask("quiet restaurants with parking in Cupertino")
    suql = chat.ask(said).suql or ""
    assert [word in suql for word in ("quiet", "parking", "wifi", "Cupertino")] == [False, True, True, True]
    assert suql.count("answer(") == 2


@pytest.mark.parametrize("said", ["Which of the two has more reviews?", "Which of these has more reviews?"])
def test_more_of_those_shown_is_most(restaurants: almanaq.Connection, said: str) -> None:
    chat = restaurants.chat()
    shown = chat.ask("cheap bars in San Francisco")
    most = max(shown.rows, key=operator.itemgetter(shown.columns.index("num_reviews")))
    assert names(chat.ask(said)) == {most[shown.columns.index("name")]}


@pytest.mark.parametrize("said", ["leave out anything rated below 3.5", "please exclude the ones rated under 3.5"])
def test_rows_that_are_left_out_have_what_is_named(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    chat.ask("all hotels in New Haven")
    assert names(chat.ask(said)) == {row["name"] for row in ROWS[:3] if row["rating"] >= 3.5}


@pytest.mark.parametrize(
    "said",
    [
        "And how many golf hotels are there, never mind the price?",
        "How many golf hotels do you have when the price doesn't matter?",
        "How many golf hotels are there, expensive or not?",
    ],
)
def test_a_count_of_all_begins_anew(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    chat.ask("cheap hotels in Salem")
    assert chat.ask(said).rows == ((sum("golf" in row["styles"] for row in ROWS),),)


def test_rows_like_those_are_counted_elsewhere(hotels: almanaq.Connection) -> None:
    chat = hotels.chat()
    chat.ask("golf hotels in Salem")
    counted = sum("golf" in row["styles"] and row["location"] == "New Haven" for row in ROWS)
    assert chat.ask("How many hotels like those are there in New Haven?").rows == ((counted,),)


@pytest.mark.parametrize("said", ["it should be lively and loud", "not quiet"])
def test_no_wish_stands_beside_its_opposite(restaurants: almanaq.Connection, said: str) -> None:
    chat = restaurants.chat()
    chat.ask("quiet Thai restaurants")
    assert "is this restaurant quiet?') = 'Yes'" not in (chat.ask(said).suql or "")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("nowhere noisy, in Palo Alto", "noisy restaurants, in Palo Alto"),
        ("not one where you wait forever, in Palo Alto", "restaurants where you wait forever, in Palo Alto"),
    ],
)
def test_a_denied_wish_is_the_wish_with_no(restaurants: almanaq.Connection, said: str, meant: str) -> None:
    asked = [(restaurants.ask(each).suql or "").split("answer(")[-1] for each in (said, meant)]
    assert "= 'No'" in asked[0]
    assert "= 'Yes'" in asked[1]


@pytest.mark.parametrize(
    ("wish", "question"),
    [
        ("where the wait is under 20 minutes", "is the wait under 20 minutes?"),
        ("near Caltrain", "is this restaurant near Caltrain?"),
        ("where you can sit by the window", "can you sit by the window at this restaurant?"),
        ("that roast their own beans", "does this restaurant roast their own beans?"),
    ],
)
def test_a_wish_is_asked_whole(restaurants: almanaq.Connection, wish: str, question: str) -> None:
    assert f"answer(reviews, '{question}') = 'Yes'" in (restaurants.ask(f"Thai restaurants {wish}").suql or "")


def test_a_noun_alone_is_a_wish_after_a_search(restaurants: almanaq.Connection) -> None:
    chat = restaurants.chat()
    chat.ask("tea rooms in San Francisco")
    assert "good scones" in (chat.ask("good scones matter to me").suql or "")
    assert "live jazz" in (chat.ask("live jazz").suql or "")


@pytest.mark.parametrize("said", ["well rated", "highly rated", "well reviewed"])
def test_what_is_praised_comes_first_by_its_rating(hotels: almanaq.Connection, said: str) -> None:
    assert "ORDER BY rating DESC" in (hotels.ask(f"{said} hotels").suql or "")


@pytest.mark.parametrize(
    ("said", "fits"),
    [
        ("moderate at most", {"cheap", "moderate"}),
        ("That sounds lovely, but nothing too expensive please, moderate at most", {"cheap", "moderate"}),
        ("not expensive though, moderate or cheap", {"cheap", "moderate"}),
        ("not expensive, moderate", {"moderate"}),
        ("not cheap, luxury or expensive", {"expensive", "luxury"}),
        ("expensive at least", {"expensive", "luxury"}),
        ("nothing too expensive", {"cheap", "moderate"}),
    ],
)
def test_steps_are_bounded_in_other_words(hotels: almanaq.Connection, said: str, fits: set[str]) -> None:
    chat = hotels.chat()
    chat.ask("all hotels")
    assert names(chat.ask(said)) == {row["name"] for row in ROWS if row["price"] in fits}


@pytest.mark.parametrize("said", ["golf hotels in Atlantis", "a nice golf hotel near the Matterhorn in San Atlantis"])
def test_a_place_that_is_unknown_is_not_left_out(hotels: almanaq.Connection, said: str) -> None:
    reply = hotels.ask(said)
    assert not reply.rows
    assert "Atlantis" in reply.answer


@pytest.mark.parametrize(
    "said",
    [
        "What is the difference between Finnish and Turkish spa?",
        "how do I say spa in Finnish?",
        "How long is the drive from Salem to New Haven?",
        "When was the golf club of Salem founded?",
        "who invented golf?",
        "we'll talk about it tonight",
        "Great, I'll let my son decide!",
    ],
)
def test_what_is_asked_of_the_world_searches_nothing(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    chat.ask("hotels in Salem")
    assert chat.ask(said).suql is None
    assert "location = 'Salem'" in (chat.ask("only the cheap ones").suql or "")


@pytest.mark.parametrize("said", ["no golf or ski hotels", "What would there be in Salem?", "What is there in Salem?"])
def test_what_names_one_thing_goes_on_from_the_search(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    chat.ask("quiet stay hotels in New Haven")
    suql = chat.ask(said).suql or ""
    assert "'quiet stay' = ANY(styles)" in suql
    assert "Salem" in suql or "NOT" in suql


@pytest.mark.parametrize(
    ("said", "test"),
    [
        ("anything with a higher rating than these?", "rating > (SELECT MAX(rating) FROM hotels WHERE id = 2)"),
        ("something cheaper than those?", "< (SELECT MIN(CASE price"),
    ],
)
def test_what_is_more_than_those_shown(hotels: almanaq.Connection, said: str, test: str) -> None:
    chat = hotels.chat()
    chat.ask("moderate hotels in New Haven")
    suql = chat.ask(said).suql or ""
    assert test in suql
    assert "location = 'New Haven'" in suql


@pytest.mark.parametrize(
    "told", ["My sister is a dentist.", "We're six old colleagues.", "Our train leaves from the main station."]
)
def test_what_an_asker_tells_of_people_is_no_wish(restaurants: almanaq.Connection, told: str) -> None:
    plain = restaurants.ask("Quiet Thai places in San Francisco").suql
    assert restaurants.ask(f"{told} Quiet Thai places in San Francisco").suql == plain


@pytest.mark.parametrize("said", ["without gluten", "for people who can't eat gluten"])
def test_what_lacks_something_may_be_what_is_wanted(restaurants: almanaq.Connection, said: str) -> None:
    suql = restaurants.ask(f"Thai restaurants with dishes {said}").suql or ""
    assert "gluten?') = 'Yes'" in suql


def test_company_alone_is_no_wish(restaurants: almanaq.Connection) -> None:
    plain = restaurants.ask("Quiet Thai places").suql
    assert restaurants.ask("Quiet Thai places for four friends").suql == plain
    assert "answer(reviews" in (restaurants.ask("Thai places for a big group").suql or "")


def test_a_known_matter_is_asked_of_reviews_though_it_names_food(restaurants: almanaq.Connection) -> None:
    suql = restaurants.ask("Restaurants in Cupertino with a cheesecake for her birthday").suql or ""
    assert "answer(reviews, " in suql
    assert "popular_dishes, 'does this restaurant serve biryani?'" in (
        restaurants.ask("Where in Sunnyvale can I get biryani?").suql or ""
    )


def test_who_has_something_is_a_place(restaurants: almanaq.Connection) -> None:
    asked = restaurants.ask("Who has live music in Palo Alto?").suql or ""
    assert "location = 'Palo Alto' AND answer(reviews, " in asked


def test_a_turn_goes_on_from_the_one_search_that_was_offered(hotels: almanaq.Connection) -> None:
    chat = hotels.chat()
    chat.ask("golf hotels in Atlantis")
    assert names(chat.ask("ah, Salem then")) == {row["name"] for row in ROWS[3:] if "golf" in row["styles"]}


def test_the_rows_of_a_count_are_listed(hotels: almanaq.Connection) -> None:
    chat = hotels.chat()
    chat.ask("how many hotels are in Salem?")
    assert names(chat.ask("show me the ones with a cheap price")) == {"Elm Lodge"}


def test_a_value_would_do_instead_of_another(hotels: almanaq.Connection) -> None:
    chat = hotels.chat()
    chat.ask("all spa hotels")
    fits = {row["name"] for row in ROWS if "golf" in row["styles"]}
    assert names(chat.ask("golf would do as well, instead of spa")) == fits


@pytest.mark.parametrize("said", ["a small room is fine", "OK, inside is fine"])
def test_what_is_fine_is_no_wish(hotels: almanaq.Connection, said: str) -> None:
    chat = hotels.chat()
    before = chat.ask("golf hotels in Salem").suql
    assert chat.ask(said).suql == before


def test_one_may_ask_of_a_row(restaurants: almanaq.Connection) -> None:
    chat = restaurants.chat()
    chat.ask("Thai restaurants in San Francisco")
    chat.ask("which of them is the best rated?")
    assert "answer(reviews, 'can one reserve?')" in (chat.ask("can one reserve?").suql or "")


def test_what_was_asked_of_a_row_by_its_name_is_asked_of_another(hotels: almanaq.Connection) -> None:
    chat = hotels.chat()
    chat.ask("hotels in Salem")
    chat.ask("what is the address of Elm Lodge?")
    for name, row in (("Fir Cottage", ROWS[5]), ("Dogwood", ROWS[3])):
        assert column(chat.ask(f"and {name}?"), "address") == [row["address"]]
    assert names(chat.ask("cheap ones")) == {"Elm Lodge"}


def test_words_that_mean_something_together_are_a_wish(restaurants: almanaq.Connection) -> None:
    asked = restaurants.ask("Thai places where little ones are welcome").suql or ""
    assert "little ones?') = 'Yes'" in asked


def test_what_no_text_tells_is_not_denied_by_one(restaurants: almanaq.Connection) -> None:
    reply = restaurants.ask("Quiet Thai places without pinball machines")
    assert "pinball" not in (reply.suql or "pinball")
    assert "pinball" in reply.answer


@pytest.mark.parametrize(
    "said",
    [
        "Legal wants us to keep it modest, so cheap Thai restaurants in Palo Alto",
        "my knee is killing me. cheap Thai restaurants in Palo Alto",
        "we finally sold the boat! cheap Thai restaurants in Palo Alto please",
        "ugh, cheap Thai restaurants in Palo Alto then",
        "cheap Thai restaurants in Palo Alto, our pottery club meets there",
    ],
)
def test_words_that_ask_for_nothing_are_told_and_not_asked(restaurants: almanaq.Connection, said: str) -> None:
    reply = restaurants.ask(said)
    assert "answer(" not in (reply.suql or "answer("), reply.suql
    assert "price = 'cheap'" in (reply.suql or "")


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Thai places with a really big outdoor seating area", "outdoor seating?"),
        ("Thai places that are quiet enough for a phone call with my bank", "is this restaurant quiet?"),
        ("my wife uses a wheelchair, which Thai places could we go to?", "have wheelchair?"),
    ],
)
def test_what_texts_are_read_for_is_asked_without_what_stands_around_it(
    restaurants: almanaq.Connection, said: str, asked: str
) -> None:
    assert asked in (restaurants.ask(said).suql or "")


def test_one_matter_is_asked_once(restaurants: almanaq.Connection) -> None:
    chat = restaurants.chat()
    assert (chat.ask("kid friendly Thai places, we have two toddlers").suql or "").count("answer(") == 1
    assert (chat.ask("our children come along").suql or "").count("answer(") == 1


def test_dishes_are_known_by_the_lists_of_the_rows(restaurants: almanaq.Connection) -> None:
    asked = restaurants.ask("where do they have fish tacos?").suql or ""
    assert "answer(popular_dishes, 'does this restaurant serve fish tacos?')" in asked
    assert "ANY(cuisines)" not in asked


def test_what_a_turn_leaves_unused_is_told(restaurants: almanaq.Connection) -> None:
    chat = restaurants.chat()
    chat.ask("Thai restaurants")
    assert "bagpipes" in chat.ask("cheap ones, bagpipes").answer
    assert chat.ask("how much tip is normal in Thailand?").suql is None


def test_a_search_goes_on_after_a_turn_that_was_not_understood(restaurants: almanaq.Connection) -> None:
    chat = restaurants.chat()
    chat.ask("Thai restaurants in Palo Alto")
    assert chat.ask("zorple the grommet").suql is None
    assert "'thai' = ANY(cuisines)" in (chat.ask("only cheap ones").suql or "")


def test_the_number_of_reviews_is_the_one_that_rows_tell(restaurants: almanaq.Connection) -> None:
    chat = restaurants.chat()
    chat.ask("Thai restaurants in Palo Alto")
    assert "num_reviews" in chat.ask("how many reviews does the first one have?").columns
    assert "ORDER BY rating DESC" in (chat.ask("which one's rated higher?").suql or "")


def test_two_values_side_by_side_both_hold(restaurants: almanaq.Connection) -> None:
    chat = restaurants.chat()
    chat.ask("barbecue restaurants")
    asked = chat.ask("any southern barbecue in San Francisco?").suql or ""
    assert "'southern' = ANY(cuisines)" in asked
    assert "'barbeque' = ANY(cuisines)" in asked


def test_a_count_of_all_rows_is_whole_after_itself(restaurants: almanaq.Connection) -> None:
    chat = restaurants.chat()
    chat.ask("Thai restaurants in Palo Alto")
    found = chat.ask("how many such places are there?").rows
    assert found == chat.ask("how many is that altogether?").rows
    assert chat.ask("how many restaurants are there?").rows != found
