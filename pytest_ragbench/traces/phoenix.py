"""A run as an experiment of Arize Phoenix: dataset, runs, evaluations; judge errors as errors, which means leave out.

By Phoenix' REST API (tried with 20.26), from the report alone: a run can be sent at its end or at any time later.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from pytest_ragbench.clean import one_line
from pytest_ragbench.model.errors import RagbenchError, UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.tests import QuestionRecord, SampleRecord, ScoreRecord, TestRecord
from pytest_ragbench.report.formats import ReportContext
from pytest_ragbench.traces.masking import masked
from pytest_ragbench.traces.spans import explanation_of, label_of, question_span_id, run_span_id

END_S = 60.0
"""For so long the end of a run waits."""
_TIMEOUT_S = 10.0
_AT_ONCE = 200
"""Annotations in one request."""


class PhoenixError(RagbenchError):
    """Phoenix could not be reached, or refused."""


@dataclass
class _Case:
    """A question of the run, what was answered, and the scores of that."""

    question: SampleRecord | QuestionRecord
    scores: list[ScoreRecord] = field(default_factory=list)
    error: str | None = None
    ended: float = 0.0

    @property
    def id(self) -> str:
        text = self.question.id or self.question.question
        return self.question.id or hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


@dataclass
class Delivered:
    """What became of a run; ``problem`` where not all of it was sent."""

    url: str
    runs: int = 0
    evaluations: int = 0
    errors: int = 0
    of_runs: int = 0
    of_evaluations: int = 0
    annotations: int = 0
    of_annotations: int = 0
    experiment: str = ""
    problem: str = ""

    def __str__(self) -> str:
        told = (
            f"phoenix: {self.runs} of {self.of_runs} questions and {self.evaluations} of {self.of_evaluations} "
            f"evaluations ({self.errors} of them errors)"
        )
        if self.of_annotations:
            told += f" and {self.annotations} of {self.of_annotations} annotations of spans"
        told += f" delivered to {self.url}"
        return f"{told}; the rest was not: {self.problem}" if self.problem else told


def send_experiment(
    run: RunReport,
    url: str,
    *,
    dataset: str | None = None,
    seconds: float = 600.0,
    api_key: str | None = None,
) -> Delivered:
    """Send a run, and its scores as annotations of its spans where those were sent; credentials are masked.

    What goes wrong is told in what is returned, never raised.

    Parameters
    ----------
    url
        Of the server: ``http://localhost:6006``.
    dataset
        Its name. Default: that of the question files.
    seconds
        After so many it is given up.
    """
    run = masked(run)
    cases = _cases(run)
    told = Delivered(
        url.rstrip("/"), of_runs=len(cases), of_evaluations=sum(len(case.scores) for case in cases)
    )
    notes = list(_annotations(run)) if run.run.spans else []
    told.of_annotations = len(notes)
    api = _Api(told.url, api_key or os.environ.get("PHOENIX_API_KEY"), time.monotonic() + seconds)
    try:
        _send(api, run, cases, dataset or _dataset_name(cases), told)
        for first in range(0, len(notes), _AT_ONCE):
            batch = notes[first : first + _AT_ONCE]
            # Spans are stored a while after they were taken: a synchronous request would not find them.
            api.post("/v1/span_annotations?sync=false", {"data": batch})
            told.annotations += len(batch)
    except PhoenixError as error:
        told.problem = str(error)
    return told


def _send(api: _Api, run: RunReport, cases: list[_Case], dataset: str, told: Delivered) -> None:
    if not cases:
        return
    uploaded = api.post(
        "/v1/datasets/upload?sync=true",
        {
            "action": "update",
            "name": dataset,
            "inputs": [{"question": case.question.question} for case in cases],
            "outputs": [{"reference": getattr(case.question, "reference", None)} for case in cases],
            "metadata": [
                {"id": case.id, "tags": list(case.question.tags), "lang": case.question.lang}
                for case in cases
            ],
            "example_ids": [case.id for case in cases],
        },
    )["data"]
    where = f"/v1/datasets/{uploaded['dataset_id']}"
    version = uploaded.get("version_id")
    found = api.get(f"{where}/examples" + (f"?version_id={version}" if version else ""))["data"]["examples"]
    # By the question: what an example is called differs between versions of the server.
    nodes = {each["input"].get("question"): each.get("node_id") or each["id"] for each in found}
    started = datetime.fromtimestamp(run.run.started, UTC)
    git = run.run.git
    experiment = api.post(
        f"{where}/experiments",
        {
            "name": f"ragbench {started:%Y-%m-%d %H:%M:%S}",
            "metadata": {
                "run": run.run.id, "settings": run.run.settings, "ragbench": run.run.ragbench,
                "commit": git.commit if git else None, "branch": git.branch if git else None,
            },
            "repetitions": 1,
            **({"version_id": version} if version else {}),
        },
    )["data"]  # fmt: skip
    told.experiment = experiment["id"]
    for case in cases:
        node = nodes.get(case.question.question)
        if node is None:
            raise PhoenixError(f"the dataset has no example for {one_line(case.question.question, 60)!r}")
        begun, ended = _times(case, run)
        sent = api.post(
            f"/v1/experiments/{told.experiment}/runs",
            {
                "dataset_example_id": node,
                "output": _output(case),
                "repetition_number": 1,
                "start_time": begun,
                "end_time": ended,
                "trace_id": case.question.trace_id,
                "error": case.error,
            },
        )["data"]
        told.runs += 1
        for score in case.scores:
            api.post("/v1/experiment_evaluations", _evaluation(sent["id"], score, begun, ended))
            told.evaluations += 1
            told.errors += score.value is None


def _cases(run: RunReport) -> list[_Case]:
    """One a question, in the order of the results; scores of all tests about it."""
    found: dict[tuple[str | None, str], _Case] = {}
    for test in run.results:
        cases = []
        for sample in test.samples:
            case = found.setdefault((sample.id, sample.question), _Case(sample))
            if not isinstance(case.question, SampleRecord):
                case.question, case.error = sample, None  # answered by another test
            cases.append(case)
        for score in test.scores:
            if score.sample is not None and 0 <= score.sample < len(cases):
                cases[score.sample].scores.append(score)
        for question in test.questions:
            if (question.id, question.question) not in found:
                lost = (
                    test.message or f"the test ended as {test.outcome}" if question.latency is None else None
                )
                found[question.id, question.question] = _Case(question, error=lost)
    return list(found.values())


def _dataset_name(cases: Iterable[_Case]) -> str:
    files = {PurePath(case.question.file.replace("\\", "/")).name for case in cases if case.question.file}
    return f"ragbench {', '.join(sorted(files))}"[:200].strip()


def _times(case: _Case, run: RunReport) -> tuple[str, str]:
    asked = getattr(case.question, "asked", None) or run.run.started
    ended = asked + (case.question.latency or 0.0)
    return tuple(datetime.fromtimestamp(each, UTC).isoformat() for each in (asked, ended))  # type: ignore[return-value]


def _output(case: _Case) -> dict[str, Any] | None:
    sample = case.question
    if not isinstance(sample, SampleRecord):
        return None
    return {"answer": sample.answer, "contexts": list(sample.contexts or ()), "cached": sample.cached}


def _evaluation(run_id: str, score: ScoreRecord, begun: str, ended: str) -> dict[str, Any]:
    told: dict[str, Any] = {
        "experiment_run_id": run_id,
        "name": score.metric,
        "annotator_kind": _annotator(score),
        "start_time": begun,
        "end_time": ended,
        "metadata": {
            "judge": score.judge,
            "threshold": score.threshold,
            "tokens": score.usage.tokens,
            "cost": score.usage.cost,
        },
    }
    if score.value is None:
        return {**told, "error": _error_of(score)}
    return {
        **told,
        "result": {
            "score": score.value,
            "label": label_of(score) or None,
            "explanation": explanation_of(score) or None,
        },
    }


def _annotations(run: RunReport) -> Iterator[dict[str, Any]]:
    """Each score on the span of its question; of a whole set, on that of the run."""
    for test in run.results:
        for number, score in enumerate(test.scores):
            place = score.sample
            known = place is not None and 0 <= place < len(test.samples)
            lost = score.value is None
            yield {
                "span_id": question_span_id(run.run, test, place or 0) if known else run_span_id(run.run),
                "name": score.metric,
                "annotator_kind": _annotator(score),
                # With the same one, what is sent a second time takes the place of the first.
                "identifier": hashlib.sha256(
                    f"{run.run.id} {number} {test.test}".encode("utf-8", "replace")
                ).hexdigest()[:32],
                "result": {
                    "score": score.value,
                    "label": "error" if lost else label_of(score) or None,
                    "explanation": (_error_of(score) if lost else explanation_of(score)) or None,
                },
                "metadata": {"judge": score.judge, "threshold": score.threshold, "test": test.test},
            }


def _annotator(score: ScoreRecord) -> str:
    # Of a score that was lost only the judge that was to be asked is known; the local one computes its verdicts.
    judge = score.judge or (score.setup.judge if score.setup is not None else None)
    return "CODE" if judge is None or judge == "local" else "LLM"


def _error_of(score: ScoreRecord) -> str:
    return score.error.message if score.error else "no score"


class PhoenixReport:
    """A report format: the run is sent when it is over, in a minute at most.

    Raises
    ------
    UsageError
        The URL is not one.
    """

    whole_run = True

    def __init__(self, path: Path, context: ReportContext) -> None:
        if not context.url.startswith(("http://", "https://")):
            raise UsageError(f"--ragbench-phoenix {context.url}: must be an http:// or https:// URL")
        self._url = context.url

    def add(self, result: TestRecord) -> None:
        pass

    def finish(self, run: RunReport) -> Iterable[str]:
        return [str(send_experiment(run, self._url, seconds=END_S))]


class _Api:
    """Phoenix' REST API."""

    def __init__(self, url: str, key: str | None, until: float) -> None:
        self._url = url
        self._headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {key}"} if key else {}
        )
        self._until = until

    def get(self, path: str) -> Any:
        return self._call("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._call(
            "POST", path, json.dumps(body, ensure_ascii=False).encode("utf-8", "backslashreplace")
        )

    def _call(self, method: str, path: str, data: bytes | None) -> Any:
        left = self._until - time.monotonic()
        if left <= 0:
            raise PhoenixError("it took too long; send the JSON report later: ragbench export --to phoenix")
        request = urllib.request.Request(self._url + path, data, self._headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=min(_TIMEOUT_S, left)) as reply:  # noqa: S310
                return json.loads(reply.read() or b"null")
        except urllib.error.HTTPError as error:
            said = one_line(error.read(2000).decode("utf-8", "replace"), 200)
            raise PhoenixError(f"{method} {path} replied {error.code}: {said}") from None
        except (OSError, ValueError) as error:
            raise PhoenixError(f"{method} {path}: {one_line(str(error), 200)}") from None
