"""The restaurants task: what is right for a turn, turns that are broken, the baseline, and a model behind a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_restaurants import PIZZA, TALK, THAI, lines, write_restaurants

from almanaq.errors import BenchmarkError, ModelError, SourceError, UsageError
from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.testing import ScriptedModel
from almanaq_bench.config import RunRequest
from almanaq_bench.data import datasets_in, find_dataset
from almanaq_bench.generation.replies import read_replies
from almanaq_bench.restaurants.dataset import RestaurantsData, load_bundled_restaurants, open_restaurants
from almanaq_bench.restaurants.linearize import Linearized, LinearizedDialogue
from almanaq_bench.restaurants.play import (
    Analysis,
    TurnRecord,
    TurnReply,
    from_text,
    nearest_stage,
    play,
    score_turns,
    to_text,
)
from almanaq_bench.restaurants.wanted import Conversation, ExpectedTurn, half_of, read_conversations
from almanaq_bench.run_measures import score
from almanaq_bench.runner import run
from almanaq_bench.testing import Faults, StandInServer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in the documented layout."""
    return write_restaurants(tmp_path / "data" / "yelp")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> RestaurantsData:
    """The restaurants of such a folder, for tests that change nothing."""
    return open_restaurants(write_restaurants(tmp_path_factory.mktemp("small") / "yelp"))


def request(folder: Path, split: str, **changes: Any) -> RunRequest:
    out = folder.parents[1] / "run"
    made = RunRequest("restaurants", folder.name, folder.parent, split, "oracle", out, LexicalEmbedder)
    return replace(made, **changes)


class Speaker:
    """A Dialogue of written replies."""

    def __init__(self, *replies: TurnReply) -> None:
        self.replies, self.heard = list(replies), []

    def say(self, words: str) -> TurnReply:
        self.heard.append(words)
        return self.replies.pop(0)


def gave(*ids: int) -> TurnReply:
    return TurnReply("", ids, ids, searched=True)


def turns(*wanted: ExpectedTurn) -> Conversation:
    return Conversation("c", "c", wanted)


def judged(data: RestaurantsData, conversation: Conversation, *replies: TurnReply) -> list[TurnRecord]:
    return play(conversation, Speaker(*replies), data.restaurants)[0]


def test_turns_are_judged_by_what_was_shown_before_them(folder: Path) -> None:
    data = open_restaurants(folder)
    wanted = turns(
        ExpectedTurn("thai", where=THAI),
        ExpectedTurn("cheaper", "compare", column="price"),
        ExpectedTurn("more", "another"),
        ExpectedTurn("best rated", "best", order="rating DESC"),
        ExpectedTurn("pizza", "replace", where=PIZZA),
        ExpectedTurn("the second", "detail", row=2),
        ExpectedTurn("the last", "detail", row=-1, attribute="candles"),
        ExpectedTurn("any other", "another"),
    )
    found = judged(data, wanted, gave(4), gave(3), gave(), gave(3), gave(1, 2), gave(2), gave(1), gave(1))
    assert [turn.right for turn in found] == [(3, 4), (3,), (), (3,), (1, 2), (2,), (2,), ()]
    assert [turn.good for turn in found] == [True, True, True, True, True, True, False, False]
    assert [turn.needs for turn in found[-2:]] == ["combined", "structured"]


def test_top_turns_accept_whatever_ties_with_the_last_of_them(folder: Path) -> None:
    restaurants = open_restaurants(folder).restaurants
    wanted = ExpectedTurn("best", where="", expect="top", order="rating DESC", limit=1)
    assert set(restaurants.right(wanted, [])) == {2, 3}


def test_turn_accuracy_is_over_entities_and_false_negatives_over_searches() -> None:
    def turn(given: tuple[int, ...], right: tuple[int, ...], needs: str = "structured") -> TurnRecord:
        return TurnRecord("", "new", "entities", needs, given, right)

    found = score_turns(
        [turn((1, 2, 3), (1, 2)), turn((), (4,), "combined"), turn((), ()), turn((5,), (5, 6), "combined")]
    )
    assert found["turn_accuracy"] == 3 / 4
    assert found["false_negatives"] == 1 / 4
    assert (found["turn_accuracy_structured"], found["turn_accuracy_combined"]) == (2 / 3, 1)
    assert (found["false_negatives_structured"], found["false_negatives_combined"]) == (0, 1 / 2)
    assert "turn_accuracy" not in score_turns([turn((), ())])


def test_only_three_entities_of_a_turn_are_judged_but_later_turns_may_mean_the_fourth(folder: Path) -> None:
    data = open_restaurants(folder)
    found = judged(
        data, turns(ExpectedTurn("all", where=""), ExpectedTurn("4th", "detail", row=4)), gave(1, 2, 3, 4), gave(4)
    )
    assert (found[0].given, found[1].right) == ((1, 2, 3), (4,))


BROKEN = [
    ("{", "not JSON"),
    ("[1]", "not a JSON object"),
    ({"name": "x", "turns": []}, "list of"),
    ({"question": "?", "whre": ""}, "where"),
    ({"question": "?", "where": 3}, "wrong type"),
    ({"question": "?", "kind": "nw"}, "unknown kind"),
    ({"where": PIZZA}, "say"),
    ({"question": "?", "kind": "compare"}, "column"),
    ({"question": "?", "where": "", "expect": "top"}, "order"),
    ({"question": "?", "right": [1.5]}, "whole numbers"),
    ({"name": "x", "turns": ["hi"]}, "JSON object"),
]


@pytest.mark.parametrize(("line", "fault"), BROKEN)
def test_a_broken_turn_says_why_and_loses_no_other(tmp_path: Path, line: Any, fault: str) -> None:
    file = tmp_path / "conversations.jsonl"
    file.write_text(lines(TALK, line, {**TALK, "name": "lunch"}))
    first, broken, last = read_conversations(file)
    assert (len(first.turns), len(last.turns)) == (4, 4)
    assert not any(turn.fault for each in (first, last) for turn in each.turns)
    assert [turn.fault for turn in broken.turns if fault in turn.fault]


def test_broken_turns_are_counted_and_the_conversation_goes_on(folder: Path) -> None:
    said = [
        *TALK["turns"][:2],
        {"kind": "new"},
        {"say": "?", "where": "no_such = 1"},
        {"say": "x", "attributes": {"c": True}},
    ]
    more = [{"say": "and?", "kind": "nw"}, {"say": "others?", "kind": "another"}, {"say": "so?"}]
    entry = {"name": "dinner", "turns": [*said, *more, *TALK["turns"][3:]]}
    (folder / "conversations.jsonl").write_text(lines(entry, "{"))
    found = run(request(folder, "conversations", generator="linearize@1"))
    assert found.queries == 2
    assert found.metrics["turns"] == 10
    assert (found.metrics["broken_turns"], found.metrics["unjudged_turns"]) == (4, 3)
    assert found.metrics["search_turns"] == 2
    assert "3 broken turns" in found.config.counts
    assert '"say" is missing' in found.config.counts
    replies = {reply.query_id: from_text(reply.text) for reply in read_replies(folder.parents[1] / "run/replies.jsonl")}
    assert any("no_such" in turn.fault for turn in replies["dinner"])


def test_a_folder_runs_through_runner_score_and_resume(folder: Path) -> None:
    assert datasets_in(folder.parent) == ["yelp"]
    wanted = request(folder, "single-turn", generator="local")
    found = run(wanted)
    assert found.metrics["turn_accuracy_structured"] == 1.0
    assert found.metrics["count_accuracy"] == 1.0
    assert score(wanted.out).metrics == found.metrics
    file = wanted.out / "replies.jsonl"
    whole = file.read_text()
    first = whole.splitlines(keepends=True)[0]
    file.write_text(first + "{")
    assert run(replace(wanted, resume=True)).metrics == found.metrics
    assert file.read_text() == whole


def test_the_bundled_questions_can_all_be_judged_and_their_halves_part_them(tmp_path: Path) -> None:
    (tmp_path / "restaurants").mkdir()
    data = find_dataset(tmp_path, "restaurants")
    assert isinstance(data, RestaurantsData)
    assert data.sample
    for kind, count, in_turns in (("single-turn", 110, 110), ("conversations", 24, 140)):
        every = data.conversations(kind)
        halves = [{each.id for each in data.conversations(f"{kind}-{half}")} for half in ("dev", "held-out")]
        assert (len(every), sum(len(each.turns) for each in every)) == (count, pytest.approx(in_turns, abs=30))
        assert halves[0].isdisjoint(halves[1])
        assert halves[0] | halves[1] == {each.id for each in every}
        for turn in (turn for each in every for turn in each.turns):
            assert not turn.fault
            if turn.where is not None:
                data.restaurants.right(turn, [[1]])
    with pytest.raises(UsageError, match="single-turn"):
        data.conversations("single-turm")


def test_halves_hang_on_names_alone() -> None:
    made = [Conversation(str(n), f"name {n}", ()) for n in range(9)]
    assert half_of(made, True) == half_of(reversed(made), True)
    assert (len(half_of(made, False)), len(half_of(made, True))) == (5, 4)


def test_the_baseline_joins_cells_and_gives_as_many_rows_as_asked(folder: Path) -> None:
    texts: list[str] = []

    class Watching(LexicalEmbedder):
        def embed(self, given: Any) -> Any:
            texts.extend(given)
            return super().embed(given)

    restaurants = open_restaurants(folder).restaurants
    rows = Linearized(restaurants, VectorStore(None, Watching()))
    assert "1, Oven, pizza, cheap, 4.0, Candles, so sweet." in texts
    assert rows.nearest("luxury thai ginger", 3)[0] == 4
    assert len(rows.nearest("luxury thai ginger", 3)) == 3
    dialogue = LinearizedDialogue(rows, 1, None)
    assert dialogue.say("Thank you!").entities == ()
    assert dialogue.say("luxury thai ginger").entities == (4,)
    assert dialogue.say("with loud guests").query == "luxury thai ginger with loud guests"


def test_a_language_model_writes_the_search_query_from_the_conversation(folder: Path) -> None:
    model = ScriptedModel(
        {"linearize": [{"text": "pizza Basil"}, {"text": ""}, "no json"], "respond": "Basil is what you want."}
    )
    rows = Linearized(open_restaurants(folder).restaurants, VectorStore(None, LexicalEmbedder()))
    dialogue = LinearizedDialogue(rows, 1, model)
    first, second, third = dialogue.say("pizza?"), dialogue.say("thanks"), dialogue.say("what?")
    assert (first.entities, first.answer) == ((2,), "Basil is what you want.")
    assert (second.searched, second.fault) == (False, "")
    assert "no search query" in third.fault
    asked = [prompt for prompt in model.prompts if prompt.name == "linearize"]
    assert "Earlier message: pizza?" in asked[1].messages[-1].content
    assert "Basil is what you want." in asked[1].messages[-1].content


QUERIES = {
    "Which places have pizza?": f"SELECT name FROM restaurants WHERE {PIZZA} LIMIT 3",
    "Any Thai place with candles?": f"SELECT name FROM restaurants WHERE {THAI} "
    "AND answer(reviews, 'are there candles?') = 'Yes' LIMIT 3",
    "How many Thai places are there?": f"SELECT COUNT(*) FROM restaurants WHERE {THAI}",
}


def reply(sent: Mapping[str, Any]) -> Mapping[str, Any] | str:
    text = sent["messages"][-1]["content"]
    if "Message: " in text:
        return {"text": text.partition("Message: ")[2]}
    if "Request: " in text and "Earlier search: " not in text and "In words: " not in text:
        suql = next(suql for question, suql in QUERIES.items() if question in text)
        return {"reasoning": "", "suql": suql, "needs_data": True, "clarify": None}
    schema = sent.get("response_format", {}).get("json_schema", {})
    if schema.get("name") == "answer_texts":
        items = re.findall(r"<untrusted \w+ (item\d+)>\n(.*?)</untrusted", text, re.DOTALL)
        return {item: _read(document) for item, document in items}
    return _read(text) if schema.get("name") == "answer" else "Here you are."


def _read(text: str) -> dict[str, object]:
    return {"value": "Yes" if "Candles" in text else "No", "quotes": []}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., StandInServer]:
    def opened(**settings: Any) -> StandInServer:
        made = StandInServer(reply, **settings)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path / "cache"))
        return made

    return opened


def test_a_model_behind_a_server_runs_with_one_flag(
    folder: Path, server: Callable[..., StandInServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    with server(faults=Faults(["error", None, "malformed"])) as opened:
        monkeypatch.setenv("OPENAI_BASE_URL", opened.url)
        found = run(request(folder, "single-turn", generator="openai:any"))
    assert (found.metrics["turn_accuracy"], found.metrics["false_negatives"]) == (1.0, 0.0)
    assert (found.metrics["count_accuracy"], found.metrics["failed_turns"]) == (1.0, 0)
    assert found.config.model == "openai:any"
    assert found.config.prompts["parse"]


@pytest.mark.parametrize("generator", ["openai:any", "linearize@3:openai:any"])
def test_a_wrong_key_ends_the_run_which_goes_on_with_the_right_one(
    folder: Path, server: Callable[..., StandInServer], monkeypatch: pytest.MonkeyPatch, generator: str
) -> None:
    wanted = request(folder, "single-turn", generator=generator)
    with server(key="key") as opened:
        monkeypatch.setenv("OPENAI_BASE_URL", opened.url)
        monkeypatch.setenv("OPENAI_API_KEY", "wrong")
        with pytest.raises(ModelError):
            run(wanted)
        assert not (wanted.out / "replies.jsonl").exists()
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        assert run(replace(wanted, resume=True)).metrics["search_turns"] == 2


def test_what_is_no_generator_or_no_data_of_the_task_is_told(folder: Path) -> None:
    with pytest.raises(UsageError, match="linearize@3"):
        run(request(folder, "single-turn", generator="linearise@3"))
    (folder / "truth.jsonl").write_text('{"id": 1, "candles": true}\n{"id": 2, "dark": true}\n')
    with pytest.raises(SourceError, match="line 2: it names other attributes"):
        run(request(folder, "single-turn"))
    with pytest.raises(BenchmarkError, match="holds no turns"):
        from_text("Here you are.")


def test_turns_survive_their_record() -> None:
    record = TurnRecord("Où?", "new", "entities", "combined", (1,), (1, 2), True, "SELECT", "yes", "")
    assert from_text(to_text([record])) == [record]


def test_the_bundled_data_need_no_folder() -> None:
    assert load_bundled_restaurants().splits[0] == "single-turn"


CANDLES = "answer(reviews, 'are there candles?') = 'Yes'"
COUNT = ExpectedTurn("how many", where=THAI, expect="count")
WANTED = ExpectedTurn("Thai with candles", where=THAI, attributes={"candles": True})


@pytest.mark.parametrize(
    ("turn", "query", "ids", "more", "stage"),
    [
        (WANTED, f"SELECT name FROM restaurants WHERE {THAI} AND {CANDLES}", (3,), {}, "right"),
        (WANTED, "", (), {}, "parse"),
        (WANTED, f"SELECT name FROM restaurants WHERE {THAI}", (3, 4), {}, "parse"),
        (WANTED, f"SELECT name FROM restaurants WHERE price = 'cheap' AND {CANDLES}", (1, 3), {}, "parse"),
        (WANTED, f"SELECT name FROM restaurants WHERE 'pizza' = ANY(cuisines) AND {CANDLES}", (1,), {}, "link"),
        (WANTED, f"SELECT name FROM restaurants WHERE 'pizza' = ANY(cuisines) AND {CANDLES}", (), {}, "link"),
        (WANTED, f"SELECT name FROM restaurants WHERE {THAI} AND {CANDLES}", (3, 4), {}, "text call"),
        (WANTED, f"SELECT name FROM restaurants WHERE {THAI} AND {CANDLES}", (), {}, "text call"),
        (
            WANTED,
            f"SELECT name FROM restaurants WHERE {THAI} AND answer(reviews, 'how many candles?')::int > 0",
            (),
            {"warnings": ("1 answer(s) could not be read as the type asked for",)},
            "cast",
        ),
        (WANTED, f"SELECT price, count(*) FROM restaurants WHERE {THAI} GROUP BY price", (), {}, "format"),
        (WANTED, f"SELECT nme FROM restaurants WHERE {THAI}", (), {"fault": "no column named 'nme'"}, "parse"),
        (WANTED, f"SELECT name FROM restaurants WHERE {CANDLES}", (), {"fault": "the server is busy"}, "text call"),
        (ExpectedTurn("hi", "talk"), "SELECT name FROM restaurants", (1,), {}, "parse"),
        (COUNT, f"SELECT name FROM restaurants WHERE {THAI}", (), {}, "format"),
        (
            COUNT,
            f"SELECT count(*) FROM restaurants WHERE {PIZZA} AND {THAI}",
            (),
            {"figure": 0},
            "link",
        ),
    ],
)  # fmt: skip
def test_a_wrong_turn_names_the_stage_that_lost_it(
    small: RestaurantsData, turn: ExpectedTurn, query: str, ids: tuple[int, ...], more: dict[str, Any], stage: str
) -> None:
    said = TurnReply("", ids, ids, searched=bool(query), query=query, **more)
    ((record,), _) = play(turns(turn), Speaker(said), small.restaurants, Analysis(small).find_stage)
    assert record.stage == stage
    assert score_turns([record]).get(f"lost_{stage.replace(' ', '_')}", 0) == (stage != "right")


def test_the_baseline_loses_turns_to_its_query_or_to_the_retrieval(folder: Path) -> None:
    data = open_restaurants(folder)
    for said, stage in (
        (TurnReply("", (4,), (4,), query="thai"), "retrieval"),
        (TurnReply("", fault="no JSON"), "parse"),
    ):
        ((record,), _) = play(turns(WANTED), Speaker(said), data.restaurants, nearest_stage)
        assert record.stage == stage


REVIEWS = ["We came for the candles, and stayed for the soup. " * 4, "The crowd was loud, the noodles were not. " * 4]
PUBLISHED = """Unique ID,Utterance,Predicted SUQL,Agent response,1st entity,2nd entity,3rd entity,Entity Annotation,\
Whether Wrong Parse*,Prolific ID,Structural Unstructural annotation
1,Which restaurants in Reno have noodles?,SELECT 1,,,,,,,0,Only-structured
2,,,,,,,,,0,Combination
3,"Is there a cheap one, with soup?",,,,,,,,0,Combination
""".replace("\\\n", "")


@pytest.fixture
def paper_folder(tmp_path: Path) -> Path:
    """Rows as the paper's table has them, with its key and with text ids, and its questions as they were published."""
    made = tmp_path / "data" / "paper"
    made.mkdir(parents=True)
    place = {"cuisines": ["noodles"], "price": "cheap", "rating": 4.5, "num_reviews": 40, "phone_number": None}
    more = {"address": "1 Main St", "location": "Reno", "popular_dishes": ["Soup"], "reviews": REVIEWS}
    hours = {"opening_hours": [{"open": "1100", "close": "2100", "day_of_the_week": 0}]}
    rows = [{"_id": f"x-{n}", "name": "Golden Bowl", **place, **more, **hours} for n in range(3)]
    (made / "restaurants.jsonl").write_text(lines(*rows))
    (made / "restaurants_single_turn_SUQL.csv").write_text(PUBLISHED)
    return made


def test_the_papers_data_load_from_a_folder_and_run_the_same(paper_folder: Path) -> None:
    assert datasets_in(paper_folder.parent) == ["paper"]
    talk = {"name": "a", "turns": [{"say": "Which restaurants in Reno have noodles?", "right": ["x-0", "x-1", "x-2"]}]}
    (paper_folder / "conversations.jsonl").write_text(lines(talk, {**talk, "name": "b", "turns": [
        {"say": "any in Reno?", "right": ["y"]}]}))  # fmt: skip
    found = run(request(paper_folder, "single-turn"))
    measured = {name: found.metrics[name] for name in ("turns", "unjudged_turns", "broken_turns", "failed_turns")}
    assert measured == {"turns": 3, "unjudged_turns": 2, "broken_turns": 1, "failed_turns": 0}
    assert "row 2 has no Utterance" in found.config.counts
    first, _, third = read_replies(paper_folder.parents[1] / "run/replies.jsonl")
    assert (from_text(first.text)[0].needs, from_text(third.text)[0].needs) == ("structured", "combined")
    assert from_text(first.text)[0].given == ("x-0", "x-1", "x-2")  # three of one name are told apart by their key
    for generator in ("local", "linearize@3"):
        out = paper_folder.parents[1] / generator
        again = run(request(paper_folder, "conversations", generator=generator, out=out))
        assert (again.metrics["turn_accuracy"], again.metrics["false_negatives"]) == (1.0, 0.0)
        assert again.metrics["broken_turns"] == 1
        (_, unknown) = read_replies(out / "replies.jsonl")
        assert from_text(unknown.text)[0].fault == "no restaurant has the id 'y'"
    (paper_folder / "restaurants_single_turn_SUQL.csv").write_text("question\nWhere?\n")
    with pytest.raises(SourceError, match="no columns 'Utterance'"):
        run(request(paper_folder, "single-turn", out=paper_folder.parents[1] / "other"))
