"""The parts that need no language model: words, lexical vectors, the extractive reader and the local linker."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.models.extractive import LocalLinker, LocalReader
from almanaq.models.extractive.polarity import sides
from almanaq.models.protocols import LinkRequest, TextCall, TextReply

# (question, passage, right answer): sentences of ours, none of which stands in the lexicon's notes.
CASES = [
    ("is it romantic?", "My wife and I went for our anniversary; candles everywhere and a violinist.", "Yes"),
    ("is it romantic?", "Fluorescent lights and plastic trays. Don't bring a date here.", "No"),
    ("is it romantic?", "Not romantic at all.", "No"),
    ("is it a good place for a date?", "The tacos are good.", None),
    ("is it a good place for a date?", "Low lights, soft jazz, and nobody rushed us as we held hands.", "Yes"),
    ("is it dog friendly?", "They brought our pup a bowl of water.", "Yes"),
    ("is it dog friendly?", "The hot dog was great.", None),
    ("is it dog friendly?", "We were told our terrier couldn't stay, no pets allowed.", "No"),
    ("do they allow dogs?", "Dogs are not allowed on the patio.", "No"),
    ("is there a long wait?", "We waited an hour for a table.", "Yes"),
    ("is there a long wait?", "Walked right in on a Friday, no wait at all.", "No"),
    ("is there a long wait?", "I can't wait to go back!", None),
    ("do you have to wait in line?", "The queue went around the block.", "Yes"),
    ("does it have live music?", "A jazz trio plays on Thursdays.", "Yes"),
    ("does it have live music?", "There is no live music anymore, just a playlist.", "No"),
    ("does this restaurant have easy parking?", "Parking is a nightmare, we circled for 30 minutes.", "No"),
    ("is there parking?", "There's a free lot out back.", "Yes"),
    ("is it kid friendly?", "High chairs, crayons, and our toddler loved it.", "Yes"),
    ("is it kid friendly?", "Definitely get a sitter, this isn't a place for kids.", "No"),
    ("is it family-friendly?", "Great for families with little ones.", "Yes"),
    ("is it quiet?", "You have to shout over the music.", "No"),
    ("is it quiet?", "A peaceful little room where we could actually talk.", "Yes"),
    ("is it quiet?", "Anything but quiet.", "No"),
    ("is there a long wait?", "No need to queue.", "No"),
    ("is it noisy?", "It was never loud.", "No"),
    ("is it cheap?", "Way overpriced.", "No"),
    ("is the staff friendly?", "Our waiter was rude and ignored us.", "No"),
    ("is the review positive?", "A dull, lifeless mess of a film.", "No"),
    ("does it express a clearly positive opinion?", "A triumph: funny, moving and smart.", "Yes"),
    ("do they serve oat milk?", "I got a latte with oat milk.", "Yes"),
    ("do they serve oat milk?", "Sadly they don't have oat milk.", "No"),
    ("is there valet?", "Nice soup.", None),
    ("does it have a patio?", "The patio is gone, sadly.", "No"),
    ("does it have a patio?", "I wish they had a patio.", "No"),
    ("does it have a patio?", "Nobody minded that we moved two chairs on the patio.", "Yes"),
    ("are the desserts good?", "The tiramisu was dry and the waiter agreed.", "No"),
    ("are the desserts good?", "We still dream of the tiramisu.", "Yes"),
    ("are the desserts good?", "They have tiramisu.", None),
    ("does it have a unique atmosphere?", "Inside it looks like any other diner.", "No"),
    ("does it have a unique atmosphere?", "Not the place for a big party.", None),
    ("is it good for kids?", "No high chairs, no crayons, no patience.", "No"),
    ("do they have a happy hour?", "They say there is a happy hour, but drinks cost the same at five.", "No"),
]


def evaluate(passages: tuple[str, ...], question: str, **options: object) -> TextReply:
    return LocalReader().evaluate(TextCall("answer", passages, question, **options))  # type: ignore[arg-type]


def test_yes_and_no_by_words_balanced_over_the_answers() -> None:
    right: dict[str | None, list[bool]] = {"Yes": [], "No": [], None: []}
    for question, passage, expected in CASES:
        right[expected].append(evaluate((passage,), question).value == expected)
    recalls = [sum(found) / len(found) for found in right.values()]
    assert sum(recalls) / 3 >= 0.95


def test_most_passages_that_speak_of_it_decide() -> None:
    passages = ("Such a romantic room.", "The soup was hot.", "Not romantic.", "Romantic, with candles.")
    found = evaluate(passages, "is it romantic?", compared=("Yes", "No"))
    assert (found.value, found.verdicts) == ("Yes", {"Yes": True, "No": False})
    assert {quote.passage for quote in found.quotes} == {0, 3}


def test_the_quotes_of_a_reply_are_on_its_side_the_plainest_first() -> None:
    passages = ("Dogs, perhaps?", "No dogs allowed.", "And our poodle got a bowl of water, which he spilled.", "A dog!")
    yes = evaluate(passages, "is it dog friendly?", compared=("Yes",))
    assert yes.value == "Yes"
    assert yes.quotes[0].text == "And our poodle got a bowl of water, which he spilled."
    assert 1 not in {quote.passage for quote in yes.quotes}
    no = evaluate((*passages[:2], "We had to leave our dog at home."), "is it dog friendly?", compared=("Yes",))
    assert (no.value, {quote.passage for quote in no.quotes}) == ("No", {1, 2})


def test_no_information_is_none_for_every_literal() -> None:
    found = evaluate(("The soup was hot.",), "is it romantic?", compared=("Yes", "No"))
    assert (found.value, found.verdicts, found.quotes) == (None, {"Yes": None, "No": None}, ())


@pytest.mark.parametrize(
    ("question", "passage", "value"),
    [
        ("when was he born?", "He was a painter. He was born on 15 February 1968 in Paris.", "15 February 1968"),
        ("how many goals did he score?", "In the 2004 season he scored 32 goals.", "32"),
        ("who directed the film?", "The film was directed by Ada Lovelace in 1999.", "Ada Lovelace"),
        ("where was she born?", "She was born in New Haven.", "New Haven"),
        ("in what year was it founded?", "Founded in 1921, it has 300 members.", "1921"),
        ("what is the best dish?", "Go early. The best dish is the lamb shank.", "lamb shank"),
        ("which river does it lie on?", "Arles ( French pronunciation ) is a city on the Rhône River.", "Rhône River"),
        ("what is the nickname of the club?", "The club, nicknamed The Gulls, plays in Torquay.", "Gulls"),
        ("how is the soup?", "Go early. The soup is thin and cold.", "The soup is thin and cold."),
        ("where was the race held?", "East Berlin ( GDR )", "East Berlin"),
        ("when was the race held?", "East Berlin ( GDR )", None),
        ("who wrote the book?", "The weather was nice.", None),
    ],
)
def test_open_questions_are_answered_by_words_of_the_text(question: str, passage: str, value: str | None) -> None:
    found = evaluate((passage,), question, compared=(value,) if value else ())
    assert found.value == value
    if value:
        assert found.verdicts == {value: True}


@pytest.mark.parametrize(
    ("question", "passage", "type", "value"),
    [
        ("how many seats does it have?", "Opened in 1998, the hall has 2,104 seats.", "integer", "2104"),
        ("when did it open?", "The hall opened on 3 May 1998 with 2,104 seats.", "date", "1998-05-03"),
        ("how many seats does it have?", "The hall has no seats at all.", "integer", None),
    ],
)
def test_a_typed_answer_is_of_its_type(question: str, passage: str, type: str, value: str | None) -> None:
    assert evaluate((passage,), question, type=type).value == value


def test_an_open_answer_quotes_its_sentence_and_says_how_sure_it_is() -> None:
    found = evaluate(("He painted. He was born on 15 February 1968 in Paris.",), "when was he born?")
    assert [quote.text for quote in found.quotes] == ["He was born on 15 February 1968 in Paris."]
    assert found.confidence is not None
    assert 0.3 < found.confidence <= 1


def test_options_are_chosen_by_their_words() -> None:
    options = ("cheap", "pricey")
    assert evaluate(("It is a pricey place.",), "how is it priced?", options=options).value == "pricey"
    assert evaluate(("The soup was hot.",), "how is it priced?", options=options).value is None


def test_a_summary_quotes_at_most_three_sentences_in_order() -> None:
    passages = tuple(f"The soup is number {n}. The soup was wonderful and the bread too." for n in range(5))
    found = LocalReader().evaluate(TextCall("summary", passages, ""))
    assert found.value
    assert len(found.quotes) == 3
    assert [q.passage for q in found.quotes] == sorted(q.passage for q in found.quotes)


@given(
    st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=120), min_size=1, max_size=4),
    st.sampled_from(
        ["is it romantic?", "when was it?", "who is it?", "how many?", "what is the soup?", "is it cheap?"]
    ),
)
def test_every_quote_stands_where_it_is_said_to(passages: list[str], question: str) -> None:
    passages = [*passages, "Candles; cheap soup in Rome, 12 May 1999, not romantic."]
    for function in ("answer", "summary"):
        call = TextCall(function, tuple(passages), question, compared=("Yes",))  # type: ignore[arg-type]
        found = LocalReader().evaluate(call)
        assert found == LocalReader().evaluate(call)  # another reader, which keeps nothing of the first
        assert all(passages[q.passage][q.start : q.start + len(q.text)] == q.text for q in found.quotes)


@pytest.mark.parametrize(
    ("literal", "linked"),
    [
        ("ITALIAN", ("Italian",)),
        ("burger", ("burgers",)),
        ("coffee", ("coffee & tea",)),
        ("cafe", ("coffee & tea",)),
        ("bbq", ("barbecue",)),
        ("italy", ("Italian",)),
        ("submarine", ()),
    ],
)
def test_a_literal_is_linked_by_words(literal: str, linked: tuple[str, ...]) -> None:
    values = ("burgers", "coffee & tea", "barbecue", "Japanese", "sushi", "Italian", "Mexican", "american")
    assert asyncio.run(LocalLinker().link(LinkRequest(literal, "cuisines", values))) == linked


@given(st.text(max_size=20), st.lists(st.text(max_size=20), max_size=8))
def test_links_are_always_values_of_the_column(literal: str, values: list[str]) -> None:
    assert set(asyncio.run(LocalLinker().link(LinkRequest(literal, "c", tuple(values))))) <= set(values)


def test_lexical_vectors_are_unit_and_near_for_shared_words() -> None:
    vectors = LexicalEmbedder().embed(["dog friendly patio", "friendly to dogs", "tax law of 1921", ""])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 1, 0], atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.4 > vectors[0] @ vectors[2]
    assert vectors.dtype == np.float32


SIDES = ("POSITIVE", "NEGATIVE")


def ask_sides(text: str, options: tuple[str, ...] = SIDES, compared: tuple[str, ...] = ()) -> TextReply:
    call = TextCall("answer", (text,), "What is the sentiment of the review?", options=options, compared=compared)
    return LocalReader().evaluate(call)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("A gripping, beautifully acted film.", "POSITIVE"),
        ("Two hours of tedious, formulaic nonsense.", "NEGATIVE"),
        ("It is not good, and never funny.", "NEGATIVE"),
        ("The train leaves at noon.", None),
        ("Please send a technician, we have called three times already.", None),
        ("I wonder when you deliver.", None),
        ("I am pleased, everything works.", "POSITIVE"),
    ],
)
def test_the_side_with_more_words_for_it_is_chosen(text: str, chosen: str | None) -> None:
    reply = ask_sides(text, compared=SIDES)
    assert reply.value == chosen
    assert reply.verdicts == {option: None if chosen is None else option == chosen for option in SIDES}
    assert bool(reply.quotes) == (chosen is not None)


def test_praise_and_blame_alike_are_neutral_where_that_is_an_option() -> None:
    text = "The food was wonderful. The service was awful."
    assert ask_sides(text).value is None
    assert ask_sides(text, (*SIDES, "Neutral")).value == "Neutral"


def test_options_that_mean_something_else_are_left_to_words() -> None:
    assert sides(("red", "positive")) is None
    assert sides(("positive", "negative", "broken")) is None
    assert ask_sides("The door is red.", ("red", "blue")).value == "red"
