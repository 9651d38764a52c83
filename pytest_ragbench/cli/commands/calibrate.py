"""``ragbench calibrate``: the judge beside people's labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pytest_ragbench import building
from pytest_ragbench.calibration.agreement import (
    Agreement,
    Estimate,
    agreement,
    check_coverage,
    missed,
)
from pytest_ragbench.calibration.asking import ask_again, check_labels
from pytest_ragbench.calibration.asserting import confusion_lines, disagreement_lines
from pytest_ragbench.calibration.comparing import auc_gain, consistency, valued
from pytest_ragbench.calibration.labels import Label, higher_is_better, read_labels
from pytest_ragbench.calibration.probes import Probe, probes
from pytest_ragbench.cli.shared import Exit, configured, emit, engine_of, json_option, settings_of
from pytest_ragbench.gates.baseline import scales_of
from pytest_ragbench.gates.observations import Observations
from pytest_ragbench.gates.rules import registered_scale
from pytest_ragbench.metrics.tools import Verdicts
from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.thresholds import Scale, parse_threshold
from pytest_ragbench.report.reading import read_report
from pytest_ragbench.settings import Settings
from pytest_ragbench.statistics.correction import ppi_mean, rogan_gladen


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--ask", is_flag=True, help="Ask the judge now, in place of the verdicts in the file.")
@click.option(
    "--repeats",
    type=click.IntRange(1, 20),
    default=1,
    metavar="N",
    help="Of --ask: how often, for its consistency.",
)
@click.option(
    "--verdicts",
    type=click.Choice(["json", "probability", "both"]),
    help="Of --ask: as JSON, by P(yes) of one word, or both, compared. Default: as [metrics] says, else JSON.",
)
@click.option(
    "--probe",
    is_flag=True,
    help="Of --ask: whether length and order change its verdicts; up to six more questions a label.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A report whose pass rates are to be corrected.",
)
@click.option("--kappa", metavar="LIMIT", help="Exit with 1 where kappa misses it, e.g. '>=0.6'.")
@configured("judge", "store")
@json_option
def command(
    file: Path,
    ask: bool,
    repeats: int,
    verdicts: str | None,
    probe: bool,
    report: Path | None,
    kappa: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Hold the judge's verdicts against people's (docs/calibration.md): FILE comes from the HTML report.

    Says how often it is right, on what it errs, and from which score on an answer is good enough; with --report,
    what a run's pass rates are without the judge's errors.

    \b
      ragbench calibrate labels.jsonl
      ragbench calibrate labels.jsonl --ask --judge openai:gpt-4o-mini --repeats 3
      ragbench calibrate labels.jsonl --ask --judge gguf:judge.gguf --verdicts both
    """
    limit = parse_threshold(kappa, Scale("kappa", low=-1.0)) if kappa is not None else None
    labels = read_labels(file)
    if repeats > 1 and not ask:
        raise UsageError("--repeats asks the judge several times: give --ask, too")
    if verdicts is not None and not ask:
        raise UsageError("--verdicts says how to ask the judge: give --ask, too")
    if probe and not ask:
        raise UsageError("--probe asks the judge about changed texts: give --ask, too")
    probed: dict[Verdicts, dict[str, Probe]] = {}
    settings = settings_of(options)
    ways = _ways(verdicts, labels, settings)
    asked = _asked(labels, repeats, ways, settings, probed if probe else None) if ask else {"json": [labels]}
    by_way = {way: _groups(rounds[0], named=way == "probability") for way, rounds in asked.items()}
    groups = {name: group for each in by_way.values() for name, group in each.items()}
    run = read_report(report) if report is not None else None
    scale_of = scales_of(Observations(run.results)) if run is not None else registered_scale
    found = {
        name: agreement(group, higher=higher_is_better(group, scale_of)) for name, group in groups.items()
    }
    if limit is not None:
        for group in groups.values():
            check_coverage(group)
    corrected = _corrections(run, found, groups) if run is not None else {}
    first = next(iter(asked.values()))
    data: dict[str, Any] = {
        "groups": {name: each.to_dict() for name, each in found.items()},
        "consistency": consistency(first),
        "corrected": corrected,
    }
    if verdicts == "both":
        data["consistency_by_probability"] = consistency(asked["probability"])
        data["auc_gain"] = auc_gain(valued(first[0]), valued(asked["probability"][0])).to_dict()
    if probe:
        data["probes"] = {
            way: {kind: each.to_dict() for kind, each in some.items()} for way, some in probed.items()
        }
    emit(data, lambda: _text(found, data, probed), as_json=as_json)
    short = [text for each in found.values() for text in (missed(each, {"kappa": limit}) if limit else ())]
    return Exit.QUALITY if short else Exit.OK


def _ways(chosen: str | None, labels: list[Label], settings: Settings) -> list[Verdicts]:
    """How the judge is asked: as chosen, else as configured for the metric of the labels."""
    if chosen == "both":
        return ["json", "probability"]
    if chosen is not None:
        return ["probability" if chosen == "probability" else "json"]
    configured = {
        chosen_way.verdicts if (chosen_way := settings.metrics.get(label.metric)) else None
        for label in labels
    }
    return ["probability" if configured == {"probability"} else "json"]


def _groups(labels: list[Label], *, named: bool) -> dict[str, list[Label]]:
    """By metric and kind; ``named``: said to be by probability."""
    groups: dict[str, list[Label]] = {}
    for label in labels:
        kind = "claims" if label.claim is not None else "whole scores"
        groups.setdefault(f"{label.metric} ({kind}{', by probability' if named else ''})", []).append(label)
    return groups


def _asked(
    labels: list[Label],
    repeats: int,
    ways: list[Verdicts],
    settings: Settings,
    probed: dict[Verdicts, dict[str, Probe]] | None,
) -> dict[Verdicts, list[list[Label]]]:
    """By way of asking: the labels with what the judge says, once for each repeat. ``probed`` is filled, if wanted."""
    with engine_of(settings) as engine:
        judge = building.judge(None, engine, settings)
        for way in ways:
            check_labels(labels, judge, way, settings)
        asked = {
            way: [
                engine.wait(ask_again(labels, judge, repeat=number, verdicts=way, settings=settings))
                for number in range(repeats)
            ]
            for way in ways
        }
        if probed is not None:
            probed.update({way: engine.wait(probes(asked[way][0], judge, way, settings)) for way in ways})
        return asked


def _corrections(
    run: RunReport, found: dict[str, Agreement], groups: dict[str, list[Label]]
) -> dict[str, Any]:
    """Of each group: the share of positive verdicts in the report, as it is and without the judge's errors."""
    corrected: dict[str, Any] = {}
    for name, group in groups.items():
        whole = group[0].claim is None
        scores = [
            score for result in run.results for score in result.scores if score.metric == group[0].metric
        ]
        verdicts = [
            float(verdict)
            for score in scores
            for verdict in ([score.passed] if whole else [finding.ok for finding in score.evidence])
            if verdict is not None
        ]
        if not verdicts:
            continue
        judged = [label for label in group if label.verdict is not None]
        entry: dict[str, Any] = {"n": len(verdicts), "as_judged": sum(verdicts) / len(verdicts)}
        counts, rates = found[name].counts, found[name].estimates
        try:
            entry["ppi"] = ppi_mean(
                verdicts,
                [float(bool(label.verdict)) for label in judged],
                [float(label.human_verdict) for label in judged],
            ).to_dict()
            if rates["tpr"].value is not None and rates["tnr"].value is not None:
                entry["rogan_gladen"] = rogan_gladen(
                    entry["as_judged"], rates["tpr"].value, rates["tnr"].value, n=len(verdicts),
                    n_positive=counts.tp + counts.fn, n_negative=counts.tn + counts.fp,
                ).to_dict()  # fmt: skip
        except UndefinedScore as error:
            entry["not_corrected"] = str(error)
        corrected[name] = entry
    return corrected


def _text(found: dict[str, Agreement], data: dict[str, Any], probed: dict[Verdicts, dict[str, Probe]]) -> str:
    lines: list[str] = []
    for name, each in found.items():
        counts = each.counts
        lines.append(
            f"{name}: {counts.tp + counts.fp + counts.fn + counts.tn} labels, 95 % intervals in brackets"
        )
        lines += [f"  {key:<9}{estimate}" for key, estimate in each.estimates.items()]
        if each.best_threshold is not None:
            lines.append(f"  best threshold: {'>=' if each.higher else '<='}{each.best_threshold:g}")
        if each.higher is None:
            lines.append(
                "  no AUC and no best threshold: which way is better is in no report and not known here"
            )
        lines += confusion_lines(each)
        if each.disagreements:
            lines += ["  worst disagreements:", *disagreement_lines(each)]
    for key, what in (("consistency", ""), ("consistency_by_probability", ", by probability")):
        if again := data.get(key):
            lines.append(
                f"the same verdict again{what}: {again['value']:.3f} (by chance {again['chance']:.3f})"
            )
    for way, some in probed.items():
        if some:
            lines.append(
                f"what should not change a verdict{', by probability' if way == 'probability' else ''}:"
            )
            lines += [f"  {each}" for each in some.values()]
    if gain := data.get("auc_gain"):
        lines.append(f"AUC by probability minus AUC of JSON verdicts: {Estimate(**gain)}")
    for name, entry in data["corrected"].items():
        lines.append(f"{name}: {entry['as_judged']:.3f} of {entry['n']} verdicts are good, as judged")
        for key, said in (("rogan_gladen", "Rogan-Gladen"), ("ppi", "PPI")):
            if value := entry.get(key):
                lines.append(
                    f"  corrected ({said}): {value['value']:.3f} ({value['low']:.3f} to {value['high']:.3f})"
                )
    return "\n".join(lines)
