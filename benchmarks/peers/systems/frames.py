"""The tasks as programs over data frames, for systems that have a semantic filter and map and nothing around them.

Structured conditions come first and joins are over what each side was asked once, as a careful user would write them.
"""

from __future__ import annotations

import pandas as pd

POSITIVE = "Is the review positive?"
SENTIMENT = "Is the review positive or negative?"
SCORE = "How much did the reviewer like the film, from 1 to 5?"
COZY = "is it cozy?"
FEW, MANY = "taken_3", "ant_man_and_the_wasp_quantumania"


class Frames:
    """A system: `keep` and `value` are its own."""

    def keep(self, rows, column, question, limit=None):
        """Return the rows for which the model says yes; a system that can stops at a limit."""
        raise NotImplementedError

    def value(self, rows, column, question, number=False):
        """Return what the model says for each row."""
        raise NotImplementedError

    def run(self, name, sql, tables):
        """Run a task."""
        made = {name: pd.DataFrame(rows) for name, rows in tables.items()}
        program = getattr(self, "task_" + name.lower().replace(",", "").replace(" ", "_"))
        return program(*made.values())

    def task_q1(self, movies, reviews):
        return self.keep(reviews, "reviewText", POSITIVE, 5)[["reviewId"]].values.tolist()

    def task_q2(self, movies, reviews):
        few = reviews[reviews.id == FEW]
        return self.keep(few, "reviewText", POSITIVE, 5)[["reviewId"]].values.tolist()

    def task_q3(self, movies, reviews):
        return [[len(self.keep(reviews[reviews.id == FEW], "reviewText", POSITIVE))]]

    def task_q4(self, movies, reviews):
        few = reviews[reviews.id == FEW]
        return [[len(self.keep(few, "reviewText", POSITIVE)) / len(few)]]

    def _pairs(self, reviews, same, limit=None):
        once = reviews[reviews.id == MANY][["id", "reviewId", "reviewText"]].drop_duplicates()
        once = once.assign(said=self.value(once, "reviewText", SENTIMENT))
        pairs = once.merge(once, on="id", suffixes=("_a", "_b"))
        pairs = pairs[(pairs.reviewId_a < pairs.reviewId_b) & ((pairs.said_a == pairs.said_b) == same)]
        return pairs[["id", "reviewId_a", "reviewId_b"]].head(limit or len(pairs)).values.tolist()

    def task_q5(self, movies, reviews):
        return self._pairs(reviews, True, 10)

    def task_q6(self, movies, reviews):
        return self._pairs(reviews, False, 10)

    def task_q7(self, movies, reviews):
        return self._pairs(reviews, False)

    def task_q8(self, movies, reviews):
        few = reviews[reviews.id == FEW]
        said = pd.Series(self.value(few, "reviewText", SENTIMENT))
        return [[kind, int(count)] for kind, count in said.value_counts().items()]

    def task_q9(self, movies, reviews):
        many = reviews[reviews.id == MANY]
        return list(zip(many.reviewId.tolist(), self.value(many, "reviewText", SCORE, number=True), strict=True))

    def task_q10(self, movies, reviews):
        scored = reviews.assign(score=self.value(reviews, "reviewText", SCORE, number=True))
        return scored.groupby("id").score.mean().reset_index().values.tolist()

    def task_limit_3(self, t):
        return self.keep(t[t.city == "Paris"], "body", COZY, 3)[["id"]].values.tolist()

    def task_no_limit(self, t):
        return self.keep(t[t.city == "Paris"], "body", COZY)[["id"]].values.tolist()

    def task_or(self, t):
        others = self.keep(t[t.city != "Paris"], "body", COZY)
        return [[number] for number in [*t[t.city == "Paris"].id.tolist(), *others.id.tolist()]]

    def task_equal_texts(self, t):
        return self.task_no_limit(t)

    def task_order_by_rating_limit_3(self, t):
        ordered = t[t.city == "Paris"].sort_values("rating", ascending=False)
        return self.keep(ordered, "body", COZY).head(3)[["id"]].values.tolist()

    def task_count_and_limit(self, t):
        return [[len(self.task_no_limit(t))]]
