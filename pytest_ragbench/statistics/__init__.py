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
get so far.
"""
