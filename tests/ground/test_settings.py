from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ragbench import UsageError
from pytest_ragbench.settings import load_settings


def test_later_layers_win(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.ragbench]\njudge = "local"\nquestions = "p.csv"\n[tool.ragbench.rag]\nurl = "http://p"\ntimeout = 5\n'
    )
    (tmp_path / "ragbench.toml").write_text('questions = "r.csv"\n[rag]\nurl = "http://r"\n')
    settings = load_settings(tmp_path, environ={})
    assert (settings.judge, settings.questions, settings.rag.url, settings.rag.timeout) == (
        "local",
        "r.csv",
        "http://r",
        5.0,
    )
    environ = {"RAGBENCH_RAG_URL": "http://e/", "RAGBENCH_RAG__TIMEOUT": "7", "RAGBENCH_OTHER": "x"}
    settings = load_settings(tmp_path, environ=environ)
    assert (settings.rag.url, settings.rag.timeout) == ("http://e", 7.0)
    settings = load_settings(tmp_path, environ=environ, options={"rag.url": "http://o", "judge": None})
    assert (settings.rag.url, settings.judge) == ("http://o", "local")
    assert settings.sources[-2:] == ("environment", "command line")


def test_the_nearest_directory_configures(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "ragbench.toml").write_text('judge = "local"\n')
    assert load_settings(below, root=tmp_path, environ={}).judge == "local"
    (tmp_path / "a" / "ragbench.toml").write_text("store = 'off'\n")
    found = load_settings(below, root=tmp_path, environ={})
    assert (found.judge, found.store) == (None, "off")
    assert load_settings(below, root=below, environ={}).store is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("judge = 3\n", r"ragbench.toml: judge: .*string"),
        ("[rag]\ntimeout = -1\n", "ragbench.toml: rag.timeout: .*greater than 0"),
        ("[rag]\ntimeout = nan\n", "rag.timeout"),
        ('[rag]\nurl = "localhost:8080"\n', "rag.url: must be an http:// or https:// URL"),
        ('[rag]\nurl = "http://me:secret@host"\n', "auth_env"),
        ("[rag]\ntimout = 3\n", "rag.timout: unknown key; did you mean 'timeout'?"),
        ("jugde = 'local'\n", "jugde: unknown key; did you mean 'judge'?"),
        ("[providers.x]\nmodle = 'm'\n", "providers.x.modle: unknown key; did you mean 'model'?"),
        (
            "[providers.x]\napi_key = 'sk-1'\n",
            "providers.x.api_key: unknown key; did you mean 'api_key_env'?",
        ),
        ("[rag\n", "ragbench.toml: can't be read as TOML"),
    ],
)
def test_a_bad_value_is_named_with_key_and_file(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "ragbench.toml").write_text(text)
    with pytest.raises(UsageError, match=said) as caught:
        load_settings(tmp_path, environ={})
    assert "secret" not in str(caught.value)
    assert "sk-1" not in str(caught.value)


def test_a_bad_variable_and_option_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="environment: rag.url"):
        load_settings(tmp_path, environ={"RAGBENCH_RAG_URL": "nowhere"})
    with pytest.raises(UsageError, match="command line: rag.url"):
        load_settings(tmp_path, environ={}, options={"rag.url": "nowhere"})
