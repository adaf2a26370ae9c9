"""Every error that almanaq raises on purpose; each message says what went wrong, where, and what to do.

The tree is that of DB-API 2.0 (PEP 249), and the errors of our own hang below its classes: docs/errors.md lists all of
them, with what to do about each. `UsageError` ends a command with 2, `BudgetExceeded` with 3, any other with 1.

`Warning` is PEP 249's too; it is never raised: what a query has to warn of stands in its trace.

>>> import almanaq
>>> con = almanaq.connect({"dogs": {"name": ["Rex", "Bella"], "about": ["Rex is friendly.", "Bella bites."]}})
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence


class AlmanaqError(Exception):
    """The root of every error that almanaq raises on purpose.

    >>> try:
    ...     con.sql("SELECT nmae FROM dogs")
    ... except AlmanaqError as error:
    ...     print(type(error).__name__, error.exit_code)
    UnknownNameError 1
    """

    exit_code = 1


# The root under the name that DB-API 2.0 gives it.
Error = AlmanaqError


class Warning(Exception):
    """DB-API 2.0's class of warnings; never raised."""


# --- the classes of DB-API 2.0 ---------------------------------------------------------------------------------------


class InterfaceError(AlmanaqError):
    """almanaq is used in a way that cannot work.

    >>> try:
    ...     almanaq.connect({"dogs": {"name": ["Rex"]}}, order="random")
    ... except InterfaceError as error:
    ...     print(error)
    order: 'random' is unknown; known: similarity, table
    """


class DatabaseError(AlmanaqError):
    """A query cannot be run, or failed: what code that runs queries of others catches.

    >>> for query in ("SELECT nmae FROM dogs", "DELETE FROM dogs", "SELECT name::int FROM dogs"):
    ...     try:
    ...         con.sql(query)
    ...     except DatabaseError as error:
    ...         print(type(error).__name__)
    UnknownNameError
    RefusedQueryError
    DataError
    """


class ProgrammingError(DatabaseError):
    """The text of a query is at fault: its syntax, a name, a type.

    >>> con.sql("SELECT * FROM dgos")
    Traceback (most recent call last):
    almanaq.errors.UnknownNameError: no relation named 'dgos'; did you mean 'dogs'? ...
    >>> issubclass(UnknownNameError, ProgrammingError)
    True
    """


class NotSupportedError(DatabaseError):
    """What is not done here: writing, or what the database cannot do.

    >>> try:
    ...     con.sql("DROP TABLE dogs")
    ... except NotSupportedError as error:
    ...     print(error)
    only a SELECT may run here; ...
    """


class DataError(DatabaseError):
    """A value cannot be computed or read: division by zero, a cast that fails, a number out of range.

    >>> con.sql("SELECT name::int FROM dogs")
    Traceback (most recent call last):
    almanaq.errors.DataError: Conversion Error: Could not convert string 'Rex' to INT32 ...
    """


class IntegrityError(DatabaseError):
    """A constraint of the database would be broken."""


class InternalError(DatabaseError):
    """The database says that it is broken."""


class OperationalError(DatabaseError):
    """The database or a model failed while a query ran; the query is not at fault.

    >>> [each.__name__ for each in OperationalError.__subclasses__()]
    ['SourceError', 'DeadlineExceeded', 'ModelError', 'BudgetExceeded']
    """


# --- errors of our own -----------------------------------------------------------------------------------------------


class UsageError(InterfaceError):
    """A flag, setting or name that does not exist, or something that was closed.

    >>> almanaq.connect({"dogs": {"name": ["Rex"]}}, model="locl")
    Traceback (most recent call last):
    almanaq.errors.UsageError: no model is called 'locl'; did you mean 'local'?; change --model or ALMANAQ_MODEL
    """

    exit_code = 2


class ParameterError(UsageError, ProgrammingError):
    """The parameters do not fit the query: too few or too many, or of a type that no database takes.

    >>> con.sql("SELECT name FROM dogs WHERE name = ?")
    Traceback (most recent call last):
    almanaq.errors.ParameterError: the query has 1 placeholder(s), but 0 parameter(s) were given
    """


class MissingExtraError(InterfaceError):
    """An optional dependency is not installed; the message says which extra brings it.

    >>> print(MissingExtraError("pandas", "pandas", "Result.df()"))
    Result.df() needs the package 'pandas': install it with  pip install 'almanaq[pandas]'

    Args:
        install: what to install where it is no extra of almanaq, as `./bench`.
    """

    def __init__(self, package: str, extra: str, purpose: str, *, install: str = "") -> None:
        wanted = install or f"'almanaq[{extra}]'"
        super().__init__(f"{purpose} needs the package {package!r}: install it with  pip install {wanted}")


class SourceError(OperationalError):
    """A file, folder, database or corpus cannot be opened or read.

    >>> almanaq.connect("no-such-folder/dogs.csv")
    Traceback (most recent call last):
    almanaq.errors.SourceError: there is no folder 'no-such-folder', so no source 'no-such-folder/dogs.csv'
    """


class QueryError(DatabaseError):
    """A SUQL query is at fault.

    Args:
        message: what is wrong and what to do.
        query: the text of the query, when known.
        start: offset of the first faulty character in `query`.
        end: offset of the last faulty character in `query`.

    >>> try:
    ...     con.sql("SELECT nmae FROM dogs")
    ... except QueryError as error:
    ...     print(error.message, "|", error.query[error.start : error.end + 1])
    Referenced column "nmae" not found in FROM clause; did you mean 'name'? | nmae
    """

    def __init__(self, message: str, *, query: str | None = None, start: int | None = None, end: int | None = None):
        self.message, self.query, self.start, self.end = message, query, start, end
        super().__init__(message + pointer(query, start, end))


class QuerySyntaxError(QueryError, ProgrammingError):
    """The query is not SUQL; the message draws carets under the place.

    >>> con.sql("SELECT name FORM dogs")
    Traceback (most recent call last):
    almanaq.errors.QuerySyntaxError: syntax error at or near "dogs"; did you mean FROM?
      line 1, column 18: ...
    """


class UnknownNameError(QueryError, ProgrammingError):
    """The query names a relation, column or function that does not exist; the message offers near names.

    >>> con.sql("SELECT nmae FROM dogs")
    Traceback (most recent call last):
    almanaq.errors.UnknownNameError: Referenced column "nmae" not found ... did you mean 'name'?
      line 1, column 8:
        SELECT nmae FROM dogs
               ^^^^
    """


class QueryTypeError(QueryError, ProgrammingError):
    """The query uses a value of the wrong type or kind.

    >>> con.sql("SELECT answer(length(name), 'is it long?') FROM dogs")
    Traceback (most recent call last):
    almanaq.errors.QueryTypeError: answer() reads text, but ...
    """


class RefusedQueryError(QueryError, NotSupportedError):
    """The query does more than read, or calls a function that is not allowed.

    >>> con.sql("DELETE FROM dogs")
    Traceback (most recent call last):
    almanaq.errors.RefusedQueryError: only a SELECT may run here; this is a statement of the kind DELETE
    """


class PrivateColumnError(RefusedQueryError):
    """The query names a private column, on a connection that has none of them."""


class UnsupportedError(QueryError, NotSupportedError):
    """The database cannot do what the query asks: it is refused, and nothing of it is dropped silently.

    >>> issubclass(UnsupportedError, QueryError), issubclass(UnsupportedError, NotSupportedError)
    (True, True)
    """


class DeadlineExceeded(OperationalError):
    """The query ran longer than its deadline and was interrupted.

    Attributes:
        partial: a Result with the rows that are surely in the full result, where they were at hand; else None.

    >>> from almanaq.testing import FunctionModel
    >>> slow = FunctionModel(lambda text, question: "Yes", latency=5)
    >>> con = almanaq.connect({"dogs": {"about": ["Rex"]}}, model=slow, deadline=0.05, cache=False)
    >>> con.sql("SELECT answer(about, 'friendly?') FROM dogs")
    Traceback (most recent call last):
    almanaq.errors.DeadlineExceeded: ...
    """

    def __init__(self, message: str, partial: object | None = None) -> None:
        super().__init__(message)
        self.partial = partial


class ModelError(OperationalError):
    """A model cannot be used at all: wrong key, wrong URL, unknown name, no call answered. The query ends.

    >>> from almanaq.testing import ScriptedModel
    >>> locked = ScriptedModel(lambda prompt: ModelError("the key is wrong"))
    >>> con = almanaq.connect({"dogs": {"about": ["Rex"]}}, model=locked, cache=False)
    >>> con.sql("SELECT answer(about, 'friendly?') FROM dogs")
    Traceback (most recent call last):
    almanaq.errors.ModelError: the key is wrong
    """


class ModelCallError(ModelError):
    """One call to a model failed: its answer is NULL, and the trace counts it, unless `strict`.

    >>> from almanaq.testing import FunctionModel
    >>> def of_rex(text, question):
    ...     if text == "Rex":
    ...         raise ModelCallError("no reply")
    ...     return "Yes"
    >>> con = almanaq.connect({"dogs": {"about": ["Rex", "Milo"]}}, model=FunctionModel(of_rex), cache=False)
    >>> result = con.sql("SELECT answer(about, 'friendly?') FROM dogs")
    >>> result.rows, result.trace.unknown_calls
    ([(None,), ('Yes',)], 1)
    """


class BudgetExceeded(OperationalError):
    """A budget refused the work before the first call, or stopped it.

    Attributes:
        partial: the rows that are surely in the full result, or None.

    >>> query = "SELECT name FROM dogs WHERE answer(about, 'friendly?') = 'Yes'"
    >>> con.sql(query, options=almanaq.Options(max_calls=1))
    Traceback (most recent call last):
    almanaq.errors.BudgetExceeded: the query is expected to make about 2 model calls, above the budget of 1: ...
    """

    exit_code = 3

    def __init__(self, message: str, partial: object | None = None) -> None:
        super().__init__(message)
        self.partial = partial


class BenchmarkError(AlmanaqError):
    """A dataset, run folder or record is at fault, or a retriever that is measured.

    >>> issubclass(BenchmarkError, AlmanaqError), issubclass(BenchmarkError, DatabaseError)
    (True, False)
    """


_ENGINE_ERRORS = (ProgrammingError, NotSupportedError, DataError, IntegrityError, InternalError, OperationalError)


def engine_error(message: str, kind: type[BaseException]) -> DatabaseError:
    """Return a database's error as ours, in the class of PEP 249 under which its driver has errors of that kind."""
    names = [base.__name__ for base in kind.__mro__]
    classes = {own.__name__: own for own in _ENGINE_ERRORS}
    return next((classes[name] for name in names if name in classes), OperationalError)(message)


def is_engine_error(error: BaseException) -> bool:
    """Tell whether an error is what a database said of itself, rather than one of our own."""
    return type(error) in _ENGINE_ERRORS


def suggest(name: str, known: Iterable[str], write: Callable[[str], str] = str) -> str:
    """Return the end of a message that offers the known names nearest to `name`, or lists a few of them.

    Args:
        write: how a name is to be written where it is used.

    >>> suggest("nmae", ["name", "age"])
    "; did you mean 'name'?"
    >>> suggest("colour", ["name", "age"])
    '; known: age, name'
    """
    names = sorted(set(known))
    if near := nearest(name, names):
        return "; did you mean " + " or ".join(_offer_names(write(each)) for each in near) + "?"
    if not names:
        return ""
    shown = ", ".join(map(write, names[:8])) + (f", … ({len(names)} in all)" if len(names) > 8 else "")
    return f"; known: {shown}"


def _offer_names(name: str) -> str:
    return name if name.startswith('"') else repr(name)


def nearest(name: str, known: Sequence[str], *, most: int = 3, alike: float = 0.6) -> list[str]:
    """Return the known names that are spelled most like a name, the nearest first; case does not count.

    Where none is, those that hold it as a word. The standard library's measure, not `almanaq.text.words`: what
    errors need is imported at every start.

    >>> nearest("selec", ["SELECT", "VALUES"], most=1)
    ['SELECT']
    >>> nearest("sales", ["report 2025 (final)_Sales", "customers"])
    ['report 2025 (final)_Sales']
    """
    spelled = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), spelled, n=most, cutoff=alike)
    if not near and len(name) > 2:  # shorter ones occur in names by chance
        near = [each for each in spelled if name.lower() in re.split(r"[^a-z0-9]+", each)][:most]
    return [spelled[each] for each in near]


def check_text(value: object, what: str) -> None:
    """Raise UsageError for a value that is not text.

    >>> check_text(None, "the query")
    Traceback (most recent call last):
    almanaq.errors.UsageError: the query must be text, not NoneType
    """
    if not isinstance(value, str):
        raise UsageError(f"{what} must be text, not {type(value).__name__}")


def first_line(error: BaseException) -> str:
    """Return the first line of what an error of another library says: the rest is its picture of the statement."""
    return str(error).strip().split("\n", 1)[0] or type(error).__name__


def near_names(message: str) -> list[str]:
    """Return the names that a message offers with `suggest` in place of one that is not known."""
    offered = message.rpartition("; did you mean ")[2] if "; did you mean " in message else ""
    return [bare or quoted for bare, quoted in re.findall(r"'([^']*)'|(\"[^\"]*\")", offered.partition("?")[0])]


def pointer(query: str | None, start: int | None, end: int | None) -> str:
    """Draw the line of `query` that holds `start`, with carets under the faulty characters."""
    if query is None or start is None:
        return ""
    line_start = query.rfind("\n", 0, start) + 1
    line_end = query.find("\n", start)
    line = query[line_start : line_end if line_end >= 0 else len(query)]
    number, column = query.count("\n", 0, start) + 1, start - line_start + 1
    width = max(1, min((end if end is not None else start) - start + 1, len(line) - column + 1))
    return f"\n  line {number}, column {column}:\n    {line}\n    {' ' * (column - 1)}{'^' * width}"
