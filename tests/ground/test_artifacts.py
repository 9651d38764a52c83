from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.report.artifacts import artifact_path

FOLDER = Path("/out")


def name(text: str) -> str:
    return artifact_path(FOLDER, text, ".json").name


def test_plain_names_are_kept_and_others_stay_readable() -> None:
    assert name("q-17_b") == "q-17_b.json"
    assert name("вопрос/1").startswith("вопрос-1-")
    assert name("返金は?").startswith("返金は-")


@pytest.mark.parametrize(
    "text",
    ["../../etc/passwd", "/abs", "..", ".", "", "CON", "nul", "com1", "a\x00b", "строка\n2", "x" * 5000, "a:b*c?",
     "🙂" * 300, "\ud800", "-rf", ".hidden", "a\\b", "\u202eexe"],
)  # fmt: skip
def test_any_text_is_one_file_in_the_folder(text: str, tmp_path: Path) -> None:
    path = artifact_path(tmp_path, text, ".json")
    path.write_text("x")
    assert path.resolve().parent == tmp_path.resolve()
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert path.stem.casefold() not in ("con", "nul", "com1")


@given(st.text())
def test_the_name_is_short_and_plain(text: str) -> None:
    made = name(text)
    assert made[0] not in ".-"
    assert len(made.encode()) < 200
    assert all(letter.isalnum() or letter in "_-." for letter in made)
    assert made.removesuffix(".json").count(".") == 0


@given(st.lists(st.text(alphabet="aAа/.-\n é", max_size=6), unique=True))
def test_two_texts_never_share_a_file(texts: list[str]) -> None:
    assert len({name(text).casefold() for text in texts}) == len(texts)


def test_a_suffix_holds_no_path() -> None:
    for suffix in ("json", "/../x", ".", ""):
        with pytest.raises(UsageError):
            artifact_path(FOLDER, "a", suffix)
