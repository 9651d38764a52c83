"""``python -m pytest_ragbench.cli``, where the script is not on the path."""

from pytest_ragbench.cli import main

main()
