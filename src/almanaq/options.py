"""Every choice that a user has, declared once: name, type, default, range, unit, help, and where it may be set.

The arguments of `connect`, the fields of `Options`, the settings file and the environment, the flags of the commands,
the URL of SQLAlchemy and the fields of HTTP requests all follow these declarations. To add an option, add one entry
here, read it where it matters, and run `make docs`, which writes it into the signature of `connect`.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from numbers import Real
from os import PathLike
from typing import Any, Literal

from almanaq.errors import UsageError, suggest

DEFAULT_MAX_CALLS = 1000
"""Model calls that cost money, where nobody says how many may be made."""
DEFAULT_CONFIRM_ABOVE = 100
"""Requests above which `ask` asks before a question, where nobody says how many."""
AGENT_DEADLINE = 120.0
"""Seconds that a turn of the agent may take where no deadline was given."""
AGENT_ROWS = 10_000
_EVERY_COMMAND = "sql ask chat shell serve mcp board"
_CHECKED = "verdicts rerun"
"""The commands on answers once checked: `almanaq test` is `rerun` in the code."""
_NUMBERS: Mapping[str, type] = {"int": int, "float": float, "bool": bool}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One choice, as it is declared.

    Attributes:
        annotation: the type, as Python writes it.
        help: one sentence: what `--help` prints, and docstrings unless `python` says more there.
        unit: of a number, for programs that read the schema of HTTP requests.
        least, above, most: the range of a number; `above` is not in it.
        parse: makes the value of a text where that takes more than a number does.
        metavar: names the value in `--help`.
        flag: how a command spells it; "": `--` and the name with hyphens.
        where: it may be set, in words: the commands that have its flag; `setting`: `almanaq.toml`, and the environment
            as ALMANAQ_NAME; `url`: the URL of SQLAlchemy; `http`: a request, to be kept within less than the server
            allows.
        untrusted: what an `almanaq.toml` may set before the user has allowed that file: "any" value, a number up to
            this one, or one of these texts. A file may come from anybody, so nothing is harmless unless it is said.
    """

    name: str = ""
    annotation: str = ""
    default: Any = None
    help: str
    python: str = ""
    unit: str = ""
    least: int | None = None
    above: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()
    parse: Callable[[str], Any] | None = None
    metavar: str | None = None
    flag: str = ""
    where: str = ""
    untrusted: Literal["any"] | int | tuple[str, ...] = ()

    def is_set_by(self, place: str) -> bool:
        """Return whether it may be set there: `setting`, `url`, `http`, or the name of a command."""
        return place in self.where.split()

    @property
    def spelling(self) -> str:
        """The flag that sets it: `--max-calls`."""
        return self.flag or f"--{self.name.replace('_', '-')}"

    @property
    def python_type(self) -> type:
        """The type of a value that is given as text: int, float, bool or str."""
        return _NUMBERS.get(self.annotation.partition(" ")[0], str)

    @property
    def argument_type(self) -> str:
        """The type of the argument of `connect`: None leaves an option of queries as it is."""
        return (
            self.annotation
            if self in CONNECTION_OPTIONS or self.annotation.endswith("None")
            else f"{self.annotation} | None"
        )

    def check(self, value: Any) -> None:
        """Raise UsageError for a value of another type, or out of its range; None is none of either."""
        if value is None:
            return
        name = "path" if self.metavar == "FILE" else self.annotation.removesuffix(" | None")
        words, holds = _TYPES.get(name, ("", lambda _: True))
        if not holds(value):
            raise UsageError(f"{self.name}: {value!r} is not {words}")
        if self.choices and value not in self.choices:
            raise UsageError(f"{self.name}: {value!r} is unknown{suggest(str(value), list(self.choices))}")
        if name not in _TYPES or (self.least is None and self.above is None):
            return
        low = value >= self.least if self.least is not None else value > self.above
        if low and value < math.inf and (self.most is None or value <= self.most):
            return
        bounds = f"a number from {self.least} to {self.most}" if self.most else f"a number of at least {self.least}"
        if self.above is not None:
            bounds = f"{self.unit}, more than {self.above}"
        raise UsageError(f"{self.name}: {value!r} is out of range; give {bounds}")

    def pydantic_field(self) -> tuple[Any, Any]:
        """Return the option as pydantic declares a field: its type, and its default with its range."""
        from pydantic import Field

        kind: Any = Literal[self.choices] if self.choices else self.python_type
        finite = {"allow_inf_nan": False} if self.python_type is float else {}
        bounds: dict[str, Any] = {"ge": self.least, "gt": self.above, "le": self.most, **finite}
        declared = Field(self.default, description=self.unit, **bounds)
        return (kind | None if self.default is None else kind), declared

    def from_text(self, text: str) -> Any:
        """Return the value that a text spells; raises ValueError or KeyError for a text that spells none."""
        if self.parse is not None:
            return self.parse(text)
        if self.python_type is bool:
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        return self.python_type(text)

    def is_harmless(self, value: Any) -> bool:
        """Return whether a settings file that the user has not allowed may set this value."""
        if isinstance(self.untrusted, int):
            return isinstance(value, int) and value <= self.untrusted
        return self.untrusted == "any" or value in self.untrusted


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Targets of a semantic filter that need not ask about every row; without it every row is asked.

    Attributes:
        recall: the share of the exact result's rows that are returned, at least.
        precision: the share of the returned rows that are in the exact result, at least.
        delta: the probability with which either target may be missed.
        proxy: what scores the rows: "local", "regression", or the name of a cheaper model.
        seed: draws the rows that are asked; the same seed gives the same rows.

    Raises:
        UsageError: a number is out of its range.

    >>> import almanaq
    >>> from almanaq.testing import FunctionModel
    >>> about = [f"Dog {n} is {'friendly' if n % 2 else 'shy'}." for n in range(400)]
    >>> model = FunctionModel(lambda text, question: "Yes" if "friendly" in text else "No")
    >>> con = almanaq.connect({"dogs": {"about": about}}, model=model, cache=False)
    >>> query = "SELECT * FROM dogs WHERE answer(about, 'is the dog friendly?') = 'Yes'"
    >>> result = con.sql(query, accuracy=almanaq.Accuracy(recall=0.8, precision=0.8))
    >>> result.trace.text_calls < 400, result.trace.exact
    (True, False)
    """

    recall: float = 0.9
    precision: float = 0.9
    delta: float = 0.1
    proxy: str = "local"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("recall", "precision"):
            if not 0 < getattr(self, name) <= 1:
                raise UsageError(f"{name} is {getattr(self, name)}: it must be above 0 and at most 1")
        if not 0 < self.delta < 1:
            raise UsageError(f"delta is {self.delta}: it must be between 0 and 1")


def read_accuracy(text: str) -> Accuracy:
    """Return the targets that a text like `recall=0.9,precision=0.9,proxy=local` names; the others have their defaults.

    Raises:
        UsageError: a part is no `name=value`, its name is unknown, or its value is none for it.

    >>> read_accuracy("recall=0.9")
    Accuracy(recall=0.9, precision=0.9, delta=0.1, proxy='local', seed=0)
    """
    known: dict[str, type] = {"recall": float, "precision": float, "delta": float, "proxy": str, "seed": int}
    given: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or name not in known:
            raise UsageError(
                f"accuracy: {part.strip()!r} is not understood{suggest(name, list(known))}; "
                "write recall=0.9,precision=0.9 and optionally delta=0.1, proxy=local, seed=0"
            )
        try:
            given[name] = known[name](value)
        except ValueError as error:
            raise UsageError(f"accuracy: {name} is {value!r}, which is not a number") from error
    return Accuracy(**given)


@dataclass(frozen=True, slots=True)
class _Unset:
    """Stands for a choice that was not made, with what it then is."""

    value: Any

    def __repr__(self) -> str:
        return repr(self.value)


def _option(default: Any, help: str, **declared: Any) -> Any:
    """Declare an option of queries; its name and type are those of the field."""
    return field(default=_Unset(default), metadata={"option": Option(default=default, help=help, **declared)})


_NUMBER: tuple[str, Callable[[Any], bool]] = ("a number", lambda value: isinstance(value, Real | Decimal))
_TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "int": _NUMBER,
    "float": _NUMBER,
    "bool": ("True or False", lambda value: not isinstance(value, str) and value in (True, False)),
    "str": ("text", lambda value: isinstance(value, str)),
    "path": ("a path", lambda value: isinstance(value, str | PathLike)),
    "Accuracy": ("an almanaq.Accuracy", lambda value: isinstance(value, Accuracy)),
    "Sequence[str]": ("a list of texts", lambda value: isinstance(value, Collection) and type(value) is not str),
}
"""What a type is called in messages, and whether a value is of it, by the annotations of options.

Those of models and the like are checked where they are opened.
"""

_COPIED = "(copied)"
"""Marks, among the choices given, that `replace` hands on values that nobody may have given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Choices for running one query; defaults are exact. A query inherits from its connection what is not given.

    >>> import almanaq
    >>> con = almanaq.connect({"dogs": {"about": ["Rex barks.", "Bella bites.", "Milo sleeps."]}})
    >>> careful = almanaq.Options(max_calls=2)
    >>> con.sql("SELECT * FROM dogs WHERE answer(about, 'does it bark?') = 'Yes'", options=careful)
    Traceback (most recent call last):
    almanaq.errors.BudgetExceeded: the query is expected to make about 3 model calls, above the budget of 2: ...
    """

    max_calls: int | None = _option(
        None,
        "Budget of model calls; default 1000, none for local.",
        unit="model calls of a query",
        least=0,
        metavar="N",
        where=f"{_EVERY_COMMAND} setting url http",
        untrusted=DEFAULT_MAX_CALLS,
    )
    max_money: float | None = _option(
        None,
        "Budget of money for a query; needs a prices file.",
        python="Budget of US dollars, for a model whose price is known; None: any sum.",
        unit="US dollars",
        least=0,
        metavar="DOLLARS",
        where="sql setting url",
    )
    confirm_above: int | None = _option(
        None,
        "Ask before a question takes more requests, or a thousandth of a dollar for each; default 100 in ask.",
        python="`almanaq ask` asks at a terminal before a question takes more requests, or more than a thousandth of"
        " a dollar for each, by what is expected before it and after its first replies; None: 100 or $0.10. Without a"
        " terminal it then stops, unless this is None. `almanaq sql` does the same where this is not None. Elsewhere"
        " nobody is asked.",
        unit="requests",
        least=0,
        metavar="N",
        where="ask sql setting",
    )
    speculation: float = _option(
        2.0,
        "Rows tried at once per row still needed; 1 wastes nothing.",
        python="At most ceil(speculation × rows still needed) rows are under way at once; at least 1.",
        least=1,
        metavar="X",
        where="sql setting url",
        untrusted="any",
    )
    order: Literal["similarity", "table"] = _option(
        "similarity",
        "The order in which rows are tried if the query gives none.",
        choices=("similarity", "table"),
        where="sql setting url",
        untrusted="any",
    )
    strict: bool = _option(
        False,
        "Fail if a model call fails, instead of counting it as unknown.",
        where="sql ask shell serve mcp setting url",
        untrusted="any",
    )
    check: bool = _option(
        False,
        "Have the model look at each query of a turn and its first rows: one call more.",
        where="ask chat setting",
    )
    deadline: float | None = _option(
        None,
        "Interrupt a query, or a turn of ask and chat (120), after so long.",
        python="Seconds after which a query is interrupted; None: never, and 120 for a reply.",
        unit="seconds",
        above=0,
        metavar="SECONDS",
        where=f"{_EVERY_COMMAND} setting url http",
        untrusted="any",
    )
    passages: int | None = _option(
        None,
        "Approximate: read the best K passages only.",
        least=1,
        metavar="K",
        where="sql url",
    )
    candidates: int | None = _option(
        None,
        "Approximate: try the K most similar rows only.",
        least=1,
        metavar="K",
        where="sql url",
    )
    accuracy: Accuracy | None = _option(  # noqa: RUF009 - `_option` gives a field
        None,
        "Approximate: ask about fewer rows, as recall=0.9,precision=0.9[,delta=0.1][,proxy=local][,seed=0].",
        python="Approximate: targets that a text filter need only reach; None asks about every row.",
        parse=read_accuracy,
        metavar="TARGETS",
        where="sql url",
    )
    confidence: float | None = _option(
        None,
        "With local: answer only what is understood so surely, 0 to 1; default 0.65.",
        python="How surely `local` must have understood a question before it answers, from 0 to 1; below that it says "
        "what was not clear. None: as it was fitted.",
        least=0,
        most=1,
        metavar="X",
        where="ask chat setting url",
        untrusted="any",
    )
    link: bool = _option(
        True,
        "Compare literals with ENUM columns as written.",
        python="Map literals compared with ENUM columns to the column's values.",
        flag="--no-link",
        where="sql url",
    )
    allow_functions: Sequence[str] = _option(
        (),
        "Let queries call this function of your database.",
        python="Functions of the database's own that queries may call besides those that only compute from their "
        "arguments; you vouch for what they read and do.",
        metavar="NAME",
        flag="--allow-function",
        where="sql",
    )
    dialect: str | None = _option(
        None,
        "The SQL dialect of the queries, such as postgres; default: the engine's own.",
        python="The dialect of SQL, as sqlglot calls it, that queries are written in: `postgres`, `mysql`, … They are "
        "carried over to that of the source's engine, or refused. None: the engine's own, as for the queries of `ask`.",
        metavar="NAME",
        where="sql setting url",
        untrusted="any",
    )
    max_result_mb: int | None = _option(
        256,
        "Most memory of a result; default 256. None is needed for --out FILE.csv or FILE.parquet.",
        python="Most memory that the rows of a result may take, in megabytes of Arrow; None: any.",
        unit="megabytes",
        least=1,
        metavar="MB",
        where="sql setting url",
        untrusted=256,
    )
    max_rows: int | None = _option(
        None,
        "Most rows of a result; rows beyond are not read, and the trace says so. None: all.",
        least=1,
        where="url",
    )
    concurrency: int = _option(64, "Most text calls under way at once.", least=1, where="setting url", untrusted="any")
    counting: Any = field(default=_Unset(None), repr=False)
    """How to estimate what a query would give instead of giving it: `Connection.estimate` and its kind set it."""
    given: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    """Names of the choices that were made, rather than left at their defaults."""

    def __post_init__(self) -> None:
        """Put the defaults where nothing was given; of a copy by `replace`, what is no default counts as given."""
        copied, given = _COPIED in self.given, set(self.given) | {_COPIED}
        for name, default in _defaults():
            value = getattr(self, name)
            if isinstance(value, _Unset):
                object.__setattr__(self, name, default)
            elif not copied or value != default:
                given.add(name)
        object.__setattr__(self, "given", frozenset(given))
        for option in QUERY_OPTIONS:
            if option.name in given:
                option.check(getattr(self, option.name))

    def over(self, base: Options) -> Options:
        """Return these choices, and those of `base` where none was given here.

        >>> chosen = Options(order="table").over(Options(max_calls=5))
        >>> chosen.order, chosen.max_calls, Options(max_calls=None).over(Options(max_calls=5)).max_calls
        ('table', 5, None)
        """
        values = {name: getattr(self if name in self.given else base, name) for name, _ in _defaults()}
        return Options(**values, given=self.given | base.given)

    def within(self, **bounds: float | None) -> Options:
        """Return these choices with numbers lowered to bounds, where these are not None; nothing is raised.

        >>> own = Options(max_calls=5).within(max_calls=9, deadline=2.0, max_rows=None)
        >>> own.max_calls, own.deadline, own.max_rows
        (5, 2.0, None)
        """
        lowered: dict[str, Any] = {}
        for name, bound in bounds.items():
            own = getattr(self, name)
            if bound is not None and (own is None or bound < own):
                lowered[name] = bound
        return replace(self, **lowered)

    def for_agent(self) -> Options:
        """Return the options of queries that nobody has written: what is unbounded is bounded.

        >>> Options().for_agent().max_rows, Options(max_rows=5).for_agent().max_rows
        (10000, 5)
        """
        return replace(
            self,
            deadline=AGENT_DEADLINE if self.deadline is None else self.deadline,
            max_rows=AGENT_ROWS if self.max_rows is None else self.max_rows,
        )


def _defaults() -> Iterator[tuple[str, Any]]:
    for one in fields(Options):
        if isinstance(one.default, _Unset):
            yield one.name, one.default.value


QUERY_OPTIONS = tuple(
    replace(one.metadata["option"], name=one.name, annotation=str(one.type).replace("'", '"'))
    for one in fields(Options)
    if one.metadata
)
"""The options that each query may have of its own."""

_BEFORE = (
    Option(
        name="model",
        annotation="str | Reader | LanguageModel | Models",
        default="local",
        help="auto (default: the available model, else local), local (no language model), ollama:MODEL, openai:MODEL …;"
        " see almanaq models.",
        python="`local` (no language model), `openai:MODEL`, an object with the methods of a Reader or LanguageModel, "
        "or opened Models, which keep replies as `open_models(…, cache=…)` says, whatever `cache` is here.",
        metavar="NAME",
        where=f"demo {_EVERY_COMMAND} {_CHECKED} setting url",
        untrusted=("local",),
    ),
    Option(
        name="embedder",
        annotation="str | Embedder | None",
        help="lexical, static, local, openai:MODEL, a path or a hub name.",
        python="`lexical`, `local`, `openai:MODEL`, a path or a hub name, or an Embedder; None: the model's own for "
        "finding tables, and shared words for the order of similarity, which then costs nothing.",
        metavar="NAME",
        where=f"demo {_EVERY_COMMAND} {_CHECKED} setting url",
        untrusted=("lexical", "static", "local"),
    ),
    Option(
        name="schema",
        annotation="str | None",
        help="Column kinds and descriptions; default SOURCE.almanaq.toml.",
        metavar="FILE",
        where=f"{_EVERY_COMMAND} {_CHECKED} url",
    ),
    Option(
        name="terms",
        annotation="str | None",
        help="Metrics of a semantic layer, OSI's YAML or dbt's manifest; default SOURCE.terms.yaml.",
        python="A file of metrics, dimensions and joins: Open Semantic Interchange (YAML) or dbt's semantic manifest "
        "(JSON); None: `SOURCE.terms.yaml` or `.json`, or a file's `target/semantic_manifest.json`, where it exists.",
        metavar="FILE",
        where=f"{_EVERY_COMMAND} {_CHECKED} url",
    ),
    Option(
        name="examples",
        annotation="str | None",
        help="Questions with their SUQL for the model; default SOURCE.examples.toml.",
        python="A TOML file of questions with their SUQL, which show a language model how queries over the source are "
        "written; None: `SOURCE.examples.toml` where it exists, else some are generated.",
        metavar="FILE",
        where=f"ask chat shell serve mcp {_CHECKED} url",
    ),
)
_AFTER = (
    Option(
        name="batch",
        annotation="int | Batching | None",
        help="Put up to N short texts, or questions about a text, into one call; 1: no sharing.",
        python="Most questions on one text, or short texts with one question, that share a call of a language model, or"
        " a Batching that says it in full; None: six texts for a model of `openai:` or `azure:`, else one.",
        least=1,
        metavar="N",
        where="sql ask chat serve mcp setting url",
        untrusted="any",
    ),
    Option(
        name="batch_api",
        annotation="bool",
        default=False,
        help="Read texts through OpenAI's batch API: half the price, up to a day; a query that ends early resumes it.",
        where="sql ask setting",
    ),
    Option(
        name="reasoning_effort",
        annotation="str | None",
        help="How much a model that reasons is to reason, as none, low or high; default: the server's.",
        python="How much a model that reasons is to reason, as its server names it: `none`, `low`, `high`, …; None: as "
        "is usual there. It is said where the server does not take it.",
        metavar="NAME",
        where=f"{_EVERY_COMMAND} setting url",
        untrusted=("none", "minimal", "low"),
    ),
    Option(
        name="context_tokens",
        annotation="int | None",
        help="Tokens that the model reads at once; default: what its server says, else 32000.",
        python="Tokens that the model reads at once, prompt and reply together; None: what its server says, else "
        "32,000. Longer texts are read in parts.",
        least=1024,
        where="setting url",
        untrusted="any",
    ),
    Option(
        name="cache",
        annotation="bool",
        default=True,
        help="Use no cache of replies or file tables.",
        python="Keep replies, and the tables of files, on disk, shared by processes; False keeps replies in memory, for"
        " the connection: equal calls are made once.",
        flag="--no-cache",
        where=f"{_EVERY_COMMAND} {_CHECKED} url",
    ),
    Option(
        name="separate",
        annotation="bool",
        default=False,
        help="Keep files that look like parts of one table apart.",
        where=_EVERY_COMMAND,
    ),
    Option(
        name="allow_http",
        annotation="bool",
        default=False,
        help="Fetch a SOURCE of the form https://….",
        where=f"{_EVERY_COMMAND} {_CHECKED}",
    ),
)
CONNECTION_OPTIONS = (*_BEFORE, *_AFTER)
"""The options that hold for a connection as a whole."""
OPTIONS: Mapping[str, Option] = {option.name: option for option in (*_BEFORE, *QUERY_OPTIONS, *_AFTER)}
"""Every option by its name, in the order in which a command lists its flags."""


def pydantic_fields(surface: Literal["http", "setting"]) -> Any:
    """Return the fields of a pydantic model that takes the options of a surface."""
    return {name: option.pydantic_field() for name, option in OPTIONS.items() if option.is_set_by(surface)}


def choose_options(options: Options | None, named: Mapping[str, Any]) -> Options:
    """Return the options with those named by themselves in their place; raise UsageError for one out of range."""
    given = {name: value for name, value in named.items() if value is not None}
    return replace(options or Options(), **given)


def describe_options(options: Sequence[Option], indent: str) -> str:
    """Return options as a docstring lists them, wrapped at 120 columns."""
    lines = []
    for option in options:
        text = option.python or option.help
        lines += textwrap.wrap(
            f"{option.name}: {text[0].lower()}{text[1:]}", 120, initial_indent=indent, subsequent_indent=f"{indent}    "
        )
    return "\n".join(lines)


Options.__doc__ = f"{Options.__doc__}\n    Attributes:\n{describe_options(QUERY_OPTIONS, ' ' * 8)}\n    "
