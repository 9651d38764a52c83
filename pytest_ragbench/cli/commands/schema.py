"""``ragbench schema``: the JSON Schema of ``*.rag.yaml`` files."""

from __future__ import annotations

import click

from pytest_ragbench.cli.shared import print_json


@click.command()
def command() -> None:
    """Print the JSON Schema of *.rag.yaml files, for editors.

    \b
      ragbench schema > rag-yaml.schema.json
      # then, as the first line of a file:
      # yaml-language-server: $schema=rag-yaml.schema.json
    """
    from pytest_ragbench.specs.model import json_schema

    print_json(json_schema())
