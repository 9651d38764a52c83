"""What a score was to be measured with: two runs are compared where it is the same."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragbench.judge.callable import callable_judge
from pytest_ragbench.metrics.registry import Metric
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.model.tests import SetupRecord
from pytest_ragbench.scoring import ScoreRequest, prepare
from pytest_ragbench.scoring.sets import SetRequest, prepare_set
from pytest_ragbench.scoring.setup import setup_of, setup_of_set
from tests.metrics.scripted import Scripted
from tests.scoring.asking import context


class Vectors:
    """An embedder that is only looked at."""

    name = "vectors"


JUDGE, EMBEDDER = callable_judge(Scripted(), "grader"), Vectors()
SAMPLE = RagSample("How long?", "30 days.", ["30 days."], reference="30 days.", id="q1")


def setup(name: str | Metric, sample: RagSample = SAMPLE, **options: Any) -> SetupRecord:
    request = ScoreRequest(metric=name, sample=sample, options=options)
    return setup_of(prepare(context(JUDGE, EMBEDDER), request))


def test_direction_range_tasks_and_judge() -> None:
    found = setup("faithfulness")
    assert (found.direction, found.low, found.high) == ("higher", 0.0, 1.0)
    assert found.tasks == ("split_claims", "verify_claims")
    assert (found.judge, found.embedder, found.options) == ("grader", None, {})
    relevancy = setup("answer_relevancy")
    assert relevancy.tasks == ("write_questions", "grade_relevance")
    assert (relevancy.judge, relevancy.embedder) == ("grader", "vectors")


def test_arithmetic_has_no_judge_and_a_blank_answer_needs_none() -> None:
    assert setup("exact_match").judge is None
    assert setup("faithfulness", SAMPLE.with_(answer=" ")).judge is None


def test_a_range_without_an_end() -> None:
    vectors = [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]
    request = SetRequest(metric="inter_cluster_distance", items=vectors, options={"labels": [0, 0, 1]})
    found = setup_of_set(prepare_set(context(), request))
    assert found is not None
    assert (found.low, found.high) == (0.0, None)


def test_options_are_kept_by_name_and_defaults_are_none() -> None:
    assert setup("aspect", definition="Называет срок.").options == {"definition": '"Называет срок."'}
    assert setup("faithfulness", verdicts="json").options == {}

    async def kinds(
        sample: RagSample, tools: Tools, *, zeta: Any = 0, alpha: Any = 0, open: Any = 0
    ) -> Score:
        return tools.score(sample, 0.5)

    known = Metric("kinds", kinds, tier="generation", needs=("answer",))
    found = setup(known, zeta={"b": 1, "a": 2}, alpha=len, open=None).options
    assert list(found.items()) == [("alpha", "len"), ("zeta", '{"a": 2, "b": 1}')]


@pytest.mark.parametrize(("letters", "kept"), [(78, True), (79, False)])
def test_of_a_long_option_a_fingerprint_is_kept(letters: int, kept: bool) -> None:
    """Eighty characters of JSON, quotation marks among them, in any script."""
    [written] = setup("aspect", definition="я" * letters).options.values()
    assert (written == f'"{"я" * letters}"') is kept
    if not kept:
        assert len(written) == len("sha256:") + 16
        assert written.startswith("sha256:")
        assert [written] != list(setup("aspect", definition="ю" * letters).options.values())


def test_a_set_is_measured_with_what_its_first_judged_sample_has() -> None:
    samples = [SAMPLE.with_(answer=" ", id="blank"), SAMPLE]
    found = setup_of_set(prepare_set(context(JUDGE), SetRequest(metric="faithfulness", items=samples)))
    assert found is not None
    assert found.judge == "grader"
    blank = setup_of_set(prepare_set(context(), SetRequest(metric="faithfulness", items=samples[:1])))
    assert blank is not None
    assert blank.judge is None


def test_a_set_is_measured_with_what_its_first_embedded_sample_has() -> None:
    samples = [SAMPLE.with_(answer=" ", id="blank"), SAMPLE]
    request = SetRequest(metric="semantic_similarity", items=samples)
    found = setup_of_set(prepare_set(context(embedder=EMBEDDER), request))
    assert found is not None
    assert (found.embedder, found.judge) == ("vectors", None)
