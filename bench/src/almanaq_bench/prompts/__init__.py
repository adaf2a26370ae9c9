"""The benchmark's prompts, in the form that `almanaq.models.prompts` describes, and the schemas of their replies."""

from __future__ import annotations

from collections.abc import Mapping

from almanaq.models.prompts import one_of, prompt_file, strict_object
from almanaq.models.protocols import Prompt

_TEXT: Mapping[str, object] = {"type": "string"}
_TEXT_OR_NULL: Mapping[str, object] = {"type": ["string", "null"]}
_NUMBERS: Mapping[str, object] = {"type": "array", "items": {"type": "integer"}}
_QUERY = strict_object({"reasoning": _TEXT, "suql": _TEXT})

SCHEMAS: Mapping[str, Mapping[str, object]] = {
    "exact": _QUERY,
    "write": _QUERY,
    "short_answer": strict_object({"answer": _TEXT_OR_NULL}),
    "linearize": strict_object({"text": _TEXT}),
    "table_answer": strict_object({"answer": _TEXT_OR_NULL, "tables": _NUMBERS}),
    "table_verify": strict_object(
        {"reasoning": _TEXT, "verdict": one_of("true", "false", "not enough"), "tables": _NUMBERS}
    ),
    "table_rank": strict_object({"tables": _NUMBERS}),
    "table_sql": strict_object({"reasoning": _TEXT, "sql": _TEXT}),
    "no_context": strict_object({"answer": _TEXT_OR_NULL}),
    "table_summary": strict_object({"title": _TEXT, "summary": _TEXT}),
}


def bench_prompt(name: str, values: Mapping[str, object], *, max_output_tokens: int = 1024) -> Prompt:
    """Return the request of a prompt of SCHEMAS, filled with the values that its file names."""
    return prompt_file(name, __name__).prompt(values, schema=SCHEMAS[name], max_output_tokens=max_output_tokens)


def bench_prompt_version(name: str) -> str:
    """Return the hash of a prompt's file."""
    return prompt_file(name, __name__).version
