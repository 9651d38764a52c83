"""Tasks as chat messages. Prompts are data: one TOML file per task in ``prompts/`` has its version and the form of
the reply, and one in the folder of each language the text.

The texts under judgement stand between markers that they can't contain, and the instructions say that
nothing between the markers is an instruction. The markers are derived from the texts, so that the same
task is always rendered alike (stored replies and recordings match) while the author of one of the texts can't
predict them.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from pytest_ragbench.judge.base import Task
from pytest_ragbench.judge.tasks.numbered import NumberedTask
from pytest_ragbench.languages import DEFAULT, catalog, short_code
from pytest_ragbench.text import is_blank

Message = dict[str, str]
"""``{"role": "system" | "user" | "assistant", "content": text}``"""

_ITEM = {"chunks": "chunk", "claims": "claim", "statements": "statement"}
# Prompts of tasks that are answered in one word are in the directory ``word``.
_WORD = "word_"


def render(task: Task[Any], *, schema_in_prompt: bool = True) -> list[Message]:
    """The messages that ask a chat model to do ``task``.

    Parameters
    ----------
    task
        What to ask; its language picks the prompt's.
    schema_in_prompt
        Describe the form of the reply in words. Costs little, and some services take a schema without
        a word and then ignore it.

    Raises
    ------
    KeyError
        There is no prompt for this kind of task.
    """
    lang = language_of(task)
    prompt, common = _prompt_file(task.name)[lang], _prompt_file("common")[lang]
    data = task.data()
    if task.one_word:
        return _in_a_word(task, prompt, common)
    nonce = nonce_for(data)
    parts = [
        common["role"],
        _filled(common["rules"], {"nonce": nonce}),
        _filled(prompt["task"], task.options()),
        *(prompt[name] for name in task.extras),
    ]
    if isinstance(task, NumberedTask):
        numbers = ", ".join(str(number) for number in task.numbers)
        parts.append(_filled(common["numbers"], {"numbers": numbers}))
    if schema_in_prompt:
        parts.append(f"{common['json'].strip()}\n{_prompt_file(task.name)['form']}")
    return [
        {"role": "system", "content": "\n\n".join(part.strip() for part in parts)},
        {"role": "user", "content": _fenced(data, nonce, common["labels"])},
    ]


def _in_a_word(task: Task[Any], prompt: Mapping[str, Any], common: Mapping[str, Any]) -> list[Message]:
    """A few examples as turns before the question. All but the last message is the same for all tasks of the
    kind, so that services which keep what they have read (llama.cpp, vLLM, OpenAI) read it once.
    """
    shared = _prompt_file("word_common")[language_of(task)]
    labels = {**common["labels"], **shared["labels"]}
    parts = [common["role"], shared["rules"], prompt["task"], shared["reply"]]
    messages = [{"role": "system", "content": "\n\n".join(part.strip() for part in parts)}]

    def ask(data: Mapping[str, Any], nonce: str) -> None:
        content = f"{_fenced(data, nonce, labels)}\n\n{prompt['question'].strip()}"
        messages.append({"role": "user", "content": content})

    for example in prompt["examples"]:
        data = {label: value for label, value in example.items() if label != "reply"}
        ask(data, nonce_for(data))
        messages.append({"role": "assistant", "content": shared[example["reply"]]})
    ask(task.data(), nonce_for(dict(getattr(task, "whole", ())) or task.data()))
    return messages


def correction(task: Task[Any], problem: str) -> Message:
    """The message that asks for a usable reply, saying what was wrong with the last one."""
    text = _filled(_prompt_file("common")[language_of(task)]["correction"], {"problem": problem})
    return {"role": "user", "content": text.strip()}


def prompt_version(task: Task[Any]) -> str:
    """Version and fingerprint of the prompt's text in the task's language: ``"1-0f3a9c27-ru"``."""
    return _version(task.name, language_of(task), bool(task.one_word))


@cache
def _version(name: str, lang: str, one_word: bool) -> str:
    file = _prompt_file(name)
    parts = [file["form"], file[lang], _prompt_file("common")[lang]]
    if one_word:
        parts.append(_prompt_file("word_common")[lang])
    return f"{_fingerprinted(file['version'], parts)}-{lang}"


def _fingerprinted(version: Any, parts: Sequence[Any]) -> str:
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True)
    return f"{version}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def prompt_versions() -> dict[str, str]:
    """Task -> version and fingerprint of its prompt, all languages together: ``"1-0f3a9c27"``."""
    shared = _prompt_file("common")
    folder = files("pytest_ragbench.judge").joinpath("prompts")
    known = [file.name for file in folder.iterdir()]
    known += [f"{_WORD}{file.name}" for file in folder.joinpath("word").iterdir()]
    versions = {}
    for file in sorted(known):
        name, _dot, suffix = file.rpartition(".")
        if suffix != "toml" or name in ("common", "word_common"):
            continue
        parts = [_prompt_file(name), shared]
        if name.startswith(_WORD):
            parts.append(_prompt_file("word_common"))
        versions[name] = _fingerprinted(_prompt_file(name)["version"], parts)
    return versions


def texts_of(data: Mapping[str, Any]) -> list[str]:
    """All the texts of a task's data, lists taken apart."""
    found: list[str] = []
    for value in data.values():
        found.extend([value] if isinstance(value, str) else (str(item) for item in value))
    return found


def nonce_for(data: Mapping[str, Any]) -> str:
    """Eight hexadecimal digits that occur in none of the texts, the same for the same texts."""
    whole = json.dumps({label: _plain(value) for label, value in data.items()}, sort_keys=True)
    # In any case: models read markers as humans do.
    texts = [text.casefold() for text in texts_of(data)]
    counter = 0
    while True:
        nonce = hashlib.sha256(f"{counter}\n{whole}".encode()).hexdigest()[:8]
        if not any(nonce in text for text in texts):
            return nonce
        counter += 1


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else list(value)


def _fenced(data: Mapping[str, Any], nonce: str, labels: Mapping[str, str]) -> str:
    blocks = []
    for label, value in data.items():
        # An empty block would invite the model to comment on it.
        if isinstance(value, str) and is_blank(value):  # a question that nobody gave
            continue
        title = labels.get(label, f"{label}:")
        if isinstance(value, str):
            blocks.append(f"{title}\n{_between(label, value, nonce)}")
        else:
            blocks.append(f"{title}\n{_numbered(_ITEM.get(label, label), value, nonce)}")
    return "\n\n".join(blocks)


def _numbered(label: str, items: Sequence[str] | Iterable[str], nonce: str) -> str:
    # The number stands outside the markers: what an item says can't change it.
    blocks = [f"[{number}]\n{_between(label, item, nonce)}" for number, item in enumerate(items, start=1)]
    return "\n".join(blocks) or "[]"


def _between(label: str, text: str, nonce: str) -> str:
    return f"<{label}-{nonce}>\n{text}\n</{label}-{nonce}>"


def _filled(template: str, values: Mapping[str, Any]) -> str:
    """The template with ``{name}`` replaced; other braces stay as they are."""
    # Not str.format: prompts hold JSON with braces of its own.
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", str(value))
    return template


def language_of(task: Task[Any]) -> str:
    """The sample's language where the prompt has it (``ru`` for ``ru-RU`` too), else the texts', else English."""
    needed = [task.name, "common", *(["word_common"] if task.one_word else [])]
    for lang in (task.language, task.lang):
        short = short_code(lang)
        if all(isinstance(_prompt_file(name).get(short), dict) for name in needed):
            return short
    return DEFAULT


def yes_and_no(lang: str) -> tuple[str, str]:
    """The two words of which a task in one word asks for one; English ones where the language has none."""
    shared = _prompt_file("word_common")
    words = shared.get(short_code(lang)) or shared[DEFAULT]
    return words["yes"], words["no"]


@cache
def _prompt_file(name: str) -> dict[str, Any]:
    """Version and form of a prompt, and by language code what the languages say for it."""
    path = f"word/{name.removeprefix(_WORD)}" if name.startswith(_WORD) else name
    file = files("pytest_ragbench.judge").joinpath(f"prompts/{path}.toml")
    if not (name.isidentifier() and file.is_file()):
        raise KeyError(f"there is no prompt for the task {name!r}")
    prompt = tomllib.loads(file.read_text(encoding="utf-8"))
    texts = {language.code: dict(language.data(f"prompts/{path}")) for language in catalog()}
    return prompt | {code: text for code, text in texts.items() if text}
