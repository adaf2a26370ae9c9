"""Replies on disk: one JSON line for each question, as the retrieval's records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from almanaq.errors import BenchmarkError
from almanaq_bench.generation.protocols import Role
from almanaq_bench.records import whole_lines


@dataclass(frozen=True, slots=True)
class ReplyRecord:
    """What was replied to one question, beside the gold answer.

    Attributes:
        gold: the gold answer, label or query.
        text: the reply; "" where there is none, and `fault` may say why.
        tables: how many tables the generator was handed.
        slice: what the dataset says of its difficulty, or of where the answer lies; "" where it says nothing.
        outcome: how the generated query ended, `reason` why it gave no rows; "" for other roles.
        same_set, same_ordered: whether it gave the gold rows; as sets, and as strictly as the gold query has it.
        nodes: how many places the answer was traced to, "3+" for more than two; "" where the dataset traces none.
        stage: what lost the right answer (benchmark/stages.py); "" where that is not told.
    """

    query_id: str
    role: Role
    gold: str
    text: str
    fault: str = ""
    reasoning: str = ""
    tables: int = 0
    slice: str = ""
    outcome: str = ""
    reason: str = ""
    same_set: bool = False
    same_ordered: bool = False
    stage: str = ""
    nodes: str = ""

    def to_json(self) -> str:
        """Return one line without its end."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))


_NAMES = frozenset(each.name for each in fields(ReplyRecord))


def read_replies(file: Path) -> Iterator[ReplyRecord]:
    """Yield the replies of a run in order; none where the file is not there.

    Raises:
        BenchmarkError: a whole line is not a reply.
    """
    for number, line in enumerate(whole_lines(file), 1):
        try:
            values: dict[str, Any] = json.loads(line)
            if set(values) != _NAMES:
                raise ValueError(f"its keys are {', '.join(sorted(values))}")
            yield ReplyRecord(**values)
        except (ValueError, TypeError) as error:
            raise BenchmarkError(f"{file}, line {number}: not a reply: {error}") from error
