"""What readers of JUnit files take: the rules of Jenkins' and Ant's schemas, in our own words."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

_TEXT = {"failure", "error", "skipped", "system-out", "system-err"}
_CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase", "system-out", "system-err"},
    "testcase": {"properties", *_TEXT},
    "properties": {"property"},
}
_REQUIRED = {
    "testsuite": {"name", "tests", "failures", "errors"},
    "testcase": {"name"},
    "property": {"name", "value"},
}
_ALLOWED = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"},
    "testcase": {"name", "time", "classname"},
    "property": {"name", "value"},
    **{tag: {"message", "type"} for tag in _TEXT},
}
_NUMBERS = re.compile(r"\d+(\.\d+)?")


def read_junit(path: Path) -> ET.Element:
    """The file's root, once it is sure that strict readers take it. No XML parser lets a forbidden character pass."""
    root = ET.fromstring(path.read_bytes())
    assert root.tag == "testsuites"
    for element in root.iter():
        tag, given = element.tag, set(element.attrib)
        assert {child.tag for child in element} <= _CHILDREN.get(tag, set()), tag
        assert _REQUIRED.get(tag, set()) <= given <= _ALLOWED.get(tag, set()), (tag, given)
        assert tag in _TEXT or not (element.text or "").strip(), tag
        for name in {"time", "tests", "failures", "errors", "skipped"} & given:
            assert _NUMBERS.fullmatch(element.attrib[name]), (tag, name)
    for case in root.iter("testcase"):
        assert sum(child.tag in ("failure", "error", "skipped") for child in case) <= 1, case.attrib
    for suite in root.iter("testsuite"):
        for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            assert int(suite.attrib[name]) == len(list(suite.iter(tag))), name
    return root
