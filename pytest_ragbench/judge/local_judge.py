"""The embedded local judge as a :class:`~pytest_ragbench.judge.base.Judge`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_ragbench.judge import local, tasks
from pytest_ragbench.judge.base import Answered, R, Task
from pytest_ragbench.judge.tasks.claims import Claims
from pytest_ragbench.judge.tasks.numbered import NumberedTask, Verdicts
from pytest_ragbench.model.errors import JudgeError, UsageError
from pytest_ragbench.providers import Spec
from pytest_ragbench.text import is_blank


class LocalJudge:
    """No key, no network, the same verdict every time. What it is good for: docs/local-judge.md.

    It does what ``tasks`` lists; of anything else it says that it can't.
    """

    name = "local"
    probabilities = True
    graded = True
    """Each verdict carries its probability, without being asked for it in a word."""

    @property
    def tasks(self) -> frozenset[str]:
        return frozenset(_RULES)

    def __repr__(self) -> str:
        return f"<LocalJudge {local.VERSION}>"

    async def ask(self, task: Task[R]) -> Answered[R]:
        rule = _RULES.get(task.name)
        if rule is None:
            raise JudgeError(f"the local judge can't do {task.name!r}; configure an LLM", code="unsupported")
        payload = await asyncio.to_thread(rule, task)  # long chunks take a while; other calls go on
        reply = task.read(payload)
        if isinstance(reply, Claims):
            reply.leave_out(payload["left_out"])
        elif isinstance(reply, Verdicts):
            for number, verdict in reply.verdicts.items():
                if (said := payload["verdicts"][str(number)]).get("probability") is not None:
                    verdict.weigh(said["probability"])
        return Answered(reply, self.name)


def _split_claims(task: tasks.SplitClaims) -> Mapping[str, Any]:
    parts = local.answer_parts(task.answer, task.question)
    return {
        "claims": [part.text for part in parts if part.kind == "claim"],
        "left_out": [(part.text, part.kind) for part in parts if part.kind != "claim"],
    }


def _for_each(task: NumberedTask[Any], verdict: Callable[[int], Mapping[str, Any]]) -> Mapping[str, Any]:
    return {"verdicts": {str(number): verdict(number) for number in task.numbers}}


def _graded(value: float) -> Mapping[str, Any]:
    return {"verdict": value >= local.SUPPORTED, "probability": value}


def _verify_claims(task: tasks.VerifyClaims) -> Mapping[str, Any]:
    if task.against != "chunks":
        others = [
            claim for text in task.contexts for claim in local.split_claims(text, task.question) or [text]
        ]
        return _for_each(task, lambda number: _compared(task, number, others, task.against))

    def verdict(number: int) -> Mapping[str, Any]:
        found = local.verify(task.claims[number - 1], task.contexts, task.question, task.claims)
        return {**_graded(found.value), "reason": found.reason, "chunk": found.chunk}

    return _for_each(task, verdict)


def _compared(
    task: tasks.VerifyClaims | tasks.CompareClaims, number: int, others: Sequence[str], side: str
) -> Mapping[str, Any]:
    found = local.compare(task.items[number - 1], others, task.question)
    graded = _graded(found.value)
    return {
        **graded,
        "reason": f"the {side} says so" if graded["verdict"] else _of_side(found.reason, side),
    }


def _judge_chunks(task: tasks.JudgeChunks) -> Mapping[str, Any]:
    """A chunk is useful where it supports a claim of the answer."""
    claims = local.split_claims(task.target, task.question) or [task.target]

    def verdict(number: int) -> Mapping[str, Any]:
        chunk = (task.contexts[number - 1],)
        best = max(local.verify(claim, chunk, task.question, claims).value for claim in claims)
        useful = _graded(best)
        # Of the reference or of the answer: what is to be found is the metric's to know.
        reason = f"it says {'some' if useful['verdict'] else 'none'} of what is to be found"
        return {**useful, "reason": reason}

    return _for_each(task, verdict)


def _compare_claims(task: tasks.CompareClaims) -> Mapping[str, Any]:
    def verdict(number: int) -> Mapping[str, Any]:
        of_answer = number <= len(task.answer_claims)
        others = task.reference_claims if of_answer else task.answer_claims
        return _compared(task, number, others, "reference" if of_answer else "answer")

    return _for_each(task, verdict)


def _of_side(reason: str, side: str) -> str:
    """The remark of the verifier, who takes claims of the other side for chunks."""
    for ours, theirs in _OTHER_SIDE:
        reason = re.sub(ours, theirs.format(side), reason)
    return reason


_OTHER_SIDE = (
    (r"^no chunk (says so|mentions|answers)", "the {} does not \\1"),
    (r"(?<=not )(say|mention|answer)s", "\\1"),
    (r"is in no chunk", "is not in the {}"),
    (r"^chunk \d+", "the {}"),
)


def _grade_relevance(task: tasks.GradeRelevance) -> Mapping[str, Any]:
    found = local.addresses(task.question, task.answer)
    return {"grade": found.value, "reason": found.reason}


def _grounded(task: tasks.GradeFaithfulness | tasks.GradeSearchRag) -> tuple[float, str]:
    """Share of supported claims, and what is wrong with the weakest. Without claims nothing is ungrounded."""
    if is_blank(task.answer):
        return 0.0, "empty answer"
    claims = local.split_claims(task.answer, task.question)
    found = [local.verify(claim, task.contexts, task.question, claims) for claim in claims]
    if not found:
        return 1.0, ""
    weakest = min(found, key=lambda support: support.value)
    value = sum(support.value for support in found) / len(found)
    return value, weakest.reason if weakest.value < local.SUPPORTED else ""


def _grade_faithfulness(task: tasks.GradeFaithfulness) -> Mapping[str, Any]:
    value, reason = _grounded(task)
    return {"grade": value, "reason": reason}


def _grade_search_rag(task: tasks.GradeSearchRag) -> Mapping[str, Any]:
    addressed = local.addresses(task.question, task.answer)
    grounded, fault = _grounded(task)
    off_topic = addressed.reason if addressed.value < 0.8 else ""
    # The main fault is that of the lower grade.
    faults = (off_topic, fault) if addressed.value < grounded else (fault, off_topic)
    return {
        "answer_correctness": addressed.value,
        "groundedness": grounded,
        "error_message": faults[0] or faults[1],
    }


def _check_abstention(task: tasks.CheckAbstention) -> Mapping[str, Any]:
    abstains = local.is_abstention(task.answer)
    reason = "the answer says that it has none" if abstains else "it gives an answer"
    return {"abstains": abstains, "reason": reason}


def _check_consistency(task: tasks.CheckConsistency) -> Mapping[str, Any]:
    def verdict(number: int) -> Mapping[str, Any]:
        place = number - 1
        found = local.contradiction(task.answers[place], task.answers[:place], task.questions[place])
        if found is None:
            return {"verdict": True}
        return {"verdict": False, "turn": found.turn, "reason": found.reason}

    return _for_each(task, verdict)


_RULES: Mapping[str, Callable[[Any], Mapping[str, Any]]] = {
    "split_claims": _split_claims,
    "verify_claims": _verify_claims,
    "grade_relevance": _grade_relevance,
    "grade_faithfulness": _grade_faithfulness,
    "grade_search_rag": _grade_search_rag,
    "check_abstention": _check_abstention,
    "judge_chunks": _judge_chunks,
    "compare_claims": _compare_claims,
    "check_consistency": _check_consistency,
}


def local_judge(engine: object = None) -> LocalJudge:
    """The local judge. It calls nobody, so it needs no engine."""
    return LocalJudge()


def named_judge(spec: Spec) -> LocalJudge:
    """``"local"``.

    Raises
    ------
    UsageError
        A model is named.
    """
    if spec.rest:
        raise UsageError(f'the local judge has no models; write judge = "local", not {spec.text!r}')
    return local_judge()
