"""Checked answers: the same question with other values is answered by the checked query, and nothing unsure is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import almanaq
from almanaq.cli.app import app
from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.testing import ScriptedModel
from almanaq.users import User

SHOPS = "shop,place,amt,day\nNorth Gate,Oslo,120,2024-01-05\nHarbour,Bergen,80,2024-02-01\nMill,Oslo,40,2024-02-09\n"
KNOWN = (
    ("how are we doing in Oslo?", "SELECT SUM(amt) FROM shops WHERE place = 'Oslo'"),
    ("the 2 liveliest", "SELECT shop FROM shops ORDER BY amt DESC LIMIT 2"),
    ("doings of February 2024", "SELECT SUM(amt) FROM shops WHERE day >= '2024-02-01' AND day < '2024-03-01'"),
    ("hubbub of last month", "SELECT SUM(amt) FROM shops WHERE day >= '2001-02-01' AND day < '2001-03-01'"),
    ("how many liven up Oslo", "SELECT COUNT(*) FROM shops WHERE place = 'Oslo'"),
)


@pytest.fixture
def shops(tmp_path: Path) -> Path:
    file = tmp_path / "shops.csv"
    file.write_text(SHOPS)
    return file


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[almanaq.Connection]:
    file = tmp_path_factory.mktemp("checked") / "shops.csv"
    file.write_text(SHOPS)
    with almanaq.connect(file, cache=False) as connection:
        for question, suql in KNOWN:
            connection.confirm(question, suql, by="Ann")
        yield connection


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("how are we doing in Oslo?", ((160,),)),
        ("Please tell me how are we doing in Bergen", ((80,),)),
        ("the 1 liveliest", (("North Gate",),)),
        ("doings of January 2024", ((120,),)),
    ],
)
def test_the_same_question_with_other_values_is_answered_by_the_checked_query(
    con: almanaq.Connection, question: str, rows: tuple[tuple[object, ...], ...]
) -> None:
    reply = con.ask(question)
    assert reply.rows == rows
    assert "checked by Ann" in reply.answer


@pytest.mark.parametrize(
    "question",
    [
        "how are we doing in Paris?",  # no value of the column
        "how are we doing in Harbour?",  # a value of another column
        "how are we not doing in Oslo?",
        "which liven up Oslo",
        "the -1 liveliest",
        "the 1.5 liveliest",
        "doings of 2024",  # a year is no month
        "doings since January 2024",
        "hubbub of last month",  # it would be answered with days gone by
    ],
)
def test_what_is_unsure_takes_the_ordinary_path(con: almanaq.Connection, question: str) -> None:
    assert "checked by" not in con.ask(question).answer


def test_it_is_kept_withdrawn_exported_and_goes_stale_by_name(shops: Path) -> None:
    run = CliRunner().invoke
    question, suql = KNOWN[0]
    assert run(app, ["verdicts", str(shops), "--right", question, "--suql", suql, "--by", "Bo"]).exit_code == 0
    with almanaq.connect(shops) as again:
        assert again.ask("how are we doing in Bergen?").rows == ((80,),)
    assert run(app, ["verdicts", str(shops), "--export"]).exit_code == 0
    assert run(app, ["verdicts", str(shops), "--remove", question]).exit_code == 0
    with almanaq.connect(shops) as again:  # the exported file has it still
        assert [each.by for each in again.checked.all()] == []
        assert again.examples == ((question, suql),)
    same = run(app, ["test", str(shops)])
    assert (same.exit_code, same.stdout.split()[0]) == (0, "same")
    run(app, ["verdicts", str(shops), "--right", question, "--suql", suql, "--by", "Bo"])
    shops.write_text(SHOPS.replace("Oslo,40", "Oslo,41"))
    assert run(app, ["test", str(shops)]).stdout.startswith("changed: 1 rows, with other values")
    shops.write_text(SHOPS.replace("place", "town"))
    stale = run(app, ["test", str(shops)])
    assert stale.exit_code == 1
    assert "stale" in stale.stdout
    assert "place" in stale.stdout


def test_users_who_see_the_same_share_what_they_confirm(shops: Path) -> None:
    Path(f"{shops}.almanaq.toml").write_text('[shops.roles.sales]\nrows = "place = :place"\n')
    users = [
        User(name, ("sales",), {"place": place}) for name, place in (("a", "Oslo"), ("b", "Oslo"), ("c", "Bergen"))
    ]
    with almanaq.connect(shops) as con:
        con.for_user(users[0]).confirm("how are we doing?", "SELECT SUM(amt) FROM shops", by="a")
    with almanaq.connect(shops) as again:
        told = ["checked by a" in again.for_user(user).ask("how are we doing?").answer for user in users]
        assert (told, again.checked.all()) == ([True, True, False], ())


def test_a_prompt_shows_near_questions_and_embeds_each_once() -> None:
    embedded: list[str] = []

    class Counting(LexicalEmbedder):
        name = "counting"

        def embed_questions(self, texts: Sequence[str]) -> Any:
            embedded.extend(texts)
            return self.embed(texts)

    prompts = []
    reply = {"reasoning": "", "suql": "SELECT 1 AS one", "needs_data": True, "clarify": None}
    model = ScriptedModel({"parse": lambda prompt: prompts.append(str(prompt)) or reply, "respond": "One."})
    tables = {"shops": {"shop": ["Mill"], "amt": [40]}}
    with almanaq.connect(tables, model=model, embedder=Counting(), cache=False) as con:
        for word in ("amt of the mill", "hours of the mill", "owner of the mill", "weather in Oslo"):
            con.confirm(word, f'SELECT amt AS "{word}" FROM shops')
        for question in ("the amt of which mill is odd?", "the mill of which amt is odd?"):
            con.ask(question)
    assert ["weather" in prompt for prompt in prompts] == [False, False]
    assert all("owner of the mill" in prompt for prompt in prompts)
    assert sorted(embedded) == sorted(set(embedded))
