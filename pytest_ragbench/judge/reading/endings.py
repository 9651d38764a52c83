"""How a reply ended: as it should, cut, filtered, refused, or because something broke.

There is a list of good words. After any other, what arrived is not taken for a verdict, however whole it looks.
"""

from __future__ import annotations

import re
from typing import Literal

from pytest_ragbench.clean import one_line
from pytest_ragbench.judge.completions import RawReply
from pytest_ragbench.judge.reading.strict_json import UnreadableReply

Ending = Literal[
    "good", "truncated", "context_window", "content_filter", "refused", "interrupted", "unfinished"
]

# Without case, underscores and prefixes such as "FinishReason.".
_GOOD = frozenset(
    {
        "", "null", "none", "stop", "stopped", "stopsequence", "stoptoken", "stopstring", "eos", "eostoken", "eot",
        "end", "endturn", "endofturn", "endoftext", "endofsequence", "complete", "completed", "finish", "finished",
        "done", "success", "toolcalls", "toolcall", "tooluse", "functioncall", "functioncalls",
    }
)  # fmt: skip
# In this order: "context_length_exceeded" has the words of two of them.
_KINDS: tuple[tuple[Ending, re.Pattern[str]], ...] = (
    ("refused", re.compile(r"refus")),
    (
        "content_filter",
        re.compile(
            r"filter|safety|sensitive|guardrail|moderat|block|prohibit|recitation|spii|policy|flagged|risk|violat|harm"
            r"|censor|inappropriate|inspection"
        ),
    ),
    ("context_window", re.compile(r"context|windowexceeded|prompttoolong|inputtoolong|kvcache")),
    (
        "truncated",
        re.compile(
            r"length|max\w*token|tokenlimit|limit(?:reached|exceeded)?$|maxoutput|truncat|^maxtokens$"
        ),
    ),
    (
        "interrupted",
        re.compile(
            r"error|network|insufficient|resource|overload|unavailable|timeout|timedout|deadline|abort|cancel|interrupt"
            r"|fail|disconnect|crash|preempt|busy|exception|evict|ratelimit|shutdown"
        ),
    ),
)
_MIN_REPEATS, _MIN_REPEATED_CHARS, _TAIL_CHARS = 8, 300, 6000


def ending(finish_reason: str | None) -> Ending:
    """What a ``finish_reason`` of any provider means; ``"unfinished"`` for a word that is not known."""
    word = re.sub(r"[\s_-]", "", (finish_reason or "").rpartition(".")[2].casefold())
    if word in _GOOD:
        return "good"
    return next((kind for kind, words in _KINDS if words.search(word)), "unfinished")


def outage_in(reply: RawReply) -> str | None:
    """What broke while the reply was written, where asking again may help."""
    reason = reply["finish_reason"]
    if ending(reason) != "interrupted":
        return None
    return f"the reply was interrupted (finish_reason {one_line(reason or '', 60)})"


def check_end(reply: RawReply, *, in_a_word: bool = False) -> None:
    """Refuse a reply that did not end as a verdict ends, before its text is looked at.

    ``in_a_word``: one word was asked for, so that it is cut behind the word is as it should be.

    Raises
    ------
    UnreadableReply
        Saying how it ended.
    """
    refusal, content, reason = reply["refusal"], reply["content"] or "", reply["finish_reason"]
    if refusal and refusal.strip():
        raise UnreadableReply("refused", f"the judge refused: {one_line(refusal, 120)}")
    if error := reply.get("error"):
        raise UnreadableReply("interrupted", f"the service reports an error in the reply: {one_line(error)}")
    kind = ending(reason)
    told = f"(finish_reason {one_line(reason or '', 60)})"
    if kind == "refused":
        raise UnreadableReply(kind, f"the judge refused {told}")
    if kind == "content_filter":
        raise UnreadableReply(kind, f"the provider's content filter cut the reply {told}")
    if kind == "interrupted":
        raise UnreadableReply(kind, f"the reply was interrupted {told}")
    if kind == "unfinished":
        raise UnreadableReply(kind, f"the reply did not end as a reply should {told}")
    if kind == "context_window":
        raise UnreadableReply(
            kind,
            f"the reply was truncated: the model's context is full {told}; retrieve shorter chunks, or ask a "
            "model that reads more",
        )
    if kind == "truncated" and not in_a_word:
        if (unit := repeated(content)) is not None:
            raise UnreadableReply(
                "repetition",
                f"the judge repeats itself without end ({one_line(unit, 80) or 'white space'!r}), up to max_tokens; "
                "more room would not help: ask another model, or set a repetition penalty in extra_body",
            )
        thought = ", all of it reasoning" if reply.get("thought_in") and not content.strip() else ""
        raise UnreadableReply(
            kind, f"the reply was truncated at max_tokens{thought} {told}; raise max_tokens"
        )
    if not content.strip() and (where := reply.get("thought_in")):
        raise UnreadableReply(
            "only_reasoning",
            f"the reply holds nothing but reasoning ({where}): turn the model's thinking off, or correct the "
            "reasoning parser of the server that runs it",
        )


def repeated(text: str) -> str | None:
    """What a reply that was cut says again and again at its end; None where it says nothing so often.

    The shortest period of the reversed text, by its border lengths (Knuth, Morris, Pratt 1977).
    """
    tail = text[-_TAIL_CHARS:][::-1]
    borders = [0] * len(tail)
    found: str | None = None
    for place in range(1, len(tail)):
        border = borders[place - 1]
        while border and tail[place] != tail[border]:
            border = borders[border - 1]
        borders[place] = border + (tail[place] == tail[border])
        length = place + 1
        period = length - borders[place]
        if length >= _MIN_REPEATED_CHARS and length // period >= _MIN_REPEATS:
            found = tail[:period][::-1]
    return found
