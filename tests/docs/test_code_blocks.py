"""What the pages show is run: Python where it stands alone, settings, tests in YAML and commands."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import shlex
import sqlite3
import sys
import textwrap
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pytest_ragbench.judge.reading.fields import VerdictWords
from pytest_ragbench.languages import Language, Script
from pytest_ragbench.options import NOT_SETTINGS, OPTIONS, SHORT_VARIABLES
from pytest_ragbench.settings import Settings
from pytest_ragbench.settings.keys import type_at
from pytest_ragbench.text.splitter import SentenceRules
from tests.house.test_house import ROOMS

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])
FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)

LLM = {"assert_aspect", "assert_rubric"}
"""A block that calls one of these is compiled only: the embedded judge can't do it."""
FILES = {
    "out.json": (ROOT / "tests" / "ground" / "data" / "report-0.1.0.json").read_text(encoding="utf-8"),
    "questions.csv": "question,reference\nHow long is the warranty?,Two years.\n",
}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> Iterator[tuple[int, str]]:
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        if match[2] == language:
            yield text.count("\n", 0, match.start()) + 2, textwrap.dedent(match[3])


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if any(blocks(page, language))]


REFERENCE = {"docs/metrics.md", "docs/question-files.md", "docs/judges.md"}
"""Pages of reference show lines out of a test: imports and samples are those that a test has."""


def names_of_a_test() -> dict[str, object]:
    import pytest_ragbench

    sample = pytest_ragbench.RagSample(
        question="How long is the warranty?",
        answer="Every product has a warranty of two years.",
        contexts=["Every product has a warranty of two years."],
        reference="Every product has a warranty of two years.",
    )
    public = {
        name: getattr(pytest_ragbench, name) for name in dir(pytest_ragbench) if name.startswith("assert_")
    }
    loose = {name: getattr(pytest_ragbench, name) for name in ("score", "load_questions")}
    return {
        "__name__": "page",
        "pytest": pytest,
        "sample": sample,
        "rag_samples": [sample],
        **public,
        **loose,
    }


@pytest.mark.parametrize("page", pages_with("python"), ids=name_of)
def test_python(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_ragbench.metrics import registry

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry._REGISTRY, "_metrics", dict(registry.all_metrics()))
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with sqlite3.connect(tmp_path / "support.db") as connection:
        connection.execute("CREATE TABLE question_answer (id INTEGER PRIMARY KEY, question TEXT, url TEXT)")
        connection.execute("CREATE VIEW log AS SELECT * FROM question_answer")
        connection.execute("INSERT INTO question_answer VALUES (1, 'How long?', 'https://wiki/a')")
    connection.close()
    monkeypatch.setenv("SUPPORT_DB", "sqlite:///support.db")
    module = types.ModuleType("page")  # what a page names by "module:class" is looked up there
    monkeypatch.setitem(sys.modules, "page", module)
    names = vars(module)
    names |= names_of_a_test() if name_of(page) in REFERENCE else {}
    for line, code in blocks(page, "python"):
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        compiled = compile("\n" * (line - 1) + code, str(page), "exec", flags)
        if not LLM & set(compiled.co_names):
            running = eval(compiled, names)
            if inspect.iscoroutine(running):  # it awaits
                asyncio.run(running)


LANGUAGES = ROOT / "docs" / "languages.md"


@pytest.mark.parametrize("page", [page for page in pages_with("toml") if page != LANGUAGES], ids=name_of)
def test_settings(page: Path) -> None:
    for line, text in blocks(page, "toml"):
        table = tomllib.loads(text)
        own = table.get("tool", {}).get("ragbench", table)
        if "project" not in table and "build-system" not in table:
            try:
                Settings.model_validate(own)
            except ValueError as error:
                pytest.fail(f"{page}:{line}: {error}")


def test_files_of_a_language(tmp_path: Path) -> None:
    text = LANGUAGES.read_text(encoding="utf-8")
    for topic, file in re.findall(r"words_of_german/(\w+)\.toml`:\n\n```toml\n(.*?)```", text, re.DOTALL):
        (tmp_path / f"{topic}.toml").write_text(file, encoding="utf-8")
    german = Language("de", tmp_path)
    assert german.rules(Script).name == "German"
    assert "z.b" in german.rules(SentenceRules).before_name
    assert "stimmt nicht" in german.rules(VerdictWords).no


@pytest.mark.parametrize("page", [ROOT / "docs" / "yaml-tests.md"], ids=name_of)
def test_tests_in_yaml(page: Path, tmp_path: Path) -> None:
    from pytest_ragbench.specs.loading import load_suite

    (tmp_path / "questions.csv").write_text("question,tags\nHow long?,catalogue\n")
    found = 0
    for number, (_, text) in enumerate(blocks(page, "yaml")):
        file = tmp_path / f"{number}.rag.yaml"
        file.write_text(text, encoding="utf-8")
        found += len(load_suite(file))
    assert found == 5


OTHERS = {
    "--splits",
    "--group",
    "--splitting-algorithm",
    "--store-durations",
    "--durations-path",
    "--alluredir",
}
"""Options of plugins that pages name and that needn't be installed."""


def command_lines(page: Path) -> Iterator[tuple[int, str]]:
    """What a page tells the reader to type: lines of its blocks and code within its sentences."""
    text = page.read_text(encoding="utf-8").replace("\\\n", "  ")
    spans = [(match.start(), match[1]) for match in re.finditer(r"`([^`\n]+)`", text)]
    for language in ("bash", "console", "yaml", "text"):
        for match in FENCE.finditer(text):
            if match[2] == language:
                spans += [(match.start(), line) for line in match[3].splitlines()]
    for start, line in spans:
        command = re.match(r"\s*(?:- |run: |\$ |[A-Z_]+=\S+ )*((?:pytest|ragbench|python) .+)", line)
        if command:
            yield text.count("\n", 0, start) + 1, re.split(r" [|>#&] |;", command[1])[0]


def flags(words: list[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_are_those_that_there_are(page: Path, pytestconfig: pytest.Config) -> None:
    """Names of commands, scripts and options; nothing is run."""
    from pytest_ragbench.cli import ragbench

    parser = pytestconfig._parser
    of_pytest = {name for group in [*parser._groups, parser._anonymous] for option in group.options
                 for name in option.names()}  # fmt: skip
    for line, text in command_lines(page):
        program, *words = shlex.split(text.replace("'", '"') if text.count("'") == 1 else text)
        known = {"--help", "--version"}
        if program == "pytest":
            known |= of_pytest | OTHERS
        elif program == "ragbench" and words[0].islower() and not words[0].startswith("-"):
            found = ragbench.get_command(click.Context(ragbench), words[0])
            assert found is not None, f"{page}:{line}: no command {words[0]!r}"
            while isinstance(found, click.Group) and len(words) > 1 and words[1] in found.commands:
                found, words = found.commands[words[1]], words[1:]
            known |= {option for each in found.params for option in each.opts}
        elif program == "python" and words[0].endswith(".py") and (ROOT / words[0]).is_file():
            known = set(re.findall(r"--[a-z][\w-]*", (ROOT / words[0]).read_text(encoding="utf-8")))
        elif program == "python":
            assert words[0] in ("-m", "-c"), f"{page}:{line}: no script {words[0]}"
            continue
        unknown = flags(words) - known
        assert not unknown, f"{page}:{line}: {program} has no {', '.join(sorted(unknown))}: {text}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_options_and_variables_are_those_that_there_are(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    options = {option.flag for option in OPTIONS}
    named = set(re.findall(r"--(?:ragbench|rag)-[a-z][a-z-]*[a-z]", text))
    assert named <= options, named - options
    for variable in set(re.findall(r"\bRAGBENCH_[A-Z][A-Z_0-9]*[A-Z0-9]\b", text)):
        path = variable.removeprefix("RAGBENCH_").lower().split("__")
        plain = variable.startswith(NOT_SETTINGS) or variable in SHORT_VARIABLES
        assert plain or type_at(Settings, path) is not None, f"{page}: {variable}"


def test_the_order_of_the_rooms_is_todays() -> None:
    text = (ROOT / "docs" / "internals.md").read_text(encoding="utf-8")
    told = re.findall(r"`(\w+)`", text.partition("In this order;")[2].partition("`tests/house`")[0])
    assert told == [room for room in ROOMS if (ROOT / "pytest_ragbench" / room).is_dir()]


@pytest.mark.parametrize("page", ["start.ru.md", "start.ja.md"])
def test_a_translated_start_page_shows_the_same(page: str) -> None:
    """A translation that is left behind shows here: commands and code, headings, links."""

    def shown(name: str) -> list[object]:
        path = ROOT / "docs" / name
        text = path.read_text(encoding="utf-8")
        code = [
            re.sub(r"[ \t]*#.*| --lang \w+|ask \".*?\"", "", code).rstrip()
            for language in ("bash", "toml", "python")
            for _, code in blocks(path, language)
        ]
        levels = re.findall(r"^#+", FENCE.sub("", text), re.MULTILINE)
        links = re.findall(r"\]\(((?!start|index)[^)]+)\)", text)
        rows = text.count("\n|")
        return [code, levels, links, rows, re.findall(r"`(\w+\.\w+|\w+ = .*?)`", text)]

    assert shown(page) == shown("index.md")
