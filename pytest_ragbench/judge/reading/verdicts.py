"""Reading what a judge sent: the one JSON object that is its verdict, or an error. Never a guess.

What is read: an object alone, in a code fence, between sentences (which may hold braces of their own),
after a reasoning block, inside one wrapping key, or sent as a JSON string; line breaks inside its
texts may be raw. What is refused: everything that is not JSON (comments, trailing commas, single
quotes, NaN), a key given twice, a reply that was cut, and a reply in which two objects could be the
verdict. Nothing is repaired: a repaired fragment is a verdict that the judge did not give.

The text under judgement can hold a forged verdict that a judge then quotes. An object that says what
such a verdict says is therefore never preferred to another, and never taken out of prose; see
:mod:`~pytest_ragbench.judge.reading.quotes`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from pytest_ragbench.clean import one_line
from pytest_ragbench.judge.completions import RawReply
from pytest_ragbench.judge.reading.endings import check_end
from pytest_ragbench.judge.reading.quotes import Quotes, canonical
from pytest_ragbench.judge.reading.strict_json import DECODER, Object, UnreadableReply, check_values


def read_reply(
    content: str | None,
    *,
    finish_reason: str | None = None,
    refusal: str | None = None,
    thought_in: str | None = None,
    error: str | None = None,
    expected: Collection[str] = (),
    known: Collection[str] = (),
    quoted: Sequence[str] = (),
) -> dict[str, Any]:
    """The verdict object in a reply.

    Parameters
    ----------
    content
        The text of the reply.
    finish_reason, refusal, thought_in, error
        What the provider says of it (:class:`~pytest_ragbench.judge.completions.RawReply`). A reply that was cut
        at the token limit is refused even where what arrived looks whole.
    expected
        Keys that the object must have.
    known
        All keys that it may have.
    quoted
        The texts under judgement, which a reply may quote.

    Raises
    ------
    UnreadableReply
        Saying which kind it is, and naming the key where there is one.
    """
    raw: RawReply = {"content": content, "finish_reason": finish_reason, "refusal": refusal}
    if thought_in:
        raw["thought_in"] = thought_in
    if error:
        raw["error"] = error
    check_end(raw)
    text = (content or "").lstrip("\ufeff").strip()
    if not text:
        raise UnreadableReply("empty", "the reply is empty")
    unwrapped = _unwrapped_string(text)
    try:
        return _Reading(unwrapped, tuple(expected), Quotes(quoted, tuple(expected), known)).verdict()
    except RecursionError:
        raise UnreadableReply("not_json", "the JSON of the reply is nested too deeply") from None


def _unwrapped_string(text: str) -> str:
    """The text inside, where the whole reply is one JSON string."""
    if text.startswith('"'):
        try:
            inner = json.loads(text, strict=False)
        except ValueError:
            return text
        if isinstance(inner, str) and "{" in inner:
            return inner
    return text


_OPENING = re.compile(r"\{\s*[\"}]")
_MAX_BROKEN_OBJECTS = 300  # broken objects that are searched through; a judge's reply has one or two


# Reasoning blocks

_TAG_NAMES = "think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad|internal|monologue"
_TAG = re.compile(
    rf"<\|?\s*(?P<close>/?)\s*(?:\w+:)?(?:{_TAG_NAMES})\b[^<>{{}}]*>"
    r"|\[(?P<close2>/?)(?:THINK|THINKING|REASONING)\]"
    r"|◁(?P<close3>/?)think(?:ing)?▷"
    r"|<\|begin_of_thought\|>|(?P<close4><\|end_of_thought\|>)"
    r"|(?P<close5><\|channel\|>\s*final\s*(?:<\|message\|>)?)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    value: Any


@dataclass(frozen=True, slots=True)
class _Verdict:
    """An object with the keys of a verdict, and the whole object that it was wrapped in."""

    start: int
    end: int
    value: Any
    whole: Any


@dataclass(frozen=True, slots=True)
class _Fragment:
    """An opening brace followed by an expected key, where no JSON object starts."""

    start: int
    problem: str


@cache
def _key_start(expected: tuple[str, ...]) -> re.Pattern[str]:
    keys = "|".join(re.escape(key) for key in expected) or r"\w+"
    return re.compile(rf"\{{\s*[\"'“”„«`]?\s*(?:{keys})\s*[\"'“”»`]?\s*:")


class _Reading:
    """One reply, taken apart."""

    def __init__(self, text: str, expected: tuple[str, ...], quotes: Quotes) -> None:
        self.text = text
        self.expected = expected
        self._quotes = quotes
        self.key_start = _key_start(expected)
        self.objects: list[_Span] = []
        self.fragments: list[_Fragment] = []
        self._scan()
        self.reasoning = list(self._reasoning())

    def _scan(self) -> None:
        """All JSON objects that stand on their own, left to right.

        An unclosed one ends nowhere: the search goes on behind its brace.
        """
        failures = 0
        position = self.text.find("{")
        while position >= 0:
            end = position + 1
            if _OPENING.match(self.text, position) or self.key_start.match(self.text, position):
                try:
                    value, end = DECODER.raw_decode(self.text, position)
                    self.objects.append(_Span(position, end, value))
                except ValueError as error:
                    failures += 1
                    if self.key_start.match(self.text, position):
                        self.fragments.append(_Fragment(position, self._problem(error)))
            if failures > _MAX_BROKEN_OBJECTS:
                raise UnreadableReply(
                    "not_json", "the reply is not valid JSON: it holds too many broken objects"
                )
            position = self.text.find("{", end)

    def _problem(self, error: Exception) -> str:
        if not isinstance(error, json.JSONDecodeError):
            return str(error)
        around = self.text[max(0, error.pos - 40) : error.pos + 20]
        return f"{error.msg} near {one_line(around, 120)!r}"

    def _reasoning(self) -> Iterator[tuple[int, int]]:
        """Spans of reasoning, which is not part of the reply.

        A closing tag without an opening one means that all before it was thought; an opening one that
        is never closed, that all after it is.
        """
        opened: int | None = None
        for tag in _TAG.finditer(self.text):
            if any(span.start < tag.start() < span.end for span in self.objects):
                continue  # inside a string of the verdict
            closes = any(tag.group(name) for name in ("close", "close2", "close3", "close4", "close5"))
            if not closes:
                opened = tag.start() if opened is None else opened
            else:
                yield (0 if opened is None else opened, tag.end())
                opened = None
        if opened is not None:
            yield (opened, len(self.text))

    def _is_thought(self, position: int) -> bool:
        return any(start <= position < end for start, end in self.reasoning)

    def _has_keys(self, value: Any) -> bool:
        return isinstance(value, dict) and all(key in value for key in self.expected)

    def _may_be_quoted(self, span: _Verdict) -> bool:
        return self._quotes.has_spelt(self.text[span.start : span.end]) or self._quotes.may_hold(span.value)

    def _is_quoted(self, span: _Verdict) -> bool:
        return self._quotes.has_spelt(self.text[span.start : span.end]) or self._quotes.holds(span.value)

    def verdict(self) -> dict[str, Any]:
        said = [span for span in self.objects if not self._is_thought(span.start)]
        candidates = [
            _Verdict(span.start, span.end, inner, span.value)
            for span in said
            if self._has_keys(inner := _unwrapped(span.value, self._has_keys))
        ]
        if not candidates:
            raise self._nothing(said)
        chosen = self._chosen(candidates)
        self._check_fragments(chosen)
        check_values(chosen.whole)
        return dict(json.loads(json.dumps(chosen.value)))  # plain dicts

    def _chosen(self, candidates: list[_Verdict]) -> _Verdict:
        if len(candidates) == 1 and (candidates[0].start, candidates[0].end) == (0, len(self.text)):
            return candidates[0]  # the whole reply: whatever it quotes, the judge said nothing else
        # A reply that repeats its verdict has still one verdict.
        by_value = {_canonical(span.value): span for span in candidates}
        if len(by_value) == 1:
            only = candidates[-1]
            if not self._stands_alone(candidates) and self._may_be_quoted(only):
                raise UnreadableReply(
                    "ambiguous",
                    "ambiguous: the only JSON object in the reply is quoted from the text under judgement",
                )
            return only
        # What also stands in the text under judgement was probably quoted, and may have been planted there.
        own = [span for span in by_value.values() if not self._is_quoted(span)]
        if len(own) != 1 or self._may_be_quoted(own[0]):
            raise UnreadableReply(
                "ambiguous", f"ambiguous: the reply holds several verdicts ({len(by_value)} JSON objects)"
            )
        return own[0]

    def _stands_alone(self, candidates: list[_Verdict]) -> bool:
        """Whether nothing stands beside the object but reasoning, which considers no other verdict."""
        thought = [span for span in self.objects if self._is_thought(span.start)]
        value = _canonical(candidates[0].value)
        if any(self._has_keys(span.value) and _canonical(span.value) != value for span in thought):
            return False
        edges = [*self.reasoning, *((span.start, span.end) for span in candidates)]
        edges = [(0, 0), *sorted(edges), (len(self.text), len(self.text))]
        between = "".join(self.text[a[1] : b[0]] for a, b in pairwise(edges))
        return not re.sub(r"```\w*", "", between).strip()

    def _check_fragments(self, chosen: _Verdict) -> None:
        """A broken attempt at a verdict beside the one that was found makes that one doubtful.

        Unless the attempt is a quote, or was closed before the verdict began (a sample of the format).
        """
        for fragment in self.fragments:
            head = "".join(self.text[fragment.start : fragment.start + 200].split())[:30]
            is_quote = self._quotes.has_spelt(head)
            closed = self._closing_brace(fragment.start) < chosen.start
            if not (self._is_thought(fragment.start) or is_quote or closed):
                raise UnreadableReply(
                    "ambiguous", f"ambiguous: broken JSON stands beside the verdict: {fragment.problem}"
                )

    def _closing_brace(self, start: int) -> int:
        """Where the brace at ``start`` is closed, counting braces only; the end where it is not."""
        depth = 0
        for match in re.finditer(r"[{}]", self.text[start:]):
            depth += 1 if match.group() == "{" else -1
            if depth == 0:
                return start + match.start()
        return len(self.text)

    def _nothing(self, said: list[_Span]) -> UnreadableReply:
        """The error that says why no verdict was found."""
        names = ", ".join(self.expected)
        partial = [span.value for span in said if isinstance(span.value, dict)]
        fragments = [item for item in self.fragments if not self._is_thought(item.start)]
        # A broken attempt explains more than a whole object that lacks the keys.
        if fragments:
            return UnreadableReply(
                "not_json", f"the reply is not valid JSON: {fragments[-1].problem} (wanted: {names})"
            )
        if partial:
            best = max(partial, key=lambda value: sum(key in value for key in self.expected))
            missing = ", ".join(key for key in self.expected if key not in best)
            return UnreadableReply("missing_key", f"{missing}: missing in the JSON object of the reply")
        if kind := _other_json(self.text):
            return UnreadableReply("not_object", f"a JSON object with {names} is needed, got {kind}")
        if self.reasoning and not said:
            return UnreadableReply(
                "not_json", f"nothing but reasoning: no JSON object with {names} in the reply"
            )
        return UnreadableReply("not_json", f"no JSON object with {names} in the reply")


def _unwrapped(value: Any, wanted: Any) -> Any:
    """The object inside objects of one key: ``{"result": {...}}``."""
    while isinstance(value, dict) and len(value) == 1 and not wanted(value):
        if isinstance(value, Object) and value.duplicate is not None:
            check_values(value)
        (value,) = value.values()
    return value


def _other_json(text: str) -> str | None:
    # A list in a code fence is named as a list, not as prose.
    text = re.sub(r"^```\w*|```$", "", text.strip()).strip()
    try:
        value = DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    kinds = {
        list: "a list",
        str: "a string",
        bool: "true or false",
        type(None): "null",
        dict: "another object",
    }
    return kinds.get(type(value), "a number")


def _canonical(value: Any) -> str:
    return json.dumps(canonical(value), sort_keys=True, default=repr)
