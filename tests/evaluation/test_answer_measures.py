import warnings
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu import corpus_bleu

from almanaq_bench.evaluation.answers import (
    bleu_of,
    is_numeric,
    numbers,
    numeric_match,
    sacrebleu,
    score_verdicts,
    verdict_counts,
    verification_measures,
)

verdicts = st.sampled_from(["true", "false", "not enough", ""])
labels = st.sampled_from(["true", "false"])
words = st.lists(st.sampled_from(["the", "Loire", "is", "1,006", "km", "long", "."]), max_size=7).map(" ".join)


@given(st.lists(st.tuples(verdicts, labels), min_size=1, max_size=20))
def test_verdicts_are_scored_as_scikit_learn_scores_them(pairs) -> None:
    # Imported here: each process of the suite collects this file, and one of them runs it.
    from sklearn.metrics import precision_recall_fscore_support, recall_score

    said, gold = zip(*pairs, strict=True)
    theirs = precision_recall_fscore_support(gold, said, labels=["true", "false"], average="weighted", zero_division=0)
    ours = score_verdicts(pairs)
    assert (ours.precision, ours.recall, ours.f1) == pytest.approx(theirs[:3])
    answered = [pair for pair in pairs if pair[0] in ("true", "false")]
    assert ours.coverage == len(answered) / len(pairs)
    if answered:
        said, gold = zip(*answered, strict=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = recall_score(gold, said, labels=["true", "false"], average="weighted", zero_division=0)
        assert ours.recall_answered == pytest.approx(wanted)


def test_always_not_enough_gets_nothing_and_covers_nothing() -> None:
    scores = score_verdicts([("not enough", "true"), ("not enough", "false")])
    assert (scores.precision, scores.recall, scores.f1, scores.coverage) == (0, 0, 0, 0)
    assert score_verdicts([("true", "true"), ("not enough", "false")]).recall_answered == 1


@given(st.lists(st.tuples(words, words), min_size=1, max_size=6))
def test_bleu_is_sacrebleus_and_says_which(pairs) -> None:
    ours = sacrebleu(pairs)
    assert ours.score == corpus_bleu([answer for answer, _ in pairs], [[gold for _, gold in pairs]]).score
    assert ours.signature.startswith("nrefs:1|case:mixed")


@pytest.mark.parametrize(
    ("answer", "gold", "match"),
    [
        ("1006 km", "1,006", True),
        ("about 1,006 kilometres", "1006.0", True),
        ("1007", "1006", False),
        ("1006 or 1007", "1006", False),
        ("nobody knows", "1006", False),
        ("-3.5", "−3.5", True),
        ("50 %", "50%", True),
    ],
)
def test_numbers_match_by_value(answer: str, gold: str, match: bool) -> None:
    assert is_numeric(gold)
    assert numeric_match(answer, gold) is match


@given(st.integers(-(10**12), 10**12))
def test_numbers_are_read_as_they_are_written(number: int) -> None:
    assert numbers(f"it is {number:,} today") == numbers(f"it is {number} today") == [number]


@pytest.mark.parametrize("gold", ["the Loire", "from 1995 to 1996", "B52", "season of 2004 was long"])
def test_what_is_not_a_number(gold: str) -> None:
    assert not is_numeric(gold)


@given(st.lists(st.tuples(words, words), min_size=2, max_size=6), st.lists(st.tuples(verdicts, labels), min_size=2))
def test_measures_of_a_part_are_those_of_its_summed_counts(sentences, statements) -> None:
    half = len(sentences) // 2
    counts = sacrebleu(sentences).counts
    for part in (slice(half), slice(half, None)):
        assert bleu_of(counts[part].sum(axis=0, keepdims=True))[0, 0] == sacrebleu(sentences[part]).score
        wanted = astuple(score_verdicts(statements[part]))
        assert tuple(verification_measures(verdict_counts(statements)[part].sum(axis=0, keepdims=True))[0]) == wanted
