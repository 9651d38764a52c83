"""Readers of other packages, found by their entry points."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

READER = """
from pytest_ragbench.questions.rows import Row

suffixes = (".foo",)

def read(source):
    for line, text in enumerate(source.text().splitlines(), start=1):
        question, mark, reference = text.partition(" => ")
        if mark:
            yield Row(line, {"question": question, "reference": reference})
        else:
            source.report(line, "wanted QUESTION => REFERENCE")
"""

TEST = """
import pytest

@pytest.mark.rag_questions("q.foo")
def test_question(rag_question):
    assert rag_question.reference == "30 days."
    assert rag_question.location.line in (1, 2)
"""


def install(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, entry: str, **modules: str) -> None:
    """Modules and the metadata of a package with one entry point, on the path of processes started here."""
    site = pytester.mkdir("site")
    for name, content in modules.items():
        (site / f"{name}.py").write_text(content, "utf-8")
    info = site / "foo_reader-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: foo-reader\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[ragbench.readers]\n{entry}\n")
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)


@pytest.mark.parametrize(
    ("target", "content"),
    [
        ("foo_reader", READER),
        ("foo_reader:FOO", f"{READER}\nimport sys\nFOO = sys.modules[__name__]\n"),
        ("foo_reader:Foo", f"{READER}\nclass Foo:\n    suffixes = suffixes\n    read = staticmethod(read)\n"),
    ],
    ids=["module", "object", "class"],
)
def test_a_reader_of_another_package(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, target: str, content: str
) -> None:
    install(pytester, monkeypatch, f"foo = {target}", foo_reader=content)
    pytester.makepyfile(TEST)
    Path("q.foo").write_text("How long? => 30 days.\nUntil when? => 30 days.\n")
    result = pytester.runpytest_subprocess("-v", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*test_question*How-long* PASSED*"])


def test_what_it_reports_names_file_and_line(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(pytester, monkeypatch, "foo = foo_reader", foo_reader=READER)
    pytester.makepyfile(TEST)
    Path("q.foo").write_text("How long? => 30 days.\nUntil when?\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert result.ret == 4
    result.stdout.fnmatch_lines(["*q.foo:2: wanted QUESTION => REFERENCE"])


@pytest.mark.parametrize(
    ("entry", "content", "message"),
    [
        ("foo = foo_reader", "import no_such_module", "reader 'foo' *(foo_reader) can't be loaded: ModuleNotFound*"),
        ("foo = foo_reader", "suffixes = '.foo'", "reader 'foo' *(foo_reader) needs 'suffixes', a tuple *"),
        ("csv = foo_reader", READER, "two readers of question files are called 'csv': see foo_reader"),
    ],
    ids=["import", "shape", "name"],
)  # fmt: skip
def test_a_reader_that_is_wrong(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, entry: str, content: str, message: str
) -> None:
    install(pytester, monkeypatch, entry, foo_reader=content)
    pytester.makepyfile(TEST)
    Path("q.foo").write_text("How long? => 30 days.\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert result.ret == 4
    result.stdout.fnmatch_lines([f"*{message}"])
