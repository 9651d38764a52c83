"""The pages around the reports that ``ragbench view`` serves: the list of runs, and a message in place of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pytest_ragbench.model.report import RunReport
from pytest_ragbench.report.html import verdict_of
from pytest_ragbench.report.html.page import asset, policy, template
from pytest_ragbench.report.summary import means_of


@dataclass(frozen=True)
class RunLine:
    """A run of the list."""

    report: RunReport
    """Its results aren't looked at."""
    address: str | None
    """Of its page; None where there is none to open."""
    why_not: str = ""
    """What became of its report, in a word or two, where there is no page."""

    @property
    def started(self) -> str:
        """To the minute, in UTC."""
        return f"{datetime.fromtimestamp(self.report.run.started, UTC):%Y-%m-%d %H:%M}"

    @property
    def verdict(self) -> str:
        """What the run came to."""
        return verdict_of(self.report)

    @property
    def outcomes(self) -> str:
        """How many tests came to what."""
        counts = self.report.summary.outcomes.items() if self.report.summary else ()
        return ", ".join(f"{number} {name}" for name, number in counts)

    @property
    def branch(self) -> str | None:
        """That of git."""
        return self.report.run.git.branch if self.report.run.git else None

    @property
    def means(self) -> Mapping[str, float]:
        """By metric, without those that have no score."""
        return means_of(self.report)


def runs_page(
    lines: Sequence[RunLine],
    *,
    source: str,
    labels_file: str,
    branch: str | None = None,
    more: str | None = None,
) -> str:
    """The list of runs, of which two or more can be chosen to be compared.

    Parameters
    ----------
    lines
        The latest run first.
    source
        Where the runs are from, as text.
    labels_file
        Where labels are kept, as text.
    branch
        Set where only its runs are listed.
    more
        Address of a longer list; None where all runs are on this one.
    """
    metrics = list(dict.fromkeys(name for line in lines for name in line.means))
    return _page(
        "runs.html.j2",
        title="RAG quality: runs",
        lines=lines,
        changes=[_changes(line, lines[place + 1 :]) for place, line in enumerate(lines)],
        metrics=metrics,
        source=source,
        labels_file=labels_file,
        branch=branch,
        more=more,
        unkept=any(line.address is None for line in lines),
    )


def message_page(title: str, text: str, *, home: str | None = None) -> str:
    """One message, with a way back to the list where there is one."""
    return _page("message.html.j2", title=title, text=text, home=home)


def _page(name: str, **values: object) -> str:
    from markupsafe import Markup

    css = asset("report.css")
    return template(name).render(
        lang="en",
        policy=policy("", css, served=True),
        css=Markup(css),  # noqa: S704 - the package's own file
        **values,
    )


def _changes(line: RunLine, older: Sequence[RunLine]) -> Mapping[str, float]:
    """What changed of each mean since the run before it on the same branch."""
    changes = {}
    for metric, mean in line.means.items():
        before = (
            other.means[metric] for other in older if other.branch == line.branch and metric in other.means
        )
        old = next(before, None)
        if old is not None:
            changes[metric] = mean - old
    return changes
