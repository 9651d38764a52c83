"""What judges send: objects in any wrapping, verdict words, ratings, refusals, HTTP errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from unittest import mock

from pydantic import BaseModel, Field, create_model

from pytest_ragbench import RagSample, Score, Tools, assert_search_rag, score
from pytest_ragbench.judge.base import Task
from pytest_ragbench.judge.reading.fields import Grade01, IntegerScale, Text, YesNo
from pytest_ragbench.judge.tasks import Reply, SearchRagReply
from pytest_ragbench.settings import ProviderSettings, RetrySettings, Settings
from tests.cases import product
from tests.cases.gating import registered
from tests.cases.outcomes import Outcome, observe
from tests.cases.registry import Input, op
from tests.cases.servers import serving

_RANGE = re.compile(r"(-?[\d.]+)\s*(?:\.\.|-|…|to)\s*(-?[\d.]+)")


@dataclass(frozen=True)
class Contract(Task[Any]):
    """A task with the reply fields of a case, asked with the prompt of the search-rag judge."""

    reply_model: type[BaseModel]
    texts: tuple[tuple[str, Any], ...]

    name = "grade_search_rag"

    @property
    def reply_type(self) -> type[BaseModel]:
        return self.reply_model

    @property
    def lang(self) -> str:
        return "en"

    def data(self) -> Mapping[str, Any]:
        return dict(self.texts)


def contract_model(contract: Mapping[str, Any]) -> type[BaseModel]:
    """The reply type of ``{"fields": {"grade": "number 0..1"}, "required": ["grade"]}``."""
    required = set(contract.get("required", contract["fields"]))
    fields: dict[str, Any] = {}
    for name, described in contract["fields"].items():
        kind = field_type(str(described))
        optional = (kind, "") if kind is Text else (kind | None, None)
        fields[name] = (kind, Field()) if name in required else optional
    made: type[BaseModel] = create_model("CaseReply", __base__=Reply, **fields)
    return made


def field_type(described: str) -> Any:
    """The product's field type for a description in words."""
    words = described.casefold()
    span = _RANGE.search(words)
    if any(word in words for word in ("bool", "yes", "verdict")):
        return YesNo
    if words.startswith(("list", "array")):
        return list[field_type(words.partition(" of ")[2] or "string")]  # type: ignore[misc]
    if "integer" in words or words.startswith("int") or "whole" in words:
        low, high = (int(float(end)) for end in span.groups()) if span else (0, 1)
        return Annotated[int, IntegerScale(low, high)]
    if any(word in words for word in ("number", "float", "grade", "score")):
        return Grade01
    return Text


@op("judge_parse", items="replies", single="reply")
def judge_parse(given: Input) -> Outcome:
    """One reply (and the same again, where the judge is asked once more) read by the contract."""
    sample = RagSample(
        given.get("question", "?"), given.get("answer", "?"), given.get("contexts", ["?"]), id="parsed"
    )
    texts = (("question", sample.question), ("chunks", sample.contexts), ("answer", sample.answer))
    task = Contract(contract_model(given["contract"]), texts)
    replies = [product.completion(given["reply"])]
    raw = given["reply"].get("content") if isinstance(given["reply"], Mapping) else given["reply"]
    values = re.findall(r":\s*(-?[\w.+%]+|\"[^\"]*\")", raw) if isinstance(raw, str) else []
    phrases = {"raw value": [value.strip('"') for value in values]}
    outcome = observe(lambda: replied(task, replies).model_dump(), phrases=phrases)
    if set(task.reply_type.model_fields) == set(SearchRagReply.model_fields):
        outcome.problems += _otherwise_scored(sample, replies, outcome)
    return outcome


def replied(task: Task[Any], replies: Sequence[Any]) -> BaseModel:
    """What a metric of the user's own gets that asks this."""
    found: list[BaseModel] = []

    async def ask(sample: RagSample, tools: Tools) -> float:
        found.append(await tools.ask(task))
        return 1.0

    name = registered("asking", ask, tasks=(task.name,))
    with product.using(judge=product.Scripted(replies)):
        score(name, RagSample("q", "a"))
    return found[-1]


def _otherwise_scored(sample: RagSample, replies: Sequence[Any], outcome: Outcome) -> list[str]:
    """The package's own metric of these grades must come to the same."""
    with product.using(judge=product.Scripted(replies)):
        scored = observe(lambda: dict(score("search_rag", sample).details))
    same = scored.kind == outcome.kind and (
        scored.kind != "value" or all(outcome.value[name] == grade for name, grade in scored.value.items())
    )
    return [] if same else [f"search_rag came to {scored.told()}, the reply to {outcome.told()}"]


# Verdicts on statements


@op("faithfulness_from_verdicts")
def faithfulness_from_verdicts(given: Input) -> Outcome:
    """Faithfulness where the judge splits into these statements and gives these verdicts."""
    statements, verdicts = given["statements"], given["verdicts"]
    replies = [{"claims": statements}, {"verdicts": numbered(verdicts)}]
    sample = RagSample("q", " ".join(map(str, statements)) or "a", ["context"])
    return observe(
        lambda: _scored("faithfulness", sample, replies),
        phrases={"raw verdict": [as_reply(verdict) for verdict in _values(verdicts)]},
    )


def numbered(verdicts: Any) -> Any:
    """A list of verdicts as the object by number that judges are asked for; others as they are."""
    if not isinstance(verdicts, list) or any(_has_number(verdict) for verdict in verdicts):
        return verdicts
    return {
        str(number): verdict if isinstance(verdict, Mapping) else {"verdict": verdict}
        for number, verdict in enumerate(verdicts, 1)
    }


def _has_number(verdict: Any) -> bool:
    """Whether a verdict says itself what it is about."""
    names = ("number", "id", "index", "n", "item", "claim", "statement")
    return isinstance(verdict, Mapping) and any(name in verdict for name in names)


def _values(verdicts: Any) -> list[Any]:
    items = verdicts.values() if isinstance(verdicts, Mapping) else verdicts
    return [item.get("verdict") if isinstance(item, Mapping) else item for item in items]


def _scored(metric: str, sample: RagSample, replies: list[Any], **options: Any) -> float:
    with product.using(judge=product.Scripted([as_reply(reply) for reply in replies])):
        return score(metric, sample, **options).value


def as_reply(reply: Any) -> str:
    """A verdict object as a model would write it; texts as they are."""
    return reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)


@op("faithfulness_sample")
def faithfulness_sample(given: Input) -> Outcome:
    """Faithfulness of a sample, with the judge's words given."""
    columns = given.get("sample", given)
    verdicts = given.get("judge_verdicts_if_asked", given.get("verdicts", []))
    statements = given.get("statements_from_judge", given.get("statements"))
    if statements is None:
        statements = [columns.get("answer") or "claim"] * max(len(verdicts), 1)
    replies = [{"claims": statements}, {"verdicts": numbered(verdicts)}]
    return observe(lambda: _scored("faithfulness", product.sample_of(columns), replies))


@op("verdict_word", "verdict_words", "parse_verdict", "yes_no", items="words", single="verdict")
def verdict_word(given: Input) -> Outcome:
    """One word (or other value) as a verdict of the judge."""
    value = next(given[key] for key in ("verdict", "word", "value", "reply", "text") if key in given)
    replies = [{"claims": ["a claim"]}, {"verdicts": {"1": {"verdict": value}}}]
    return observe(
        lambda: _scored("faithfulness", RagSample("q", "a", ["c"]), replies) == 1.0,
        phrases={"raw": [as_reply(value), str(value)]},
    )


@op("rating", "rating_parse", "parse_rating", "rating_scale", items="ratings", single="rating")
def rating(given: Input) -> Outcome:
    """One rating on a scale of whole numbers (0..2 unless the case gives another), normalised to 0..1."""
    raw = next(given[key] for key in ("rating", "raw", "value", "primary", "reply") if key in given)
    grades = scale_of(given.get("scale", "0..2"))
    sample = RagSample("q", "a", reference="r")
    return observe(
        lambda: _scored("answer_accuracy", sample, [{"rating": raw}], scale=grades),
        phrases={"raw": [as_reply(raw), str(raw)]},
    )


def scale_of(given: Any) -> list[int]:
    """The grades of ``"0..4 by 2"``, ``[0, 2, 4]`` or ``{"low": 1, "high": 5}``."""
    if isinstance(given, Mapping):
        low, high = given.get("low", given.get("min", 0)), given.get("high", given.get("max"))
        return list(range(int(low), int(high) + 1, int(given.get("step", 1))))
    if isinstance(given, (list, tuple)):
        pair = len(given) == 2  # its ends
        return list(range(int(given[0]), int(given[1]) + 1)) if pair else [int(grade) for grade in given]
    low, high, *step = (int(number) for number in re.findall(r"-?\d+", str(given).replace("-", " to ")))
    return list(range(low, high + 1, *step))


@op("answer_accuracy")
def answer_accuracy(given: Input) -> Outcome:
    """The rating of one judge, or of a second one who sees it; on 0..2 unless the case gives a scale."""
    scale = scale_of(given.get("scale", "0..2"))
    confirmed = "confirm" in given
    mode = given.get("mode", "confirm" if confirmed else "single")
    scripts = {"rate_accuracy": [_rating_reply(given.get("primary", given.get("rating")))]}
    if confirmed:
        scripts["confirm_accuracy"] = [_rating_reply(given["confirm"])]
    if mode == "swap_average" and "swapped" in given:
        scripts["rate_accuracy"].append(_rating_reply(given["swapped"]))
    notes: list[Any] = []

    def measured() -> float:
        with product.using(judge=product.ByTask(scripts)):
            found = score("answer_accuracy", RagSample("q", "a", reference="r"), scale=scale, mode=mode)
        notes.extend([found.reason, dict(found.details)])
        return found.value

    outcome = observe(measured)
    outcome.facts["notes"] = notes
    return outcome


def _rating_reply(raw: Any) -> str:
    """A number as a judge's object; words stay the whole reply."""
    is_number = not isinstance(raw, str) or re.fullmatch(r"\s*[-+\d.,]+\s*", raw)
    return as_reply({"rating": raw}) if is_number else str(raw)


# A reply against a threshold


@op("gate", items="replies", single="reply")
def gate(given: Input) -> Outcome:
    """``assert_search_rag`` on one reply of the judge."""
    sample = product.sample_of(given.get("sample", {}), question="q", answer="a", contexts=["c"])
    judge = product.Scripted([product.completion(given["reply"])])
    limit = given.get("threshold", 0.7)

    def ask() -> float:
        with product.using(judge=judge):
            found: Score = assert_search_rag(sample, limit)
            return found.value

    return observe(ask, kind="pass")


# Over HTTP


@op("judge_http", single="response")
def judge_http(given: Input) -> Outcome:
    """A judge behind a real HTTP server that gives the case's responses."""
    script = given.get("responses") or [given["response"]]
    attempts = int(given.get("retry", {}).get("attempts", 4))
    sleeps = product.Sleeps()
    with serving(script) as server, mock.patch.dict("os.environ", CASE_KEY="sk-case-0000-key"):
        provider = ProviderSettings(
            base_url=f"{server.url}/v1",
            api_key_env="CASE_KEY",
            timeout=float(given.get("timeout_s", 30)),
            retry=RetrySettings(attempts=attempts, wait=0.5, max_wait=30.0),
        )
        settings = Settings(judge="openai:case-model", providers={"openai": provider})

        def ask() -> dict[str, Any]:
            with product.using(settings=settings, sleep=sleeps):
                found = score("search_rag", RagSample("q", "a", ["c"]))
            return {**found.details, "error_message": found.error_message}

        outcome = observe(ask)
        outcome.facts |= {"http_calls": server.calls, "waited": sleeps.waited}
    return outcome


__all__ = ["Contract", "as_reply", "contract_model", "field_type", "numbered", "replied", "scale_of"]
