"""Metrics that hold the answer against a reference, driven by a scripted judge."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragbench import (
    JudgeError,
    QualityFailure,
    RagSample,
    UndefinedScore,
    UsageError,
    assert_noise_sensitivity,
    score,
)
from tests.metrics.scripted import Scripted, claims, embedder, split_by, verdicts

SUN = RagSample(
    "What powers the sun?",
    "ANSWER: fission, and it shines.",
    ["One chunk.", "Another chunk."],
    reference="REFERENCE: fusion, it shines, it is hot.",
)


def splits(n_answer: int, n_reference: int) -> Any:
    """A judge that splits the answer and the reference of SUN into as many claims."""
    return split_by({
        "ANSWER:": [f"answer says {i}" for i in range(n_answer)],
        "REFERENCE:": [f"reference says {i}" for i in range(n_reference)],
    })  # fmt: skip


SIMILAR = embedder(**{"REFERENCE: fusion, it shines, it is hot.": 0.6})


# --- answer correctness ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tp", "fp", "fn", "options", "expected"),
    [
        (1, 1, 2, {}, 0.45),  # AC1
        (1, 1, 1, {}, 0.525),  # AC2
        (1, 1, 5, {"weights": (1, 0)}, 0.25),  # AC3
        (1, 1, 2, {"weights": (1, 0), "beta": 2}, 5 / 14),  # AC4
        (0, 2, 3, {}, 0.15),
        (2, 0, 0, {"weights": (3, 1)}, 0.9),
    ],
)
def test_answer_correctness(tp: int, fp: int, fn: int, options: dict[str, Any], expected: float) -> None:
    judge = Scripted(
        split_claims=splits(tp + fp, fn + 1), compare_claims=verdicts(*[1] * tp, *[0] * fp, *[0] * fn, 1)
    )
    found = score("answer_correctness", SUN, judge=judge, embedder=SIMILAR, **options)
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert (found.details["tp"], found.details["fp"], found.details["fn"]) == (tp, fp, fn)
    assert sorted(judge.asked) == ["compare_claims", "split_claims", "split_claims"]


def test_each_claim_is_counted_on_its_own_side() -> None:
    judge = Scripted(split_claims=splits(4, 3), compare_claims=verdicts(1, 1, 1, 0, 1, 1, 0))
    found = score("answer_correctness", SUN, judge=judge, mode="bidirectional", weights=(1, 0))
    precision, recall = 3 / 4, 2 / 3
    assert found.value == pytest.approx(2 * precision * recall / (precision + recall))
    system = judge.messages[-1][0]["content"]
    assert "Claims 1 to 4 come from the answer under test, claims 5 to 7" in system
    texts = [line for line in judge.messages[-1][1]["content"].splitlines() if " says " in line]
    assert texts == [f"answer says {i}" for i in range(4)] + [f"reference says {i}" for i in range(3)]


def test_no_embedder_without_a_similarity_weight() -> None:
    judge = Scripted(split_claims=splits(1, 1), compare_claims=verdicts(1, 1))
    # It would be refused on being built.
    found = score("answer_correctness", SUN, judge=judge, embedder="no-such-provider:model", weights=(1, 0))
    assert (found.value, found.embedder) == (1.0, None)
    with pytest.raises(UsageError, match="no-such-provider"):
        score("answer_correctness", SUN, judge=judge, embedder="no-such-provider:model")


def test_similarity_alone_asks_no_judge() -> None:
    judge = Scripted()
    assert score(
        "answer_correctness", SUN, judge=judge, embedder=SIMILAR, weights=(0, 1)
    ).value == pytest.approx(0.6)
    assert not judge.asked


def test_an_answer_without_claims_is_not_correct() -> None:
    judge = Scripted(split_claims=splits(0, 3))
    assert score("answer_correctness", SUN, judge=judge, embedder=SIMILAR).value == 0.0  # AC5
    silent = Scripted()
    assert score("answer_correctness", SUN.with_(answer=" "), judge=silent).value == 0.0
    assert not silent.asked
    with pytest.raises(UndefinedScore) as caught:
        score("answer_correctness", SUN, judge=Scripted(split_claims=splits(2, 0)), embedder=SIMILAR)
    assert caught.value.code == "no_reference_claims"


@pytest.mark.parametrize(
    "options",
    [
        {"weights": (0, 0)},
        {"weights": (-1, 2)},
        {"weights": (1,)},
        {"weights": "ab"},
        {"beta": 0},
        {"mode": "tp"},
    ],
)
def test_options_that_can_not_be(options: dict[str, Any]) -> None:
    judge = Scripted()
    with pytest.raises(UsageError):
        score("answer_correctness", SUN.with_(answer=""), judge=judge, **options)
    assert not judge.asked


def test_one_verdict_for_many_claims_is_no_score() -> None:
    judge = Scripted(split_claims=splits(2, 2), compare_claims=[verdicts(1), verdicts(1)])
    with pytest.raises(JudgeError, match="4 asked, 1 returned") as caught:
        score("answer_correctness", SUN, judge=judge, embedder=SIMILAR)
    assert caught.value.code == "verdict_count_mismatch"


# --- factual correctness -----------------------------------------------------------------------


def factual(ours: list[int], theirs: list[int]) -> Scripted:
    return Scripted(
        split_claims=splits(len(ours), len(theirs)),
        verify_claims=lambda user: verdicts(*(ours if "answer says" in user else theirs)),
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([1, 1, 1, 0], [1, 1, 0], (0.75, 2 / 3, 12 / 17)),  # FC1
        ([1, 1, 0, 0], [1, 0], (0.5, 0.5, 0.5)),  # FC2
        ([1], [1, 0], (1.0, 0.5, 2 / 3)),  # FC3
        ([0], [0, 0], (0.0, 0.0, 0.0)),
    ],
)
def test_factual_correctness(ours: list[int], theirs: list[int], expected: tuple[float, ...]) -> None:
    for mode, value in zip(("precision", "recall", "f1"), expected, strict=True):
        judge = factual(ours, theirs)
        found = score("factual_correctness", SUN, judge=judge, mode=mode)
        assert found.value == pytest.approx(value, abs=1e-12)
        assert len(judge.asked) == (4 if mode == "f1" else 2)


def test_factual_correctness_at_its_edges() -> None:
    assert score("factual_correctness", SUN, judge=factual([], [1])).value == 0.0
    with pytest.raises(UndefinedScore):
        score("factual_correctness", SUN, judge=factual([1], []))
    assert score("factual_correctness", SUN, judge=factual([1], []), mode="precision").value == 1.0
    with pytest.raises(UsageError, match="mode"):
        score("factual_correctness", SUN, judge=Scripted(), mode="both")
    # It compares two texts; a question helps to read them, and need not be there.
    assert score("factual_correctness", SUN.with_(question=""), judge=factual([1], [1])).value == 1.0


def test_each_claim_has_the_judges_reason_beside_it() -> None:
    """Unless the answer claims nothing: then nothing of the reference is in it, whatever a judge says."""

    def missed(n: int) -> dict[str, Any]:
        said = {"verdict": 0, "reason": "it says otherwise", "chunk": 1}
        return {"verdicts": {str(number): said for number in range(1, n + 1)}}

    def found(n_ours: int, mode: str) -> Any:
        judge = Scripted(
            split_claims=splits(n_ours, 2),
            verify_claims=lambda user: missed(n_ours if "answer says" in user else 2),
        )
        return score("factual_correctness", SUN, judge=judge, mode=mode)

    both = found(1, "f1")
    assert [each.reason for each in both.evidence] == ["it says otherwise"] * 3
    assert [each.text.partition(":")[0] for each in both.evidence] == ["answer", "reference", "reference"]
    assert [each.chunk for each in both.evidence] == [None] * 3
    assert both.reason == "it says otherwise (and 2 more)"
    assert [each.reason for each in found(1, "recall").evidence] == ["it says otherwise"] * 2
    nothing = found(0, "f1")
    assert [each.reason for each in nothing.evidence] == ["not in the answer"] * 2
    assert nothing.reason == "no claims in the answer"
    assert found(0, "precision").reason == "no claims in the answer"
    assert set(both.details) == {"precision", "recall"}
    assert set(found(1, "recall").details) == {"recall"}


def test_how_fine_the_claims_of_factual_correctness_are() -> None:
    judge = factual([1, 0], [1])
    score("factual_correctness", SUN, judge=judge, atomicity="low", claim_coverage="low")
    splitting = [
        messages[0]["content"] for messages in judge.messages if "claims are wanted" in messages[0]["content"]
    ]
    assert len(splitting) == 2
    assert all("coarser claims" in text and "only the main claims" in text for text in splitting)
    with pytest.raises(UsageError, match="atomicity must be 'low' or 'high'"):
        score("factual_correctness", SUN, judge=Scripted(), atomicity="medium")
    with pytest.raises(UsageError, match="claim_coverage must be"):
        score("factual_correctness", SUN, judge=Scripted(), claim_coverage=1)


# --- noise sensitivity -------------------------------------------------------------------------


def noise(ok: list[int], reference: list[list[int]], answer: list[list[int]]) -> tuple[RagSample, Scripted]:
    """The metric's tables: verdicts by claim, and by claim and chunk."""
    n_chunks = len(reference[0])
    sample = SUN.with_(contexts=[f"chunk number {c}" for c in range(n_chunks)])
    wrong = [place for place, good in enumerate(ok) if not good]

    def verify(user: str) -> dict[str, Any]:
        if "REFERENCE:" in user:
            return verdicts(*ok)
        [c] = [c for c in range(n_chunks) if f"chunk number {c}" in user]
        return verdicts(*(row[c] for row in reference), *(answer[place][c] for place in wrong))

    return sample, Scripted(split_claims=splits(len(ok), len(reference)), verify_claims=verify)


@pytest.mark.parametrize(
    ("ok", "reference", "answer", "expected"),
    [
        ([1, 1, 0], [[1, 0]], [[1, 0], [1, 0], [1, 0]], (1 / 3, 0.0, 0.0)),  # NS1
        ([1, 0], [[1, 0]], [[1, 0], [0, 1]], (0.0, 0.5, 0.0)),  # NS2
        ([1, 0], [[1, 0]], [[1, 0], [1, 1]], (0.5, 0.0, 0.0)),  # NS3
        ([1, 0], [[1, 0]], [[1, 0], [0, 0]], (0.0, 0.0, 0.5)),  # NS4
        ([1, 1], [[1, 0], [0, 0]], [[1, 0], [1, 1]], (0.0, 0.0, 0.0)),
        (
            [0, 0, 0, 0],
            [[0, 0, 1], [0, 0, 0]],
            [[0, 0, 1], [1, 0, 0], [0, 0, 0], [1, 1, 1]],
            (0.5, 0.25, 0.25),
        ),
    ],
)
def test_noise_sensitivity(
    ok: list[int], reference: list[list[int]], answer: list[list[int]], expected: tuple[float, float, float]
) -> None:
    for mode, name, value in zip(
        ("relevant", "irrelevant", "hallucination"),
        ("noise_sensitivity", "noise_sensitivity_irrelevant", "hallucination"),
        expected,
        strict=True,
    ):
        sample, judge = noise(ok, reference, answer)
        found = score("noise_sensitivity", sample, judge=judge, mode=mode)
        assert found.value == pytest.approx(value)
        parts = [found.details[part] for part in ("relevant", "irrelevant", "hallucination")]
        assert parts == pytest.approx(list(expected))
        assert sum(parts) == pytest.approx(1 - sum(ok) / len(ok))
        assert len(judge.asked) == 3 + (len(reference[0]) if 0 in ok else 0)
        sample, judge = noise(ok, reference, answer)
        assert score(name, sample, judge=judge).value == pytest.approx(value)


def test_where_each_wrong_claim_comes_from_is_told() -> None:
    """A chunk is relevant by one claim of the reference, a wrong claim comes from a chunk by one that says it."""
    said = {
        "relevant": "not in the reference; a relevant chunk says it",
        "irrelevant": "not in the reference; only an irrelevant chunk says it",
        "hallucination": "neither in the reference nor in any chunk",
    }
    reference, answer = [[0, 0, 1], [0, 0, 0]], [[0, 0, 1], [1, 0, 0], [0, 0, 0], [1, 1, 1], [0, 0, 0]]
    for mode, counted in (("relevant", 2), ("irrelevant", 1), ("hallucination", 1)):
        sample, judge = noise([0, 0, 0, 0, 1], reference, answer)
        found = score("noise_sensitivity", sample, judge=judge, mode=mode)
        assert [each.reason for each in found.evidence] == [
            said["relevant"], said["irrelevant"], said["hallucination"], said["relevant"], "",
        ]  # fmt: skip
        assert [each.ok for each in found.evidence] == [False, False, False, False, True]
        assert found.reason == said[mode] + (" (and 1 more)" if counted == 2 else "")
        assert (found.details["mode"], found.details["n_claims"]) == (mode, 5)


def test_noise_sensitivity_at_its_edges() -> None:
    sample, judge = noise([1, 0], [[1]], [[1], [1]])
    found = score("noise_sensitivity", sample.with_(contexts=[]), judge=judge, mode="hallucination")
    assert found.value == 0.5
    assert score("noise_sensitivity", sample.with_(answer=""), judge=Scripted()).value == 1.0
    with pytest.raises(UsageError, match="reference has no claims"):
        score("noise_sensitivity", SUN, judge=Scripted(split_claims=splits(1, 0)))
    with pytest.raises(UndefinedScore) as caught:
        score("noise_sensitivity", SUN, judge=Scripted(split_claims=splits(0, 1)))
    assert caught.value.code == "no_claims"


def test_a_single_verdict_is_not_spread_over_all_claims() -> None:
    judge = Scripted(split_claims=splits(2, 1), verify_claims=lambda _: verdicts(0))
    with pytest.raises(JudgeError, match="asked"):
        score("noise_sensitivity", SUN, judge=judge)


def test_its_direction() -> None:
    sample, judge = noise([1, 0, 0, 0], [[1]], [[1], [1], [1], [1]])
    with pytest.raises(QualityFailure, match="noise_sensitivity 0.75, wanted <=0.3"):
        assert_noise_sensitivity(sample, "<=0.3", judge=judge)
    with pytest.raises(UsageError, match="lower is better"):
        assert_noise_sensitivity(sample, ">=0.3", judge=Scripted())
    with pytest.raises(QualityFailure):
        assert_noise_sensitivity(sample, "0.3", judge=noise([1, 0, 0, 0], [[1]], [[1], [1], [1], [1]])[1])


def test_russian_claims_are_verified_in_russian() -> None:
    sample = RagSample(
        "Какой срок возврата?", "Срок возврата — 45 дней.", ["Срок возврата — 30 дней."], reference="30 дней."
    )
    judge = Scripted(split_claims=claims("Срок возврата — 30 дней."), verify_claims=verdicts("Да."))
    assert score("factual_correctness", sample, judge=judge).value == 1.0
    assert all("Задание" in messages[0]["content"] for messages in judge.messages)


def test_the_sample_says_in_which_language_the_judge_is_asked() -> None:
    sample = RagSample("Windows 11?", "Windows 11 Pro.", reference="Windows 11.", lang="ru")
    judge = Scripted(split_claims=claims("Windows 11."), verify_claims=verdicts("Да."))
    assert score("factual_correctness", sample, judge=judge).value == 1.0
    assert all("Задание" in messages[0]["content"] for messages in judge.messages)
