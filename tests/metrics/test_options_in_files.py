"""Every option of every metric, given in Python, in YAML and in the configuration: the same options arrive."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from pytest_ragbench import RagSample, UsageError
from pytest_ragbench.assertions.stub import is_built_in
from pytest_ragbench.metrics.checks import asks_yes_or_no
from pytest_ragbench.metrics.registry import Metric, all_metrics, option_parameters
from pytest_ragbench.scoring import Context, ScoreRequest, Wanted, prepare
from pytest_ragbench.scoring.configured import configured_options, unregistered
from pytest_ragbench.settings import Settings, load_settings
from pytest_ragbench.specs.loading import load_suite

BY_NAME: Mapping[str, list[Any]] = {
    "scale": [[0, 2, 4]],
    "weights": [[1, 0]],
    "rubric": [{"1": "wrong", "2": "right"}],
    "definition": ["Is it polite?"],
    "include": [["contexts"]],
    "votes": [3],
    "labels": [["a", "b"]],
    "levels": [[0, 1]],
    "cache": [["How long?"]],
    "by": ["faithfulness"],
    "options": [{"on_no_claims": 1}],
    "tokenizer": ["char"],
    "lang": ["ru"],
}
"""Values of options whose type alone does not say which values make sense."""

NOT_HERE: Mapping[tuple[str, str], list[Any]] = {
    ("judge_consistency", "scale"): [[0, 1]],
    ("cohen_kappa", "weights"): ["linear", "quadratic"],
}
ROUGE = {"rouge1", "rouge2", "rougeL"}

SAMPLE = RagSample(
    "How long?", answer="30 days.", contexts=["30 days."], reference="30 days.", context_ids=["a"], relevant_ids=["a"],
    context_urls=["http://w/a"], relevant_urls=["http://w/a"], reference_contexts=["30 days."],
)  # fmt: skip


def values(metric: Metric, option: str) -> list[Any]:
    """Plain values, as a file has them."""
    if (metric.name, option) in NOT_HERE:
        return NOT_HERE[metric.name, option]
    if option in BY_NAME and not (option == "tokenizer" and metric.name in ROUGE):
        return BY_NAME[option]
    hint = get_type_hints(inspect.unwrap(metric.compute))[option]
    kinds = [hint, *get_args(hint)]
    listed = [value for kind in kinds if get_origin(kind) is Literal for value in get_args(kind)]
    if listed:
        return listed
    default = option_parameters(metric)[option].default
    for kind, value in ((bool, default is not True), (int, 3), (float, 0.25), (str, "x")):
        if kind in kinds:
            return [value]
    raise AssertionError(f"{metric.name}: say in BY_NAME what {option}: {hint} may be")


def table() -> Iterator[Any]:
    for name, metric in all_metrics().items():
        if not is_built_in(metric):
            continue
        names = [*option_parameters(metric), *(["verdicts", "yes_from"] if asks_yes_or_no(metric) else [])]
        for option in names:
            if option == "k":
                continue  # part of the name: below
            common: dict[str, list[Any]] = {"verdicts": ["json", "probability"], "yes_from": [0.7]}
            given = common.get(option) or values(metric, option)
            for value in given:
                yield pytest.param(name, option, value, id=f"{name}-{option}-{value}")


def needed(metric: Metric, option: str) -> dict[str, Any]:
    """Options without which this one can't be given."""
    found = {
        name: BY_NAME[name][0]
        for name, each in option_parameters(metric).items()
        if each.default is inspect.Parameter.empty and name not in (option, "k")
    }
    return found | ({"verdicts": "probability"} if option == "yes_from" else {})


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(part)}" for key, part in value.items()) + "}"
    return json.dumps(value)


class AbleJudge:
    name = "able"
    tasks = None
    probabilities = True


def arrived(settings: Settings, name: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options that a metric is computed with; of a single sample, once all checks have passed."""
    found = configured_options(settings, name, options)
    if all_metrics()[name.partition("@")[0]].of == "set":
        return found
    judge: Any = AbleJudge()
    context = Context(
        settings=lambda: settings, engine=lambda: judge, judge=lambda: judge, embedder=lambda: judge
    )
    prepared = prepare(context, ScoreRequest(metric=name, sample=SAMPLE, options=options))
    assert prepared.options == found
    return found


def plain(value: Any) -> Any:
    """Lists and tuples, and keys as texts, are the same to a formula."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize(("name", "option", "value"), table())
def test_each_option_arrives_by_each_way(tmp_path: Path, name: str, option: str, value: Any) -> None:
    metric = all_metrics()[name]
    options = {**needed(metric, option), option: value}
    takes_k = option_parameters(metric).get("k")
    asked = f"{name}@3" if takes_k is not None and takes_k.default is inspect.Parameter.empty else name

    in_python = {key: {1: "wrong", 2: "right"} if key == "rubric" else part for key, part in options.items()}
    by_python = arrived(Settings(), asked, in_python)

    kind = "over" if metric.of == "set" else "thresholds"
    (tmp_path / "a.rag.yaml").write_text(
        json.dumps({"questions": ["q"], kind: [{"metric": asked, **options}]}), encoding="utf-8"
    )
    [case] = load_suite(tmp_path / "a.rag.yaml")
    wanted: list[Wanted] = [limit.wanted() for limit in getattr(case.test, kind)]
    by_yaml = arrived(Settings(), wanted[0].metric, wanted[0].options)
    assert plain(by_yaml) == plain(by_python)
    assert option in by_yaml

    if value is None:
        return  # TOML has no null
    lines = [f"{key} = {toml(part)}" for key, part in options.items()]
    (tmp_path / "ragbench.toml").write_text("\n".join([f"[metrics.{name}]", *lines]), encoding="utf-8")
    by_configuration = dict(arrived(load_settings(tmp_path, environ={}), asked, {}))
    if option == "verdicts" and value == "probability":
        by_configuration.pop("yes_from")  # the configuration's own default
    assert plain(by_configuration) == plain(by_python)

    # A call wins over the configuration.
    assert configured_options(load_settings(tmp_path, environ={}), asked, {option: "call"})[option] == "call"


@pytest.mark.parametrize(
    "name", [name for name, each in all_metrics().items() if "k" in option_parameters(each)]
)
def test_a_cutoff_is_part_of_the_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.rag.yaml").write_text(f"questions: [q]\nthresholds: [{{metric: {name}, k: 3}}]\n")
    [case] = load_suite(tmp_path / "a.rag.yaml")
    assert [limit.metric for limit in case.test.thresholds] == [f"{name}@3"]
    (tmp_path / "ragbench.toml").write_text(f"[metrics.{name}]\nk = 3\n")
    with pytest.raises(
        UsageError, match=rf"ragbench.toml:2: metrics.{name}.k: .* write {name}@3 in the test"
    ):
        configured_options(load_settings(tmp_path, environ={}), f"{name}@3", {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[metrics.context_recall]\n# a comment\nunitz = "claims"\n',
            "toml:3: metrics.context_recall.unitz: .*'units'",
        ),
        (
            '[metrics]\ncontext_recall.units = "claim"\n',
            "toml:2: metrics.context_recall.units: .*'claims' or 'sente",
        ),
        (
            "metrics.answer_relevancy = {strictness = 2.5}\n",
            "toml:1: metrics.answer_relevancy.strictness: .*integer",
        ),
        (
            "[metrics.answer_accuracy]\nscale = [0, 'x']\n",
            r"toml:2: metrics.answer_accuracy.scale: .*scale\[1\]",
        ),
        (
            "[metrics.contextrecall]\nunits = 'claims'\n",
            "toml:1: metrics.contextrecall: .*did you mean 'context_recall'",
        ),
    ],
)
def test_a_wrong_option_is_named_with_file_line_and_key(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "ragbench.toml").write_text(text)
    with pytest.raises(UsageError, match=said):
        configured_options(load_settings(tmp_path, environ={}), "faithfulness", {})
    (tmp_path / "ragbench.toml").unlink()
    with pytest.raises(
        UsageError, match="RAGBENCH_METRICS__CONTEXT_RECALL__UNITZ: metrics.context_recall.unitz"
    ):
        configured_options(
            load_settings(tmp_path, environ={"RAGBENCH_METRICS__CONTEXT_RECALL__UNITZ": "a"}),
            "faithfulness",
            {},
        )


@pytest.mark.parametrize("named", [True, False])
def test_a_metric_of_a_conftest_may_be_called_nearly_like_one_of_ours(tmp_path: Path, named: bool) -> None:
    (tmp_path / "ragbench.toml").write_text("[metrics.faithfulness2]\nstrict = true\n")
    (tmp_path / "own").mkdir()
    name = "faithfulness2" if named else "slips"
    (tmp_path / "own" / "conftest.py").write_text(f'@metric("{name}", tier="generation")\n')
    settings = load_settings(tmp_path, environ={})
    if named:
        assert configured_options(settings, "bleu", {}) == {}
        assert list(unregistered(settings)) == []
    else:
        with pytest.raises(UsageError, match="toml:1: metrics.faithfulness2: .*did you mean 'faithfulness'"):
            configured_options(settings, "bleu", {})
