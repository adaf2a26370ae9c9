"""The JSON schema of the reply to each prompt that has the same one in every request."""

from __future__ import annotations

from collections.abc import Mapping

from almanaq.models.prompts import prompt_file
from almanaq.models.protocols import Prompt

_TEXT: Mapping[str, object] = {"type": "string"}
_TEXT_OR_NULL: Mapping[str, object] = {"type": ["string", "null"]}
_NUMBERS: Mapping[str, object] = {"type": "array", "items": {"type": "integer"}}


def strict_object(properties: Mapping[str, object]) -> dict[str, object]:
    """Return the schema of an object with exactly these properties."""
    required = list(properties)
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def one_of(*values: str) -> dict[str, object]:
    """Return the schema of one of these strings."""
    return {"type": "string", "enum": list(values)}


QUOTES: Mapping[str, object] = {"type": "array", "items": _TEXT}
"""Words of the document: they are looked up in its passages, so that no number is asked for."""

SCHEMAS: Mapping[str, Mapping[str, object]] = {
    "relax": strict_object({"condition": {"type": ["integer", "null"]}, "replacement": _TEXT_OR_NULL}),
    "table_rank": strict_object({"tables": _NUMBERS}),
}


def task_prompt(name: str, values: Mapping[str, object], *, max_output_tokens: int = 1024) -> Prompt:
    """Return the request of a prompt of SCHEMAS, filled with the values that its file names."""
    return prompt_file(name).prompt(values, schema=SCHEMAS[name], max_output_tokens=max_output_tokens)
