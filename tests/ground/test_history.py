from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.cli.commands.history import bars
from pytest_ragbench.gates.observations import fingerprint
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.report.history import History
from pytest_ragbench.report.reading import read_report
from pytest_ragbench.report.writing import to_json
from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.report_html.pages import a_report, a_result


def run(number: int, mean: float = 0.5, branch: str = "main", **more: Any) -> RunReport:
    summary = {"outcomes": {"passed": 1}, "metrics": [{"metric": "mrr", "tier": "retrieval", "mean": mean}]}
    git = {"commit": f"{number:040x}", "branch": branch}
    told = {"id": f"run-{number}", "started": 1_780_000_000.0 + number, "git": git}
    return a_report([{**a_result("a"), "system": "small"}], run=told, summary=summary, **more)


def test_runs_come_back_oldest_first_without_their_questions(tmp_path: Path) -> None:
    history = History(tmp_path / "new" / "history.sqlite")
    assert history.runs() == []
    for number in (3, 1, 2):
        history.add(run(number, branch="main" if number < 3 else "ветка"))
    history.add(run(2, 0.75))
    found = history.runs()
    assert [report.run.id for report in found] == ["run-1", "run-2", "run-3"]
    assert found[1].summary == run(2, 0.75).summary
    assert found[1].results == ()
    assert [report.run.id for report in history.runs(branch="ветка")] == ["run-3"]
    assert [report.run.id for report in history.runs(1, before=1_780_000_003.0)] == ["run-2"]


def test_the_last_complete_run_of_a_branch_keeps_its_scores_without_texts(tmp_path: Path) -> None:
    history = History(tmp_path / "history.sqlite")
    assert (history.last("main"), history.branches()) == (None, [])
    for number, branch in ((1, "main"), (3, "dev"), (2, "main")):
        history.add(run(number, branch=branch, complete=True))
    history.add(run(4, complete=False))
    survivor = {"kind": "number", "good": False, "id": "a", "question": "a secret", "answer": "a secret"}
    mutated = {"metric": "mrr", "originals": 3, "caught": 0.5, "survivors": [survivor]}
    history.add(run(2, complete=True, mutations={"metrics": [mutated]}))
    found = history.last("main")
    assert found is not None
    assert found.mutations is not None
    assert (found.mutations.metrics[0].caught, found.mutations.metrics[0].survivors) == (0.5, ())
    assert b"a secret" not in history.path.read_bytes()
    assert (found.run.id, history.branches()) == ("run-2", ["dev", "main"])
    [sample] = found.results[0].samples
    given = run(2).results[0]
    assert (sample.id, sample.question) == (given.samples[0].id, fingerprint(given.samples[0].question))
    assert (sample.answer, sample.contexts, found.results[0].system) == (None, None, "small")
    assert [s.value for s in found.results[0].scores] == [s.value for s in given.scores]
    base = sqlite3.connect(history.path)
    assert base.execute("SELECT run FROM scores ORDER BY run").fetchall() == [("run-2",), ("run-3",)]
    base.execute("DROP TABLE scores")  # a file of an earlier version
    base.commit()
    history.path.chmod(0o444)
    assert (history.last("main"), history.branches(), len(history.runs())) == (None, [], 4)
    history.path.chmod(0o644)
    history.add(run(5, complete=True))
    assert history.branches() == ["main"]


def test_retention(tmp_path: Path) -> None:
    history = History(tmp_path / "history.sqlite")
    for number in range(5):
        history.add(run(number), keep=3)
    assert [report.run.id for report in history.runs()] == ["run-2", "run-3", "run-4"]
    assert history.prune(1) == 2
    assert [report.run.id for report in history.runs()] == ["run-4"]


WRITER = """\
import sys
from contextlib import closing
from pathlib import Path
from pytest_ragbench.report.history import History
from pytest_ragbench.report.reading import read_report
from pytest_ragbench.report.writing import to_json
from tests.ground.test_history import run
for number in range(20):
    History(Path(sys.argv[1])).add(run(100 * int(sys.argv[2]) + number))
"""


def test_two_processes_write_one_file(tmp_path: Path) -> None:
    path, root = tmp_path / "history.sqlite", Path(__file__).parents[2]
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*command, str(place)], cwd=root) for place in (1, 2)]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    assert len(History(path).runs(100)) == 40


def test_what_is_no_history_is_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "text.sqlite"
    text.write_text("no database, but long enough to be read as one" * 50, encoding="utf-8")
    other, newer = tmp_path / "other.sqlite", tmp_path / "newer.sqlite"
    with sqlite3.connect(other) as base:
        base.execute("CREATE TABLE theirs (a)")
    with sqlite3.connect(newer) as base:
        base.execute("PRAGMA user_version = 9")
    for path, said in ((text, "not a database"), (other, "of something else"), (newer, "newer ragbench")):
        before = path.read_bytes()
        with pytest.raises(UsageError, match=said):
            History(path).add(run(1))
        assert path.read_bytes() == before


def test_whole_reports_are_kept_as_long_as_their_runs(tmp_path: Path) -> None:
    history, folder = History(tmp_path / "h" / "history.sqlite"), tmp_path / "h" / "reports"
    assert history.reports() == {}
    history.add(run(1))
    assert history.reports() == {}
    for number in (2, 3, 4):
        history.add(run(number), reports=folder, keep=3)
    history.add(run(4, 0.75), reports=folder)
    kept = history.reports()
    assert sorted(kept) == ["run-2", "run-3", "run-4"]
    assert read_report(kept["run-4"]) == run(4, 0.75)
    assert len(list(folder.iterdir())) == 3
    moved = History((tmp_path / "h").rename(tmp_path / "elsewhere") / "history.sqlite")
    assert read_report(moved.reports()["run-2"]) == run(2)
    moved.add(run(5), keep=3)
    assert sorted(moved.reports()) == ["run-3", "run-4"]
    # A version that knows no reports forgets runs, and leaves theirs.
    with closing(sqlite3.connect(moved.path)) as base, base:
        base.execute("DELETE FROM runs WHERE id = 'run-3'")
        outside = [("run-8", "../precious.json"), ("run-9", str(tmp_path / "precious.json"))]
        base.executemany("INSERT INTO reports VALUES (?, ?)", outside)
    precious = tmp_path / "precious.json"
    precious.write_text("{}", encoding="utf-8")
    assert moved.prune(1) == 1
    assert moved.reports() == {}
    assert list((tmp_path / "elsewhere" / "reports").iterdir()) == []
    assert precious.exists()


def test_a_report_that_can_not_be_kept_costs_the_run_nothing(tmp_path: Path) -> None:
    history, file = History(tmp_path / "history.sqlite"), tmp_path / "file"
    file.write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="file.*can't be written"):
        history.add(run(1), reports=file / "reports")
    assert [report.run.id for report in history.runs()] == ["run-1"]
    assert history.reports() == {}


def test_bars_are_drawn_on_the_metrics_range() -> None:
    assert bars("mrr", [0.0, 0.5, None, 1.0]) == "▁▅ █"
    assert bars("bleu", [50.0]) == "▅"
    assert bars("judge_latency", [2.0, 4.0]) == "▅█"


def test_the_command(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("COLUMNS", "60")
    for number, mean in ((1, 0.25), (2, 0.75)):
        cli.write(f"{number}.json", to_json(run(number, mean)))
    done = cli("history", "h.sqlite", "--add", "1.json", "--add", "2.json")
    assert done.code == 0
    head, first, second, _, plot = done.out.splitlines()
    assert head.split() == ["started", "commit", "branch", "outcome"]
    assert first.split()[2:] == ["00000000", "main", "1", "passed"]
    assert len(second) <= 60
    assert plot == "mrr  ▃▇  0.750  +0.500"
    assert [told["run"]["id"] for told in cli("history", "h.sqlite", "--json", "-n", "1").data] == ["run-2"]
    assert "1 runs forgotten" in cli("history", "h.sqlite", "--keep", "1").err
    assert cli("history", "none.sqlite").code == 4
    assert "name its file" in cli("history").err
    assert cli("report", "2.json", "-o", "page.html", "--history", "h.sqlite").code == 0


def test_the_configured_history(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    cli.write("ragbench.toml", 'history = "h.sqlite"\nhistory_reports = "kept"\n')
    cli.write("1.json", to_json(run(1)))
    assert "main" in cli("history", "--add", "1.json").out
    [kept] = (cli.path / "kept").iterdir()
    assert cli("report", str(kept), "-o", "page.html").code == 0
    cli.write("tests/rag/empty.txt", "")
    monkeypatch.chdir(cli.path / "tests/rag")
    assert "main" in cli("history", "--add", str(cli.path / "1.json")).out, "as pytest sees it from there"
    monkeypatch.chdir(cli.path)
    assert sorted(file.name for file in cli.path.iterdir() if file.is_dir()) == ["kept", "tests"]
    assert not list((cli.path / "tests/rag").glob("*.sqlite"))
    cli.write("ragbench.toml", 'history_reports = "kept"\n')
    assert "set history, too" in cli("history").err
