from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.metrics import trec
from pytest_ragbench.metrics.formulas.many_queries import evaluate
from pytest_ragbench.model.errors import UsageError


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_qrels(tmp_path: Path) -> None:
    file = written(tmp_path / "a.qrels", "\ufeffq1 0 док1 1\nq1\t0\tdoc2\t-2\n\nq2 0 d 0.5\nq1 0 док1 1\n")
    assert trec.read_qrels(file) == {"q1": {"док1": 1, "doc2": -2}, "q2": {"d": 0.5}}


RUN = "q1 Q0 a 3 1.5 tag\nq1 Q0 b 1 2.5 tag with more words\nq1 Q0 c 2 2.5 tag\n"


@pytest.mark.parametrize(("order", "expected"), [("score", "cba"), ("rank", "bca"), ("file", "abc")])
def test_run_order(tmp_path: Path, order: Any, expected: str) -> None:
    file = written(tmp_path / "a.run", RUN)
    assert trec.read_run(file, order=order) == {"q1": list(expected)}


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        (trec.read_qrels, "q1 0 a 1\nq1 0 b\n", r"x:2: expected 'query 0 document grade', got 3 fields"),
        (trec.read_qrels, "q1 0 a yes\n", r"x:1: grade must be a finite number, got 'yes'"),
        (trec.read_qrels, "q1 0 a nan\n", r"x:1: grade must be a finite number"),
        (
            trec.read_qrels,
            "q1 0 a 1\nq1 0 a 2\n",
            r"x:2: document 'a' of query 'q1' has grade 2 here and 1 above",
        ),
        (trec.read_qrels, "\n", "x is empty"),
        (trec.read_run, "q1 Q0 a 1\n", r"x:1: expected 'query Q0 document rank score tag'"),
        (trec.read_run, "q1 Q0 a 1 inf t\n", r"x:1: score must be a finite number, got 'inf'"),
    ],
)
def test_broken_lines_are_named(tmp_path: Path, reader: Any, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        reader(written(tmp_path / "x", text))


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        trec.read_run(tmp_path / "none")
    (tmp_path / "b").write_bytes("q1 0 я 1\n".encode("cp1251"))
    with pytest.raises(UsageError, match="not UTF-8"):
        trec.read_qrels(tmp_path / "b")
    with pytest.raises(UsageError, match="order must be"):
        trec.read_run(tmp_path / "b", order="best")  # type: ignore[arg-type]


def test_round_trip(tmp_path: Path) -> None:
    qrels: dict[str, dict[str, float]] = {"q1": {"д1": 2, "d2": 0}, "q2": {"d": 0.5}}
    trec.write_qrels(tmp_path / "q", qrels)
    assert trec.read_qrels(tmp_path / "q") == qrels
    run = {"q1": ["b", "a", "c"], "q2": ["z"], "q3": []}
    trec.write_run(tmp_path / "r", run)
    for order in ("score", "rank", "file"):
        assert trec.read_run(tmp_path / "r", order=order) == {"q1": ["b", "a", "c"], "q2": ["z"]}
    trec.write_qrels(tmp_path / "plain", {"q1": ["a"]})
    assert trec.read_qrels(tmp_path / "plain") == {"q1": {"a": 1}}


@pytest.mark.parametrize("bad", ["two words", "", "tab\t"])
def test_ids_with_white_space_are_not_written(tmp_path: Path, bad: str) -> None:
    with pytest.raises(UsageError, match="white space"):
        trec.write_run(tmp_path / "r", {"q": [bad]})


def test_a_run_file_scores_as_in_trec_eval(tmp_path: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    file = written(tmp_path / "a.run", RUN)
    oracle = pytrec_eval.RelevanceEvaluator({"q1": {"b": 1}}, {"recip_rank"}).evaluate(
        {"q1": {"a": 1.5, "b": 2.5, "c": 2.5}}
    )
    assert (
        evaluate({"q1": ["b"]}, trec.read_run(file), ["mrr"])["mrr"].mean == oracle["q1"]["recip_rank"] == 0.5
    )
