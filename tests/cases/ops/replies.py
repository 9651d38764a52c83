"""What judges send: objects in any wrapping, verdict words, ratings, refusals, HTTP errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field, create_model

from pytest_ragbench import RagSample, Score, assert_search_rag, score
from pytest_ragbench.engine import Engine, Limits
from pytest_ragbench.judge.base import Task
from pytest_ragbench.judge.reading.fields import Grade01, IntegerScale, Text, YesNo, shown, yes_no
from pytest_ragbench.judge.tasks import GradeSearchRag, Reply
from pytest_ragbench.settings import ProviderSettings
from tests.cases import product
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
        from typing import Annotated

        return Annotated[int, IntegerScale(low, high)]
    if any(word in words for word in ("number", "float", "grade", "score")):
        return Grade01
    return Text


@op("judge_parse", items="replies", single="reply")
def judge_parse(given: Input) -> Outcome:
    """One reply (and the same again, where the judge is asked once more) read by the contract."""
    texts = tuple(
        (label, given[key])
        for label, key in (("question", "question"), ("chunks", "contexts"), ("answer", "answer"))
        if given.get(key)
    )
    task = Contract(contract_model(given["contract"]), texts)
    judge = product.Scripted([product.completion(given["reply"])])
    raw = given["reply"].get("content") if isinstance(given["reply"], Mapping) else given["reply"]
    values = re.findall(r":\s*(-?[\w.+%]+|\"[^\"]*\")", raw) if isinstance(raw, str) else []

    def ask() -> dict[str, Any]:
        with product.using(judge=judge) as here:
            answered = here.engine().wait(here.judge().ask(task))
            read: dict[str, Any] = answered.reply.model_dump()
            return read

    return observe(ask, phrases={"raw value": [value.strip('"') for value in values]})


# Verdicts on statements


@op("faithfulness_from_verdicts")
def faithfulness_from_verdicts(given: Input) -> Outcome:
    """Faithfulness where the judge splits into these statements and gives these verdicts."""
    statements, verdicts = given["statements"], given["verdicts"]
    replies = [{"claims": statements}, {"verdicts": numbered(verdicts)}]
    sample = RagSample("q", " ".join(map(str, statements)) or "a", ["context"])
    return observe(
        lambda: _scored("faithfulness", sample, replies),
        phrases={"raw verdict": [shown(verdict) for verdict in _values(verdicts)]},
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
    model = contract_model({"fields": {"verdict": "boolean"}, "required": ["verdict"]})
    judge = product.Scripted([as_reply({"verdict": value})])

    def ask() -> bool:
        with product.using(judge=judge) as here:
            found: bool = here.engine().wait(here.judge().ask(Contract(model, ()))).reply.verdict
            if found != yes_no(value):
                raise AssertionError(f"the reply is read as {found}, the word as {not found}")
            return found

    return observe(ask, phrases={"raw": [shown(value), str(value)]})


@op("rating", "rating_parse", "parse_rating", "rating_scale", items="ratings", single="rating")
def rating(given: Input) -> Outcome:
    """One rating on a scale of whole numbers (0..2 unless the case gives another), normalised to 0..1."""
    raw = next(given[key] for key in ("rating", "raw", "value", "primary", "reply") if key in given)
    scale = scale_of(given.get("scale", "0..2"))
    model = create_model("CaseRating", __base__=Reply, rating=(scale_type(scale), ...))
    judge = product.Scripted([as_reply({"rating": raw})])

    def ask() -> float:
        with product.using(judge=judge) as here:
            found = here.engine().wait(here.judge().ask(Contract(model, ()))).reply
            return scale.normalised(found.rating)

    return observe(ask, phrases={"raw": [shown(raw), str(raw)]})


def scale_type(scale: IntegerScale) -> Any:
    from typing import Annotated

    return Annotated[int, scale]


def scale_of(given: Any) -> IntegerScale:
    """``"0..4 by 2"``, ``[0, 2, 4]`` or ``{"low": 1, "high": 5}`` as a scale."""
    if isinstance(given, Mapping):
        low, high = given.get("low", given.get("min", 0)), given.get("high", given.get("max"))
        return IntegerScale(int(low), int(high), int(given.get("step", 1)))
    if isinstance(given, (list, tuple)):
        step = given[1] - given[0] if len(given) > 2 else 1
        return IntegerScale(int(given[0]), int(given[-1]), int(step))
    numbers = [int(number) for number in re.findall(r"-?\d+", str(given))]
    return IntegerScale(*numbers[:3])


@op("answer_accuracy")
def answer_accuracy(given: Input) -> Outcome:
    """The rating of one judge, or of a second one who sees it; on 0..2 unless the case gives a scale."""
    scale = list(scale_of(given.get("scale", "0..2")).grades)
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
    with serving(script) as server, product.engine(sleep=sleeps) as engine:

        def ask() -> dict[str, Any]:
            judge = _http_judge(engine, server.url, attempts, float(given.get("timeout_s", 30)))
            reply: BaseModel = engine.wait(judge.ask(GradeSearchRag("q", "a", ("c",)))).reply
            return reply.model_dump()

        outcome = observe(ask)
        outcome.facts |= {"http_calls": server.calls, "waited": sleeps.waited}
    return outcome


def _http_judge(engine: Engine, url: str, attempts: int, timeout: float) -> Any:
    from pytest_ragbench.judge.openai import openai_judge

    settings = ProviderSettings(
        base_url=f"{url}/v1",
        api_key_env="CASE_KEY",
        model="case-model",
        timeout=timeout,
        retry={"attempts": attempts, "wait": 0.5, "max_wait": 30.0},  # type: ignore[arg-type]
    )
    return openai_judge("case", settings, None, engine, environ={"CASE_KEY": "sk-case-0000-key"})


__all__ = ["Contract", "Limits", "as_reply", "contract_model", "field_type", "numbered", "scale_of"]
