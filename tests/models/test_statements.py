"""Yes or no of texts about anything: stated or denied in so many words, else no information; never the opposite."""

from __future__ import annotations

import pytest

from almanaq.models.extractive import LocalReader
from almanaq.models.protocols import TextCall

DELIVERY = "does the customer complain about delivery?"
CASES: tuple[tuple[str, str, str | None], ...] = (
    (DELIVERY, "Customer complains about delivery being two weeks late.", "Yes"),
    (DELIVERY, "I complained about the delivery, the driver threw the box.", "Yes"),
    (DELIVERY, "Delivery came late and the box was open.", "Yes"),
    (DELIVERY, "Quick delivery, friendly call.", None),
    (DELIVERY, "No complaints about delivery at all.", "No"),
    (DELIVERY, "Delivery was on time and the courier was friendly.", "No"),
    (DELIVERY, "The screws are missing.", None),
    ("was delivery late?", "Delivery came late again.", "Yes"),
    ("was delivery late?", "The delivery was not late this time.", "No"),
    ("was delivery late?", "It all came on time.", None),
    ("is remote work allowed?", "Remote work is allowed two days a week.", "Yes"),
    ("is remote work allowed?", "Remote work is not allowed.", "No"),
    ("is remote work allowed?", "You get a laptop and a desk by the window.", None),
    ("did the patient report pain?", "The patient reports no pain.", "No"),
    ("did the patient report pain?", "The patient reports a fever.", None),
    ("did the patient report pain?", "Reports pain in the left knee.", "Yes"),
    ("was a refund issued?", "No refund was issued.", "No"),
    ("was a refund issued?", "A refund should be issued by Monday.", None),
    ("was a refund issued?", "Was a refund issued? Please check.", None),
    ("was a refund issued?", "The refund was issued on Friday.", "Yes"),
    ("does the customer want a refund?", "I want a refund.", "Yes"),
    ("does the customer want a refund?", "I do not want a refund, only a new charger.", "No"),
    ("does the customer want a refund?", "Thanks for the refund!", None),
    ("is the flat furnished?", "An unfurnished flat with two rooms.", "No"),
    ("is the flat furnished?", "The flat is fully furnished.", "Yes"),
    ("does this hotel have a pool?", "The pool was warm.", "Yes"),
    ("does this hotel have a pool?", "There is no pool.", "No"),
    ("does this hotel have a pool?", "We slept well.", None),
    ("is the battery life good?", "The battery life is terrible.", "No"),
    ("is the battery life good?", "Great screen, and the battery life is excellent too.", "Yes"),
    ("is the battery life good?", "A great screen.", None),
    ("does the review mention a charger?", "There is no charger in the box.", "Yes"),
    ("does it mention parking?", "The waiter was kind, but there is no parking.", "Yes"),
    ("does it mention kids?", "The waiter was kind to our children.", None),
    ("does it complain about the service?", "The waiter was kind and the service was great.", "No"),
    ("does it complain about the service?", "The menu is long and the service is terrible.", "Yes"),
    ("does it praise the battery?", "The battery life is excellent.", "Yes"),
    ("does it praise the battery?", "The battery is awful.", "No"),
    ("are there any problems with the engine?", "The engine is fine.", "No"),
    ("are there any problems with the engine?", "There is a problem with the engine.", "Yes"),
    ("was the left wing damaged?", "The left wing was damaged.", "Yes"),
    ("was the left wing damaged?", "The right door was damaged.", None),
)


@pytest.mark.parametrize(("question", "text", "expected"), CASES)
def test_what_a_text_states_or_denies(question: str, text: str, expected: str | None) -> None:
    found = LocalReader().evaluate(TextCall("answer", (text,), question, compared=("Yes",)))
    assert found.value == expected
    assert all(quote.text in text for quote in found.quotes)
    assert bool(found.quotes) is (expected is not None)


@pytest.mark.parametrize("negated", ["does the customer not complain about delivery?", "was no refund issued?"])
def test_a_question_with_a_negation_is_not_answered(negated: str) -> None:
    text = "The customer does not complain about delivery. A refund was issued."
    assert LocalReader().evaluate(TextCall("answer", (text,), negated, compared=("Yes",))).value is None


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        ("does it mention the drawer?", "Yes"),
        ("does it mention delivery?", "No"),
        ("does it mention delivery or the drawer?", "Yes"),
        ("does it mention the drawer and a refund?", "Yes"),
        ("does it mention the drawer, a lamp and a refund?", "No"),
        ("does it mention a lamp or delivery?", "No"),
    ],
)
def test_a_text_mentions_what_it_speaks_of_and_nothing_else(asked: str, value: str) -> None:
    text = "The desk wobbles and the drawer is broken. I asked for a refund."
    assert LocalReader().evaluate(TextCall("answer", (text,), asked, compared=("Yes",))).value == value
