"""An error that many tests share is told once where pytest lists errors, and once more in the closing block: an outage,
or a field that every reply lacks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from pytest_ragbench.clean import one_line
from pytest_ragbench.model.errors import cause_of

_MOST_CAUSES = 3
_MOST_NAMED = 3
_LONGEST = 300


class SharedErrors:
    """Registered on the controller: counts causes, and folds pytest's section of errors.

    Only what the terminal shows is folded: JUnit and other reports have each test's own message by then.
    """

    def __init__(self) -> None:
        self._causes: Counter[str] = Counter()
        self._of_report: dict[int, str] = {}
        self._whole: list[Any] | None = None

    def see(self, report: pytest.TestReport, message: str) -> None:
        """A test's report with the message of its error."""
        cause = cause_of(message)
        self._causes[cause] += 1
        self._of_report[id(report)] = cause  # pytest keeps its reports to the end of the run

    def lines(self) -> Iterator[str]:
        """``20 tests: no connection to ...``, of the most frequent causes."""
        for cause, count in self._causes.most_common(_MOST_CAUSES):
            yield f"{count} test{'s' * (count != 1)}: {one_line(cause, _LONGEST)}"
        if (more := len(self._causes) - _MOST_CAUSES) > 0:
            tests = sum(self._causes.values()) - sum(n for _, n in self._causes.most_common(_MOST_CAUSES))
            yield f"{tests} test{'s' * (tests != 1)}: {more} other cause{'s' * (more != 1)}, in the list of errors"

    # Outermost: pytest's own implementation, itself a wrapper, lists the errors before any other is called.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, object, object]:
        errors = terminalreporter.stats.get("error", [])
        alike: dict[str, list[Any]] = {}
        for report in errors:
            if (cause := self._of_report.get(id(report))) is not None:
                alike.setdefault(cause, []).append(report)
        folded: set[int] = set()
        for first, *others in alike.values():
            if others and hasattr(first.longrepr, "addsection"):
                first.longrepr.addsection(*_also(others))
                folded.update(map(id, others))
        if folded:
            self._whole = errors
            terminalreporter.stats["error"] = [each for each in errors if id(each) not in folded]
        return (yield)

    def unfold(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The errors are listed: all of them count again, and stand in the short summary."""
        if self._whole is None:
            return
        terminalreporter.stats["error"], self._whole = self._whole, None
        before = None
        for report in terminalreporter.stats["error"]:
            cause = self._of_report.get(id(report))
            crash = getattr(report.longrepr, "reprcrash", None)
            if cause is not None and cause == before and crash is not None:
                crash.message = f"{crash.message.partition(': ')[0]}: the same"
            before = cause


def _also(others: list[Any]) -> tuple[str, str]:
    """Title and text of the section about further tests with the same error."""
    names = [str(report.nodeid) for report in others[:_MOST_NAMED]]
    names += ["..."] if len(others) > _MOST_NAMED else []
    return f"the same in {len(others)} more test{'s' * (len(others) != 1)}", "\n".join(names)
