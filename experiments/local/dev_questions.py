"""Thirty questions over the sample, used while parser and reader were written; the twelve are not among them.

python experiments/local/dev_questions.py [--show]
"""

from __future__ import annotations

import sys

from twelve_questions import judge

import almanaq
from almanaq_bench.sample.questions import Question

ROMANTIC, QUIET, DOGS, KIDS = {"romantic": True}, {"quiet": True}, {"dog_friendly": True}, {"kid_friendly": True}
PARKING, WAIT, PATIO = {"easy_parking": True}, {"long_wait": False}, {"outdoor_seating": True}


def _in(*cuisines: str, city: str = "", rest: str = "") -> str:
    parts = [f"list_contains(cuisines, '{each}')" for each in cuisines]
    parts += [f"location = '{city}'"] if city else []
    return " AND ".join([*parts, *([rest] if rest else [])]) or "true"


SF, PA, CU, SV = "San Francisco", "Palo Alto", "Cupertino", "Sunnyvale"
BEST = "rating DESC, num_reviews DESC"
QUESTIONS = (
    Question("Is there a romantic French restaurant in San Francisco?", _in("french", city=SF), "some", ROMANTIC),
    Question("We have a puppy, any Mexican place?", _in("mexican"), "some", DOGS),
    Question("Which Italian restaurants have a quiet room?", _in("italian"), "some", QUIET),
    Question("a Thai place that isn't too loud", _in("thai"), "some", QUIET),
    Question("Find a pizza place for the kids with at least 4 stars", _in("pizza", rest="rating >= 4"), "some", KIDS),
    Question("seafood with a view of the bay", _in("seafood"), "some", {"water_view": True}),
    Question("How many restaurants in Palo Alto have a patio?", _in(city=PA), "count", PATIO),
    Question("coffee shop where I can work on my laptop", _in("coffee & tea"), "some", {"work_friendly": True}),
    Question("bars with live music in San Francisco", _in("bars", city=SF), "some", {"live_music": True}),
    Question("Where in Palo Alto can I celebrate an anniversary?", _in(city=PA), "some", {"special_occasions": True}),
    Question("Chinese food without a long wait", _in("chinese"), "some", WAIT),
    Question("cheap Indian place with easy parking", _in("indian", rest="price = 'cheap'"), "some", PARKING),
    Question(
        "best rated sushi place that takes reservations", _in("sushi"), "top", {"takes_reservations": True}, BEST, 1
    ),
    Question("Is there a Korean restaurant for a big group?", _in("korean"), "some", {"good_for_groups": True}),
    Question("a bakery with fresh bread", _in("bakeries"), "some", {"fresh_baked_goods": True}),
    Question("bars that are open late", _in("bars"), "some", {"late_night": True}),
    Question("wheelchair accessible Japanese restaurant", _in("japanese"), "some", {"wheelchair_access": True}),
    Question("brunch in San Francisco with no wait", _in("breakfast & brunch", city=SF), "some", WAIT),
    Question("Which Mexican restaurants have a happy hour?", _in("mexican"), "some", {"happy_hour": True}),
    Question(
        "an Indian buffet or not, as long as there are lunch deals", _in("indian"), "some", {"lunch_special": True}
    ),
    Question("pizza from a brick oven, please", _in("pizza"), "some", {"brick_oven": True}),
    Question("American place with great desserts", _in("american"), "some", {"good_desserts": True}),
    Question("Any Thai spot with gluten-free options?", _in("thai"), "some", {"gluten_free_options": True}),
    Question("How many dog friendly cafes are there?", _in("cafes"), "count", DOGS),
    Question("a quirky bar that feels unique", _in("bars"), "some", {"unique_atmosphere": True}),
    Question("a lively Spanish place", _in("spanish"), "some", {"upbeat_atmosphere": True}),
    Question("Mediterranean food where the locals go", _in("mediterranean"), "some", {"local_hangout": True}),
    Question("friendly service and noodles in Cupertino", _in("noodles", city=CU), "some", {"good_service": True}),
    Question("Italian with no parking trouble and a patio", _in("italian"), "some", {**PARKING, **PATIO}),
    Question(
        "expensive French place with warm lighting",
        _in("french", rest="price = 'expensive'"),
        "some",
        {"warm_lighting": True},
    ),
)


def main() -> None:
    """Print how many replies are right, and with --show the queries of the others."""
    with almanaq.connect("sample:restaurants", model="local", cache=False) as connection:
        replies = [(question, connection.ask(question.question)) for question in QUESTIONS]
    judged = [judge(question, response) for question, response in replies]
    for (question, response), right in zip(replies, judged, strict=True):
        if "--show" in sys.argv and not right:
            print(question.question, "|", response.status, "|", response.suql)
    print(f"{sum(judged)} of {len(QUESTIONS)} right")


if __name__ == "__main__":
    main()
