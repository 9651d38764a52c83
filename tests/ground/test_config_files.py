"""Which file configures a run over given paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ragbench.config_files import find_directory
from pytest_ragbench.model.errors import UsageError

GATE = '[gates]\nfaithfulness = ">= 0.9"\n'
RAG, UNIT = "def test_it(rag_sample): ...\n", "def test_it(): ...\n"


def tree(top: Path, **files: str) -> Path:
    """``tests__rag__ragbench_toml=TEXT`` writes tests/rag/ragbench.toml."""
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        path = top.joinpath(*stem.split("__")).with_suffix(f".{suffix}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return top


@pytest.mark.parametrize(
    "given",
    [
        "",
        "tests",
        "tests/rag",
        "tests/rag/test_a.py",
        "tests/rag/sub",
        "tests/unit tests/rag",
        "tests/../tests",
    ],
)
def test_a_file_below_is_found_wherever_the_run_starts(tmp_path: Path, given: str) -> None:
    tree(tmp_path, tests__rag__ragbench_toml=GATE, tests__rag__test_a_py=RAG, tests__unit__test_b_py=UNIT,
         tests__rag__sub__test_c_py=RAG)  # fmt: skip
    paths = [tmp_path / each for each in given.split() or [""]]
    assert find_directory(paths, tops=[tmp_path]) == tmp_path / "tests" / "rag"
    assert find_directory([tmp_path / "tests" / "unit"], tops=[tmp_path]) is None


def test_a_file_above_is_found_past_the_rootdir(tmp_path: Path) -> None:
    tree(tmp_path, ragbench_toml=GATE, tests__pytest_ini="[pytest]\n", tests__test_a_py=RAG)
    assert find_directory([tmp_path / "tests"], tops=[tmp_path / "tests"]) == tmp_path


def test_links_are_followed_both_ways_and_not_in_circles(tmp_path: Path) -> None:
    tree(tmp_path, real__ragbench_toml=GATE, real__rag__test_a_py=RAG, project__test_b_py=UNIT)
    (tmp_path / "project" / "linked").symlink_to(tmp_path / "real" / "rag")
    (tmp_path / "real" / "rag" / "circle").symlink_to(tmp_path / "real")
    assert find_directory([tmp_path / "project" / "linked"]) == tmp_path / "real"
    (tmp_path / "project" / "whole").symlink_to(tmp_path / "real")
    assert find_directory([tmp_path / "project"]) == tmp_path / "project" / "whole"


def test_two_that_disagree_are_named(tmp_path: Path) -> None:
    tree(tmp_path, a__ragbench_toml=GATE, a__test_a_py=RAG, b__ragbench_toml=GATE, b__test_b_py=RAG)
    assert find_directory([tmp_path]) == tmp_path / "a"
    tree(tmp_path, b__ragbench_toml='judge = "local"\n')
    with pytest.raises(UsageError, match=r"a/ragbench.toml and .*b/ragbench.toml both configure tests"):
        find_directory([tmp_path])
    assert find_directory([tmp_path / "b"]) == tmp_path / "b"
    # What has no tests of this kind has no say; its gates would be for nothing.
    tree(tmp_path, b__test_b_py=UNIT)
    assert find_directory([tmp_path]) == tmp_path / "a"


def test_no_gate_is_hidden_by_a_nearer_file(tmp_path: Path) -> None:
    pyproject = '[tool.ragbench]\njudge = "local"\n[tool.ragbench.gates]\nfaithfulness = ">= 0.9"\n'
    tree(tmp_path, pyproject_toml=pyproject, a__ragbench_toml="store = 'off'\n", a__test_a_py=RAG)
    for start in (tmp_path, tmp_path / "a"):
        with pytest.raises(UsageError, match=r"pyproject.toml \[tool.ragbench\] has gates .*: faithfulness"):
            find_directory([start], tops=[tmp_path])
    tree(tmp_path, a__ragbench_toml=GATE)
    assert find_directory([tmp_path], tops=[tmp_path]) == tmp_path / "a"
    # Beside each other they are one configuration.
    tree(tmp_path, ragbench_toml="store = 'off'\n", a__ragbench_toml=GATE)
    assert find_directory([tmp_path], tops=[tmp_path]) == tmp_path / "a"


def test_folders_that_pytest_leaves_out_have_no_say(tmp_path: Path) -> None:
    tree(
        tmp_path,
        node_modules__x__ragbench_toml=GATE,
        env__pyvenv_cfg="",
        env__x__ragbench_toml=GATE,
        test_a_py=RAG,
    )
    assert find_directory([tmp_path]) is None
