"""Users of one server: who they are, what they reach, what they may spend, and what the log says of them."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.web.conftest import places
from tests.web.live import live

import almanaq
from almanaq.accounts import AuditLog, Ledger
from almanaq.errors import BudgetExceeded, SourceError, UsageError
from almanaq.mcp import asgi_app
from almanaq.models.model_names import ModelSettings, open_models
from almanaq.models.protocols import Price, Usage
from almanaq.testing import ScriptedModel
from almanaq.users import User, Users, read_users
from almanaq.web.gate import Access
from almanaq.web.service import open_service

RULES = """
[places]
key = ["id"]
[places.roles.town]
rows = "city = :city"
hidden = ["visits"]
"""
COUNTED = {"reasoning": "", "suql": "SELECT count(*) FROM places", "needs_data": True, "clarify": None}
NAMES = "SELECT name FROM places ORDER BY id"


def user(name: str, *roles: str, city: str = "", calls: int | None = None) -> User:
    return User(name, roles, {"city": city}, calls, hashlib.sha256(f"{name}-token".encode()).hexdigest())


USERS = (
    user("ada", "town", city="Paris", calls=1),
    user("eve", "town", city="Paris"),
    user("bob", "town", city="Lyon"),
    user("root", "*"),
)


@pytest.fixture(scope="module")
def audit(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("users") / "audit.jsonl"


@pytest.fixture(scope="module")
def client(audit):
    schema = audit.parent / "places.toml"
    schema.write_text(RULES)
    model = ScriptedModel({"parse": lambda _: COUNTED, "respond": "Two."})
    with almanaq.connect(places(), model=model, embedder="lexical", cache=False, schema=str(schema)) as connection:
        service = open_service(connection, "places", store_mb=1, log=AuditLog(audit))
        known = Users(USERS, "x-user")
        with live(service, open_user=user_opener(service), users=known, token="the-proxys-token") as found:
            yield found


def user_opener(service):
    """Return what opens the service of a user, and MCP for them."""
    ledger = Ledger(None, "places")

    def open_user(who):
        own = service.for_user(who, ledger)
        return own, {"/mcp": asgi_app(own.connection, path="/mcp", hosts=None, account=own.account)}

    return open_user


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {name}-token"}


def sql(client, name: str, suql: str = NAMES):
    return client.post("sql", {"suql": suql}, **bearer(name))


def test_each_user_sees_their_rows_wherever_they_look(client):
    assert sql(client, "ada").json()["rows"] == [["Alba"], ["Coda"]]
    assert sql(client, "bob").json()["rows"] == [["Brio"], ["Duna"]]
    assert len(sql(client, "root").json()["rows"]) == 4
    assert sql(client, "ada", "SELECT visits FROM places").json()["type"].endswith("UnknownNameError")
    for path in ("/", "/api/v1/tables/places", "/api/v1/about", "/openapi.json", "/accuracy"):
        told = client("GET", path, **bearer("ada")).body
        assert not any(word in told for word in (b"Lyon", b"Brio", b"visits"))
    hidden, missing = (
        client.post("why-not", {"suql": "SELECT name FROM places WHERE id > 5", "key": {"name": name}}, **bearer("ada"))
        for name in ("Brio", "Nobody")
    )
    assert (hidden.status, hidden.json().get("conditions")) == (missing.status, missing.json().get("conditions"))


def test_an_answer_is_there_for_those_who_may_see_the_same(client):
    kept = sql(client, "ada").json()["id"]
    reached = {u.name: client.get(f"answers/{kept}/rows", **bearer(u.name)).status for u in USERS}
    assert reached == {"ada": 200, "eve": 200, "bob": 404, "root": 404}
    assert client("GET", f"/a/{kept}", **bearer("bob")).status == 404


def test_nobody_else_is_let_in_and_a_proxy_names_the_user(client):
    assert client.post("sql", {"suql": NAMES}).status == 401
    assert sql(client, "mallory").status == 401
    proxy = {"authorization": "Bearer the-proxys-token"}
    assert client.post("sql", {"suql": NAMES}, **proxy).status == 401
    assert client.post("sql", {"suql": NAMES}, **proxy, x_user="mallory").status == 401
    assert client.post("sql", {"suql": NAMES}, **proxy, x_user="bob").json()["rows"] == [["Brio"], ["Duna"]]
    assert client.post("sql", {"suql": NAMES}, **bearer("ada"), x_user="root").json()["rows"] == [["Alba"], ["Coda"]]
    assert client("GET", "/healthz").status == 200


def test_a_browser_logs_in_with_the_users_own_token(client):
    reply = client("GET", "/?token=ada-token")
    cookie = reply.headers["set-cookie"].partition(";")[0]
    assert reply.status == 303
    assert client("GET", "/", cookie=cookie).status == 200
    assert client("GET", "/?token=mallory-token").status == 401
    assert client("GET", "/", cookie=cookie.replace("ada", "mallory")).status == 401


def ask_over_mcp(client, name: str, question: str):
    """Ask in a session of MCP; return the reply and the session."""
    accepted = {"accept": "application/json, text/event-stream", "mcp_protocol_version": "2025-06-18"}
    begun = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begun}
    session = client("POST", "/mcp", hello, **bearer(name), **accepted).headers["mcp-session-id"]
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    call["params"] = {"name": "ask", "arguments": {"question": question}}
    own = {**accepted, "mcp_session_id": session}
    return client("POST", "/mcp", call, **bearer(name), **own), lambda other: client(
        "POST", "/mcp", call, **bearer(other), **own
    )


def test_a_day_has_so_many_calls_for_each_user_over_http_and_mcp(client):
    first = client.post("ask", {"question": "How many places are there?"}, **bearer("ada")).json()
    assert first["trace"]["calls_left_today"] == 0
    refused = client.post("ask", {"question": "How many are there?"}, **bearer("ada")).json()
    assert (refused["status"], "calls_per_day" in refused["detail"]) == (422, True)
    assert "calls_left_today" not in client.post("ask", {"question": "How many?"}, **bearer("eve")).json()["trace"]
    reply, ask_as = ask_over_mcp(client, "ada", "How many places do we know?")
    assert b"calls_per_day" in reply.body
    assert ask_as("eve").status == 404  # the session is another user's
    told = {name: client.get("about", **bearer(name)).json()["user"] for name in ("ada", "root")}
    assert told == {
        "ada": {"name": "ada", "roles": ["town"], "part_of": ["places"], "calls_left_today": 0},
        "root": {"name": "root", "roles": ["*"], "part_of": []},
    }
    page = " ".join(client("GET", "/", **bearer("ada")).body.decode().split())
    assert "ada (town), who sees a part of places, with 0 calls left today" in page


class Paid(ScriptedModel):
    """A call costs thirty cents."""

    async def complete(self, prompt):
        made = await super().complete(prompt)
        return replace(made, usage=replace(made.usage, money=0.3))


def test_a_day_has_so_much_money_for_a_user_over_http_and_mcp():
    paid = Paid({"parse": lambda _: COUNTED, "respond": "Four."})
    model = open_models(paid, embedder="lexical", cache=False, settings=ModelSettings(price=Price(0.001)))
    meg, tom = (replace(user(name, "*"), money_per_day=most) for name, most in (("meg", 1.0), ("tom", 0.5)))
    with almanaq.connect(places(), model=model, cache=False) as connection:
        service = open_service(connection, "places", store_mb=1)
        with live(service, open_user=user_opener(service), users=Users((meg, tom))) as client:

            def ask(name, words):
                return client.post("ask", {"question": f"How many places {words}?"}, **bearer(name)).json()

            left = [ask("meg", words)["trace"]["money_left_today"] for words in ("are there", "have we")]
            assert left == [0.7, 0.4]
            assert b'\\"money_left_today\\": 0.2' in ask_over_mcp(client, "tom", "How many places do we know?")[0].body
            _, last = ask("tom", "are known"), ask("tom", "are here")
            assert (last["status"], "money_per_day" in last["detail"]) == (422, True)
            assert b"money_per_day" in ask_over_mcp(client, "tom", "How many do we know?")[0].body


def test_the_log_says_who_asked_what_and_no_cell(client, audit):
    before = len(audit.read_text().splitlines())
    sql(client, "bob", "SELECT name, notes FROM places")
    sql(client, "bob", "SELECT nmae FROM places")
    client.post("ask", {"question": "How many places have we?"}, **bearer("bob"))
    lines = [json.loads(line) for line in audit.read_text().splitlines()[before:]]
    assert [(e["user"], e["action"], e["rows"], e["error"]) for e in lines] == [
        ("bob", "sql", 2, None),
        ("bob", "sql", 0, "UnknownNameError"),
        ("bob", "ask", 1, None),
    ]
    assert [e["relations"] for e in lines] == [["places"]] * 3
    assert lines[2] | {"question": "How many places have we?", "query": COUNTED["suql"], "calls": 1} == lines[2]
    assert "Brio" not in audit.read_text()
    assert audit.stat().st_mode & 0o077 == 0


def test_the_log_says_what_was_opened_and_browsed(client, audit):
    kept = sql(client, "bob").json()["id"]
    client("PUT", "/api/v1/boards/week", {"items": [{"answer": kept}]}, **bearer("bob"))
    before = len(audit.read_text().splitlines())
    read = {
        "/api/v1/tables/places/rows?filter=name=Brio": (["places"], 1, None),
        "/api/v1/tables/places/profile": (["places"], 0, None),
        "/api/v1/complete?text=SELECT&at=3": ([], 0, None),
        f"/api/v1/answers/{kept}": (["places"], 2, None),
        f"/api/v1/answers/{kept}/rows?format=csv": (["places"], 2, None),
        f"/a/{kept}": (["places"], 2, None),
        "/api/v1/boards/week": (["places"], 2, None),
        "/api/v1/answers/unknown": ([], 0, "404"),
    }
    for path in read:
        client("GET", path, **bearer("bob"))
    lines = [json.loads(line) for line in audit.read_text().splitlines()[before:]]
    assert [e["action"] for e in lines] == [f"GET {path.partition('?')[0]}" for path in read]
    assert [(e["relations"], e["rows"], e["error"]) for e in lines] == list(read.values())
    for at in range(3):  # the keystrokes of one question
        client.post("links", {"question": "How many", "at": at}, **bearer("bob"))
    typed = [json.loads(line)["action"] for line in audit.read_text().splitlines()[before + len(lines) :]]
    assert typed == ["POST /api/v1/links"]
    client.get(f"answers/{kept}", **bearer("ada"))
    refused = json.loads(audit.read_text().splitlines()[-1])
    assert (refused["user"], refused["relations"], refused["error"]) == ("ada", [], "404")
    assert "Brio" not in audit.read_text()


def test_calls_and_money_are_counted_over_restarts(tmp_path):
    file = tmp_path / "calls.sqlite"
    for spent in (0, 2):
        ledger = Ledger(file, "places")
        calls, money = ledger.budgets(replace(user("ada", calls=3), money_per_day=0.5))
        assert (calls.left, money.left) == (3 - spent, 0.5 if not spent else 0.1)
        one = Usage(calls=1, money=0.2)
        for _ in range(2 - spent):
            for budget in (calls, money):
                assert budget.reserve(one)
                budget.settle(one, one)
        with pytest.raises(BudgetExceeded, match=r"money_per_day of the user \(it renews at 00:00 UTC\)"):
            money.reserve(one)
        assert [each.left for each in ledger.budgets(user("bob", calls=3))] == [3]
        assert Ledger(file, "another source").budgets(user("ada", calls=3))[0].left == 3
        ledger.close()


SPENDS = """
import sys
from pathlib import Path
from almanaq.accounts import Ledger
from almanaq.errors import BudgetExceeded
from almanaq.models.protocols import Usage
from almanaq.users import User
calls, money = Ledger(Path(sys.argv[1]), "places").budgets(User("ada", calls_per_day=300, money_per_day=2.5))
one, made = Usage(calls=1, money=0.01), 0
print("open", flush=True)
sys.stdin.readline()
try:
    while calls.reserve(one) and money.reserve(one):
        calls.settle(one, one)
        money.settle(one, one)
        made += 1
except BudgetExceeded:
    print(made)
"""


def test_a_budget_holds_over_all_servers_of_one_file(tmp_path):
    command = [sys.executable, "-c", SPENDS, str(tmp_path / "calls.sqlite")]
    servers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for server in servers:
        server.stdout.readline()
    for server in servers:
        server.stdin.write("\n")
        server.stdin.flush()
    assert sum(int(server.communicate()[0]) for server in servers) == 250


def test_a_log_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(SourceError, match="audit log"):
        AuditLog(tmp_path / "missing" / "audit.jsonl")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no users"),
        ("[ada]\nrole = ['x']", "no setting 'role'; did you mean 'roles'"),
        ("[ada]\ntoken_sha256 = 'secret'", "64 hexadecimal digits"),
        ("[ada]\nroles = 'x'", "roles is a list"),
        ("[ada]\ncalls_per_day = true", "whole number"),
        ("[ada]\nmoney_per_day = inf", "number of US dollars"),
        ("[ada]\nattributes = {a = {b = 1}}", "attributes are texts"),
        (f"[ada]\ntoken_sha256 = '{'a' * 64}'\n[bob]\ntoken_sha256 = '{'a' * 64}'", "the same token"),
    ],
)
def test_a_faulty_file_of_users_is_refused(tmp_path, text, message):
    (tmp_path / "users.toml").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_users(tmp_path / "users.toml")


def test_a_header_of_users_takes_a_proxy_with_a_token():
    with pytest.raises(UsageError, match="--user-header goes with --token"):
        Access(users=Users(USERS, "x-user"))


def test_users_see_no_private_column_even_of_a_server_that_listens_on_this_machine_alone():
    assert not Access().exposed
    assert Access(users=Users(USERS)).exposed
