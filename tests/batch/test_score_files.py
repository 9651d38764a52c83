from __future__ import annotations

import csv
import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench import building
from pytest_ragbench.batch import Job, Scorer, Totals, score_file
from pytest_ragbench.batch.rows import CHUNK, entries
from pytest_ragbench.batch.totals import MetricTotals
from pytest_ragbench.cli.shared import Exit
from pytest_ragbench.engine import Engine
from pytest_ragbench.model.errors import QuestionFileError, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.settings import Settings
from tests.cli.conftest import Cli, cli

__all__ = ["cli"]  # the fixture

ROWS: list[dict[str, Any]] = [
    {
        "question": "How long is the warranty?",
        "answer": "Two years.",
        "contexts": ["The warranty is two years."],
    },
    {
        "question": "How long is the warranty?",
        "answer": "Ten years.",
        "contexts": ["The warranty is two years."],
    },
    {"question": "Сколько длится доставка?", "answer": "Два дня.", "contexts": ["Доставка длится два дня."]},
]
SETTINGS = Settings(judge="local")


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def out(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = building.engine(SETTINGS.model_copy(update={"store": "off"}), run_id="test")
    yield made
    made.close()


def job(path: Path, text: str = lines(ROWS), name: str = "logs.jsonl", **more: Any) -> Job:
    (path / name).write_text(text, encoding="utf-8")
    given: dict[str, Any] = {"output": path / "out.jsonl", "metrics": ["faithfulness"], **more}
    return Job(path=path / name, **given)


def test_scores_by_row(cli: Cli) -> None:
    cli.write("logs.jsonl", lines(ROWS))
    ran = cli("score", "logs.jsonl", "-m", "faithfulness", "-m", "abstention", "--json")
    assert ran.code == Exit.OK
    assert ran.data["metrics"]["faithfulness"]["n_scored"] == 3
    assert ran.data["metrics"]["faithfulness"]["mean"] == pytest.approx(2 / 3)
    rows = out(cli.path / "logs.scores.jsonl")
    assert [row["scores"]["faithfulness"] for row in rows] == [1.0, 0.0, 1.0]
    assert [row["line"] for row in rows] == [1, 2, 3]
    assert rows[1]["reasons"]["faithfulness"]
    assert not list(cli.path.glob("*.part*"))


def test_a_threshold_decides_the_exit_code(cli: Cli) -> None:
    cli.write("logs.jsonl", lines(ROWS))
    args = ["score", "logs.jsonl", "--fresh", "-t"]
    assert cli(*args, "faithfulness>=0.6").code == Exit.OK
    missed = cli(*args, "faithfulness=good")
    assert (missed.code, ">=0.7" in missed.out) == (Exit.QUALITY, True)
    assert cli(*args, "faithfulness<=0.6").code == Exit.USAGE
    assert cli(*args, "faithfulness").code == Exit.USAGE


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_in_and_out(tmp_path: Path, engine: Engine, suffix: str) -> None:
    if suffix == "csv":
        text = "question;answer;contexts\n" + "".join(
            f'"{row["question"]}";"{row["answer"]}";"{row["contexts"][0]}"\n' for row in ROWS
        )
        work = job(tmp_path, text, "logs.csv", output=tmp_path / "out.csv")
    else:
        pa = pytest.importorskip("pyarrow")
        pq = pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "logs.parquet")
        work = Job(tmp_path / "logs.parquet", tmp_path / "out.parquet", ["faithfulness"])
    totals = score_file(work, engine, SETTINGS)
    assert totals.by_metric["faithfulness"].n == 3
    if suffix == "csv":
        with work.output.open(encoding="utf-8-sig", newline="") as file:
            table = list(csv.DictReader(file))
        assert [row["line"] for row in table] == ["2", "3", "4"]
        assert [float(row["faithfulness"]) for row in table] == [1.0, 0.0, 1.0]
    else:
        table = pq.read_table(work.output).to_pylist()
        assert [row["faithfulness"] for row in table] == [1.0, 0.0, 1.0]
        assert [row["row"] for row in table] == [1, 2, 3]


def test_an_interrupted_run_goes_on(tmp_path: Path, engine: Engine) -> None:
    rows = [{**ROWS[n % 3], "id": f"r{n}"} for n in range(100)]
    work = job(tmp_path, lines(rows))

    def stop(totals: Totals) -> None:
        if totals.rows == 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_file(work, engine, SETTINGS, progress=stop)
    with work.part.open("a") as file:
        file.write('{"row": 41, "cut in the mid')  # the process died while it wrote
    text = work.path.read_text()
    work.path.write_text(
        "x" * text.index("\n") + text[text.index("\n") :]
    )  # lines that are done aren't read again
    seen: list[int] = []
    totals = score_file(work, engine, SETTINGS, progress=lambda totals: seen.append(totals.rows))
    assert [row["row"] for row in out(work.output)] == list(range(1, 101))
    assert seen == list(range(41, 101))
    assert totals.by_metric["faithfulness"].mean == pytest.approx(
        statistics.mean(row["scores"]["faithfulness"] for row in out(work.output))
    )


def test_another_run_is_not_gone_on_with(tmp_path: Path, engine: Engine) -> None:
    work = job(tmp_path)

    def stop(totals: Totals) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_file(work, engine, SETTINGS, progress=stop)
    other = job(tmp_path, metrics=["abstention"])
    with pytest.raises(UsageError, match="another metrics"):
        score_file(other, engine, SETTINGS)
    score_file(other, engine, SETTINGS, fresh=True)
    with pytest.raises(UsageError, match="exists already"):
        score_file(other, engine, SETTINGS)


def test_rows_that_cant_be_read(cli: Cli) -> None:
    cli.write("logs.jsonl", lines(ROWS[:1]) + "no json\n" + lines(ROWS[1:]))
    ran = cli("score", "logs.jsonl", "-m", "faithfulness")
    assert (ran.code, "logs.jsonl:2: not JSON" in ran.err) == (Exit.USAGE, True)
    ran = cli("score", "logs.jsonl", "-m", "faithfulness", "--keep-going", "--fresh", "--json")
    assert (ran.code, ran.data["bad_rows"]) == (Exit.UNSCORED, 1)
    rows = out(cli.path / "logs.scores.jsonl")
    assert [row["line"] for row in rows] == [1, 2, 3, 4]
    assert "not JSON" in rows[1]["error"]


@pytest.mark.parametrize(
    "metric", ["faithfulness", "exact_match"]
)  # that may wait, and that is mere arithmetic
def test_a_bad_row_far_down_loses_nothing(cli: Cli, metric: str) -> None:
    rows = [{**ROWS[0], "id": f"r{n}", "reference": "Two years."} for n in range(CHUNK + 5)]
    cli.write("logs.jsonl", lines(rows[:-2]) + '{"question": \n' + lines(rows[-2:]))
    ran = cli("score", "logs.jsonl", "-m", metric)
    assert (ran.code, f"logs.jsonl:{CHUNK + 4}: not JSON" in ran.err) == (Exit.USAGE, True)
    assert "with --keep-going goes on there" in ran.err
    done = (cli.path / "logs.scores.jsonl.part").read_text(encoding="utf-8")
    assert done
    ran = cli("score", "logs.jsonl", "-m", metric, "--keep-going", "--json")
    assert (ran.code, ran.data["rows"], ran.data["bad_rows"]) == (Exit.UNSCORED, CHUNK + 6, 1)
    text = (cli.path / "logs.scores.jsonl").read_text(encoding="utf-8")
    assert text.startswith(done)
    assert [row["row"] for row in out(cli.path / "logs.scores.jsonl")] == list(range(1, CHUNK + 7))


def test_a_mapped_column_may_be_lacking_in_later_rows(tmp_path: Path) -> None:
    rows = [{"question": f"q{n}?", **({"bot": "a"} if n == 0 else {})} for n in range(CHUNK + 1)]
    path = job(tmp_path, lines(rows)).path
    assert sum(map(len, entries(path, columns={"answer": "bot"}))) == CHUNK + 1


def test_a_row_without_chunks_has_no_score_and_the_others_do(tmp_path: Path, engine: Engine) -> None:
    rows = [ROWS[0], {"question": "Open on Sunday?", "answer": "No."}]
    totals = score_file(job(tmp_path, lines(rows)), engine, SETTINGS)
    assert totals.by_metric["faithfulness"].n == 1
    assert totals.by_metric["faithfulness"].unscored == {"usage": 1}
    [_, second] = out(tmp_path / "out.jsonl")
    assert second["scores"] == {"faithfulness": None}
    assert "needs contexts" in second["errors"]["faithfulness"]["message"]


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        (["ndcg@10"], "needs context_ids"),
        (["silhouette"], "over a set"),
        (["fathfulness"], "did you mean"),
        (["aspect"], "needs the option"),
        ([], "no metric"),
    ],
)
def test_what_no_row_can_have_is_refused_before_any(
    tmp_path: Path, engine: Engine, metrics: list[str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        score_file(job(tmp_path, metrics=metrics), engine, SETTINGS)


def test_an_answer_that_claims_nothing_is_no_failure(cli: Cli) -> None:
    rows = [ROWS[0], {**ROWS[0], "answer": "I don't know."}]
    cli.write("logs.jsonl", lines(rows))
    ran = cli("score", "logs.jsonl", "-m", "faithfulness", "--json")
    assert (ran.code, ran.data["metrics"]["faithfulness"]["n_undefined"]) == (Exit.OK, 1)


def test_a_share_is_always_the_same_rows(tmp_path: Path, engine: Engine) -> None:
    rows = [{**ROWS[0], "id": f"r{n}"} for n in range(300)]

    def chosen(name: str, **more: Any) -> list[int]:
        work = job(tmp_path, lines(rows), output=tmp_path / name, metrics=["abstention"], share=0.3, **more)
        score_file(work, engine, SETTINGS)
        return [row["row"] for row in out(work.output)]

    first = chosen("a.jsonl")
    assert 50 < len(first) < 130
    assert chosen("b.jsonl") == first
    assert chosen("c.jsonl", seed=1) != first
    assert chosen("d.jsonl", limit=7) == first[:7]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.xyz", "x"),
        ("a.jsonl", ""),
        ("a.csv", "question,answer\n"),
        ("a.csv", "colour\nred\n"),
        ("a.jsonl", "[1]\n"),
    ],
)
def test_files_that_are_none(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(QuestionFileError, match=name):
        list(entries(tmp_path / name, keep_going=True))


def test_chunks_are_numbered_through(tmp_path: Path) -> None:
    many = [{"question": f"Question {n}?"} for n in range(CHUNK + 5)]
    (tmp_path / "a.jsonl").write_text("\n" + lines(many))
    first, second = entries(tmp_path / "a.jsonl")
    assert (len(first), len(second)) == (CHUNK, 5)
    assert (second[-1].number, second[-1].line) == (CHUNK + 5, CHUNK + 6)
    (tmp_path / "b.csv").write_text("question\n" + "".join(f'"Question\n{n}?"\n' for n in range(CHUNK + 5)))
    first, second = entries(tmp_path / "b.csv")
    assert (second[0].number, second[0].line) == (CHUNK + 1, 2 * CHUNK + 2)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "cp1251"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.csv").write_bytes("вопрос\nСколько длится доставка?\n".encode(encoding))
    given = "cp1251" if encoding == "cp1251" else None
    [[entry]] = entries(tmp_path / "a.csv", encoding=given)
    assert entry.sample is not None
    assert entry.sample.question == "Сколько длится доставка?"


def test_the_wrong_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("вопрос\nСколько длится доставка?\n".encode("cp1251"))
    with pytest.raises(QuestionFileError, match="cp1251"):
        list(entries(tmp_path / "a.csv"))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=50))
def test_totals_are_those_of_the_statistics_module(values: list[float]) -> None:
    totals = MetricTotals()
    for value in values:
        totals.add(value, None)
    told = totals.to_dict()
    assert told["mean"] == pytest.approx(statistics.fmean(values), abs=1e-12)
    assert told["deviation"] == pytest.approx(statistics.stdev(values), abs=1e-7)
    assert (told["min"], told["max"]) == (min(values), max(values))


def test_a_scorer_names_the_errors(engine: Engine) -> None:
    from pytest_ragbench import RagSample

    scorer = Scorer(["faithfulness", "exact_match"], engine, SETTINGS)
    found = engine.wait(
        scorer.scores(RagSample(question="How long?", answer="Two years.", contexts=["Two years."]))
    )
    assert isinstance(found["exact_match"], UsageError)
    assert not isinstance(found["faithfulness"], Exception)


def test_votes_are_counted_by_the_side_of_the_threshold_that_is_given(engine: Engine) -> None:
    grades = iter([0.4, 0.5, 0.45])

    def judge(messages: list[dict[str, str]]) -> str:
        return f'{{"grade": {next(grades)}, "reason": "so"}}'

    name = "answer_relevancy_holistic"
    scorer = Scorer([name], engine, Settings(votes=3, store="off"), judge=judge, thresholds={name: ">=0.42"})
    found = engine.wait(scorer.scores(RagSample("q", "a", ["c"])))[name]
    assert isinstance(found, Score)
    assert found.reason == "so [2 of 3 votes pass]"
