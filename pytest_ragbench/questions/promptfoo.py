"""promptfoo's configuration as a question file: ``defaultTest``, and tests that stand in files of their own.

As promptfoo 0.121 merges them: a test's ``vars``, ``metadata`` and ``options`` are added to those of the default and
win over them, its assertions come after the default's (``disableDefaultAsserts`` drops those), and anything else of
the default holds where the test says nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ragbench.model.errors import QuestionFileError
from pytest_ragbench.questions.files import find_files, shown_name
from pytest_ragbench.questions.readers.yaml_nodes import NodeBuilder, compose, line_of
from pytest_ragbench.questions.rows import Row, Source

if TYPE_CHECKING:
    import yaml

_DEFAULT, _TESTS, _SCENARIOS = "defaultTest", "tests", "scenarios"
_KEYS = {
    True: re.compile(rf'"(?:{_DEFAULT}|{_TESTS})"\s*:'),
    False: re.compile(rf"""^["']?(?:{_DEFAULT}|{_TESTS})["']?\s*:""", re.MULTILINE),
}
"""By whether the file is JSON: what a configuration has, looked for before a long file is read twice."""
_FILE = "file://"
_CODE = (".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".py")
_MERGED = ("vars", "metadata", "options")
_ASSERT = "assert"


@dataclass(frozen=True)
class Config:
    """A configuration that says more than a list of tests does."""

    source: Source
    data: Mapping[str, Any]
    lines: Mapping[str, int] = field(default_factory=dict)
    """Of its keys; of a test in the list as ``tests.NUMBER``."""

    @property
    def refers(self) -> bool:
        """Whether tests stand in other files."""
        tests = self.data.get(_TESTS)
        return not isinstance(tests, list) or any(_path_of(each) is not None for each in tests)

    def line(self, key: str) -> int:
        """Where a key, or a test of the list, is written; 0 where nobody knows."""
        return self.lines.get(key, 0)

    def tests(self) -> Iterator[Row | Source]:
        """The tests that stand here, and the files of the others, in their order."""
        tests = self.data.get(_TESTS)
        for place, each in enumerate(tests if isinstance(tests, list) else [tests]):
            line = self.line(f"{_TESTS}.{place}") or self.line(_TESTS)
            path = _path_of(each)
            if path is not None:
                yield from self._files(path, line)
            elif isinstance(each, Mapping):
                yield Row(line, each)
            else:
                self.source.report(line, f"{_TESTS}: wanted a test, or the path of a file of tests")

    def _files(self, path: str, line: int) -> Iterator[Source]:
        name, _, table = path.removeprefix(_FILE).partition("#")
        if "://" in name or Path(re.sub(r":\w+$", "", name)).suffix in _CODE:
            self.source.report(
                line, f"{_TESTS}: {path} is code, or not a file: write its tests into a file that holds them"
            )
            return
        try:
            found = find_files(self.source.path.parent / name)
        except QuestionFileError as error:
            self.source.report(line, f"{_TESTS}: {error}")
            return
        for file in found:
            yield replace(self.source, path=file, name=shown_name(file), table=table or None)

    def default(self) -> Mapping[str, Any]:
        """``defaultTest``, also where it stands in a file of its own; stops where it can't be read."""
        given = self.data.get(_DEFAULT)
        if isinstance(given, str) and given.startswith(_FILE):
            file = self.source.path.parent / given.removeprefix(_FILE)
            if not file.is_file():
                self.source.stop(self.line(_DEFAULT), f"{_DEFAULT}: {given}: no such file")
            other = config_of(replace(self.source, path=file, name=shown_name(file)), whole=True)
            given = other.data if other is not None else None
        if given is not None and not isinstance(given, Mapping):
            self.source.stop(
                self.line(_DEFAULT), f"{_DEFAULT}: wanted a mapping with vars or assert, or {_FILE}..."
            )
        if not isinstance((given or {}).get(_ASSERT) or [], list):
            self.source.stop(self.line(_DEFAULT), f"{_DEFAULT}: assert: wanted a list of assertions")
        return given or {}


def config_of(source: Source, *, whole: bool = False) -> Config | None:
    """The configuration in a YAML or JSON file; None of a file with nothing but questions.

    Parameters
    ----------
    whole
        Any mapping is one.

    Raises
    ------
    Unreadable
        What it says of tests can't be understood, as is noted in ``source``.
    """
    suffix = source.path.suffix.lower()
    if suffix not in (".yaml", ".yml", ".json"):
        return None
    text = source.text()
    if not whole and not _KEYS[suffix == ".json"].search(text):
        return None
    config = _of_json(source, text) if suffix == ".json" else _of_yaml(source, text)
    if config is None or whole:
        return config
    if not isinstance(config.data.get(_TESTS), (list, str, Mapping)):
        return None
    if config.data.get(_SCENARIOS) and (_DEFAULT in config.data or config.refers):
        source.stop(config.line(_SCENARIOS), f"{_SCENARIOS} are not read: write their tests out")
    return config if _DEFAULT in config.data or config.refers else None


def _of_yaml(source: Source, text: str) -> Config | None:
    import yaml

    root = compose(text, source)
    if not isinstance(root, yaml.MappingNode):
        return None
    builder = NodeBuilder(source, limit=len(text) + 100_000)
    lines = {str(key.value): line_of(key) for key, _ in root.value}
    listed = next((value for key, value in root.value if key.value == _TESTS), None)
    items: Sequence[yaml.Node] = listed.value if isinstance(listed, yaml.SequenceNode) else ()
    lines |= {f"{_TESTS}.{place}": line_of(node) for place, node in enumerate(items)}
    return Config(source, builder.value(root), lines)


def _of_json(source: Source, text: str) -> Config | None:
    try:
        data = json.loads(text)
    except ValueError:
        return None  # the reader of the format says what is wrong
    return Config(source, data) if isinstance(data, dict) else None


def _path_of(test: Any) -> str | None:
    """The file that stands for tests: ``file://more.yaml``, ``more/*.yaml``, ``{path: ...}``."""
    if isinstance(test, Mapping):
        path = test.get("path")
        return path if isinstance(path, str) and not {"vars", _ASSERT} & set(test) else None
    return test if isinstance(test, str) else None


def single_test(source: Source) -> Row | None:
    """The one test that a file of a mapping holds; None of a file with a list."""
    config = config_of(source, whole=True)
    return Row(1, config.data) if config is not None and {"vars", _ASSERT} & set(config.data) else None


def with_default(row: Row, default: Mapping[str, Any]) -> Row:
    """A test with what ``defaultTest`` says of all."""
    own = dict(row.cells)
    if not {"vars", _ASSERT} & set(own):  # of a CSV, whose columns are the variables
        own = {**(default.get("vars") or {}), **own}
        default = {name: value for name, value in default.items() if name != "vars"}
    merged = {**default, **own}
    for name in _MERGED:
        parts = [part[name] for part in (default, own) if isinstance(part.get(name), Mapping)]
        if len(parts) > 1:
            merged[name] = {**parts[0], **parts[1]}
    # Only what the test itself says counts here.
    options = own.get("options")
    alone = isinstance(options, Mapping) and str(options.get("disableDefaultAsserts")).lower() == "true"
    asserted = own.get(_ASSERT) or []
    if isinstance(asserted, list):  # of anything else the reader of assertions says what is wrong
        merged[_ASSERT] = [*([] if alone else default.get(_ASSERT) or []), *asserted] or None
    return Row(row.line, {name: value for name, value in merged.items() if value is not None})


__all__ = ["Config", "config_of", "single_test", "with_default"]
