"""The W3C trace context of a question: a service that takes it up files its own trace under the same id.

It is made when a question is sent, travels with the request and is kept with the reply. A reply's key in
the store knows nothing of it.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

HEADER = "Traceparent"

_CURRENT: ContextVar[Trace | None] = ContextVar("ragbench_trace", default=None)


class Trace(NamedTuple):
    """Ids in lower-case hexadecimal: 32 digits of the trace, 16 of the span that is the request; and the time when it
    was sent, in seconds since 1970.
    """

    trace_id: str
    span_id: str
    asked: float

    @property
    def header(self) -> str:
        """As https://www.w3.org/TR/trace-context/ writes it, sampled: so the service records its trace."""
        return f"00-{self.trace_id}-{self.span_id}-01"


def new_trace() -> Trace:
    """Random ids, none of them all zeros, which would mean that there is no trace."""
    return Trace(secrets.token_hex(15) + "1a", secrets.token_hex(7) + "1a", time.time())


def traceparent() -> str | None:
    """The ``traceparent`` of the question that is being answered here, to be sent on to services.

    For functions that are asked in the place of a service; None elsewhere. A library that is instrumented with
    OpenTelemetry takes it up by itself.
    """
    trace = _CURRENT.get()
    return None if trace is None else trace.header


@contextmanager
def within(trace: Trace) -> Iterator[None]:
    """Inside, :func:`traceparent` tells of ``trace``, and spans of OpenTelemetry are parts of it."""
    token = _CURRENT.set(trace)
    leave = _enter_opentelemetry(trace)
    try:
        yield
    finally:
        leave()
        _CURRENT.reset(token)


def _enter_opentelemetry(trace: Trace) -> Any:
    # Whoever has spans to make has imported it: nobody else should pay for the import.
    otel, context = sys.modules.get("opentelemetry.trace"), sys.modules.get("opentelemetry.context")
    if otel is None or context is None:
        return lambda: None
    parent = otel.SpanContext(
        int(trace.trace_id, 16), int(trace.span_id, 16), is_remote=True, trace_flags=otel.TraceFlags(1)
    )
    token = context.attach(otel.set_span_in_context(otel.NonRecordingSpan(parent)))
    return lambda: context.detach(token)
