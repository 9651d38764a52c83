"""A page, read without a browser; and reports to make pages of."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

from pytest_ragbench.model.report import RunReport
from pytest_ragbench.report.reading import report_from

_OURS = {"script", "style"}


class ReadPage(HTMLParser):
    """The page's visible text, its embedded JSON, and what must not be in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.problems: list[str] = []
        self.blocks: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.policy = ""
        self._visible: list[str] = []
        self._inside: str | None = None
        self.feed(text)
        self.close()
        self._hold_policy()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in (
            "img",
            "iframe",
            "object",
            "embed",
            "link",
            "base",
            "form",
            "svg" if "onload" in given else "-",
        ):
            self.problems.append(f"an element <{tag}>")
        self.problems += [f"<{tag} {name}=...>" for name, _ in attrs if name.startswith("on")]
        for name in ("href", "src", "action"):
            if not (given.get(name) or "#").startswith("#"):
                self.problems.append(f"<{tag} {name}={given[name]!r}>")
        if tag == "meta" and given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given.get("content") or ""
        if tag in _OURS:
            self._inside = "json" if given.get("type") == "application/json" else tag

    def handle_endtag(self, tag: str) -> None:
        if tag in _OURS:
            self._inside = None

    def handle_data(self, data: str) -> None:
        match self._inside:
            case "json":
                self.blocks.append(data)
            case "script":
                self.scripts.append(data)
            case "style":
                self.styles.append(data)
            case _:
                self._visible.append(data)

    def shows(self, text: str) -> bool:
        return text in "".join(self._visible)

    def _hold_policy(self) -> None:
        """The policy names the script and the sheet that are there, and there is one of each."""
        for name, found in (("script-src", self.scripts), ("style-src-elem", self.styles)):
            wanted = [
                f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
                for text in found
            ]
            allowed = re.search(rf"{name} ([^;]*)", self.policy)
            if len(found) != 1 or allowed is None or allowed[1].split() != wanted:
                self.problems.append(f"{name}: {allowed and allowed[1]!r} for {len(found)} elements")
        if "default-src 'none'" not in self.policy:
            self.problems.append(f"the policy is {self.policy!r}")


def a_score(value: float | None, **more: Any) -> dict[str, Any]:
    fields = {"metric": "faithfulness", "tier": "generation", "sample": 0, "value": value, "threshold": ">=0.8",
              "passed": None if value is None else value >= 0.8, "judge": "local"}  # fmt: skip
    return {**fields, **more}


def a_result(
    name: str, value: float | None = 0.5, *, scores: list[Any] | None = None, **sample: Any
) -> dict[str, Any]:
    passed = value is not None and value >= 0.8
    return {
        "test": f"test_a.py::test_answer[{name}]",
        "outcome": "passed" if passed else "failed",
        "kind": None if passed else "quality",
        "message": None if passed else f"faithfulness {value}, wanted >=0.8: the number 13 is in no chunk",
        "question_id": name,
        "samples": [
            {"id": name, "question": f"What is {name}?", "answer": "It is 13. It is blue.", **sample}
        ],
        "scores": [a_score(value)] if scores is None else scores,
    }


def a_report(results: list[dict[str, Any]], **more: Any) -> RunReport:
    run = {"id": "0123456789abcdef", "started": 1_780_000_000.0, **more.pop("run", {})}
    whole = {"schema": "ragbench-report", "version": 1, "run": run, "complete": True, "exit_code": 1}
    return report_from({**whole, "results": results, **more})
