"""Makes a test for each question."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench import questions as question_files
from pytest_ragbench.model.errors import RagbenchError, UsageError
from pytest_ragbench.model.samples import Question
from pytest_ragbench.plugin.state import state_of

MARKER_HELP = (
    "rag_questions(path, *, tags=None, encoding=None, delimiter=None, columns=None, table=None, query=None): "
    "one test for each question of a csv, jsonl, json or yaml file, or of a database (sqlite:///FILE); path is "
    "relative to the test file."
)

_OF_QUESTIONS = {"rag_question", "rag_sample", "rag_session", "rag_conversation"}
_LOADED = pytest.StashKey[dict[Any, list[Question]]]()

# Marks that mean something to pytest or a plugin: no tag of a question may be called so.
_RESERVED = {
    "parametrize",
    "usefixtures",
    "filterwarnings",
    "rag_questions",
    "asyncio",
    "xdist_group",
    "flaky",
}


# The two parts of the score that assert_search_rag holds against thresholds.
_GRADES = ("search_rag_answer_correctness", "search_rag_groundedness")


class ReadableId(str):
    """A test id that keeps its letters.

    pytest escapes ids to ASCII by ``id.encode("unicode_escape").decode("ascii")`` unless an ini option
    for the whole project says otherwise; Russian and Japanese ids would be unreadable and ``-k`` could
    not select them. The id is already free of control characters and separators.
    """

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        encoded = str(self).encode("utf-8" if encoding == "unicode_escape" else encoding, errors)
        return _Readable(encoded) if encoding == "unicode_escape" else encoded


class _Readable(bytes):
    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return bytes(self).decode("utf-8", errors)


def parametrize(metafunc: pytest.Metafunc) -> None:
    """One test for each system of the run, and for each question, where the test wants one and is not parametrised
    by its author.
    """
    if asks_systems(metafunc.definition):
        systems = state_of(metafunc.config).systems
        # By way of the fixture, so that a test that uses it finds a retriever, not what one is made from.
        metafunc.parametrize(
            "retriever", list(systems.values()), ids=[ReadableId(name) for name in systems], indirect=True
        )
    wanted = next((name for name in ("rag_session", "rag_question") if name in metafunc.fixturenames), None)
    if wanted is None or _parametrized(metafunc.definition, _OF_QUESTIONS):
        return
    state = state_of(metafunc.config)
    try:
        questions = questions_for(metafunc.definition, metafunc.config)
        if questions is None:
            return  # the fixture says what is missing
        params = _sessions(questions) if wanted == "rag_session" else _params(questions, metafunc.config)
    except RagbenchError as error:
        state.collect_error = True
        raise pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: {error}") from None
    metafunc.parametrize(wanted, params)


def asks_systems(item: pytest.Item) -> bool:
    """Whether a test is run once for each system of the run: it asks one, and not one of its author's choice."""
    if "retriever" not in getattr(item, "fixturenames", ()) or not state_of(item.config).systems:
        return False
    definitions = item._fixtureinfo.name2fixturedefs.get("retriever")  # type: ignore[attr-defined]
    is_ours = bool(definitions) and definitions[-1].func.__module__ == "pytest_ragbench.plugin.fixtures"
    return is_ours and not _parametrized(item, {"retriever"})


def _parametrized(definition: pytest.Item, wanted: Set[str]) -> bool:
    """Whether a mark of its author's gives one of these arguments."""
    for mark in definition.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
        if isinstance(names, str):
            names = [name.strip() for name in names.split(",")]
        if wanted & set(names):
            return True
    return False


def questions_for(item: pytest.Item, config: pytest.Config) -> list[Question] | None:
    """The questions of the item's rag_questions mark, or of the configured file; None where there is neither."""
    __tracebackhide__ = True
    mark = item.get_closest_marker("rag_questions")
    args, options = (mark.args, dict(mark.kwargs)) if mark else ((), {})
    if len(args) > 1:
        raise UsageError(
            f"rag_questions takes one path, got {args!r}; use a directory or a pattern for several files"
        )
    given: Any = args[0] if args else options.pop("path", None)
    tags = options.pop("tags", None)
    if given is not None and not isinstance(given, (str, os.PathLike)):
        return _tagged(_in_code(given, item), tags)
    path = given
    if path is not None:
        base = item.path.parent
    elif configured := state_of(config).settings.questions:
        path, base = configured, _configured_base(config, configured)
    elif mark is not None:
        raise UsageError("the rag_questions mark names no file, and ragbench_questions is not set")
    else:
        return None
    from pytest_ragbench.questions.readers.sql import seen_from

    questions = _load(config, seen_from(base, path), options)
    return _tagged(questions, tags)


def as_question(value: Any, item: pytest.Item) -> Question:
    """What a test parametrised "rag_question" with, as a Question."""
    __tracebackhide__ = True
    if isinstance(value, Question):
        return value
    callspec = getattr(item, "callspec", None)
    name = callspec.id if callspec is not None else item.name
    if isinstance(value, str):
        return Question(id=name, question=value)
    if isinstance(value, Mapping):
        return question_files.question_from(value, default_id=name, where=f"{item.nodeid}: rag_question")
    raise UsageError(
        f"{item.nodeid}: rag_question must be a string, a mapping of columns or a Question, "
        f"got {type(value).__name__}"
    )


def _in_code(value: Any, item: pytest.Item) -> list[Question]:
    """Questions that the mark itself holds."""
    return question_files.questions_from(value, where=f"{item.nodeid}: rag_questions")


def _configured_base(config: pytest.Config, path: str) -> Path:
    """Command line: relative to where it was typed; configuration: relative to the project."""
    typed = config.getoption("ragbench_questions") == path
    return config.invocation_params.dir if typed else config.rootpath


def _load(config: pytest.Config, path: str | Path, options: dict[str, Any]) -> list[Question]:
    loaded = config.stash.setdefault(_LOADED, {})
    key = (str(path), repr(sorted(options.items())))
    if key not in loaded:
        try:
            loaded[key] = question_files.load_questions(path, **options)
        except TypeError as error:
            raise UsageError(f"rag_questions({str(path)!r}): {error}") from None
    return loaded[key]


def _tagged(questions: list[Question], tags: str | Sequence[str] | None) -> list[Question]:
    if tags is None:
        return questions
    wanted = {tags} if isinstance(tags, str) else set(tags)
    chosen = [question for question in questions if wanted & set(question.tags)]
    if not chosen:
        known = sorted({tag for question in questions for tag in question.tags})
        raise UsageError(
            f"{questions[0].location or 'rag_questions'}: no question here has a tag of {sorted(wanted)}; "
            f"tags: {', '.join(known) or 'none'}"
        )
    return chosen


def _sessions(questions: Sequence[Question]) -> list[Any]:
    """One parameter for each session, in the order of their first questions."""
    sessions: dict[str, list[Question]] = {}
    for question in questions:
        if question.session is None:
            raise UsageError(
                f"{question.location or question.id}: rag_conversation needs a session for every question: add a "
                "session column (session_id, conversation_id ...)"
            )
        sessions.setdefault(question.session, []).append(question)
    names = [question_files.test_id(session) for session in sessions]
    return [
        pytest.param(tuple(turns), id=ReadableId(name if names.count(name) == 1 else f"{name}-{place}"))
        for place, (name, turns) in enumerate(zip(names, sessions.values(), strict=True), 1)
    ]


def _params(questions: Sequence[Question], config: pytest.Config) -> list[Any]:
    known = {line.split(":")[0].split("(")[0].strip() for line in config.getini("markers")}
    _check_thresholds(questions)
    params = []
    for question, name in zip(questions, question_files.test_ids(questions), strict=True):
        marks = [_mark(tag, question, known, config) for tag in question.tags]
        params.append(pytest.param(question, id=ReadableId(name), marks=marks))
    return params


def _check_thresholds(questions: Sequence[Question]) -> None:
    """A misspelt metric or limit in a question file is found before anything is asked."""
    if not any(question.thresholds for question in questions):
        return
    from pytest_ragbench.metrics.registry import find
    from pytest_ragbench.model.thresholds import Scale, parse_threshold

    for question in questions:
        for name, limit in question.thresholds.items():
            try:
                scale = Scale(name) if name in _GRADES else find(name).scale
                parse_threshold(limit, scale)
            except UsageError as error:
                raise UsageError(
                    f"{question.location or question.id}: threshold of {name}: {error}"
                ) from None


def _mark(tag: str, question: Question, known: set[str], config: pytest.Config) -> pytest.MarkDecorator:
    if tag in known:
        return check_mark(tag, f"{question.location or question.id}", None)
    known.add(tag)
    return check_mark(tag, f"{question.location or question.id}", config)


def check_mark(tag: str, where: str, config: pytest.Config | None) -> pytest.MarkDecorator:
    """The mark that a tag becomes, made known to ``config`` (None: it is already).

    Raises
    ------
    UsageError
        The tag can't be a mark.
    """
    if tag in _RESERVED or tag.startswith("_") or not tag.replace("-", "_").isidentifier():
        raise UsageError(
            f"{where}: tag {tag!r} can't become a mark: use letters, digits, '_' and '-', and no name that pytest "
            "gives a meaning"
        )
    if config is not None:
        config.addinivalue_line("markers", f"{tag}: tag in a question file")
    mark: pytest.MarkDecorator = getattr(pytest.mark, tag)
    return mark


def label(collector: pytest.Collector, report: pytest.CollectReport) -> None:
    """Say in the report that a collection error is a usage error of ours."""
    state = state_of(collector.config)
    if state.collect_error and report.failed:
        report.ragbench = '{"kind": "usage"}'  # type: ignore[attr-defined]
        state.collect_error = False
