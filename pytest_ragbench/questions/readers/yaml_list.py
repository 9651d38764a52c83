"""YAML: scalars as the author wrote them.

YAML 1.1 reads ``no``, ``2024-05-01``, ``1_000``, ``12:30``, ``1.10`` and ``0123`` as False, a date, 1000,
750, 1.1 and 83. As a reference each of them means its text, so the node tree is read instead of the values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pytest_ragbench.questions.exports import rows_of
from pytest_ragbench.questions.reading import LISTS, Row, Source, columnar

if TYPE_CHECKING:
    import yaml

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = {_TAG + name for name in ("str", "int", "float", "bool", "timestamp", "value", "merge")}
_NULL = _TAG + "null"
_MERGE = _TAG + "merge"


class YamlList:
    """``.yaml``, ``.yml``."""

    blank_is_missing = False

    def read(self, data: bytes, source: Source) -> Iterator[Row]:
        """A row for each mapping of the list, at the line where it starts."""
        import yaml

        text = source.text(data)
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            root = yaml.compose(text, Loader=loader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            source.stop(mark.line + 1 if mark else _line_of(error, text), f"not YAML: {_explained(error)}")
        except RecursionError:
            source.stop(0, "not readable YAML: nested too deeply")
        if root is None or root.tag == _NULL:
            source.stop(0, "the file is empty: no questions")
        return _rows(root, _Builder(source, limit=len(text) + 100_000), source)


def _explained(error: Exception) -> str:
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    if "mapping values are not allowed" in problem:
        return f"{problem}; put a text that holds ': ' into quotes"
    if "another document" in problem:
        return "a second document starts here (---); one list a file"
    return problem


def _line_of(error: Exception, text: str) -> int:
    position = getattr(error, "position", None)
    return text.count("\n", 0, position) + 1 if isinstance(position, int) else 0


def _rows(root: yaml.Node, build: _Builder, source: Source) -> Iterator[Row]:
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
                _line(found[1]), f"two lists of questions, in line {_line(found[0])} and here; keep one"
            )
        root = found[0]
    if not isinstance(root, yaml.SequenceNode):
        source.stop(_line(root), "no questions: wanted a list of mappings")
    if not root.value:
        source.stop(_line(root), "the list is empty: no questions")
    for node in root.value:
        if not isinstance(node, yaml.MappingNode):
            source.report(_line(node), "wanted a mapping, as '- question: ...'")
            continue
        before = len(source.problems.found)
        cells = build.value(node)
        if len(source.problems.found) == before:
            yield Row(_line(node), cells)


class _Builder:
    """Builds texts, lists and mappings from nodes; nothing else, whatever the tags ask for."""

    def __init__(self, source: Source, limit: int) -> None:
        self.source = source
        # A file without aliases has fewer nodes than characters, so only aliases can reach the limit.
        self.left = limit
        self.open: set[int] = set()

    def value(self, node: yaml.Node) -> Any:
        import yaml

        self.left -= 1
        if self.left < 0:
            self.source.stop(_line(node), "aliases (*name) make this file too large when written out")
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node)
        if id(node) in self.open:
            self.source.stop(_line(node), "an alias (*name) refers to what it stands in")
        if node.tag not in (_TAG + "seq", _TAG + "map"):
            self.source.stop(_line(node), self.refusal(node))
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item) for item in node.value]
            return self.mapping(node)
        except RecursionError:
            self.source.stop(_line(node), "not readable YAML: nested too deeply")
        finally:
            self.open.discard(id(node))

    def check_keys(self, node: yaml.Node) -> None:
        """Report keys of a mapping that stand there twice; all but the last would be lost."""
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                self.source.report(_line(key), f"key {name!r} is given more than once in one mapping")
            seen.add(name)

    def scalar(self, node: yaml.ScalarNode) -> str | None:
        if node.tag == _NULL:
            return None
        if node.tag not in _TEXT_TAGS:
            self.source.stop(_line(node), self.refusal(node))
        return str(node.value)

    def mapping(self, node: yaml.Node) -> dict[str, Any]:
        import yaml

        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        self.check_keys(node)
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.source.stop(_line(key), "a key must be a text")
            if key.tag == _MERGE:
                for part in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if not isinstance(part, yaml.MappingNode):
                        self.source.stop(_line(part), "'<<' takes a mapping, or a list of mappings")
                    merged = {**self.value(part), **merged}
                continue
            own[str(key.value)] = self.value(value)
        return {**merged, **own}

    def refusal(self, node: yaml.Node) -> str:
        tag = node.tag.replace(_TAG, "!!")
        return f"the YAML tag {tag} is refused: question files hold texts, lists and mappings only"


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


READER = YamlList()
