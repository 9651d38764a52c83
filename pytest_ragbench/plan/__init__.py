"""What a test will ask, read from its source before it runs.

One :class:`~pytest_ragbench.plan.model.Plan` for each test serves look-ahead, ``--ragbench-dry-run`` and
``--ragbench-tier``. Nothing here knows pytest: the plugin says which arguments of a test function are its
samples and which values its other arguments have.
"""
