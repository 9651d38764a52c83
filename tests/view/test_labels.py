"""Labels that the server takes: none is lost, and none that is wrong gets in."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.calibration.labels import read_labels
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.report.history import History
from pytest_ragbench.view.labels import LabelsFile
from tests.report_html.pages import ReadPage
from tests.view.conftest import Site, run_id


def a_label(name: str, human: bool = True, **more: Any) -> dict[str, Any]:
    told = {
        "question_id": name, "metric": "faithfulness", "claim": None, "verdict": True, "human_verdict": human,
        "label": "right" if human else "wrong", "evidence": None, "test": f"test_a.py::test_answer[{name}]",
        "run": run_id(4), "question": "What?", "answer": "It is\u2028this.", "contexts": ["a", "b"],
    }  # fmt: skip
    return {**told, **more}


def sent(site: Site, marked: list[Any], cleared: Sequence[Any] = (), **headers: Any) -> tuple[int, Any]:
    body = json.dumps({"marked": marked, "cleared": list(cleared)})
    given = {"Content_Type": "application/json", **headers}
    status, text = site.ask("labels", method="POST", body=body, **given)
    return status, json.loads(text) if text.startswith("{") else text


def test_marks_are_saved_changed_and_taken_away(site: Site, history: History) -> None:
    path = history.path.parent / "labels.jsonl"
    assert sent(site, [a_label("q0"), a_label("q1", remark="é")]) == (200, {"saved": 2})
    claim = a_label("q0", False, claim="It is 13.", evidence=1)
    assert sent(site, [a_label("q0", False), claim])[0] == 200
    assert [(label.question_id, label.claim, label.human_verdict) for label in read_labels(path)] == [
        ("q1", None, True), ("q0", None, False), ("q0", "It is 13.", False),
    ]  # fmt: skip
    assert path.read_text(encoding="utf-8").count("\n") == 3
    assert "\u2028" not in path.read_text(encoding="utf-8")
    data = json.loads(ReadPage(site.ask(f"run/{run_id(4)}")[1]).blocks[0])
    assert data["labels"] == {
        "url": "../labels",
        "file": str(path),
        "marked": [a_label("q1", remark="é"), a_label("q0", False), claim],
    }
    other = json.loads(ReadPage(site.ask(f"run/{run_id(3)}")[1]).blocks[0])
    assert other["labels"]["marked"] == []
    about = {name: claim[name] for name in ("run", "test", "question_id", "metric", "evidence", "claim")}
    assert sent(site, [], [about, a_label("q0"), a_label("q1")])[0] == 200
    assert path.read_text(encoding="utf-8") == ""


def test_what_others_wrote_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    theirs = (
        '{"question_id":"x", "metric":"mrr","claim":null,"verdict":true,"human_verdict":false,"team":"β"}'
    )
    path.write_text(f"\ufeff{theirs}\r\n\n{json.dumps(a_label('q0'))}", encoding="utf-8", newline="")
    path.chmod(0o640)
    labels = LabelsFile(path)
    labels.save([a_label("q1")], [a_label("q0")])
    assert path.read_text(encoding="utf-8").splitlines()[0] == theirs
    assert [label.question_id for label in read_labels(path)] == ["x", "q1"]
    assert path.stat().st_mode & 0o777 == 0o640
    path.write_text(f"{theirs}\nno label\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"labels\.jsonl:2: no JSON"):
        labels.save([a_label("q2")], [])
    assert "no label" in path.read_text(encoding="utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["labels.jsonl"]


WRITER = """\
import sys
from pathlib import Path
from pytest_ragbench.view.labels import LabelsFile
from tests.view.test_labels import a_label
labels = LabelsFile(Path(sys.argv[1]))
for number in range(20):
    labels.save([a_label(f"{sys.argv[2]}-{number}")], [])
"""


def test_tabs_and_servers_that_save_at_once_lose_nothing(site: Site, history: History) -> None:
    path, root = history.path.parent / "labels.jsonl", Path(__file__).parents[2]
    others = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], cwd=root) for name in ("a", "b")
    ]
    with ThreadPoolExecutor(8) as tabs:
        told = list(tabs.map(lambda number: sent(site, [a_label(f"q{number}")])[0], range(40)))
    assert told == [200] * 40
    assert [process.wait(120) for process in others] == [0, 0]
    assert len(read_labels(path)) == 80


def test_what_is_no_label_is_refused_as_a_whole(site: Site, history: History) -> None:
    for marked, cleared, said in (
        ([a_label("q0"), {"metric": "mrr"}], [], "question_id: Field required"),
        ([a_label("q0"), a_label("q1", label="wrong")], [], "label is 'wrong', but verdict is True"),
        ([a_label("q0"), "q1"], [], "a label is an object, got str"),
        ([a_label("q0"), a_label("q1", value=float("nan"))], [], "value: "),
        ([a_label("q0")], [7], "a label is an object, got int"),
        ([a_label("q0")], [a_label("q1", run=["x"])], "are strings, numbers or null"),
    ):
        status, told = sent(site, marked, cleared)
        assert (status, said in told["error"]) == (400, True), told
    for body in ("{", "[]", '{"marked": []}', '{"marked": {}, "cleared": []}'):
        assert site.ask("labels", method="POST", body=body, Content_Type="application/json")[0] == 400, body
    assert not (history.path.parent / "labels.jsonl").exists()


def test_pages_of_other_sites_label_nothing(site: Site, history: History) -> None:
    port = site.host.partition(":")[2]
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site", "Origin": f"http://127.0.0.1:{port}"},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
        {"Host": "evil.example"},
    ):
        assert sent(site, [a_label("q0")], **headers)[0] == 403, headers
    assert site.ask("/x/labels", method="POST", body="{}", Content_Type="application/json")[0] == 403
    assert not (history.path.parent / "labels.jsonl").exists()
    assert site.ask("labels")[0] == 405
    own = {"Origin": f"http://localhost:{port}", "Host": f"localhost:{port}", "Sec_Fetch_Site": "same-origin"}
    assert sent(site, [a_label("q0")], **own)[0] == 200
