"""Our questions and conversations over the sample, judged by its ground truth.

    python experiments/agent/restaurants.py --parser script|local --reader truth|local [--half dev|held-out|both]

`script`: a stand-in for a language model that writes right SUQL; references it reads off its prompts (scripted.py).
`truth`: texts are read by the sample's ground truth. Replies that left out a condition, and say so, count as empty.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from halves import half
from scripted import Writer
from truth import Score, best, given, holding, judge, value

import almanaq
from almanaq.agent.conversation import Agent
from almanaq.agent.history import Turn
from almanaq.agent.response import Response
from almanaq.models.registry import open_models
from almanaq.sample.truth import truth_function
from almanaq.testing import FunctionModel

HERE = Path(__file__).parent
DATA = Path(__file__).parents[2] / "src/almanaq/benchmark/restaurants/data"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parser", choices=("script", "local"), default="script")
    parser.add_argument("--reader", choices=("truth", "local"), default="truth")
    parser.add_argument("--half", choices=("dev", "held-out", "both"), default="dev")
    parser.add_argument("--errors", action="store_true", help="print what went wrong (dev only)")
    parser.add_argument("--write", action="store_true", help="write the result to restaurants.json")
    arguments = parser.parse_args()
    results = measure(arguments.parser, arguments.reader, arguments.half, errors=arguments.errors)
    print(json.dumps(results, indent=2))
    if arguments.write:
        path = HERE / "restaurants.json"
        kept = json.loads(path.read_text()) if path.exists() else {"command": "python experiments/agent/restaurants.py"}
        kept[f"{arguments.parser}/{arguments.reader}/{arguments.half}"] = results
        path.write_text(json.dumps(kept, indent=2) + "\n")


def measure(parser: str, reader: str, which: str, *, errors: bool = False) -> dict[str, Any]:
    """Give the scores of single questions and of conversations."""
    writer = Writer()
    model: Any = FunctionModel(truth_function()) if reader == "truth" else "local"
    with almanaq.connect("sample:restaurants", model=model, cache=False) as connection:
        models = open_models(model, embedder="lexical", cache=False)
        if parser == "script":
            from dataclasses import replace

            models = replace(models, language=writer)
        agent = Agent(connection.engine, models)
        shown = errors and which == "dev"
        return {
            "questions": singles(agent, writer, which, errors=shown).record(),
            "conversations": conversations(agent, writer, which, errors=shown).record(),
        }


def singles(agent: Agent, writer: Writer, which: str, *, errors: bool) -> Score:
    """Score single questions."""
    score = Score()
    for turn in _half("single-turn.jsonl", "question", which):
        writer.turn = {"kind": "new", **turn}
        response = agent.respond(turn["question"])
        right = _right(writer.turn, [], {})
        if not judge(turn, response, right, score) and errors:
            _print(turn["question"], response, right)
    return score


def conversations(agent: Agent, writer: Writer, which: str, *, errors: bool) -> Score:
    """Score conversations; each turn is judged by what was really shown before it."""
    score = Score()
    for conversation in _half("conversations.jsonl", "name", which):
        history: list[Turn] = []
        shown: list[list[int]] = []
        search: Mapping[str, Any] = {}
        since = 0
        for turn in conversation["turns"]:
            if _impossible(turn, shown):
                continue
            writer.turn = turn
            response = agent.respond(turn["say"], history)
            history.append(response.turn())
            if turn["kind"] in ("talk", "world"):
                score.turns += 1
                wrong = bool(response.suql)
                score.declined += wrong
            else:
                if "where" in turn and turn["kind"] != "count":
                    search, since = turn, len(shown)
                right = _right(turn, shown, search, since)
                wrong = not judge(turn, response, right, score)
            if wrong and errors:
                _print(f"[{conversation['name']}] {turn['say']}", response, right if "where" in turn else [])
            if response.status == "answered" and response.shown and turn["kind"] not in ("count",):
                shown.append([int(key[0]) for key in response.shown.keys])
    return score


def _right(
    turn: Mapping[str, Any], shown: Sequence[Sequence[int]], search: Mapping[str, Any], since: int = 0
) -> list[int]:
    """Give the ids that are right for a turn, after the rows shown before it: from `since` on, since its search."""
    kind = turn["kind"]
    if kind == "detail":
        if "row" not in turn:
            return list(shown[-1])
        several = next((ids for ids in reversed(shown) if len(ids) > 1), shown[-1])
        return [several[turn["row"] if turn["row"] < 0 else turn["row"] - 1]]
    if kind == "best":
        return best(shown[-1], turn["order"], 1)
    found = holding(search["where"] if kind in ("another", "compare") else turn["where"], _attributes(turn, search))
    if kind == "another":
        return [i for i in found if all(i not in ids for ids in shown[since:])]
    if kind == "compare":
        than = [value(i, turn["column"]) for i in shown[-1]]
        return [i for i in found if _beyond(value(i, turn["column"]), than, more=turn["more"])]
    return best(found, turn["order"], turn["limit"]) if turn.get("expect") == "top" else found


def _attributes(turn: Mapping[str, Any], search: Mapping[str, Any]) -> Mapping[str, bool]:
    return (search if turn["kind"] in ("another", "compare") else turn).get("attributes", {})


def _beyond(one: Any, others: Sequence[Any], *, more: bool) -> bool:
    return one > max(others) if more else one < min(others)


def _impossible(turn: Mapping[str, Any], shown: Sequence[Sequence[int]]) -> bool:
    """Say whether a turn refers to rows that were never shown: the second of one."""
    if turn["kind"] in ("another", "compare", "best", "detail") and not shown:
        return True
    longest = max((len(ids) for ids in shown), default=0)
    return turn["kind"] == "detail" and turn.get("row", 1) > longest


def _half(name: str, words: str, which: str) -> list[dict[str, Any]]:
    entries = [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]
    return entries if which == "both" else half(entries, lambda entry: entry[words], which)  # type: ignore[arg-type]


def _print(words: str, response: Response, right: Sequence[int]) -> None:
    print(f"{words}\n   {response.kind} {response.status} {response.suql}")
    print(f"   gave {given(response)}, right {list(right)[:6]}")


if __name__ == "__main__":
    main()
