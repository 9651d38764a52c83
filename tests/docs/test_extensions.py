"""What a newcomer adds by following the pages: one file and an entry point each, and all of it works together."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.test_code_blocks import LANGUAGES, ROOT, blocks

ENTRY_POINTS = """\
[ragbench.readers]
facts = my_package.facts
[ragbench.judges]
bedrock = my_package.bedrock:bedrock_judge
[ragbench.retrievers]
faq = my_package.faq:faq_retriever
[ragbench.reports]
lines = my_package.lines:Lines
[ragbench.metrics]
mine = my_package.metrics
[ragbench.languages]
de = words_of_german
"""

CLIENT = """\
class client:
    @staticmethod
    def converse(model, messages):
        return {"claims": ["Die Garantie dauert zwei Jahre."],
                "verdicts": [{"number": 1, "verdict": True, "reason": "Chunk 1"}]}


"""
"""Stands for the library of the service; which task was asked decides which of the two keys is read."""

TEST = """\
import pytest
from pytest_ragbench import assert_brevity, assert_faithfulness
from pytest_ragbench.languages import known_languages


@pytest.mark.rag_questions("garantie.facts")
def test_answer(rag_sample):
    assert rag_sample.reference == "Zwei Jahre."
    assert_faithfulness(rag_sample, "==1")
    assert_brevity(rag_sample, "==1")


def test_german():
    assert "de" in known_languages()
"""


def shown(page: str, beginning: str) -> str:
    """The Python block of a page that begins like this."""
    found = [code for _, code in blocks(ROOT / "docs" / page, "python") if code.startswith(beginning)]
    assert len(found) == 1, (page, beginning)
    return found[0]


def installed(site: Path) -> None:
    """A package as pip would leave it: its files, and metadata with entry points."""
    package, german, metadata = (
        site / name for name in ("my_package", "words_of_german", "acme-1.0.dist-info")
    )
    for folder in (package, german, metadata):
        folder.mkdir(parents=True)
    for name, code in {
        "__init__": "",
        "facts": shown("question-files.md", "# my_package/facts.py"),
        "bedrock": CLIENT + shown("judges.md", "# my_package/bedrock.py"),
        "faq": shown("rag-service.md", "# my_package/faq.py"),
        "lines": shown("json-report.md", "# junit_lines.py"),
        "metrics": shown("metrics.md", "# conftest.py"),
    }.items():
        (package / f"{name}.py").write_text(code, encoding="utf-8")
    (german / "__init__.py").touch()
    text = LANGUAGES.read_text(encoding="utf-8")
    for topic, file in re.findall(r"words_of_german/(\w+)\.toml`:\n\n```toml\n(.*?)```", text, re.DOTALL):
        (german / f"{topic}.toml").write_text(file, encoding="utf-8")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")


def test_all_doors_from_another_package(tmp_path: Path) -> None:
    site, project = tmp_path / "site", tmp_path / "project"
    installed(site)
    project.mkdir()
    (project / "test_garantie.py").write_text(TEST, encoding="utf-8")
    (project / "garantie.facts").write_text("Wie lange ist die Garantie? => Zwei Jahre.\n", encoding="utf-8")
    (project / "ragbench.toml").write_text(
        'judge = "bedrock:claude-haiku"\n[rag]\nretriever = "faq:catalogue"\n', encoding="utf-8"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--ragbench-report=lines=out.txt",
    ]
    path = os.pathsep.join([str(site), str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command,
        cwd=project,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "judge bedrock:claude-haiku" in done.stdout
    assert "lines: written" in done.stdout
    lines = (project / "out.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0].endswith("faithfulness 1.0, brevity 1.0")
    assert lines[-1] == "exit code 0"
