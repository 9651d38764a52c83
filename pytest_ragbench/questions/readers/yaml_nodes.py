"""YAML as nodes that know their lines, and scalars as the author wrote them.

YAML 1.1 reads ``no``, ``2024-05-01``, ``1_000``, ``12:30``, ``1.10`` and ``0123`` as False, a date, 1000,
750, 1.1 and 83. As a reference each of them means what is written, so the node tree is read instead of the values.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_ragbench.questions.rows import Source

if TYPE_CHECKING:
    import yaml

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = {_TAG + name for name in ("str", "int", "float", "bool", "timestamp", "value", "merge")}
_NULL = _TAG + "null"
_MERGE = _TAG + "merge"
_TYPED = ("json_path", "json_schema")
"""Keys of JSON, in which 30 and "30" are two things."""
_OF_JSON = "is-json"
"""The type of promptfoo's assertion whose ``value`` is a JSON Schema."""


def compose(text: str, source: Source) -> yaml.Node | None:
    """The root node of the text, None where it has none; stops where it isn't YAML."""
    import yaml

    try:
        root: yaml.Node | None = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        position = getattr(error, "position", None)
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else 0
        line = mark.line + 1 if mark else line
        written = text.splitlines()[line - 1 : line]
        source.stop(line, f"not YAML: {explained(error)}{cure_of(written[0]) if written else ''}")
    except RecursionError:
        source.stop(0, "not readable YAML: nested too deeply")
    return None if root is None or root.tag == _NULL else root


def explained(error: Exception) -> str:
    """What PyYAML complains about, and the cure where there is a usual one."""
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    if "mapping values are not allowed" in problem:
        return f"{problem}; put text that holds ': ' into quotes"
    if "another document" in problem:
        return "a second document starts here (---); one list a file"
    return problem


_BLOCK = re.compile(r":\s*(>\s*=?\s*[+-]?[\d.]+)")


def cure_of(line: str) -> str:
    """What to do about a line in which YAML takes the ``>`` of a threshold for the sign of a folded text."""
    found = _BLOCK.search(line)
    return f'; put the threshold into quotes, as YAML has another use for >: "{found[1]}"' if found else ""


def line_of(node: yaml.Node) -> int:
    """The 1-based line where the node starts."""
    return int(node.start_mark.line) + 1


class NodeBuilder:
    """Builds strings, lists and dicts from nodes; nothing else, whatever the tags ask for.

    Parameters
    ----------
    source
        What is wrong is reported to it.
    limit
        Most nodes to build. A file without aliases has fewer nodes than characters, so with a limit above
        its length only aliases that multiply can reach it.
    """

    def __init__(self, source: Source, limit: int) -> None:
        self.source = source
        self._left = limit
        self._open: set[int] = set()

    def value(self, node: yaml.Node) -> Any:
        """The node as a string, None, a list or a dict."""
        import yaml

        self._left -= 1
        if self._left < 0:
            self.source.stop(line_of(node), "aliases (*name) make this file too large when written out")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if id(node) in self._open:
            self.source.stop(line_of(node), "an alias (*name) refers to what it stands in")
        if node.tag not in (_TAG + "seq", _TAG + "map"):
            self.source.stop(line_of(node), _refusal(node))
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item) for item in node.value]
            return self.mapping(node)
        except RecursionError:
            self.source.stop(line_of(node), "not readable YAML: nested too deeply")
        finally:
            self._open.discard(id(node))

    def check_keys(self, node: yaml.Node) -> None:
        """Report keys that a mapping has twice; all but the last would be lost."""
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                self.source.report(line_of(key), f"key {name!r} is given more than once in one mapping")
            seen.add(name)

    def mapping(self, node: yaml.Node) -> dict[str, Any]:
        """A mapping node as a dict, with what ``<<`` merges into it."""
        import yaml

        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        self.check_keys(node)
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.source.stop(line_of(key), "a key must be a string")
            if key.tag == _MERGE:
                for part in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if not isinstance(part, yaml.MappingNode):
                        self.source.stop(line_of(part), "'<<' takes a mapping, or a list of mappings")
                    merged = {**self.value(part), **merged}
                continue
            own[str(key.value)] = self.typed(value) if key.value in _TYPED else self.value(value)
        if own.get("type") == _OF_JSON:
            own |= {str(key.value): self.typed(value) for key, value in node.value if key.value == "value"}
        return {**merged, **own}

    def typed(self, node: yaml.Node) -> Any:
        """The node with numbers, booleans and dates as YAML means them."""
        import yaml

        try:
            # By way of its text, since PyYAML makes values of whole documents only.
            return yaml.safe_load(yaml.serialize(node, allow_unicode=True))
        except yaml.YAMLError as error:
            self.source.stop(line_of(node), f"not YAML: {explained(error)}")

    def _scalar(self, node: yaml.ScalarNode) -> str | None:
        if node.tag == _NULL:
            return None
        if node.tag not in _TEXT_TAGS:
            self.source.stop(line_of(node), _refusal(node))
        return str(node.value)


def _refusal(node: yaml.Node) -> str:
    tag = node.tag.replace(_TAG, "!!")
    return f"the YAML tag {tag} is refused: question files hold strings, lists and mappings only"
