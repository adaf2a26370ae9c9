"""Connection.public(): nothing that it gives depends on a private column, in whatever place a query names one."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest

import almanaq
from almanaq.errors import AlmanaqError, RefusedQueryError, UnknownNameError
from almanaq.testing import FunctionModel
from almanaq.users import User

from .queries_with_private_columns import ALL, CANARY, SCHEMA, TABLES, Writer

PRIVATE = ("ssn", "codes", "grade")
QUERIES = 40


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("public") / "schema.toml"
    path.write_text(SCHEMA)
    return str(path)


def other_secrets() -> dict[str, object]:
    """The same tables, but for what is private."""
    people = TABLES["people"]
    values = {"ssn": ["1", "2", "3", None], "codes": [[], ["q"], None, []], "grade": ["a", "b", "c", "c"]}
    for name, column in values.items():
        people = people.set_column(people.column_names.index(name), name, [column])
    return {**TABLES, "people": people}


def outcome(connection: almanaq.Connection, suql: str) -> str:
    try:
        result = connection.sql(suql)
    except AlmanaqError as error:
        return f"{type(error).__name__}: {error}"
    rows = sorted(zip(map(repr, result.rows), map(repr, result.evidence), strict=True))
    return repr((result.columns, rows))


def opened(tables: object, schema: str) -> almanaq.Connection:
    reader = FunctionModel(lambda text, question: "Yes" if "s" in text else "No")
    return almanaq.connect(tables, model=reader, schema=schema, cache=False)


def test_nothing_depends_on_what_is_private(schema: str) -> None:
    with opened(TABLES, schema) as one, opened(other_secrets(), schema) as other:
        shown, hidden = one.public(), other.public()
        ran = 0
        for seed in range(QUERIES):
            writer = Writer(random.Random(seed))
            suql = (writer.showing() if seed % 2 else writer.asking()).sql
            found = outcome(shown, suql)
            assert CANARY not in found, f"seed {seed}: {suql}"
            assert found == outcome(hidden, suql), f"seed {seed}: {suql}"
            ran += found.startswith("((")
        assert ran > QUERIES // 8


def test_a_query_without_what_is_private_gives_the_rows_that_it_gives_otherwise(schema: str) -> None:
    queries = [
        "SELECT p.name, v.note FROM people p JOIN visits v ON v.person = p.id",
        "SELECT name FROM people WHERE answer(bio, 'does it hold an s?') = 'Yes'",
        "SELECT name, answer(bio, 'what?') AS said FROM people AS z",
        "WITH p AS (SELECT id, name FROM people) SELECT count(*), max(p.name) FROM p NATURAL JOIN visits",
        "SELECT name FROM people WHERE EXISTS (SELECT 1 FROM visits WHERE person = people.id) ORDER BY name LIMIT 1",
    ]
    with opened(TABLES, schema) as whole:
        public = whole.public()
        for suql in queries:
            assert sorted(map(repr, public.sql(suql))) == sorted(map(repr, whole.sql(suql))), suql


def test_a_star_and_a_row_are_the_columns_that_are_left(schema: str) -> None:
    left = tuple(name for name in ALL["people"] if name not in PRIVATE)
    with opened(TABLES, schema) as whole:
        public = whole.public()
        assert public.sql("SELECT * FROM people").columns == left
        assert tuple(public.sql("SELECT p FROM people p")[0][0]) == left
        assert public.sql("SELECT count(*) FROM people a NATURAL JOIN people b").rows == [(3,)]  # a bio is NULL


@pytest.mark.parametrize(
    "suql",
    [
        "SELECT {} FROM people",
        "SELECT 1 FROM people WHERE {} IS NULL",
        "SELECT 1 FROM people ORDER BY {}",
        "SELECT answer(note, 'which?', ARRAY(SELECT {}::VARCHAR FROM people)) FROM visits",
    ],
)
@pytest.mark.parametrize("column", PRIVATE)
def test_a_private_column_is_refused_by_name(schema: str, suql: str, column: str) -> None:
    with opened(TABLES, schema) as whole, pytest.raises(RefusedQueryError, match=f"people.{column} is private"):
        whole.public().sql(suql.format(column))


def test_it_explains_asks_and_compares_no_private_column_either(schema: str) -> None:
    with opened(TABLES, schema) as whole:
        public = whole.public()
        with pytest.raises(RefusedQueryError, match="is private"):
            public.explain("SELECT name FROM people WHERE ssn = 'x'")
        with pytest.raises(UnknownNameError, match="ssn"):
            public.why_not("SELECT name FROM people WHERE answer(bio, 'q') = 'Yes'", {"ssn": "x"})
        assert CANARY not in repr(public.ask("What is the ssn of Ada?"))
        assert whole.ask("What is the ssn of Ada?").rows


def test_what_is_no_longer_there_is_in_no_key_and_no_reference(tmp_path: Path) -> None:
    schema = tmp_path / "schema.toml"
    schema.write_text('[people]\nkey = ["ssn"]\nnamed_by = "ssn"\n[people.columns.ssn]\nprivate = true\n')
    people = TABLES["people"].slice(0, 1)
    with almanaq.connect({"people": people}, schema=str(schema), cache=False) as whole:
        (relation,) = whole.public().catalog.relations
        assert (relation.key, relation.named_by, relation.column("ssn")) == ((), "", None)
        suql = "SELECT name FROM people WHERE answer(bio, 'does it swim?') = 'Yes'"
        assert any(whole.public().sql(suql).evidence)
        assert CANARY not in repr(whole.public().sql(suql).evidence)
        assert CANARY in repr(whole.sql(suql).evidence)


def test_closing_it_leaves_the_source_open(schema: str) -> None:
    with opened(TABLES, schema) as whole:
        whole.public().close()
        assert whole.sql("SELECT count(*) FROM people").rows == [(4,)]


def test_no_function_is_vouched_for_where_the_reader_may_not_see_all(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "s.duckdb")) as made:
        made.execute("CREATE TABLE people AS SELECT 1 AS id, 'Ada' AS name, 'canary' AS ssn")
        made.execute("CREATE MACRO number_of(i) AS (SELECT ssn FROM people WHERE id = i)")
        made.execute("CREATE MACRO row_of(i) AS TABLE (FROM people WHERE id = i)")
    rules = "[people.columns.ssn]\nprivate = true\n[people.roles.team]\nhidden = ['ssn']\n"
    (tmp_path / "s.duckdb.almanaq.toml").write_text(rules)
    named = ["number_of", "row_of"]
    with almanaq.connect(str(tmp_path / "s.duckdb"), allow_functions=named, cache=False) as whole:
        for suql in ("SELECT number_of(1)", "FROM row_of(1)"):
            assert CANARY[:6] in repr(whole.sql(suql).rows)
            for part in (whole.public(), whole.for_user(User("ada", roles=("team",)))):
                with pytest.raises(RefusedQueryError, match="columns that are private"):
                    part.sql(suql, options=almanaq.Options(allow_functions=named))
