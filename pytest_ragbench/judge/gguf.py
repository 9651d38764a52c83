"""A judge from a file: ``judge = "gguf:PATH"``. The model runs in this very process (extra ``llama``, xllamacpp).

llama.cpp's server on the loopback answers it, behind a key of its own; it starts with the first question, once a
run, and ends with the process. The file itself tells everything that can be refused before that.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import astuple, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pytest_ragbench.engine.calls import Call, Sender, send_turns
from pytest_ragbench.engine.limits import limits_of
from pytest_ragbench.http.endpoints import Endpoint, endpoint_of
from pytest_ragbench.judge.base import Task
from pytest_ragbench.judge.gguf_server import Model
from pytest_ragbench.judge.openai import ChatJudge
from pytest_ragbench.judge.rendering import Message
from pytest_ragbench.model.errors import JudgeError, UsageError
from pytest_ragbench.providers import Spec
from pytest_ragbench.secrets import Secret
from pytest_ragbench.settings import GgufSettings, ProviderSettings, RetrySettings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

PROVIDER = "gguf"
DEFAULT_CONTEXT = 8192
"""Tokens of prompt and reply together, where neither the settings nor the model say less."""
_MAGIC = b"GGUF"
_N_SAMPLES, _SAMPLE_BYTES, _HEAD_BYTES = 64, 65_536, 8_388_608


def named_judge(spec: Spec) -> GgufJudge:
    """``"gguf:FILE"``; see :func:`gguf_judge`."""
    return gguf_judge(spec.rest, spec.settings.gguf, spec.engine)


def gguf_judge(path: str, settings: GgufSettings, engine: Engine) -> GgufJudge:
    """A judge that runs the model in a file.

    Raises
    ------
    UsageError
        No such file, or none of this kind; a context larger than the model's; the extra is not installed.
    """
    file = Path(path).expanduser()
    if not path or not file.is_file():
        raise UsageError(
            f'judge "gguf:{path}": there is no file {str(file)!r}; write judge = "gguf:models/judge.gguf"'
        )
    # All that can be refused by the file alone is refused now: loading a model takes seconds.
    told = read_header(file)
    n_ctx = settings.n_ctx or min(DEFAULT_CONTEXT, told.context_length or DEFAULT_CONTEXT)
    if told.context_length and n_ctx > told.context_length:
        raise UsageError(
            f"gguf.n_ctx is {n_ctx}, but the model in {str(file)!r} reads {told.context_length} tokens at most; "
            f"set gguf.n_ctx = {told.context_length} or less"
        )
    # A recording replays without the library.
    if find_spec("xllamacpp") is None and not engine.replays("judge"):
        raise UsageError(
            f"judge \"gguf:{path}\" needs the extra 'llama': pip install 'pytest-ragbench[llama]' (xllamacpp)"
        )
    provider = ProviderSettings(
        base_url="http://127.0.0.1",
        structured_output="json_schema",
        timeout=settings.timeout,
        max_tokens=settings.max_tokens,
        max_concurrency=settings.parallel,
        retry=RetrySettings(attempts=2),
    )
    engine.set_limits(PROVIDER, limits_of(provider))
    model = Model(str(file.resolve()), n_ctx, settings.parallel, settings.threads)
    return GgufJudge(model, fingerprint(file), provider, engine)


class GgufJudge(ChatJudge):
    """Answers every task by a model in this process, or in the controller's; make it with :func:`gguf_judge`."""

    def __init__(self, model: Model, identity: str, settings: ProviderSettings, engine: Engine) -> None:
        name = Path(model.path).stem
        super().__init__(PROVIDER, settings, name, engine, endpoint_of(PROVIDER, settings, {}, keyless=True))
        self._file = model
        self._identity = identity
        self._started = False

    @property
    def identity(self) -> str:
        """With the file's content: two files may have one name."""
        return f"{self.name} (file {self._identity[:8]})"

    def _key(self, task: Task[Any], messages: list[Message]) -> dict[str, Any]:
        """The file's content in the place of an address: where the file lies does not matter."""
        return {**super()._key(task, messages), "url": "gguf", "model": self._identity}

    def _own_sending(
        self, call: Call, following: Callable[[Sequence[Any]], Any]
    ) -> Callable[[Sender], Awaitable[Any]]:
        async def send(sender: Sender) -> Any:
            if not self._started:  # outside the attempt, whose time is bounded: a model takes seconds to load
                self._endpoint = await self._start_model()
                self._started = True
            try:
                return await send_turns(
                    self._engine.adapter(call.adapter),
                    replace(call, config=self._endpoint),
                    sender,
                    following,
                )
            except JudgeError as error:
                # llama.cpp's message names no setting of ours.
                if "exceed_context_size" not in (error.raw or ""):
                    raise
                raise JudgeError(
                    f"{str(error).partition(chr(10))[0]}; gguf.n_ctx is {self._file.n_ctx}: set it higher, as far as "
                    "the model goes, or retrieve shorter chunks",
                    code="context_length",
                    raw=error.raw,
                ) from None

        return send

    async def _start_model(self) -> Endpoint:
        url, key = await self._engine.host("model", *astuple(self._file))
        secret = Secret(key)
        return replace(self._endpoint, url=f"{url}/v1", key=secret, secrets=(secret,))


# The file


@dataclass(frozen=True, slots=True)
class Header:
    """What the start of a GGUF file says. ``context_length``: tokens that the model reads; None where unsaid."""

    version: int
    context_length: int | None


def read_header(file: Path) -> Header:
    """Version and context length (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).

    Raises
    ------
    UsageError
        The file can't be read or is not a GGUF file; the message names it.
    """
    try:
        with file.open("rb") as stream:
            if stream.read(4) != _MAGIC:
                raise UsageError(
                    f"{str(file)!r} is not a GGUF file: it does not begin with {_MAGIC.decode()!r}; convert the model, "
                    "or download its .gguf"
                )
            version, _tensors, pairs = struct.unpack("<IQQ", stream.read(20))
            for _ in range(min(pairs, 10_000)):
                name, value = _text(stream), _value(stream)
                if name.endswith(".context_length"):
                    return Header(version, int(value))
                if name.startswith("tokenizer."):  # the long part; what matters stands before it
                    break
            return Header(version, None)
    except (OSError, struct.error, ValueError, OverflowError, MemoryError) as error:
        raise UsageError(
            f"{str(file)!r} can't be read as a GGUF file, it may be cut short: {error}"
        ) from None


_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9


def _text(stream: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", stream.read(8))
    # A damaged length must not make us read gigabytes.
    if length > 1 << 24:
        raise ValueError(f"a string of {length} bytes")
    return stream.read(length).decode("utf-8", "replace")


def _value(stream: BinaryIO, kind: int | None = None) -> Any:
    if kind is None:
        (kind,) = struct.unpack("<I", stream.read(4))
    if kind in _NUMBERS:
        form = "<" + _NUMBERS[kind]
        return struct.unpack(form, stream.read(struct.calcsize(form)))[0]
    if kind == _TEXT:
        return _text(stream)
    if kind == _ARRAY:
        of, length = struct.unpack("<IQ", stream.read(12))
        return [_value(stream, of) for _ in range(min(length, 1 << 20))]
    raise ValueError(f"unknown kind of value: {kind}")


def fingerprint(file: Path) -> str:
    """The identity of a model file, wherever it lies: its size, its first 8 MiB, and 64 places of 64 KiB spread over
    the rest. SHA-256 in hex; 20 ms for a gigabyte, of which a whole hash would take seconds in each process.
    """
    size = file.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with file.open("rb") as stream:
        digest.update(stream.read(_HEAD_BYTES))
        for place in range(_N_SAMPLES):
            stream.seek(max(0, (size - _SAMPLE_BYTES) * place // (_N_SAMPLES - 1)))
            digest.update(stream.read(_SAMPLE_BYTES))
    return digest.hexdigest()
