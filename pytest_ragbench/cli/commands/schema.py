"""``ragbench schema``: the JSON Schemas of ``*.rag.yaml`` files and of reports."""

from __future__ import annotations

import click

from pytest_ragbench.cli.shared import print_json
from pytest_ragbench.report.schema import report_schema
from pytest_ragbench.specs.model import json_schema


@click.command()
@click.argument("of", type=click.Choice(["yaml", "report"]), default="yaml", required=False)
def command(of: str) -> None:
    """Print a JSON Schema: of *.rag.yaml files, for editors, or of the reports of --ragbench-json.

    \b
      ragbench schema > rag-yaml.schema.json
      # then, as the first line of a file:
      # yaml-language-server: $schema=rag-yaml.schema.json
      ragbench schema report > ragbench-report.schema.json
    """
    if of == "report":
        print_json(report_schema())
        return
    print_json(json_schema())
