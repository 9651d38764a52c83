"""A command that answers: the question goes in as an argument or on stdin, the answer comes on stdout."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from pytest_ragbench.clean import one_line
from pytest_ragbench.engine.calls import Transient
from pytest_ragbench.model.errors import EndpointError, UsageError
from pytest_ragbench.providers import Spec
from pytest_ragbench.rag.callables import CallableRetriever
from pytest_ragbench.rag.mapping import ReplyReader
from pytest_ragbench.rag.trace_context import traceparent


def named_retriever(spec: Spec) -> CallableRetriever:
    """``"command:PROGRAM ARGUMENTS"``; see :func:`command_function`."""
    rag = spec.settings.rag
    function = command_function(spec.rest, rag.timeout)
    return CallableRetriever(function, spec.engine, ReplyReader(rag.reply), name=spec.text)


def command_function(line: str, timeout: float) -> Callable[[str], Coroutine[Any, Any, Any]]:
    """The command line as a function of the question.

    Parameters
    ----------
    line
        As for a shell, but run without one. ``{question}`` in an argument is filled in; without it the question
        goes to stdin. Output that is JSON is read as a service's reply, any other as the answer.
    timeout
        Seconds.

    Raises
    ------
    UsageError
        Quotes that are not closed, or no such program.
    """
    try:
        # No shell: a question may hold quotes, semicolons and dollar signs.
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"retriever 'command:{line}': {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise UsageError(f"retriever 'command:{line}': there is no program {words[0] if words else ''!r}")
    # Questions may be longer than an argument can be, so stdin is the default.
    on_stdin = not any("{question}" in word for word in words)

    async def ask(question: str) -> Any:
        process = await asyncio.create_subprocess_exec(
            *(word.replace("{question}", question) for word in words),
            stdin=asyncio.subprocess.PIPE if on_stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "TRACEPARENT": traceparent() or ""},
        )
        try:
            async with asyncio.timeout(timeout):
                out, err = await process.communicate(question.encode() if on_stdin else None)
        except TimeoutError:
            raise Transient(f"{words[0]}: no answer within {timeout:g} s", code="timeout") from None
        finally:
            # Timed out or cancelled: nobody waits for the process any more.
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            said = one_line(err.decode("utf-8", "replace"), 300)
            raise EndpointError(
                f"{words[0]} ended with {process.returncode}: {said or 'it said nothing'}", code="exit"
            )
        return _read(out, words[0])

    return ask


def _read(out: bytes, program: str) -> Any:
    try:
        text = out.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise EndpointError(
            f"{program} wrote something that is not UTF-8", code="bad_reply", raw=repr(out)
        ) from None
    # Only objects and lists: an answer such as 42 or "yes" reads as JSON, too.
    if text.lstrip()[:1] in ("{", "["):
        with suppress(ValueError):
            return json.loads(text)
    return text.strip()
