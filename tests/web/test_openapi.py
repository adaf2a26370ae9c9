"""Generated requests over /openapi.json find no fault of ours, and every status that is documented is reached."""

from __future__ import annotations

import time
from collections import defaultdict

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from tests.web.conftest import CANDLES
from tests.web.test_work import all_of, source

from almanaq.errors import ModelCallError, ModelError
from almanaq.jobs import JobRunner
from almanaq.testing import FunctionModel, ScriptedModel
from almanaq.web.service import Limits

EXAMPLES = 2
TOKEN = "correct-horse-battery"


@pytest.fixture(scope="module")
def described(client):
    return client("GET", "/openapi.json").json()


@pytest.fixture(scope="module")
def operations(described):
    import schemathesis  # takes a second

    schema = schemathesis.openapi.from_dict(described)
    return [found.ok() for found in schema.get_all_operations()]


def test_the_contract_is_described(described):
    paths = set(described["paths"])
    prefix = "/api/v1"
    assert {"/healthz", f"{prefix}/ask", f"{prefix}/sql", f"{prefix}/explain", f"{prefix}/why-not"} <= paths
    assert described["info"]["title"] == "almanaq"
    for methods in described["paths"].values():
        for operation in methods.values():
            assert operation["description"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("part", range(3))
def test_no_generated_request_finds_a_fault(client, operations, part):
    for operation in operations[part::3]:
        assert set().union(*(_tried(client, operation, negative) for negative in (False, True)))


def _tried(client, operation, negative):
    """The statuses that came of generated requests."""
    from schemathesis import GenerationMode
    from schemathesis.errors import SchemathesisError

    mode = GenerationMode.NEGATIVE if negative else GenerationMode.POSITIVE
    documented, seen = {int(status) for status in operation.definition.raw["responses"]}, set()

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
        phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case):
        reply = case.call(base_url=f"http://127.0.0.1:{client.port}")
        seen.add(reply.status_code)
        # A path or a method that is none of this operation's is another matter.
        assert reply.status_code in documented | {404, 405}, (operation.label, reply.status_code, reply.text)
        if reply.status_code >= 400:
            assert reply.headers["content-type"] == ["application/problem+json"]
            assert set(reply.json()) >= {"type", "title", "status", "detail"}

    try:
        run()
    except (SchemathesisError, Unsatisfiable):
        assert negative  # nothing can be wrong with a request that takes nothing
    return seen


class Reached:
    """Which statuses came of which operation."""

    def __init__(self, described):
        self.templates = {path: set(methods) for path, methods in described["paths"].items()}
        self.found = defaultdict(set)

    def note(self, template, method, reply):
        self.found[template, method.lower()].add(reply.status)
        return reply


def test_every_documented_status_is_reached(client, serve, described, tmp_path):
    reached = Reached(described)
    v1 = "/api/v1"
    bodies = {
        f"{v1}/ask": {"question": "How many places are there?"},
        f"{v1}/sql": {"suql": CANDLES},
        f"{v1}/explain": {"suql": CANDLES},
        f"{v1}/links": {"question": "Who is in Paris?", "at": 3},
        f"{v1}/why-not": {"suql": CANDLES, "key": {"id": 2}},
    }
    kept = client.post("sql", {"suql": CANDLES}).json()["id"]
    talk = client.ask("How many places are there?")
    drawn = "kind=point&x=name&y=id"
    quiet = serve(access={"token": TOKEN})
    small = serve(access={"most_body": 200})
    samples = {
        "/healthz": "/healthz",
        f"{v1}/tables/{{name}}": f"{v1}/tables/places",
        f"{v1}/tables/{{name}}/rows": f"{v1}/tables/places/rows",
        f"{v1}/tables/{{name}}/profile": f"{v1}/tables/places/profile",
        f"{v1}/complete": f"{v1}/complete?text=SELECT&at=6",
        f"{v1}/boards/{{name}}": f"{v1}/boards/food",
        f"{v1}/boards/{{name}}/run": f"{v1}/boards/food/run",
        f"{v1}/answers/{{id}}": f"{v1}/answers/{kept}",
        f"{v1}/answers/{{id}}/rows": f"{v1}/answers/{kept}/rows",
        f"{v1}/answers/{{id}}/page": f"{v1}/answers/{kept}/page",
        f"{v1}/answers/{{id}}/chart": f"{v1}/answers/{kept}/chart?{drawn}",
        f"{v1}/answers/{{id}}/stop": f"{v1}/answers/none/stop",
        f"{v1}/answers/{{id}}/verdict": f"{v1}/answers/{talk['id']}/verdict",
        f"{v1}/verdicts/export": f"{v1}/verdicts/export?format=tests",
        f"{v1}/conversations/{{id}}": f"{v1}/conversations/{talk['conversation']}",
        f"{v1}/cells": f"{v1}/cells?relation=none&key=1&column=none",
    }

    def send(at, template, method, path=None, body=None, **headers):
        content = bodies.get(template) if body is None else body
        if template.endswith("verdict") and body is None:
            content = {"verdict": "right"}
        if "/boards/" in template and body is None:
            content = {}
        if method in ("get", "delete"):
            content = None
        return reached.note(
            template, method, at(method.upper(), path or samples.get(template, template), content, **headers)
        )

    for template, methods in reached.templates.items():
        for method in sorted(methods, reverse=True):  # what deletes comes last but for one
            if method != "delete":
                send(client, template, method)
            send(quiet, template, method)
            send(client, template, method, host="evil.example")
            if method not in ("get", "head"):
                send(client, template, method, origin="http://evil.example")
            if method in ("post", "put"):
                send(small, template, method, body={"x": "y" * 500})
                send(client, template, method, body={"unknown": 1})
            if "{" in template:
                send(client, template, method, template.replace("{id}", "none").replace("{name}", "none"))
                long = "x" * 600
                send(client, template, method, template.replace("{id}", long).replace("{name}", long))
    send(client, f"{v1}/answers/{{id}}/chart", "get", f"{v1}/answers/none/chart?{drawn}")
    send(client, f"{v1}/conversations/{{id}}", "delete")
    board = f"{v1}/boards/{{name}}"
    send(client, board, "put", body={"items": [{"answer": "none"}]})
    send(client, board, "delete")
    for method in ("get", "delete"):
        send(client, board, method, f"{v1}/boards/absent")
    for template in (f"{v1}/complete", f"{v1}/tables", f"{v1}/cells", f"{v1}/verdicts/export"):
        send(client, template, "get", f"{template}?limit=x&format=x")
    record = serve(model=FunctionModel(lambda *_: "Yes")).post("sql", {"suql": CANDLES})
    assert record.status == 200
    slow = serve(source(), FunctionModel(lambda *_: "Yes", latency=0.2))
    with slow.open_stream("sql", {"suql": all_of()}) as events:
        stop = f"{v1}/answers/{next(events)[1]['id']}/stop"
        while send(slow, f"{v1}/answers/{{id}}/stop", "post", stop).status == 404:  # it is only about to run
            time.sleep(0.01)
    _cited(serve, reached)
    _queries(client, serve, reached, bodies)
    _rows(client, serve, reached, tmp_path)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(JobRunner, "is_stuck", True)
        send(client, "/healthz", "get")
    documented = {
        (template, method, int(status))
        for template, methods in described["paths"].items()
        for method, operation in methods.items()
        for status in operation["responses"]
    }
    missed = {each for each in documented if each[2] not in reached.found[each[0], each[1]]}
    assert missed == set()


def _cited(serve, reached):
    """A text that a quote points at."""
    from urllib.parse import urlencode

    from tests.web.conftest import Quoting, reads_candles

    client = serve(model=Quoting(reads_candles))
    one = client.post("sql", {"suql": CANDLES}).json()["evidence"][0][0]
    where = urlencode({name: one[name] for name in ("relation", "key", "column", "passage")})
    reached.note("/api/v1/cells", "get", client.get(f"cells?{where}"))


def _rows(client, serve, reached, folder):
    """What browsing can end in."""

    def get(at, rest):
        reached.note("/api/v1/tables/{name}/" + rest.partition("?")[0], "get", at.get(f"tables/places/{rest}"))

    get(client, "rows?filter=wages%3Dabc")
    schema = folder / "schema.toml"
    schema.write_text("[places.columns.city]\nprivate = true\n")
    get(serve(schema=str(schema)), "rows?sort=city")
    hurried = serve(limits=Limits(deadline=0.1))
    with pytest.MonkeyPatch.context() as patched:
        for rest, work in (("rows", "read_rows"), ("profile", "profile_table")):
            patched.setattr(f"almanaq.web.api.{work}", lambda *_, **__: time.sleep(1))
            get(hurried, rest)


def _queries(client, serve, reached, bodies):
    """What queries, models and time can do."""
    asked = {"question": "How many places are there?"}

    def post(at, name, body):
        return reached.note(f"/api/v1/{name}", "post", at.post(name, body))

    post(client, "ask", asked | {"conversation": "none"})
    post(client, "sql", {"suql": CANDLES, "plan": "another"})
    for name in ("sql", "explain", "why-not"):
        post(client, name, bodies[f"/api/v1/{name}"] | {"suql": "SELECT nothing FROM nowhere"})
    written = {"reasoning": "", "suql": "SELECT nothing FROM nowhere", "needs_data": True, "clarify": None}
    post(serve(model=ScriptedModel({"parse": lambda _: written})), "ask", asked)

    def failing(error):
        def fail(*_):
            raise error

        return serve(source(5), FunctionModel(fail), strict=True)

    reads = {"suql": all_of()}
    for error in (ModelCallError("it failed"), ModelError("no such model")):
        at = failing(error)
        post(at, "sql", reads)
        post(at, "why-not", reads | {"key": {"id": 1}})
        post(serve(model=ScriptedModel({"parse": error})), "ask", asked)

    slow = FunctionModel(lambda *_: "Yes", latency=5)
    hurried = serve(source(30), slow, limits=Limits(deadline=0.3))
    post(hurried, "sql", reads)
    post(hurried, "why-not", reads | {"key": {"id": 1}})
    post(serve(model=ScriptedModel({"parse": written}, latency=5), limits=Limits(deadline=0.3)), "ask", asked)

    busy = serve(source(30), slow, limits=Limits(at_once=1, waiting=0))
    with busy.open_stream("sql", reads) as events:
        next(events)
        for template, body in bodies.items():
            post(busy, template.removeprefix("/api/v1/"), body)
        reached.note("/api/v1/boards/{name}/run", "post", busy.post("boards/food/run", {}))
        for rest in ("rows", "profile"):
            reached.note(f"/api/v1/tables/{{name}}/{rest}", "get", busy.get(f"tables/places/{rest}"))
