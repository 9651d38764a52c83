"""From a metric's name and a sample to a score: the checks that come before any call, then the formula."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_ragbench.metrics.registry import Metric, all_metrics, check_needs, check_options, find
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score

if TYPE_CHECKING:
    from pytest_ragbench.embeddings import Embedder
    from pytest_ragbench.judge.base import Judge
    from pytest_ragbench.settings import Settings


def check(name: str, sample: RagSample, options: Mapping[str, Any]) -> Metric:
    """The metric, once it is sure that it can be computed from ``sample``.

    Raises
    ------
    UsageError
        Unknown metric or option, or a field that the sample does not have.
    """
    metric = find(name)
    if metric.of == "set":
        raise UsageError(
            f"{name} is computed over a set, not for one sample: write assert_over(samples, {name!r}, ...)"
        )
    if not isinstance(sample, RagSample):
        raise UsageError(f"{name} is computed from a RagSample, got {type(sample).__name__}")
    check_options(metric, _own(metric, options))
    return fitted(metric, sample, options)


def fitted(metric: Metric, sample: RagSample, options: Mapping[str, Any]) -> Metric:
    """The last steps of :func:`check`, for a metric whose name and options are known to be right."""
    metric = metric.adapted(sample, _own(metric, options))
    check_needs(metric, sample)
    return as_asked(metric, options)


def as_asked(metric: Metric, options: Mapping[str, Any]) -> Metric:
    """The metric, knowing how its verdicts are asked for."""
    if "verdicts" not in options:
        return metric
    return replace(metric, options={**metric.options, "verdicts": options["verdicts"]})


def configured(settings: Settings, name: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of a call, and what ``[metrics]`` of the configuration says where the call says nothing.

    Raises
    ------
    UsageError
        ``[metrics]`` names a metric that there is not, or one that has no such option.
    """
    for known, chosen in settings.metrics.items():
        if chosen.verdicts == "probability":
            _own(find(known), {"verdicts": chosen.verdicts})
    chosen_here = settings.metrics.get(name)
    if chosen_here is None or chosen_here.verdicts is None or "verdicts" in options:
        return options
    way = {"verdicts": chosen_here.verdicts}
    if chosen_here.verdicts == "json":
        return {**options, **way}
    return {"yes_from": chosen_here.yes_from, **options, **way}


def _own(metric: Metric, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The formula's own options: without ``verdicts``, which is for all that ask for verdicts one by one.

    Raises
    ------
    UsageError
        It is none of the two ways, or this metric asks for no such verdicts.
    """
    if not options.keys() & _ASKING:
        return options
    way, yes_from = options.get("verdicts", "json"), options.get("yes_from", 0.5)
    if way not in ("json", "probability"):
        raise UsageError(f'{metric.name}: verdicts must be "json" or "probability"; got {way!r}')
    if way == "probability" and not asks_in_a_word(metric):
        able = sorted(name for name, known in all_metrics().items() if asks_in_a_word(known))
        raise UsageError(
            f"{metric.name} asks for no yes-or-no verdicts one by one, so there is no probability of them; "
            f"those that do: {', '.join(able)}"
        )
    if "yes_from" in options and (way == "json" or not _inside(yes_from)):
        raise UsageError(
            f'{metric.name}: yes_from is for verdicts = "probability", and lies between 0 and 1; got {yes_from!r}'
        )
    return {name: value for name, value in options.items() if name not in _ASKING}


_ASKING = frozenset({"verdicts", "yes_from"})
"""Options of all metrics whose verdicts can be asked for by probability."""


def _inside(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1


def asks_in_a_word(metric: Metric) -> bool:
    """Whether the metric's verdicts can be asked for by probability."""
    from pytest_ragbench.judge.one_word import ASKED

    return any(task in ASKED for task in metric.tasks)


def needs_judge(metric: Metric, sample: RagSample) -> bool:
    return bool(metric.tasks) and _shortcut(metric, sample) is None


def needs_embedder(metric: Metric, sample: RagSample) -> bool:
    return metric.embedder and _shortcut(metric, sample) is None


def check_judge(metric: Metric, judge: Judge) -> None:
    """Refuse a judge that can't do what the metric asks of it.

    Raises
    ------
    UsageError
        Naming the judge and how to get another.
    """
    for task in metric.tasks:
        if judge.tasks is not None and not set(task.split("|")) & set(judge.tasks):
            raise UsageError(
                f"{metric.name}: the judge {judge.name!r} can't do {task.split('|')[0]!r}. Configure an LLM: set "
                "OPENAI_API_KEY and RAGBENCH_JUDGE=openai:MODEL, or a provider in ragbench.toml"
            )
    if metric.options.get("verdicts") == "probability" and not getattr(judge, "probabilities", False):
        raise UsageError(
            f'{metric.name}: verdicts = "probability" needs a judge that tells how probable its words are, and '
            f'{judge.name!r} does not; choose a provider\'s model or "gguf:FILE", or verdicts = "json"'
        )


async def compute(
    metric: Metric,
    sample: RagSample,
    *,
    judge: Judge | None,
    embedder: Embedder | None,
    options: Mapping[str, Any],
    tools: Tools | None = None,
) -> Score:
    """Compute a metric that :func:`check` has passed.

    A blank answer, or contexts with nothing in them, are the fault of the system under test: the
    lowest score, without a call. ``tools``: with books that the caller wants to see.

    Raises
    ------
    Unscored
        Judge or embedder failed, or the metric is undefined for this sample.
    """
    tools = tools or Tools(metric.name, judge, embedder)
    tools.lang = sample.lang
    shortcut = _shortcut(metric, sample)
    if shortcut is not None:
        value, reason = shortcut
        return tools.score(sample, value, reason=reason)
    chosen = {**metric.options, **options}
    tools.verdicts, tools.yes_from = chosen.pop("verdicts", "json"), chosen.pop("yes_from", 0.5)
    score = await metric.compute(sample, tools, **chosen)
    if tools.verdicts == "probability":
        # Another instrument than the same model's JSON: so reports say, and baselines compare it with its like.
        asked = f"{score.judge} by probability" if score.judge else None
        score = replace(score, judge=asked, details={**score.details, "verdicts": tools.verdicts})
    return in_range(metric, score)


def in_range(metric: Metric, score: Score) -> Score:
    """The score, float noise at the ends of the range cut off; UsageError where it lies outside."""
    if not metric.low - 1e-9 <= score.value <= metric.high + 1e-9:
        raise UsageError(
            f"{metric.name} returned {score.value}, outside its range {metric.low:g}..{metric.high:g}"
        )
    value = min(max(score.value, metric.low), metric.high)
    return score if value == score.value else replace(score, value=value)


def _shortcut(metric: Metric, sample: RagSample) -> tuple[float, str] | None:
    if "answer" in metric.needs and not (sample.answer or "").strip():
        return (0.0 if metric.direction == "higher" else metric.worst), "empty answer"
    empty = not any(context.strip() for context in sample.contexts or ())
    if empty and metric.without_contexts is not None and "contexts" in metric.needs:
        return metric.without_contexts, "no contexts retrieved"
    return None
