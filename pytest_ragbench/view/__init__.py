"""``ragbench view``: runs, their reports and labels as local pages."""
