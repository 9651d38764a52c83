"""What is summed up over the results of a run, whatever becomes of it: for pytest and for merged shards."""

from __future__ import annotations

from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.tests import TestRecord
from pytest_ragbench.report.few_values import FewValues
from pytest_ragbench.report.left_out import LeftOut
from pytest_ragbench.report.opinions import Opinions
from pytest_ragbench.report.summary import Summary
from pytest_ragbench.report.usage import UsageSums


class Totals:
    """Takes results and usage as they come, and fills in its part of the report."""

    def __init__(self) -> None:
        self.summary = Summary()
        self.opinions = Opinions()
        self.few_values = FewValues()
        self.left_out = LeftOut()

    def add(self, result: TestRecord) -> None:
        self.summary.add(result)
        self.opinions.add(result)
        self.few_values.add(result)
        self.left_out.add(result)

    def add_usage(self, usage: UsageSums) -> None:
        self.summary.add_usage(usage)

    def finish(self, run: RunReport) -> None:
        self.summary.finish(run)
        self.opinions.finish(run)
        self.few_values.finish(run)
