"""A language model as generator: one prompt of ours for each role, and one where there is no context."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from almanaq.models.failure import FailedCall
from almanaq.models.prompted_reader import asked as ask_model
from almanaq.models.prompts import prompt_file
from almanaq.models.protocols import LanguageModel, Prompt, Usage
from almanaq.models.reply_schemas import MalformedReply, parse_object
from almanaq_bench.generation.expected import WRITTEN_REPLY, of_prompt
from almanaq_bench.generation.protocols import VERDICTS, Asked, Reply
from almanaq_bench.prompts import SCHEMAS, bench_prompt, bench_prompt_version

PROMPTS = ("table_answer", "table_verify", "table_sql", "no_context", "repair")
_NOTHING = "(the schema is not at hand)"


class PromptedGenerator:
    """Asks a language model. Failures of a call are faults of one reply; those of the model are raised."""

    def __init__(self, model: LanguageModel) -> None:
        self.name = self.model = model.name
        self._model = model

    @property
    def prompts(self) -> Mapping[str, str]:
        """The versions of the prompt files."""
        return {name: bench_prompt_version(name) if name in SCHEMAS else prompt_file(name).version for name in PROMPTS}

    def expected(self, asked: Sequence[Asked]) -> Usage:
        """Return what a call for each question takes."""
        return sum((of_prompt(_prompt(each)[0], WRITTEN_REPLY) for each in asked), Usage())

    async def reply(self, asked: Asked) -> Reply:
        """Return the model's reply."""
        prompt, key = _prompt(asked)
        try:
            content, usage, _ = await ask_model(self._model, prompt, _parser(key))
        except FailedCall as failure:
            return Reply("", fault=str(failure), usage=failure.usage)
        text = content[key]
        return Reply("" if text is None else str(text).strip(), "", str(content.get("reasoning", "")), usage)


def _prompt(asked: Asked) -> tuple[Prompt, str]:
    """Return the request, and the key of its reply that counts."""
    if asked.role == "sql":
        texts = asked.texts or (_NOTHING,)
        values: dict[str, object] = {
            "dialect": "SQLite",
            "tables": texts,
            "hint": asked.hint,
            "question": asked.question,
        }
        return bench_prompt("table_sql", values, max_output_tokens=2048), "sql"
    if not asked.texts:
        choices = VERDICTS[:2] if asked.role == "verify" else ()
        values = {"question": asked.question, "choices": choices, "sentence": asked.sentence}
        return bench_prompt("no_context", values), "answer"
    if asked.role == "verify":
        return bench_prompt("table_verify", {"statement": asked.question, "tables": asked.texts}), "verdict"
    values = {"question": asked.question, "tables": asked.texts, "sentence": asked.sentence}
    return bench_prompt("table_answer", values), "answer"


def _parser(key: str) -> Callable[[str], Mapping[str, object]]:
    def parse(text: str) -> Mapping[str, object]:
        content = parse_object(text)
        if key not in content:
            raise MalformedReply(f"it has no key {key!r}")
        written = content[key]
        if written is not None and not isinstance(written, str | int | float):
            raise MalformedReply(f"{key!r} must be a string")
        if key == "verdict" and str(written).strip().lower() not in VERDICTS:
            raise MalformedReply(f"'verdict' must be one of {', '.join(VERDICTS)}")
        return content

    return parse
