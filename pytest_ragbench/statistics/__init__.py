"""How sure a number is: bounds, tests and agreement. Pure functions of numbers; nothing here knows a gate.

==============  =========================================================================
``bounds``      one-sided bounds of a mean or a share (Gaffke's; Clopper-Pearson for 0/1)
``gaffke``      the distribution behind them
``clusters``    questions that share a document: cluster-robust error, effective count
``planning``    how many questions a decision takes
``paired``      two runs of the same questions: sign flips, McNemar, Fisher, Holm
``agreement``   two raters: kappa, AC1, alpha, AUC, consistency, yes/no classification
``correction``  a judge's errors taken out of a mean: Rogan-Gladen, PPI
``votes``       self-agreement of a judge
``percentile``  nearest-rank percentiles
==============  =========================================================================

``bounds`` and ``percentile`` import numpy and scipy only where they compute, since rules are read in runs that never
get so far. The measures of ``agreement`` are imported on first use for the same reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ragbench.lazy import lazily

if TYPE_CHECKING:
    from pytest_ragbench.statistics.agreement import classification as classification
    from pytest_ragbench.statistics.agreement import cohen_kappa as cohen_kappa
    from pytest_ragbench.statistics.agreement import consistency as consistency
    from pytest_ragbench.statistics.agreement import error_rate as error_rate
    from pytest_ragbench.statistics.agreement import gwet_ac1 as gwet_ac1
    from pytest_ragbench.statistics.agreement import krippendorff_alpha as krippendorff_alpha
    from pytest_ragbench.statistics.agreement import latency as latency

__getattr__ = lazily(
    __name__,
    agreement="classification cohen_kappa consistency error_rate gwet_ac1 krippendorff_alpha latency",
)
