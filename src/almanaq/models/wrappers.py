"""WRAPPERS: the order in which wrappers that each add one thing enclose a language model.

A hit of the cache costs nothing, so caching encloses all. A retry must pass the budget again, and must not hold a slot
while it waits. Time spent waiting for a slot or for the rate must not make a call look slow, so hedging is inside
both. What is metered, traced and logged are physical calls, a hedged one's two included.
"""

from __future__ import annotations

from collections.abc import Callable

from almanaq.models.cached import CachedModel
from almanaq.models.concurrent import ConcurrentModel
from almanaq.models.hedged import HedgedModel
from almanaq.models.logged import LoggedModel
from almanaq.models.metered import MeteredModel
from almanaq.models.protocols import LanguageModel
from almanaq.models.rate import RateLimitedModel
from almanaq.models.retrying import RetryingModel
from almanaq.models.traced import TracedModel

Wrapper = Callable[..., LanguageModel]

WRAPPERS: tuple[Wrapper, ...] = (
    CachedModel,
    RetryingModel,
    ConcurrentModel,
    RateLimitedModel,
    HedgedModel,
    MeteredModel,
    TracedModel,
    LoggedModel,
)
"""The order in which wrappers enclose a model, outermost first; those that nobody asked for are left out."""
