"""From a JSON reply to answer, contexts, ids and scores: by JMESPath, or by the usual names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import jmespath
from jmespath.exceptions import JMESPathError, ParseError, UnknownFunctionError

from pytest_ragbench.clean import one_line
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.scores import plain
from pytest_ragbench.rag.chunks import is_named_for_chunks, items_of, shape_of
from pytest_ragbench.rag.failures import Failure, failure_in, without_status
from pytest_ragbench.rag.names import (
    ANSWERS,
    CONTEXTS,
    IDS,
    SCORES,
    TEXTS,
    URLS,
    WEAK_ANSWERS,
    WRAPPERS,
    get,
    keys_of,
    kind_of,
)
from pytest_ragbench.settings import ReplyMapping
from pytest_ragbench.text import is_blank

T = TypeVar("T")

_DEPTH = 4


class BadReply(Exception):
    """A reply that holds no answer. The message lacks its beginning: the caller adds where the reply came from."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a reply holds. ``None`` means that the reply doesn't say, empty that it says "nothing"."""

    answer: str | None
    contexts: tuple[str, ...] | None = None
    context_ids: tuple[str, ...] | None = None
    context_scores: tuple[float, ...] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    context_urls: tuple[str, ...] | None = None


COLUMNS = ("answer", "contexts", "context_ids", "context_scores", "context_urls")
"""What a reply fills of a sample, beside metadata."""


def found_in(reply: Reply) -> dict[str, Any]:
    """What the reply says, as columns of a sample; what it doesn't say is left to the question."""
    columns = {name: getattr(reply, name) for name in COLUMNS}
    # Ids and scores belong to the contexts beside them: a question's own must not be mixed in.
    own = reply.contexts is not None or reply.context_ids is not None
    found = {
        name: value for name, value in columns.items() if value is not None or (own and name != "answer")
    }
    return {**found, "metadata": reply.metadata}


class ReplyReader:
    """Reads replies by one mapping; its expressions are compiled once.

    Raises
    ------
    UsageError
        Where an expression can't be parsed; names the configuration key.
    """

    def __init__(self, mapping: ReplyMapping | None = None) -> None:
        self._paths = {
            name: (text, compile_path(text, f"rag.reply.{name}"))
            for name, text in (mapping or ReplyMapping())
            if text is not None
        }

    @property
    def names_answer(self) -> bool:
        """Whether the answer's place is configured."""
        return "answer" in self._paths

    def read(self, value: Any) -> Reply:
        """Map one reply (JSON values).

        Raises
        ------
        BadReply
            Where a configured path finds nothing, there is no answer, or something is not a string.
        """
        answer = self._answer(value)
        if "contexts" in self._paths:
            chunks = _chunks(items_of(self._find("contexts", value), _text_of), strict=True)
        else:
            chunks = _usual_chunks(value)
            if chunks == _NO_CHUNKS and "context_ids" not in self._paths:
                _check_scalars(value)
        contexts, ids, scores, urls = chunks
        if "context_ids" in self._paths:
            ids = _ids(self._find("context_ids", value))
        if "context_scores" in self._paths:
            scores = _scores(self._find("context_scores", value))
        if "context_urls" in self._paths:
            urls = _urls(self._find("context_urls", value))
        for name, column in (("context_ids", ids), ("context_scores", scores), ("context_urls", urls)):
            # Ids and scores are matched to contexts by position.
            if column is not None and contexts is not None and len(column) != len(contexts):
                raise BadReply(f"rag.reply.{name} finds {len(column)} entries for {len(contexts)} contexts")
        return Reply(answer, contexts, ids, scores, self._metadata(value), urls)

    def _find(self, name: str, value: Any) -> Any:
        text, path = self._paths[name]
        try:
            found = path.search(value)
        except UnknownFunctionError as error:
            raise UsageError(f"rag.reply.{name} = {text!r}: {error}") from None
        except JMESPathError as error:
            raise BadReply(f"rag.reply.{name} = {text!r} can't be applied: {error}") from None
        if found is None:
            # The service's own error says more than a path that finds nothing.
            problem = reported_error(value)
            says = f"; the service reports an error: {problem}" if problem else ""
            raise BadReply(f"rag.reply.{name} = {text!r} finds nothing; {keys_of(value)}{says}")
        return found

    def _answer(self, value: Any) -> str:
        if self.names_answer:
            found = self._find("answer", value)
            text = _joined_parts(found)
            if text is None:
                where = f"rag.reply.answer = {self._paths['answer'][0]!r}"
                raise BadReply(f"{where} finds {kind_of(found)}, not a string; {keys_of(value)}")
            _check_failure(failure_in(value), text)
            return text
        if isinstance(value, str):
            return value
        if not isinstance(value, Mapping):
            raise BadReply(f"the reply is {kind_of(value)}, not an object; set rag.reply.answer")
        return _usual_answer(value)

    def _metadata(self, value: Any) -> Mapping[str, Any]:
        if "metadata" in self._paths:
            found = plain(self._find("metadata", value))
            return found if isinstance(found, dict) else {"metadata": found}
        found = get(value, "metadata") if isinstance(value, Mapping) else None
        return plain(found) if isinstance(found, Mapping) else {}


# JMESPath wants quotes around names with hyphens or other letters, and brackets around numbers. Users write
# neither, so a path without any of its operators (names of any letters, numbers, [indexes]) is translated.
_NAME = r"""[^\s.\[\](){}|&*@`"'?!<>=,$:]+"""
_SIMPLE = re.compile(rf"\$?\.?(?:{_NAME}|(?=\[))(?:\[-?\d+\])*(?:\.{_NAME}(?:\[-?\d+\])*)*")


def compile_path(text: str, key: str) -> jmespath.parser.ParsedResult:
    """Compile a JMESPath expression, or a plain dotted path such as ``choices.0.messages.-1.content``.

    Raises
    ------
    UsageError
        Naming ``key``.
    """
    try:
        return jmespath.compile(text)
    except JMESPathError as error:
        problem = error if isinstance(error, ParseError) else None
    if _SIMPLE.fullmatch(text):
        return jmespath.compile(_translated(text))
    at = f" at position {problem.lex_position}" if problem is not None else ""
    raise UsageError(
        f"{key} = {text!r} is not a JMESPath expression (error{at}); write result.answer, "
        f"choices[0].message.content or choices.0.message.content"
    )


def _translated(dotted: str) -> str:
    """Numbers become indexes, names are quoted: they may hold hyphens or other letters."""
    path = ""
    for part in dotted.removeprefix("$").strip(".").split("."):
        name, bracket, indexes = part.partition("[")
        if re.fullmatch(r"-?\d+", name):
            path += f"[{name}]"
        elif name:
            path += ("." if path else "") + f'"{name}"'
        path += bracket + indexes
    return path


def _usual_answer(reply: Mapping[str, Any]) -> str:
    failure = failure_in(reply)
    try:
        text = _search(reply, ANSWERS)
    except BadReply:
        if failure is None:
            raise
        text = None
    _check_failure(failure, text)
    if text is None:
        # Only now: such names often hold a status message beside the answer.
        said = _search(reply, WEAK_ANSWERS)
        text = said if said is None else without_status(reply, said)
        if said is not None and text is None:
            raise BadReply(f"no answer, only the message {one_line(said, 200)!r}; {keys_of(reply)}")
    if text is None:
        raise BadReply(f"no answer under a usual name; {keys_of(reply)}. Set rag.reply.answer to its path")
    return text


def _check_failure(failure: Failure | None, text: str | None) -> None:
    """Refuse a reply that says that it failed. An error beside an answer is a part that failed, such as a reranker."""
    if failure is not None and (failure.certain or is_blank(text)):
        raise BadReply(f"the service reports an error: {failure.message}")


def _search(value: Any, names: Sequence[str], depth: int = 0) -> str | None:
    """The first text under one of the names, here or inside the usual wrappers."""
    if not isinstance(value, Mapping) or depth > _DEPTH:
        return None
    for name in names:
        found = get(value, name)
        text = _joined_parts(found)
        if text is not None:
            return text
        if name == "answer" and name in value and (found is None or isinstance(found, (bool, int, float))):
            raise BadReply(f"its answer is {kind_of(found)}, not a string")
    message = _last_message(value)
    if message is not None:
        return message
    inner = (_search(get(value, name), names, depth + 1) for name in (*WRAPPERS, "answer", "message"))
    return next((text for text in inner if text is not None), None)


def _last_message(value: Mapping[str, Any]) -> str | None:
    """The assistant's last message, of OpenAI's ``choices`` or a list of role messages."""
    choices = get(value, "choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        choice = choices[0]
        return _joined_parts(get(choice.get("message"), "content") or choice.get("text")) or _last_message(
            choice
        )
    messages = get(value, "messages")
    if isinstance(messages, list):
        # The whole conversation may be returned; the last assistant message is the answer.
        for message in reversed(messages):
            if (get(message, "role") or get(message, "type")) in ("assistant", "ai"):
                return _joined_parts(get(message, "content"))
    return None


def _joined_parts(value: Any) -> str | None:
    """A string, or a message's content given as a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        texts = [part["text"] for part in value if isinstance(part.get("text"), str) and "type" in part]
        return "".join(texts) if texts else None
    return None


def reported_error(reply: Any) -> str | None:
    """What a reply with status 200 says went wrong, or None."""
    failure = failure_in(reply)
    return None if failure is None else failure.message


class _Chunks(NamedTuple):
    texts: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None
    scores: tuple[float, ...] | None = None
    urls: tuple[str, ...] | None = None


_NO_CHUNKS = _Chunks()
_NESTED = ("metadata", "meta", "node", "document", "payload")
_WEB = re.compile(r"https?://\S+")
_LINK = re.compile(r"https?://\S+|[^\s。、]+\.[A-Za-z0-9]{2,5}")


def _usual_chunks(value: Any, depth: int = 0) -> _Chunks:
    if not isinstance(value, Mapping) or depth > _DEPTH:
        return _NO_CHUNKS
    only_ids = _NO_CHUNKS
    for name in CONTEXTS:
        found = get(value, name)
        # A count under such a name, as in Elasticsearch's hits.total.
        if found is None or isinstance(found, (bool, int, float)):
            continue
        found = items_of(found, _text_of, strings=is_named_for_chunks(name))
        # Lists may be one level further down: {"sources": {"documents": [...]}}.
        if isinstance(found, Mapping) and _text_of(found) is None:
            within = (items_of(get(found, key), _text_of) for key in CONTEXTS)
            listed = next((each for each in within if isinstance(each, list)), None)
            if listed is None:
                # A count, as in {"documents": {"total": 3}}, is not meant to be read.
                if is_named_for_chunks(name) and any(
                    isinstance(each, (str, list, Mapping)) for each in found.values()
                ):
                    raise BadReply(_unreadable(name, found))
                continue
            found = listed
        if isinstance(found, list) and found and all(item is None for item in found):
            raise BadReply(f"its {name}[0] is null, not a chunk; {keys_of(value)}")
        if is_named_for_chunks(name) and isinstance(found, list) and found and not _has_any(found):
            raise BadReply(_unreadable(name, found))
        chunks = _chunks(found, strict=False)
        if chunks.texts is not None:
            return chunks
        only_ids = only_ids if only_ids.ids is not None else chunks
    choices = get(value, "choices")  # of a chat completion: its message may bring them
    message = get(choices[0], "message") if isinstance(choices, list) and choices else None
    for wrapped in (message, *(get(value, name) for name in WRAPPERS)):
        inner = _usual_chunks(wrapped, depth + 1)
        if inner != _NO_CHUNKS:
            return inner
    return only_ids


def _check_scalars(value: Any, depth: int = 0) -> None:
    """Refuse a number or a flag where a list of chunks belongs.

    Only of a reply without any: beside chunks under another name it is their count.
    """
    if not isinstance(value, Mapping) or depth > _DEPTH:
        return
    for name in CONTEXTS:
        found = get(value, name)
        if is_named_for_chunks(name) and isinstance(found, (bool, int, float)):
            raise BadReply(
                f"its {name} can't be read as chunks: {shape_of(found)}; set rag.reply.contexts to the texts, "
                "or to '`[]`' where the service gives none"
            )
    choices = get(value, "choices")
    message = get(choices[0], "message") if isinstance(choices, list) and choices else None
    for wrapped in (message, *(get(value, name) for name in WRAPPERS)):
        _check_scalars(wrapped, depth + 1)


def _has_any(items: Sequence[Any]) -> bool:
    """Whether one of the items has text, or an id to know it by."""
    return any(_text_of(item) is not None or _one_id(item) is not None for item in items)


def _unreadable(name: str, found: Any) -> str:
    return f"its {name} can't be read as chunks: {shape_of(found)}; set rag.reply.contexts to the texts"


def _chunks(found: Any, *, strict: bool) -> _Chunks:
    """Texts, ids and scores of retrieved chunks.

    ``strict``: their path is configured, so each must have text. Otherwise links, titles and file
    names don't count as chunks, and only their ids are taken.
    """
    items = found if isinstance(found, (list, tuple)) else [found]
    texts = [_text_of(item) for item in items]
    if not strict and items:
        if all(text is None for text in texts):
            return _Chunks(ids=_ids_of(items), urls=_urls_of(items))
        if all(isinstance(item, str) and _LINK.fullmatch(item) for item in items):
            return _Chunks(ids=tuple(items), urls=_urls_of(items))
    for number, (item, text) in enumerate(zip(items, texts, strict=True)):
        if text is None:
            has = keys_of(item) if isinstance(item, Mapping) else f"it is {shape_of(item)}"
            raise BadReply(f"contexts[{number}] has no text: {has}; set rag.reply.contexts to the texts")
    found = tuple(text for text in texts if text is not None)
    return _Chunks(found, _ids_of(items), _scores_of(items), _urls_of(items))


def _text_of(item: Any, depth: int = 0) -> str | None:
    if isinstance(item, str):
        return item
    if not isinstance(item, Mapping) or depth > 2:
        return None
    for name in TEXTS:
        text = _text_of(get(item, name), depth + 1)
        if text is not None:
            return text
    return None


def _one_id(item: Any, depth: int = 0) -> str | None:
    if not isinstance(item, Mapping) or depth > 2:
        return None
    for name in IDS:
        found = get(item, name)
        # JSON numbers are ids as well, true and false are not.
        if isinstance(found, (str, int)) and not isinstance(found, bool) and found != "":
            return str(found)
    for name in _NESTED:
        inner = _one_id(get(item, name), depth + 1)
        if inner is not None:
            return inner
    return None


def _ids_of(items: Sequence[Any]) -> tuple[str, ...] | None:
    return _all_of(map(_one_id, items))


def _scores_of(items: Sequence[Any]) -> tuple[float, ...] | None:
    return _all_of(_number(_first(item, SCORES)) for item in items)


def _all_of(values: Iterable[T | None]) -> tuple[T, ...] | None:
    """None where there are no values, or one is missing: they are matched to chunks by position."""
    every = list(values)
    found = tuple(value for value in every if value is not None)
    return found if found and len(found) == len(every) else None


def _one_url(item: Any, depth: int = 0) -> str:
    """Where a chunk comes from; ``""`` where it doesn't say."""
    if isinstance(item, str) and depth == 0:
        return item if _WEB.fullmatch(item) else ""
    if not isinstance(item, Mapping) or depth > 2:
        return ""
    for name in URLS:
        found = get(item, name)
        if isinstance(found, str) and found.strip():
            return found
    for name in IDS:
        found = get(item, name)
        if isinstance(found, str) and _WEB.fullmatch(found):
            return found
    inner = (_one_url(get(item, name), depth + 1) for name in _NESTED)
    return next((url for url in inner if url), "")


def _urls_of(items: Sequence[Any]) -> tuple[str, ...] | None:
    """None where no chunk names its document."""
    found = tuple(_one_url(item) for item in items)
    return found if any(found) or not items else None


def _urls(found: Any) -> tuple[str, ...]:
    if not isinstance(found, list):
        raise BadReply(f"rag.reply.context_urls finds {kind_of(found)}, not a list")
    urls = [item if isinstance(item, str) or item is None else _one_url(item) for item in found]
    return tuple(url or "" for url in urls)


def _first(item: Any, names: Sequence[str]) -> Any:
    return next((value for name in names if (value := get(item, name)) is not None), None)


def _ids(found: Any) -> tuple[str, ...]:
    if not isinstance(found, list):
        raise BadReply(f"rag.reply.context_ids finds {kind_of(found)}, not a list")
    keys = []
    for number, item in enumerate(found):
        key = _one_id(item) if isinstance(item, Mapping) else item
        if isinstance(key, bool) or not isinstance(key, (str, int, float)):
            raise BadReply(f"rag.reply.context_ids[{number}] is {kind_of(item)}, not an id")
        keys.append(str(key))
    return tuple(keys)


def _scores(found: Any) -> tuple[float, ...]:
    numbers = _all_of(map(_number, found)) if isinstance(found, list) else None
    if numbers is None and found != []:
        raise BadReply(f"rag.reply.context_scores finds {str(found)[:80]}, not a list of finite numbers")
    return numbers or ()


def _number(raw: Any) -> float | None:
    if isinstance(raw, bool) or raw is None:
        return None
    try:
        number = float(raw)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
