from __future__ import annotations

from importlib.metadata import EntryPoint
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
    environ = {"RAGBENCH_RAG_URL": "http://e/", "RAGBENCH_RAG__TIMEOUT": "7"}
    settings = load_settings(tmp_path, environ=environ)
    assert (settings.rag.url, settings.rag.timeout) == ("http://e", 7.0)
    settings = load_settings(tmp_path, environ=environ, options={"rag.url": "http://o", "judge": None})
    assert (settings.rag.url, settings.judge) == ("http://o", "local")
    assert settings.sources[-2:] == ("environment", "command line")


def test_a_later_url_takes_the_place_of_a_retriever(tmp_path: Path) -> None:
    (tmp_path / "ragbench.toml").write_text('[rag]\nretriever = "app:answer"\ntimeout = 5\n')
    settings = load_settings(tmp_path, environ={})
    assert (settings.rag.retriever, settings.rag.url) == ("app:answer", None)
    settings = load_settings(tmp_path, environ={}, options={"rag.url": "http://o"})
    assert (settings.rag.retriever, settings.rag.url, settings.rag.timeout) == (None, "http://o", 5.0)
    settings = load_settings(tmp_path, environ={"RAGBENCH_RAG_URL": "http://e"})
    assert (settings.rag.retriever, settings.rag.url) == (None, "http://e")
    (tmp_path / "ragbench.toml").write_text('[rag]\nurl = "http://f"\n')
    settings = load_settings(tmp_path, environ={"RAGBENCH_RAG__RETRIEVER": "app:other"})
    assert (settings.rag.retriever, settings.rag.url) == ("app:other", "http://f")


def test_one_place_says_url_or_retriever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ragbench.toml"
    file.write_text('[rag]\nretriever = "app:answer"\nurl = "http://f"\n')
    with pytest.raises(UsageError, match=r"ragbench\.toml:3: \[rag\] has a url and retriever = 'app:answer'"):
        load_settings(tmp_path, environ={})
    file.unlink()
    environ = {"RAGBENCH_RAG_URL": "http://e", "RAGBENCH_RAG__RETRIEVER": "app:answer"}
    with pytest.raises(UsageError, match="RAGBENCH_RAG_URL"):
        load_settings(tmp_path, environ=environ)
    # One that a package brings may ask the URL.
    point = EntryPoint("app", "app:made", "ragbench.retrievers")
    monkeypatch.setattr("pytest_ragbench.settings.loading.installed_points", lambda group: [point])
    assert load_settings(tmp_path, environ=environ).rag.url == "http://e"


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


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("RAGBENCH_RAG_URL", "nowhere", "RAGBENCH_RAG_URL: rag.url: must be an http"),
        ("RAGBENCH_RAG__TIMEOUT", "soon", "RAGBENCH_RAG__TIMEOUT: rag.timeout: .*number"),
        (
            "RAGBENCH_PROVIDERS__LAB__HEADERS",
            "X-Key: sk-1",
            "RAGBENCH_PROVIDERS__LAB__HEADERS: providers.lab.headers: must be a table as JSON",
        ),
        (
            "RAGBENCH_PROVIDERS__LAB__HEADERS",
            '{"a": 1}',
            "RAGBENCH_PROVIDERS__LAB__HEADERS: .*headers.a: .*string",
        ),
        ("RAGBENCH_PROVIDERS", '{"lab": {"modle": "m"}}', "RAGBENCH_PROVIDERS: .*; did you mean 'model'"),
        ("RAGBENCH_GATES__MRR", "[1]", "RAGBENCH_GATES__MRR: gates.mrr"),
        ("RAGBENCH_JUGDE", "local", "RAGBENCH_JUGDE: unknown variable; did you mean RAGBENCH_JUDGE?"),
        ("RAGBENCH_RAG__TIMOUT", "5", "RAGBENCH_RAG__TIMOUT: .*did you mean RAGBENCH_RAG__TIMEOUT?"),
        ("RAGBENCH_RGA__TIMEOUT", "5", "RAGBENCH_RGA__TIMEOUT: .*did you mean RAGBENCH_RAG__TIMEOUT?"),
        ("RAGBENCH_PROVIDERS__LAB__KEY", "sk-1", "unknown variable; known there: api_key_env, .*base_url"),
        ("RAGBENCH_XYZZY", "1", "only settings may begin with RAGBENCH_"),
        ("RAGBENCH_SOURCES", "a", "RAGBENCH_SOURCES: unknown variable"),
    ],
)
def test_a_bad_variable_is_named(tmp_path: Path, name: str, value: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        load_settings(tmp_path, environ={name: value})
    assert "sk-1" not in str(caught.value)


def test_a_bad_option_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="command line: rag.url"):
        load_settings(tmp_path, environ={}, options={"rag.url": "nowhere"})
    with pytest.raises(UsageError, match="--rag-url: rag.url"):
        load_settings(tmp_path, environ={}, options={"rag.url": "nowhere"}, flags={"rag.url": "--rag-url"})


def test_variables_of_each_type(tmp_path: Path) -> None:
    (tmp_path / "ragbench.toml").write_text('[providers.Lab]\nmodel = "m"\nheaders = {A = "1", B = "2"}\n')
    environ = {
        "RAGBENCH_PROVIDERS__LAB__HEADERS": '{"B": "3", "X-Team": "qa"}',
        "RAGBENCH_PROVIDERS__LAB__RETRY__ATTEMPTS": "2",
        "RAGBENCH_PROVIDERS__OTHER": '{"model": "o"}',
        "RAGBENCH_JUDGES": '["local", "Lab:m"]',
        "RAGBENCH_RECORDED": "rag, judge",
        "RAGBENCH_JUNIT_PROPERTIES": "false",
        "RAGBENCH_VOTES": "3",
        "RAGBENCH_RAG__BODY": '{"q": "{question}"}',
        "RAGBENCH_THRESHOLDS__MRR": "0.8",
        "RAGBENCH_GATES__MUST_PASS": "true",
        "RAGBENCH_GATES__MRR": ">= 0.8",
        "RAGBENCH_JUDGE": "5",
        "RAGBENCH_STORE": "",
    }
    settings = load_settings(tmp_path, environ=environ)
    lab = settings.providers["Lab"]
    assert (lab.model, lab.headers, lab.retry.attempts) == ("m", {"A": "1", "B": "3", "X-Team": "qa"}, 2)
    assert set(settings.providers) == {"Lab", "other"}
    assert settings.judges == ("local", "Lab:m")
    assert settings.recorded == {"rag", "judge"}
    assert (settings.junit_properties, settings.votes, settings.judge, settings.store) == (
        False,
        3,
        "5",
        None,
    )
    assert settings.rag.body == {"q": "{question}"}
    assert (settings.thresholds, settings.gates) == ({"mrr": 0.8}, {"must_pass": True, "mrr": ">= 0.8"})
    assert load_settings(tmp_path, environ={"RAGBENCH_JUDGES": "local,Lab"}).judges == ("local", "Lab")


def test_variables_that_are_no_settings_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ragbench.toml").write_text('[providers.lab]\napi_key_env = "RAGBENCH_LAB_KEY"\n')
    environ = {"RAGBENCH_TRACEBACK": "1", "RAGBENCH_TEST_POSTGRES": "url", "RAGBENCH_LAB_KEY": "sk-1"}
    assert load_settings(tmp_path, environ=environ).sources == (str(tmp_path / "ragbench.toml"),)
    with pytest.raises(UsageError, match="RAGBENCH_LAB_KEY"):
        load_settings(tmp_path.parent, environ=environ)


def test_what_was_read_is_no_setting(tmp_path: Path) -> None:
    (tmp_path / "ragbench.toml").write_text("sources = ['x']\n")
    with pytest.raises(UsageError, match="sources: unknown key"):
        load_settings(tmp_path, environ={})
