"""From a ``*.rag.yaml`` file to cases, every error with its file and line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from pytest_ragbench.assertions.expectations import Expectations
from pytest_ragbench.extensions import did_you_mean
from pytest_ragbench.metrics.options import OptionError
from pytest_ragbench.model.errors import QuestionFileError, UsageError
from pytest_ragbench.model.samples import Location, Question, RagSample
from pytest_ragbench.questions import ids
from pytest_ragbench.questions.files import shown_name
from pytest_ragbench.questions.loader import load_questions
from pytest_ragbench.questions.mapping import questions_from_rows
from pytest_ragbench.questions.readers.sql import seen_from
from pytest_ragbench.questions.readers.yaml_nodes import NodeBuilder, compose, cure_of, line_of
from pytest_ragbench.questions.rows import Problems, Row, Source, Unreadable
from pytest_ragbench.scoring import Wanted
from pytest_ragbench.specs.limits import Limit, checked, limits
from pytest_ragbench.specs.model import Expected, QuestionsFile, Suite, Test
from pytest_ragbench.specs.promptfoo import from_promptfoo

if TYPE_CHECKING:
    import yaml

_EXPECTED: TypeAdapter[tuple[Expectations, ...]] = TypeAdapter(Expected)


@dataclass(frozen=True)
class Case:
    """One test of the file, everything checked.

    ``retrievers`` and ``judges`` are specs by name; empty: the fixture of that name.
    """

    name: str
    line: int
    questions: tuple[Question, ...] | None
    test: Test
    retrievers: Mapping[str, Any] = field(default_factory=dict)
    judges: Mapping[str, str] = field(default_factory=dict)
    expected: Mapping[str, tuple[Expectations, ...]] = field(default_factory=dict)
    """By question id, what its own ``expect`` adds."""
    limits: Mapping[str, tuple[Limit, ...]] = field(default_factory=dict)
    """By question id, its own thresholds with options."""

    def expectations(self, question_id: str | None) -> tuple[Expectations, ...]:
        """What this question's answer must be like."""
        return (*self.test.expect, *self.expected.get(question_id or "", ()))

    def declines(self, question: Question | RagSample) -> bool:
        """Whether the right answer to a question is that there is none."""
        said = [part.abstains for part in self.expectations(question.id) if part.abstains is not None]
        return said[-1] if said else question.should_abstain

    def wanted(self, question: Question | RagSample) -> list[Wanted]:
        """The metrics that are asserted of its answer; a question's own threshold wins over the test's.

        Of a question that should not be answered, only what it names itself, and abstention: a refusal is neither
        faithful nor relevant.
        """
        own = {limit.key: limit for limit in self.limits.get(question.id or "", ())}
        plain = {name: Limit(name, threshold) for name, threshold in question.thresholds.items()}
        shared = [
            replace(limit, threshold=plain.pop(limit.metric).threshold) if limit.metric in plain else limit
            for limit in self.test.thresholds
            if limit.key not in own
            and (not self.declines(question) or limit.metric == "abstention" or limit.metric in plain)
        ]
        return [limit.wanted() for limit in (*shared, *own.values(), *plain.values())]

    @property
    def asserts_latency(self) -> bool:
        """Whether an expectation is about how long an answer takes."""
        given = [*self.test.expect, *(each for several in self.expected.values() for each in several)]
        return any(each.max_latency is not None or each.max_first_token is not None for each in given)


def load_suite(path: Path) -> list[Case]:
    """The tests of a file.

    Raises
    ------
    UsageError
        Naming file and line of everything that is wrong, up to ten at once.
    """
    return _Loader(path).cases()


class _Loader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems = Problems()
        self.source = Source(path, shown_name(path), problems=self.problems)

    def cases(self) -> list[Case]:
        try:
            self.root = self._root()
            # Aliases may multiply what is written; no honest file has this many more nodes than characters.
            builder = _TypedBuilder(self.source, limit=200_000 + self.path.stat().st_size)
            self.data = builder.value(self.root)
        except Unreadable:
            self.problems.raise_any()
        except OSError as error:
            raise UsageError(f"{self.source.name}: can't be read: {error.strerror}") from None
        self.problems.raise_any()
        suite = self._suite()
        found = [self._case(suite, test, place) for place, test in enumerate(suite.cases(self._stem()))]
        self._check_names(found)
        self.problems.raise_any()
        return found

    def _stem(self) -> str:
        return re.sub(r"\.rag\.ya?ml$", "", self.path.name)

    def _root(self) -> yaml.MappingNode:
        import yaml

        root = compose(self.source.text(), self.source)
        if not isinstance(root, yaml.MappingNode):
            self.source.stop(
                line_of(root) if root is not None else 0,
                "wanted a mapping with 'questions' or 'tests', as in docs/yaml-tests.md",
            )
        return root

    def line(self, *path: str | int) -> int:
        """The line of what a path leads to, or of as much of it as there is."""
        import yaml

        node: yaml.Node = self.root
        line = line_of(node)
        for part in path:
            if isinstance(node, yaml.MappingNode):
                found = next(((key, value) for key, value in node.value if key.value == str(part)), None)
                if found is None:
                    continue  # a part of a name that pydantic adds
                line, node = line_of(found[0]), found[1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                node = node.value[part]
                line = line_of(node)
        return line

    def _here(self, *path: str | int) -> Location:
        return Location(self.source.name, self.line(*path))

    def _place_of(self, question: Question, *_: str) -> Location:
        """Where a question is written: in this file, or in one of its own."""
        return question.location or Location(self.source.name)

    def report(self, path: Sequence[str | int], message: str) -> None:
        self.source.report(self.line(*path), message)

    def _report_all(self, error: ValidationError, path: tuple[str | int, ...] = ()) -> None:
        for problem in error.errors():
            self.report((*path, *problem["loc"]), _message(problem))

    def _suite(self) -> Suite:
        try:
            suite = Suite.model_validate(self.data, context={"folder": self.path.parent})
        except ValidationError as error:
            self._report_all(error)
            self.problems.raise_any()
            raise
        # With a list of tests, nobody could tell whether such a key is for all of them.
        short = sorted(suite.model_fields_set & (set(Test.model_fields) - {"retrievers", "judges"}))
        if suite.tests is not None and short:
            self.report(short[:1], f"{short[0]!r} beside 'tests': write it into 'defaults', or into a test")
        if suite.tests == ():
            self.report(["tests"], "the list is empty: no tests")
        self.problems.raise_any()
        return suite

    def _case(self, suite: Suite, test: Test, place: int) -> Case:
        where: tuple[str | int, ...] = ("tests", place) if suite.tests is not None else ()
        self._own_limits: dict[str, tuple[Limit, ...]] = {}
        questions, expected = self._questions(test, (*where, "questions"))
        for kind in ("thresholds", "over"):
            checked = [self._checked(limit, where, kind) for limit in getattr(test, kind)]
            test = test.model_copy(update={kind: tuple(checked)})
        for question in questions or ():
            for name, threshold in question.thresholds.items():
                self._check_limit(Limit(name, threshold), partial(self._place_of, question), over=False)
        own = bool(expected or self._own_limits) or any(
            question.thresholds or question.should_abstain for question in questions or ()
        )
        if not (test.thresholds or test.over or test.expect or own):
            self.report(where, f"test {test.name!r} asserts nothing: give it thresholds, over or expect")
        retrievers = self._chosen(
            suite.retrievers, test.retriever, test.retrievers, (*where, "retriever"), "retriever"
        )
        judges = self._chosen(suite.judges, test.judge, test.judges, (*where, "judge"), "judge")
        return Case(
            str(test.name), self.line(*where), tuple(questions) if questions is not None else None,
            test, retrievers, judges, expected, self._own_limits,
        )  # fmt: skip

    def _checked(self, limit: Limit, where: tuple[str | int, ...], kind: str) -> Limit:
        """A limit of a test, or of the defaults."""
        start = ("defaults",) if limit.in_defaults else where
        return self._check_limit(
            limit, lambda *option: self._here(*start, kind, *limit.at, *option), over=kind == "over"
        )

    def _check_limit(self, limit: Limit, place: Callable[..., Location], *, over: bool) -> Limit:
        try:
            return checked(limit, over=over)
        except OptionError as error:
            if error.option:
                self.problems.add(place(error.option), str(error))
            else:
                where = place()
                cure = self._cure_of_block(where.line) if not limit.threshold else ""
                self.problems.add(where, f"threshold of {limit.metric}: {error}{cure}")
        return limit

    def _cure_of_block(self, line: int) -> str:
        """What to do where YAML has taken a threshold for the beginning of a block: ``>1`` is an empty text."""
        written = self.source.text().splitlines()[line - 1 : line]
        return cure_of(written[0]) if written else ""

    def _chosen(
        self, known: Mapping[str, Any], one: Any, many: Sequence[str], path: tuple[str | int, ...], what: str
    ) -> dict[str, Any]:
        for name in many:
            if name not in known:
                listed = ", ".join(known) or "none"
                self.report(
                    (*path[:-1], f"{what}s"), f"there is no {what} {name!r}; the file's {what}s: {listed}"
                )
        if many:
            return {name: known.get(name) for name in many}
        if one is None:
            return {}
        # A retriever that the test spells out has no name, and is the only one.
        return {one: known[one]} if isinstance(one, str) and one in known else {"": one}

    # Questions

    def _questions(
        self, test: Test, path: tuple[str | int, ...]
    ) -> tuple[list[Question] | None, dict[str, tuple[Expectations, ...]]]:
        """None where the test names none: then those of the configuration are asked."""
        given = test.questions
        if given is None:
            return None, {}
        if isinstance(given, (list, tuple)):
            return self._inline(given, path)
        try:
            found = self._from_file(given)
        except ValidationError as error:
            self._report_all(error, path)
            return [], {}
        except UsageError as error:
            self.report(path, str(error))
            return [], {}
        expected = {}
        for question in found:
            # To the readers of question files `expect` is a column like any other.
            if "expect" in question.metadata:
                expected[question.id] = self._expect(question.metadata["expect"], None, question)
            if (asserted := question.metadata.get("assert")) is not None:
                expected[question.id] = (*expected.get(question.id, ()), *self._promptfoo(asserted, question))
        return found, expected

    def _promptfoo(self, asserted: Any, question: Question) -> tuple[Expectations, ...]:
        """What the ``assert`` of a test of promptfoo's expects; its metrics become the question's own."""
        try:
            expected, own = from_promptfoo(asserted)
        except ValueError as error:
            self.problems.add(self._place_of(question), f"question {question.id}: assert: {error}")
            return ()
        place = partial(self._place_of, question)
        if own:
            self._own_limits[question.id] = tuple(self._check_limit(each, place, over=False) for each in own)
        return self._expect(expected, None, question) if expected else ()

    def _from_file(self, given: Any) -> list[Question]:
        spec = QuestionsFile.model_validate(given if isinstance(given, Mapping) else {"file": given})
        found = load_questions(
            seen_from(self.path.parent, spec.file),
            encoding=spec.encoding, delimiter=spec.delimiter, format=spec.format, columns=spec.columns,
            table=spec.table, query=spec.query,
        )  # fmt: skip
        wanted = set(spec.tags)
        chosen = [question for question in found if not wanted or wanted & set(question.tags)]
        if not chosen:
            raise QuestionFileError(f"{found[0].location}: no question here has a tag of {sorted(wanted)}")
        return chosen

    def _inline(
        self, given: Sequence[Any], path: tuple[str | int, ...]
    ) -> tuple[list[Question], dict[str, tuple[Expectations, ...]]]:
        rows: list[Row] = []
        raw: dict[int, tuple[Any, int]] = {}
        limited: dict[int, tuple[Any, int]] = {}
        if not given:
            self.report(path, "the list is empty: no questions")
        for place, item in enumerate(given):
            line = self.line(*path, place)
            cells = dict(item) if isinstance(item, Mapping) else {"question": item}
            # Before the columns are mapped: they know nothing of expectations, and of thresholds no options.
            if "expect" in cells:
                raw[line] = (cells.pop("expect"), place)
            own = cells.get("thresholds")
            if isinstance(own, list) or (isinstance(own, Mapping) and any(map(_is_more, own.values()))):
                limited[line] = (cells.pop("thresholds"), place)
            rows.append(Row(line, cells))
        found = questions_from_rows(rows, self.source)
        expected = {}
        for question in found:
            line = question.location.line if question.location else 0
            if line in raw:
                value, place = raw[line]
                expected[question.id] = self._expect(value, (*path, place, "expect"), question)
            if line in limited:
                value, place = limited[line]
                self._own_limits[question.id] = self._limits(value, (*path, place, "thresholds"))
        return found, expected

    def _limits(self, value: Any, path: tuple[str | int, ...]) -> tuple[Limit, ...]:
        """A question's own thresholds, with options."""
        try:
            own = limits(value)
        except ValueError as error:
            self.report(path, f"thresholds: {error}")
            return ()
        return tuple(
            self._check_limit(limit, lambda *option, at=limit.at: self._here(*path, *at, *option), over=False)
            for limit in own
        )

    def _expect(
        self, value: Any, path: tuple[str | int, ...] | None, question: Question
    ) -> tuple[Expectations, ...]:
        try:
            # A file that a question file names is seen from there.
            home = self.path if path is not None else Path(self._place_of(question).file)
            found = _EXPECTED.validate_python(value, context={"folder": home.parent})
            if path is None and any(part.python for part in found):
                self.problems.add(
                    self._place_of(question),
                    "expect.python: a question file is data, whose code is not run; write it here",
                )
            return found
        except ValidationError as error:
            for problem in error.errors():
                place, *inner = problem["loc"]
                where = (*(path or ()), *([place] if isinstance(value, list) else []), *inner)
                there = self._here(*where) if path is not None else self._place_of(question)
                self.problems.add(there, _message({**problem, "loc": ("expect", *inner)}))
            return ()

    def _check_names(self, found: Sequence[Case]) -> None:
        seen: dict[str, int] = {}
        for case in found:
            # By id: names that differ in punctuation alone become one.
            name = ids.test_id(case.name)
            if name in seen:
                self.source.report(
                    case.line, f"a second test is called {case.name!r}, as that in line {seen[name]}"
                )
            seen[name] = case.line


def _is_more(value: Any) -> bool:
    """Whether a question's threshold has options beside it."""
    return isinstance(value, (Mapping, list))


def _message(problem: Mapping[str, Any]) -> str:
    name = ".".join(part for part in problem["loc"] if isinstance(part, str) and part != "tests")
    if problem["type"] == "extra_forbidden":
        return f"unknown key {str(problem['loc'][-1])!r}{_near(problem['loc'])}"
    # How pydantic begins what a validator raised.
    said = str(problem["msg"]).removeprefix("Value error, ")
    return f"{name}: {said[:1].lower()}{said[1:]}"


def _near(path: Sequence[str | int]) -> str:
    inside = [part for part in path[:-1] if isinstance(part, str)]
    model: Any = Suite if not inside else Test
    if inside and inside[-1] == "expect":
        model = Expectations
    elif inside and inside[-1] == "questions":
        model = QuestionsFile
    return f"; {did_you_mean(str(path[-1]), model.model_fields)}"


_LIMITS = ("thresholds", "over")


class _TypedBuilder(NodeBuilder):
    """Texts as they are written, but options of metrics as YAML means them: ``30`` is a number."""

    def mapping(self, node: yaml.Node) -> dict[str, Any]:
        found = super().mapping(node)
        for key, value in node.value:
            if key.value in _LIMITS:
                found[str(key.value)] = self._limits(value)
        return found

    def _limits(self, node: yaml.Node) -> Any:
        """Metrics with thresholds as they are written and options as YAML means them."""
        import yaml

        if isinstance(node, yaml.SequenceNode):
            return [self._limits(item) for item in node.value]
        if not isinstance(node, yaml.MappingNode):
            return self.value(node)
        found = super().mapping(node)
        for key, value in node.value:
            named = "metric" in found and key.value not in ("metric", "threshold")
            if isinstance(value, yaml.MappingNode) and not named and key.value != "<<":
                typed = self.typed(value)
                kept = {name: part for name, part in self.value(value).items() if name == "threshold"}
                found[str(key.value)] = {**typed, **kept} if isinstance(typed, dict) else typed
            elif named:
                found[str(key.value)] = self.typed(value)
        return found
