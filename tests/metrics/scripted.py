"""A scripted judge: a function of chat messages that replies as the test says, task by task."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from pytest_ragbench.languages import known_languages, language

Reply = Any
"""A JSON value, a text as it is, or a function of the user's message; a list: one after the other."""


def verdicts(*values: Any) -> dict[str, Any]:
    """``verdicts(1, 0)``: {"verdicts": {"1": {"verdict": 1}, "2": {"verdict": 0}}}."""
    return {"verdicts": {str(number): {"verdict": value} for number, value in enumerate(values, 1)}}


def claims(*texts: str) -> dict[str, Any]:
    return {"claims": list(texts)}


@cache
def _openings() -> dict[str, list[str]]:
    """Task name -> the first line of its instructions as a pattern, in each language."""
    found = {}
    for file in (files("pytest_ragbench.judge") / "prompts").iterdir():
        name = file.name.removesuffix(".toml")
        if name != "common" and file.name.endswith(".toml"):
            prompts = [language(lang).data(f"prompts/{name}") for lang in known_languages()]
            lines = [prompt["task"].strip().splitlines()[0] for prompt in prompts]
            found[name] = [re.sub(r"\\\{\w+\\\}", ".+", re.escape(line)) for line in lines]
    return found


def task_of(messages: Sequence[Mapping[str, str]]) -> str:
    """Which task the messages ask for."""
    system = messages[0]["content"]
    [name] = [name for name, openings in _openings().items() if any(re.search(o, system) for o in openings)]
    return name


class Scripted:
    """Replies by task; counts what it was asked. A task that the script does not have is an error."""

    def __init__(self, **script: Reply) -> None:
        self.asked: list[str] = []
        self.messages: list[Sequence[Mapping[str, str]]] = []
        self._lock = threading.Lock()
        self._script = {
            name: iter(reply) if isinstance(reply, list) else reply for name, reply in script.items()
        }

    def __call__(self, messages: Sequence[Mapping[str, str]]) -> str:
        with self._lock:
            name = task_of(messages)
            self.asked.append(name)
            self.messages.append(messages)
            reply = self._script[name]
            if isinstance(reply, Iterator):
                reply = next(reply)
        if callable(reply):
            reply = reply(messages[1]["content"])
        return reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)


def split_by(parts: Mapping[str, Sequence[str]]) -> Callable[[str], dict[str, Any]]:
    """Claims by the text that was sent: ``{"a word of the answer": ["claim", ...]}``."""

    def reply(user: str) -> dict[str, Any]:
        [found] = [texts for word, texts in parts.items() if word in user]
        return {"claims": list(found)}

    return reply


def embedder(**cosines: float) -> Callable[[Sequence[str]], list[list[float]]]:
    """Unit vectors with the given cosines to the first text."""

    def embed(texts: Sequence[str]) -> list[list[float]]:
        rows = []
        for place, text in enumerate(texts):
            cosine = 1.0 if place == 0 else cosines[text]
            rows.append([cosine, (1 - cosine**2) ** 0.5])
        return rows

    return embed
