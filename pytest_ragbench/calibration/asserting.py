"""``assert_judge_agreement``: a test of the judge itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_ragbench import runtime
from pytest_ragbench.calibration.agreement import COVERAGE, Agreement, agreement, check_coverage, missed
from pytest_ragbench.calibration.asking import ask_again, check_labels
from pytest_ragbench.calibration.labels import Label, higher_is_better, read_labels
from pytest_ragbench.clean import one_line
from pytest_ragbench.model.errors import QualityFailure, UsageError
from pytest_ragbench.model.thresholds import Scale, parse_threshold
from pytest_ragbench.scoring import ThresholdLike

_LOWS = {"kappa": -1.0, "ac1": -1.0}


def assert_judge_agreement(
    labels: str | Path | Sequence[Label],
    *,
    judge: object = None,
    coverage: float = COVERAGE,
    kappa: ThresholdLike | None = None,
    ac1: ThresholdLike | None = None,
    accuracy: ThresholdLike | None = None,
    tpr: ThresholdLike | None = None,
    tnr: ThresholdLike | None = None,
    f1: ThresholdLike | None = None,
    auc: ThresholdLike | None = None,
) -> Agreement:
    """Assert that the judge agrees with people's labels: ``assert_judge_agreement("labels.jsonl", kappa=">=0.6")``.

    Parameters
    ----------
    labels
        A labels file (docs/calibration.md), or labels that have been read.
    judge
        Instead of the running test's. It is asked for its verdict on every label.
    coverage
        Share of the labels (0..1) on which it must give one.
    kappa, ac1, accuracy, tpr, tnr, f1, auc
        What is wanted; at least one. The values themselves are held against it, not their intervals.

    Raises
    ------
    QualityFailure
        A value misses its threshold; the worst disagreements are shown.
    JudgeError
        Fewer labels than ``coverage`` got a verdict.
    UsageError
        No threshold, an unreadable file, a label that can't be asked again; before any call.
    """
    __tracebackhide__ = True
    given = {"kappa": kappa, "ac1": ac1, "accuracy": accuracy, "tpr": tpr, "tnr": tnr, "f1": f1, "auc": auc}
    wanted = {
        name: parse_threshold(limit, Scale(name, low=_LOWS.get(name, 0.0)))
        for name, limit in given.items()
        if limit is not None
    }
    # Without one the test would pass whatever the judge says.
    if not wanted:
        raise UsageError('assert_judge_agreement was given no threshold: write kappa=">=0.6"')
    known = read_labels(Path(labels)) if isinstance(labels, (str, Path)) else list(labels)
    context = runtime.current()
    chosen, settings = context.judge_for(judge), context.settings()
    check_labels(known, chosen, settings=settings)
    asked = context.engine().wait(ask_again(known, chosen, settings=settings), meanwhile=context.waiting)
    check_coverage(asked, coverage)
    found = agreement(asked, higher=higher_is_better(known))
    if short := missed(found, wanted):
        lines = [
            f"judge {chosen.name}: {'; '.join(short)}",
            *confusion_lines(found),
            *disagreement_lines(found),
        ]
        raise QualityFailure("\n".join(lines))
    return found


def confusion_lines(found: Agreement) -> list[str]:
    """The four counts."""
    counts = found.counts
    return [
        f"  people say yes: the judge says yes {counts.tp}, no {counts.fn}",
        f"  people say no:  the judge says yes {counts.fp}, no {counts.tn}",
        *([f"  without a verdict: {counts.n_failed}"] if counts.n_failed else []),
    ]


def disagreement_lines(found: Agreement, most: int = 10) -> list[str]:
    """The worst disagreements, with the judge's reasons."""
    lines = []
    for label in found.disagreements[:most]:
        said = "yes" if label.verdict else "no"
        remark = f"   people: {one_line(label.remark, 120)}" if label.remark else ""
        why = f": {one_line(label.reason, 160)}" if label.reason else ""
        what = one_line(label.claim or label.answer or "", 120)
        lines.append(f"  judge {said}{why}   {one_line(label.name, 60)}   {what}{remark}")
    if len(found.disagreements) > most:
        lines.append(f"  ... and {len(found.disagreements) - most} more")
    return lines
