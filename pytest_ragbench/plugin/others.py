"""What other report plugins get of a test: Allure and pytest-html, where they are installed and in use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_ragbench.assertions.failure import evidence_text
from pytest_ragbench.clean import clean, one_line
from pytest_ragbench.languages import known_languages
from pytest_ragbench.report.explanations import explanation
from pytest_ragbench.report.writing import as_dict

if TYPE_CHECKING:
    from pytest_ragbench.model.tests import TestRecord
    from pytest_ragbench.scoring.results import Result


def tell_others(
    item: pytest.Item, report: pytest.TestReport, record: TestRecord, results: Sequence[Result]
) -> None:
    """Called in the process that ran the test, while it is still the running one."""
    evidence = evidence_text(results) or clean(record.message or "")
    if item.config.getoption("allure_report_dir", None):
        _tell_allure(record, evidence)
    if item.config.getoption("htmlpath", None) and evidence:
        _tell_html(report, record, evidence)


def _tell_allure(record: TestRecord, evidence: str) -> None:
    import allure

    if len(record.samples) == 1:
        [sample] = record.samples
        allure.dynamic.parameter("question", one_line(sample.question, 300))
        for name, value in (("id", sample.id), ("lang", sample.lang)):
            if value:
                allure.dynamic.parameter(name, one_line(value, 100))
        for url in (sample.context_urls or ())[:10]:
            if url.startswith(("http://", "https://")):
                allure.dynamic.link(url, name=one_line(url, 100))  # type: ignore[no-untyped-call]
    for score in record.scores:
        shown = "no score" if score.value is None else f"{score.value:.4g}"
        wanted = f" (wanted {score.threshold})" if score.threshold else ""
        allure.dynamic.parameter(score.metric, shown + wanted)
    text, whole = allure.attachment_type.TEXT, allure.attachment_type.JSON
    if evidence:
        allure.attach(evidence, name="evidence", attachment_type=text)
    allure.attach(
        json.dumps(as_dict(record), ensure_ascii=False, indent=1), name="ragbench", attachment_type=whole
    )
    for metric in dict.fromkeys(score.metric for score in record.scores):
        told = [explanation(metric, lang) for lang in known_languages()]
        if any(told):
            allure.attach(
                "\n\n".join(dict.fromkeys(filter(None, told))), name=f"method: {metric}", attachment_type=text
            )


def _tell_html(report: pytest.TestReport, record: TestRecord, evidence: str) -> None:
    import pytest_html

    # As text and JSON only: an answer is never markup.
    extras = [
        pytest_html.extras.text(evidence, name="RAG evidence"),
        pytest_html.extras.json(json.dumps(as_dict(record), ensure_ascii=True), name="RAG result"),
    ]
    report.extras = [*getattr(report, "extras", []), *extras]  # type: ignore[attr-defined]
