"""YAML: a list of mappings, such a list inside a mapping, or a mapping of columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_ragbench.questions.exports import rows_of
from pytest_ragbench.questions.readers.yaml_nodes import NodeBuilder, compose, line_of
from pytest_ragbench.questions.rows import LISTS, Row, Source, columnar

if TYPE_CHECKING:
    import yaml


class YamlList:
    """``.yaml``, ``.yml``."""

    suffixes = (".yaml", ".yml")

    def read(self, source: Source) -> Iterator[Row]:
        """A row for each mapping of the list, at the line where it starts."""
        text = source.text()
        root = compose(text, source)
        if root is None:
            source.stop(0, "the file is empty: no questions")
        return _rows(root, NodeBuilder(source, limit=len(text) + 100_000), source)


def _rows(root: yaml.Node, build: NodeBuilder, source: Source) -> Iterator[Row]:
    import yaml

    if isinstance(root, yaml.MappingNode):
        build.check_keys(root)
        found = [
            value for key, value in root.value if key.value in LISTS and isinstance(value, yaml.SequenceNode)
        ]
        if not found:
            value = build.value(root)
            exported = rows_of(value)
            yield from (Row(0, row) for row in exported) if exported else columnar(value, source)
            return
        if len(found) > 1:
            source.stop(
                line_of(found[1]), f"two lists of questions, in line {line_of(found[0])} and here; keep one"
            )
        root = found[0]
    if not isinstance(root, yaml.SequenceNode):
        source.stop(line_of(root), "no questions: wanted a list of mappings")
    if not root.value:
        source.stop(line_of(root), "the list is empty: no questions")
    for node in root.value:
        if not isinstance(node, yaml.MappingNode):
            source.report(line_of(node), "wanted a mapping, as '- question: ...'")
            continue
        # Rows with problems are left out, but read on: all problems are reported at once.
        before = len(source.problems.found)
        cells = build.value(node)
        if len(source.problems.found) == before:
            yield Row(line_of(node), cells)
