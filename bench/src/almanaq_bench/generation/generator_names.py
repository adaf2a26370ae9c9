"""Generators by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from almanaq.corpus.dataset import Question
from almanaq.errors import UsageError, suggest
from almanaq.models.protocols import LanguageModel
from almanaq_bench.generation.custom import import_generator
from almanaq_bench.generation.protocols import Generator
from almanaq_bench.generation.trivial import Constant, FirstCell, majority

GENERATORS = {
    "local": "words of the question, in the tables; no language model",
    "openai:MODEL": "a language model, with prompts of ours",
    "agent": "our agent, which writes SUQL over the tables or the database; agent:openai:MODEL with a language model",
    "linearize@K": "restaurants: the K rows nearest to a search query; linearize@K:openai:MODEL to have it written",
    "majority": "always the most frequent gold answer of the split",
    "not-enough": 'always "not enough"',
    "first-cell": "the first cell of the best table",
}
"""What each generator goes by."""


def open_generator(
    name: str,
    questions: Sequence[Question],
    model: Callable[[str], LanguageModel] | None = None,
    batch: int | None = None,
) -> Generator:
    """Open a generator by its name, or by `module:object`.

    Args:
        questions: all that will be asked; `majority` looks at their gold answers.
        model: opens language models by name, within a budget.
        batch: most text calls of the agent that share a request; None: what is usual for the model.

    Raises:
        UsageError: there is no such generator, module or object.
        ModelError: a setting that the model needs is missing.
    """
    if name == "local":
        from almanaq_bench.generation.local import LocalGenerator

        return LocalGenerator()
    if name == "agent" or name.startswith("agent:"):
        from almanaq.models.batching import Batching
        from almanaq.models.default_batching import usual_batching
        from almanaq.models.model_names import models_of, open_models
        from almanaq_bench.generation.agent import AgentGenerator

        spec = name.partition(":")[2] or "local"
        if spec == "local" or model is None:
            return AgentGenerator(open_models(spec, embedder="lexical"))
        return AgentGenerator(models_of(model(spec), usual_batching(spec) if batch is None else Batching.of(batch)))
    if name == "majority":
        return majority(questions)
    if name == "not-enough":
        return Constant(name, "not enough")
    if name == "first-cell":
        return FirstCell()
    if name.startswith("openai:"):
        from almanaq_bench.generation.prompted_generator import PromptedGenerator

        return PromptedGenerator((model or _unbounded)(name))
    if ":" in name:
        return import_generator(name)
    raise UsageError(f"unknown generator {name!r}{suggest(name, GENERATORS)}")


def _unbounded(name: str) -> LanguageModel:
    from almanaq.models.model_names import open_models

    language = open_models(name, embedder="lexical").language
    assert language is not None
    return language
