"""docs/json-report.md says of each field what the model says."""

from __future__ import annotations

from tests.docs.report_tables import PAGE, page_with_tables


def test_the_page_has_todays_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page_with_tables(text), "run python -m tests.docs.report_tables"
