"""``ragbench ask``: one question, to see what the service and the judge make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pytest_ragbench import building
from pytest_ragbench.assertions.failure import chunk_lines
from pytest_ragbench.clean import clean, one_line
from pytest_ragbench.cli.shared import Exit, configured, emit, engine_of, json_option, settings_of
from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.model.samples import Question, sample_from
from pytest_ragbench.model.scores import Score
from pytest_ragbench.text import is_blank

if TYPE_CHECKING:
    from pytest_ragbench.batch.scorer import Outcome
    from pytest_ragbench.engine import Engine
    from pytest_ragbench.metrics.registry import Metric
    from pytest_ragbench.model.samples import RagSample
    from pytest_ragbench.settings import Settings


@click.command()
@click.argument("question")
@click.option("-m", "--metric", "metrics", multiple=True, metavar="NAME",
              help="A metric; may be repeated. Default: all that what is known is enough for.")  # fmt: skip
@click.option("--reference", metavar="TEXT", help="The right answer: more metrics can be computed.")
@click.option("--relevant-id", "relevant_ids", multiple=True, metavar="ID",
              help="Id of a document that answers the question; may be repeated.")  # fmt: skip
@click.option("--answer", metavar="TEXT", help="Score this answer; the service is not asked.")
@click.option(
    "--context", "contexts", multiple=True, metavar="TEXT", help="With --answer: a chunk it rests on."
)
@click.option("--no-scores", is_flag=True, help="Show answer and chunks only.")
@configured("rag_url", "judge", "embedder", "store")
@json_option
def command(
    question: str, metrics: tuple[str, ...], reference: str | None, relevant_ids: tuple[str, ...],
    answer: str | None, contexts: tuple[str, ...], no_scores: bool, as_json: bool, **options: Any,
) -> int:  # fmt: skip
    """Ask the RAG service one question, and score its answer.

    \b
      ragbench ask "How long do I have to return a product?" --rag-url http://localhost:8080
      ragbench ask "..." --reference "30 days" -m answer_correctness -m faithfulness
      ragbench ask "..." --answer "30 days." --context "Products can be returned within 30 days."
    """
    if contexts and answer is None:
        raise click.UsageError("--context goes with --answer: chunks of an answer that is given")
    settings = settings_of(options)
    asked = Question(
        id="asked", question=question, reference=reference, answer=answer,
        contexts=contexts if answer is not None else None,
        relevant_ids=dict.fromkeys(relevant_ids, 1.0) if relevant_ids else None,
    )  # fmt: skip
    with engine_of(settings) as engine:
        sample = _sample(asked, engine, settings)
        outcomes = {} if no_scores else _outcomes(sample, metrics, engine, settings)
    emit(_as_data(sample, outcomes), lambda: _text(sample, outcomes), as_json=as_json)
    failed = any(
        # A metric without a value for this answer isn't an outage.
        isinstance(outcome, Exception) and not isinstance(outcome, UndefinedScore)
        for outcome in outcomes.values()
    )
    return Exit.UNSCORED if failed else Exit.OK


def _sample(question: Any, engine: Engine, settings: Settings) -> RagSample:
    if question.answer is not None:
        return sample_from(question)
    retriever = building.retriever(None, engine, settings)
    return engine.wait(retriever.ask(question))


def _outcomes(
    sample: RagSample, metrics: tuple[str, ...], engine: Engine, settings: Settings
) -> dict[str, Outcome]:
    from pytest_ragbench.batch.scorer import Scorer, possible_metrics

    names = list(metrics)
    if not names:
        judge = building.judge(None, engine, settings)
        try:
            building.embedder(None, engine, settings)
            embeds = True
        except UsageError:  # the default embedder is an extra
            embeds = False
        # The local judge doesn't do every task, and would only refuse.
        names = possible_metrics(sample, judge.tasks, embedder=embeds)
    scorer = Scorer(names, engine, settings)
    # Only what the user named may be a mistake; what was chosen here fits.
    if metrics:
        scorer.check_file([sample], "this question")
    return engine.wait(scorer.scores(sample))


def _as_data(sample: RagSample, outcomes: dict[str, Outcome]) -> dict[str, Any]:
    from pytest_ragbench.batch.run import error_of
    from pytest_ragbench.metrics.registry import find

    scores = {
        name: outcome.to_dict() | {"band": find(name).band(outcome.value)}
        for name, outcome in outcomes.items()
        if isinstance(outcome, Score)
    }
    return {
        "question": sample.question,
        "answer": sample.answer,
        "contexts": sample.contexts,
        "context_ids": sample.context_ids,
        "context_scores": sample.context_scores,
        "latency": sample.latency,
        "first_token": sample.first_token,
        "scores": scores,
        "errors": {name: error_of(each) for name, each in outcomes.items() if not isinstance(each, Score)},
    }


def _text(sample: RagSample, outcomes: dict[str, Outcome]) -> str:
    from pytest_ragbench.metrics.registry import find

    began = f", first token {sample.first_token:.2f} s" if sample.first_token is not None else ""
    took = f"   ({sample.latency:.2f} s{began})" if sample.latency is not None else ""
    answer = (
        "(none)" if sample.answer is None else "(empty)" if is_blank(sample.answer) else clean(sample.answer)
    )
    lines = [f"question  {clean(sample.question)}", f"answer    {answer}{took}"]
    lines += [
        f"{'chunks' if place == 0 else '':10}{chunk}" for place, chunk in enumerate(chunk_lines(sample))
    ]
    width = max((len(name) for name in outcomes), default=0)
    for name, outcome in outcomes.items():
        if isinstance(outcome, Score):
            lines.append(f"{name:{width}}  {_line(find(name), outcome)}".rstrip())
        else:
            lines.append(f"{name:{width}}  no score: {one_line(str(outcome), 200)}")
    return "\n".join(lines)


def _line(metric: Metric, score: Any) -> str:
    # A judge's message is about this answer; a reason may only repeat the formula.
    band = metric.band(score.value) or ""
    return f"{score.value:6.2f}  {band:9}  {one_line(score.error_message or score.reason, 160)}"
