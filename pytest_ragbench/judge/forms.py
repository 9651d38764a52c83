"""The form in which a chat service takes requests: learnt from its refusals, part by part.

A part (a parameter, or how structured output is asked for) counts as refused where the error is about it: its
``param`` names it, or its words do, next to words of refusal. An error about something else that happens to
mention a part, such as a prompt that is too long, changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from pytest_ragbench.http.service_errors import ServiceError

DEFAULT_TOP_LOGPROBS = 20
"""Of how many tokens the probability is asked: the most that OpenAI gives."""
# How many a service gives that refuses :data:`DEFAULT_TOP_LOGPROBS`.
_FEW_TOP_LOGPROBS = 5


class ChatRequest(TypedDict):
    """One chat completion to be had, as JSON values."""

    model: str
    messages: list[dict[str, str]]
    max_tokens: int
    temperature: float | None
    seed: int | None
    output: str
    """``"auto"``, ``"json_schema"``, ``"json_object"`` or ``"prompt"``."""
    schema: dict[str, Any] | None
    """Name and strict JSON schema of the reply; None where log probabilities are asked for instead."""


@dataclass(frozen=True)
class RequestForm:
    """The form in which a service is known to take requests."""

    output: str = "json_schema"
    limit_name: str = "max_tokens"
    top_logprobs: int = DEFAULT_TOP_LOGPROBS
    without: frozenset[str] = frozenset()

    def merged(self, before: RequestForm, proven: RequestForm) -> RequestForm:
        """The form with what ``proven`` has changed of ``before``: concurrent calls may have learnt other parts."""
        return RequestForm(
            self.output if proven.output == before.output else proven.output,
            self.limit_name if proven.limit_name == before.limit_name else proven.limit_name,
            min(self.top_logprobs, proven.top_logprobs),
            self.without | proven.without,
        )


def first_form(asked: ChatRequest) -> RequestForm:
    """The form in which a service is asked that nothing is known about."""
    return RequestForm(output="json_schema" if asked["output"] == "auto" else asked["output"])


def request_body(asked: ChatRequest, form: RequestForm, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON body of a request; ``extra`` is the user's own part of it."""
    body: dict[str, Any] = {
        "model": asked["model"],
        "messages": asked["messages"],
        form.limit_name: asked["max_tokens"],
        "temperature": asked["temperature"],
        "seed": asked["seed"],
    }
    if asked["schema"] is None:
        body |= {"logprobs": True, "top_logprobs": form.top_logprobs}
    elif form.output == "json_schema":
        body["response_format"] = {"type": "json_schema", "json_schema": {**asked["schema"], "strict": True}}
    elif form.output == "json_object":
        body["response_format"] = {"type": "json_object"}
    # None means that the service decides; some refuse an explicit null.
    body = {key: value for key, value in body.items() if value is not None and key not in form.without}
    # Last, so that the user's own parameters win.
    return {**body, **extra}


def better_form(error: ServiceError, form: RequestForm, asked: ChatRequest) -> RequestForm | None:
    """How to ask instead, where the error is about a part that can be left out or named otherwise; else None."""
    if is_too_long(error):
        return None
    free = asked["schema"] is not None and asked["output"] == "auto" and form.output != "prompt"
    if free and is_about(error, "response_format"):
        return replace(form, output="json_object" if form.output == "json_schema" else "prompt")
    # OpenAI's reasoning models. A limit that is only too high is the user's to lower.
    if form.limit_name == "max_tokens" and is_about(error, "max_tokens", ranges=False):
        return replace(form, limit_name="max_completion_tokens")
    if asked["schema"] is None and form.top_logprobs > _FEW_TOP_LOGPROBS and is_about(error, "top_logprobs"):
        return replace(form, top_logprobs=_FEW_TOP_LOGPROBS)
    # 0 is our choice: any complaint about it is answered by leaving it out. Another value is the user's, who
    # has to hear that it is out of range.
    ours = not asked["temperature"]
    for part, ranges in (("temperature", ours), ("seed", False)):
        if asked[part] is not None and part not in form.without and is_about(error, part, ranges=ranges):  # type: ignore[literal-required]
            return replace(form, without=form.without | {part})
    return None


_FORMAT = (
    r"response[_ -]?format(?:\.type)?|json[_ -]?schema|json[_ -]?object|structured[ _-]?outputs?|json[ _-]mode"
    r"|guided[_ ](?:json|decoding|grammar)|grammar|output_config"
)
_SPELT = {"response_format": _FORMAT, "top_logprobs": r"top_?logprobs", "max_tokens": r"max_?tokens"}

_REFUSED = re.compile(
    r"un-?supported|not (?:currently |yet |be )?(?:enabled|support|allow|permit|accept|available|recogni[sz]ed"
    r"|compatible|implemented|applicable|a valid)|(?:does|do|did|can|could|is)(?:n['\u2019]?t| ?not) (?:support|accept"
    r"|allow|take|have|permit|be (?:used|set|specified))|deprecat|un-?recogni[sz]ed|unknown|unexpected"
    r"|extra (?:inputs|fields?|parameters?)|additional propert|un-?available|(?:been )?removed|disabled"
    r"|(?:remove|drop|omit|unset|leave out|(?:do not|don['\u2019]t) (?:set|send|pass|specify))"
    r" (?:the )?(?:parameter )?['\"`]"
    r"|no longer|failed to (?:parse|compile|convert)|too complex|not found in|invalid (?:json[ _])?schema|forbidden"
    r"|use ['\"`]?max_completion_tokens|不支持|未知|不被支持|不允许|已弃用|не поддерж|не допуска|устарел|неизвестн"
    r"|サポートされ|サポートし|対応してい|非対応|未対応|使用できません|非推奨",
    re.IGNORECASE,
)
_OUT_OF_RANGE = re.compile(
    r"invalid|only\b.{0,60}?(?:allowed|supported|accepted|permitted|valid)|only (?:the )?(?:default|supports?|accepts?)"
    r"|must (?:be|not)|should (?:be|not)|has to be|needs? to be|expected|out of range|greater|less|at (?:most|least)"
    r"|between|exceed|too (?:large|high|low|small|many|big)|illegal|wrong|not (?:in|within) "
    r"|(?:cannot|can['\u2019]t|may only|can only) (?:both |all )?be|maximum"
    r"|positive|range"
    r"|无效|非法|仅支持|只支持|只能|必须|取值|недопустим|неверн|некоррект|должн|только"
    r"|無効|不正|のみ|でなければ|範囲|必要があり",
    re.IGNORECASE,
)
# Between a part and the words of refusal: more, and they are hardly about it.
_NEAR_CHARS = 90


def is_about(error: ServiceError, part: str, *, ranges: bool = True) -> bool:
    """Whether a part of the request is what the error complains of.

    ``ranges``: also where only its value is refused ("must be 1") and not the part itself.
    """
    refused = (_REFUSED, _OUT_OF_RANGE) if ranges else (_REFUSED,)
    names = _SPELT.get(part, re.escape(part))
    if error.param:
        named = re.search(rf"(?:^|[.\[\]$/'\"])(?:{names})(?:$|[.\[\]/'\"])", error.param, re.IGNORECASE)
        if named is None:
            return False
        # The code of the error tells it where the words do not.
        said = f"{error.message} {error.code.replace('_', ' ')}"
        return ranges or any(words.search(said) for words in refused)
    # An error that is hardly more than the name of the part.
    if part == "response_format" and re.fullmatch(rf"\W*(?:{names})\W*", error.message, re.IGNORECASE):
        return True
    return any(
        words.search(sentence, max(0, start - _NEAR_CHARS), end + _NEAR_CHARS)
        for sentence, start, end in _mentions(error.message, names)
        for words in refused
    )


def is_too_long(error: ServiceError) -> bool:
    """Whether the error is about a prompt, or prompt and reply, beyond the model's context."""
    return _TOO_LONG.search(f"{error.code} {error.message}") is not None


_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size|limit)|(?:prompt|input|request|messages?) (?:is|are|was) too (?:long|large)"
    r"|too many (?:input |prompt )?tokens|reduce the length|string_above_max_length|string too long"
    r"|request_too_large|maximum (?:input|prompt) (?:length|tokens)|input length|上下文|контекст|コンテキスト",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|[。！？\n]")
# Unquoted, a part is a word like others: it counts where it stands as a parameter does, not in a question about
# the weather that the error repeats.
_AS_PARAMETER = r"""
    (?<![\w'"`]) (?:{names}) \s* (?: [=:] | \s (?:is|was|are|must|should|can|cannot|may|does|do|has|not|only|value|
        parameter|param|setting|field|argument|option)\b
        | (?: 不|无|仅|只|必|取|参数|не\b|долж|パラメ|は|が|を|の値) | $)
  | \b(?:invalid|un-?supported|unknown|un-?recogni[sz]ed|unexpected|illegal|wrong|bad|parameters?|params?|arguments?|
        fields?|options?|value(?:\ for|\ of)?|support|supports|accept|accepts|allow|allows|take|takes|have|параметра?|
        значение|参数)
    (?:\ the)? :? \s+ (?:parameters?:?\s+|values?\s+for\s+)? (?:{names}) (?![\w'"`])
  | ^ \W* (?:{names}) \b
"""


def _mentions(message: str, names: str) -> list[tuple[str, int, int]]:
    """Where a message speaks of a part: the sentence, and the part's place in it."""
    # Not as the key of an object, which is a request that was sent back.
    quoted = rf"['\"`\u2018\u201c\u00ab「](?:{names})['\"`\u2019\u201d\u00bb」]"
    quoted += r"(?!\s*:\s*(?:[\d\[{\"'.-]|null|none|true|false))"
    found = []
    for sentence in _SENTENCE_END.split(message):
        pattern = f"{quoted}|{_AS_PARAMETER.format(names=names)}"
        if names == _FORMAT:  # no word of everyday language
            pattern = f"\\b(?:{names})\\b"
        for match in re.finditer(
            pattern, sentence, re.IGNORECASE | re.VERBOSE if names != _FORMAT else re.IGNORECASE
        ):
            found.append((sentence, match.start(), match.end()))
    return found
