"""DB-API 2.0 (PEP 249) by its words: types, errors, cursors, parameters, and what is closed."""

from __future__ import annotations

import datetime
import decimal
import uuid

import pyarrow as pa
import pytest

import almanaq
from almanaq.testing import FunctionModel

TABLE = pa.table({"n": [1, 2, 3, 4], "s": ["a", "b", "c", "d"]})
PEP_249 = {
    "InterfaceError": "Error",
    "DatabaseError": "Error",
    "DataError": "DatabaseError",
    "OperationalError": "DatabaseError",
    "IntegrityError": "DatabaseError",
    "InternalError": "DatabaseError",
    "ProgrammingError": "DatabaseError",
    "NotSupportedError": "DatabaseError",
}


@pytest.fixture
def connection():
    with almanaq.connect({"t": TABLE}, cache=False) as opened:
        yield opened


@pytest.fixture
def cursor(connection):
    return connection.cursor()


def test_the_classes_of_errors_form_the_tree_of_pep_249(connection):
    assert issubclass(almanaq.Warning, Exception)
    assert not issubclass(almanaq.Warning, almanaq.Error)
    for name, parent in PEP_249.items():
        assert issubclass(getattr(almanaq, name), getattr(almanaq, parent)), name
        assert getattr(connection, name) is getattr(almanaq, name)
    assert connection.Error is almanaq.AlmanaqError


@pytest.mark.parametrize(
    ("query", "parameters", "kind"),
    [
        ("SELECT nothing FROM t", (), "ProgrammingError"),
        ("SELEC 1", (), "ProgrammingError"),
        ("SELECT n FROM t WHERE n = ?", (), "ProgrammingError"),
        ("SELECT ?", (object(),), "ProgrammingError"),
        ("SELECT answer(n, 'a?') FROM t", (), "ProgrammingError"),
        ("DELETE FROM t", (), "NotSupportedError"),
        ("SELECT * FROM read_csv('a')", (), "NotSupportedError"),
        ("SELECT cast(s AS int) FROM t", (), "DataError"),
        ("SELECT CAST(s AS INTEGER) FROM t", (), "DataError"),
        ("SELECT answer(s, 'a?') FROM t", (), "OperationalError"),
    ],
)
def test_each_failure_has_the_class_that_pep_249_gives_it(query, parameters, kind):
    """A failure is of exactly one of the kinds below DatabaseError: who handles one need not know the others."""

    def fail(text: str, question: str) -> str:
        raise almanaq.ModelError("no key")

    opened = almanaq.connect({"t": TABLE}, model=FunctionModel(fail), cache=False)
    with opened as connection, pytest.raises(almanaq.DatabaseError) as caught:
        connection.cursor().execute(query, parameters)
    kinds = [name for name, parent in PEP_249.items() if parent == "DatabaseError"]
    assert [name for name in kinds if isinstance(caught.value, getattr(almanaq, name))] == [kind]


def test_type_codes_equal_their_type_object_only(cursor):
    query = "SELECT n, n * 1.5, s, date '2020-01-02', now(), time '03:04', ?::bytea, true FROM t"
    cursor.execute(query, (b"a",))
    kinds = [almanaq.NUMBER, almanaq.STRING, almanaq.DATETIME, almanaq.BINARY, almanaq.ROWID]
    found = [[kinds.index(kind) for kind in kinds if kind == column[1]] for column in cursor.description]
    assert found == [[0], [0], [1], [2], [2], [2], [3], [0]]
    assert almanaq.NUMBER != almanaq.STRING
    assert len({almanaq.NUMBER, almanaq.STRING, almanaq.NUMBER}) == 2


def test_constructors_give_values_that_are_parameters(cursor):
    moment = almanaq.Timestamp(2002, 12, 25, 13, 45, 30)
    given = (almanaq.Date(2002, 12, 25), almanaq.Time(13, 45, 30), moment, almanaq.Binary(b"a"))
    assert cursor.execute("SELECT ?, ?, ?, ?", given).fetchone() == given
    ticks = moment.timestamp()
    assert almanaq.TimestampFromTicks(ticks) == moment
    assert (almanaq.DateFromTicks(ticks), almanaq.TimeFromTicks(ticks)) == (moment.date(), moment.time())


@pytest.mark.parametrize(
    "value",
    [None, True, -7, 2.5, "it's", b"", b"\x00ab\\x", bytearray(b"x"), decimal.Decimal("1.25"),
     datetime.date(2020, 1, 2), datetime.time(3, 4, 5, 6), datetime.datetime(2020, 1, 2, 3, 4),
     datetime.datetime(2020, 1, 2, 3, 4, tzinfo=datetime.UTC), [1, 2], ["a", None],
     datetime.timedelta(days=1, microseconds=5), datetime.timedelta(days=-3, seconds=7), datetime.timedelta(0),
     uuid.UUID(int=5), {"a": [1, None], "b": "ü"}, {}],
)  # fmt: skip
def test_a_parameter_comes_back_as_it_was_given(cursor, value):
    got = cursor.execute("SELECT ?", (value,)).fetchone()[0]
    assert (got, type(got)) == (value, bytes if isinstance(value, bytearray) else type(value))


def test_parameters_are_given_by_place_by_name_or_not_at_all(cursor):
    assert cursor.execute("SELECT $2, $1", (1, "a")).fetchone() == ("a", 1)
    assert cursor.execute("SELECT $b, $a, $b", {"a": 1, "b": [2]}).fetchone() == ([2], 1, [2])
    assert cursor.execute("SELECT count(*) FROM t", None).fetchone() == (4,)
    for parameters in ("ab", 5, {"a": 1}, [1, 2]):
        with pytest.raises(almanaq.ParameterError):
            cursor.execute("SELECT ?", parameters)


@pytest.mark.parametrize("value", [object(), {"a": object()}, [{1, 2}], 3 + 4j, "\ud800", {"a": "\ud800"}])
def test_what_no_database_takes_is_a_parameter_error(cursor, value):
    with pytest.raises(almanaq.ParameterError):
        cursor.execute("SELECT ?", (value,))


def test_a_cursor_says_where_it_is_and_goes_elsewhere(cursor):
    assert cursor.rownumber is None
    cursor.execute("SELECT n FROM t ORDER BY n")
    assert (cursor.fetchone(), cursor.rownumber) == ((1,), 1)
    cursor.scroll(2)
    assert (next(cursor), cursor.rownumber) == ((4,), 4)
    cursor.scroll(0, "absolute")
    assert list(cursor) == [(1,), (2,), (3,), (4,)]
    with pytest.raises(IndexError):
        cursor.scroll(-9)
    with pytest.raises(almanaq.ProgrammingError):
        cursor.scroll(0, "sideways")
    assert cursor.nextset() is None
    assert cursor.lastrowid is None


def test_fetchmany_heeds_arraysize(cursor):
    cursor.execute("SELECT n FROM t ORDER BY n")
    cursor.setinputsizes([1])
    cursor.setoutputsize(5)
    cursor.arraysize = 3
    assert (len(cursor.fetchmany()), len(cursor.fetchmany()), len(cursor.fetchmany())) == (3, 1, 0)


def test_callproc_calls_a_function(cursor):
    assert cursor.callproc("lower", ("FOO",)) == ("FOO",)
    assert cursor.fetchall() == [("foo",)]
    for name in ("read_text", "1; SELECT"):
        with pytest.raises(almanaq.ProgrammingError):
            cursor.callproc(name, ("/etc/hostname",))


def test_executemany_leaves_the_rows_of_the_last(cursor):
    assert cursor.executemany("SELECT s FROM t WHERE n = ?", [(1,), (2,)]).fetchall() == [("b",)]


def test_there_is_nothing_to_commit_or_to_undo(connection):
    connection.commit()
    connection.rollback()


def test_whatever_is_closed_says_so(connection):
    cursor = connection.cursor()
    cursor.execute("SELECT n FROM t")
    closed = connection.cursor()
    closed.close()
    connection.close()
    for work in (
        connection.cursor,
        connection.commit,
        connection.rollback,
        cursor.fetchone,
        cursor.nextset,
        lambda: cursor.execute("SELECT 1"),
        lambda: closed.execute("SELECT 1"),
        closed.fetchall,
    ):
        with pytest.raises(almanaq.InterfaceError, match="closed"):
            work()


def test_a_handler_is_given_the_error_in_place_of_its_being_raised(connection):
    seen = []
    connection.errorhandler = lambda con, cur, kind, error: seen.append((con, cur, kind, str(error)))
    cursor = connection.cursor()
    cursor.execute("SELECT nothing FROM t")
    assert seen == [(connection, cursor, almanaq.UnknownNameError, str(cursor.messages[0][1]))]
    assert cursor.execute("SELECT 1").fetchall() == [(1,)]
    assert cursor.messages == []
