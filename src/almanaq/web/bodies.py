"""What requests hold: exact keys, bounded sizes; whatever else is an error."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, create_model

from almanaq.options import OPTIONS, Options

Text = Annotated[str, Field(max_length=100_000)]
Scalar = str | int | float | bool | None
Parameters = Annotated[list[JsonValue], Field(max_length=1_000)]
Key = Annotated[dict[str, Scalar], Field(min_length=1, max_length=20)]


class _Exact(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Bounds(_Exact):
    """What a client wants to be kept within; it only lowers what the server allows."""

    def options(self) -> Options:
        """Return the same as a value."""
        return Options(**self.model_dump(exclude_none=True))


def _fields() -> dict[str, Any]:
    """Return the options that a request may set, as pydantic declares fields."""
    made: dict[str, Any] = {}
    for name, option in OPTIONS.items():
        if option.http:
            kind: Any = option.python_type
            made[name] = (kind | None, Field(None, description=option.unit, **option.pydantic_bounds()))
    return made


AskedOptions: Any = create_model("AskedOptions", __base__=_Bounds, __doc__=_Bounds.__doc__, **_fields())


class Ask(_Exact):
    """A question, in a conversation or as the first of one."""

    question: Annotated[str, Field(max_length=10_000)]
    conversation: Annotated[str, Field(max_length=100)] | None = None
    options: AskedOptions = AskedOptions()


class Sql(_Exact):
    """A query; `plan` is the mark of the plan that was approved."""

    suql: Text
    params: Parameters = []
    max_rows: int = Field(200, ge=1, le=10_000)
    plan: Annotated[str, Field(max_length=100)] | None = None
    options: AskedOptions = AskedOptions()


class Explain(_Exact):
    """A query to be planned."""

    suql: Text
    params: Parameters = []


class WhyNotBody(_Exact):
    """A query, and the row that is missed: values of columns that name it."""

    suql: Text
    key: Key
    params: Parameters = []


class About(_Exact):
    """What a verdict is about: the whole answer, a row of it, a quote, or a row that is missing."""

    kind: Literal["answer", "row", "quote", "missing"]
    key: Key | None = None
    evidence: dict[str, Any] | None = None


class Expected(_Exact):
    """What would have been right: a query, or the keys of all rows."""

    suql: Text | None = None
    keys: Annotated[list[Key], Field(max_length=1_000)] | None = None


class VerdictBody(_Exact):
    """What a person says of an answer; null takes it back. `sampled`: of a turn that was drawn, not picked."""

    verdict: Literal["right", "wrong"] | None
    about: About = About(kind="answer")
    expected: Expected | None = None
    note: Annotated[str, Field(max_length=2_000)] | None = None
    sampled: bool = False
