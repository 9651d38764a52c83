"""A test written from the steps of a case: who asks, who forks, who waits. A step that can't be read is an error."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.cases.sources import PRELUDE, Files

_WORDS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "eight": 8,
    "ten": 10,
}
_COUNT = rf"(?P<count>\d+|{'|'.join(_WORDS)})"
_TIMES = rf"(?: (?P<times>once|twice|(?:\d+|{'|'.join(_WORDS)}) times|again|too|as well|each))?"
_ASKS = (
    r"(?:ask|score|judge|call|use)s?(?: (?:the )?(?:judge|answer|it|question|another question|a question))*"
)


_HEAD = """
import os
from concurrent.futures import ThreadPoolExecutor


def ask(question):
    return rb.assert_search_rag(SAMPLE.with_(question=question), judge=says(1.0)).value


"""


class Unreadable(Exception):
    """A step that no test can be written from."""


class _Test:
    """The lines of the test; those of the child stand in a branch of their own until it exits."""

    def __init__(self) -> None:
        self.lines: list[str | list[str]] = ["pids = []"]
        self.child: list[str] | None = None
        self.asked = 0

    def ask(self, times: int, where: str) -> None:
        for _ in range(times):
            self.asked += 1
            line = f"assert ask('Question {self.asked}?') == 1.0"
            self.in_child(line) if where == "child" else self.lines.append(line)

    def in_child(self, line: str) -> None:
        if self.child is None:
            raise Unreadable("the child acts before a fork")
        self.child.append(line)

    def fork(self) -> None:
        self.child = []
        self.lines.append(self.child)

    def wait(self) -> None:
        if self.child is None:
            raise Unreadable("nobody was forked")
        self.lines += [
            "assert pids",
            "assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * len(pids)",
            "pids.clear()",
        ]

    def threads(self, count: int) -> None:
        self.asked += 1
        self.lines += [
            f"with ThreadPoolExecutor({count}) as pool:",
            f"    values = list(pool.map(lambda n: ask(f'Thread {{n}} of {self.asked}?'), range({count})))",
            f"assert values == [1.0] * {count}",
        ]

    def text(self) -> str:
        body: list[str] = []
        for line in self.lines:
            if isinstance(line, str):
                body.append(line)
                continue
            body += ["pid = os.fork()", "if pid == 0:", "    code = 1", "    try:"]
            body += [f"        {inner}" for inner in [*line, "code = 0"]]
            body += ["    finally:", "        os._exit(code)", "pids.append(pid)"]
        body += ["assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * len(pids)"]
        return "\n".join(f"    {line}" for line in body)


def from_steps(steps: Sequence[str]) -> Files:
    """One test that does these steps in turn; raises :class:`Unreadable`."""
    test = _Test()
    for step in steps:
        for part in re.split(r";|, then |, and then |, ", str(step).strip().rstrip(".")):
            _add(test, part.strip())
    return {"test_case.py": f"{PRELUDE}{_HEAD}def test_steps():\n{test.text()}\n"}


def _add(test: _Test, part: str) -> None:
    text = part.casefold()
    if match := re.fullmatch(
        rf"(?:the )?(?P<who>parent and (?:the )?child|parent|child|both|test):? {_ASKS}{_TIMES}",
        text,
    ):
        times = _number(match["times"])
        for where in (
            ("parent", "child") if match["who"].startswith(("parent and", "both")) else (match["who"],)
        ):
            test.ask(times, where)
    elif re.fullmatch(
        r"(?:the )?(?:parent |test |it )?(?:calls )?(?:os\.)?forks?(?:\(\))?(?: (?:a|another|the) child)?",
        text,
    ):
        test.fork()
    elif re.fullmatch(
        r"(?:the )?parent (?:waits|joins)(?: for (?:the|each|every) child(?:ren)?)?|wait(?:pid)?", text
    ):
        test.wait()
    elif re.fullmatch(r"(?:the )?child (?:exits|ends)(?: with 0| cleanly)?", text):
        test.in_child("pass")
    elif match := re.fullmatch(rf"{_COUNT} threads? {_ASKS}(?: at once)?", text):
        test.threads(_number(match["count"]))
    else:
        raise Unreadable(f"no test can be written from the step {part!r}")


def _number(text: str | None) -> int:
    if text is None or text in ("again", "too", "as well", "each", "once"):
        return 1
    count = text.split()[0]
    return 2 if text == "twice" else _WORDS.get(count) or int(count)
