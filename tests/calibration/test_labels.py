from __future__ import annotations

import json
from pathlib import Path

from pytest_ragbench.calibration.labels import read_labels


def test_a_text_may_hold_any_separator(tmp_path: Path) -> None:
    text = "one\u2028two\u2029three\x85four"
    line = {"question_id": "q", "metric": "mrr", "claim": None, "verdict": True, "label": "right",
            "human_verdict": True, "question": text, "answer": text, "contexts": [text]}  # fmt: skip
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps(line, ensure_ascii=False) + "\n", encoding="utf-8")
    assert [(label.question, label.contexts) for label in read_labels(path)] == [(text, (text,))]
