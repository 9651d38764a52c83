"""Spans of a run, sent by OTLP while it goes on, as the variables ``OTEL_*`` say. Needs the extra ``otel``.

A thread of its own sends them from a queue with an end: a backend that is slow or down costs a run no test and no time
but a few seconds at its end, and what was not delivered is counted and said.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.tests import TestRecord
from pytest_ragbench.report.formats import ReportContext
from pytest_ragbench.traces.masking import masked
from pytest_ragbench.traces.spans import SpanData, run_span, spans_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

QUEUE_SPANS = 20_000
"""More are dropped, and counted."""
BATCH_SPANS = 512
LAST_WAIT_S = 10.0
"""For so long the end of a run waits for what is still in the queue."""
_LOGGER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


class OtlpReport:
    """A report format: spans in the place of a file.

    Raises
    ------
    UsageError
        The extra is not installed.
    """

    def __init__(self, path: Path, context: ReportContext) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
        except ImportError:
            raise UsageError("--ragbench-otel needs: pip install 'pytest-ragbench[otel]'") from None
        self._run = masked(context.run)
        self._exporter = OTLPSpanExporter()
        self._resource = Resource.create(_named())
        self._queue: queue.Queue[list[SpanData] | None] = queue.Queue()
        self._waiting = self._dropped = self._delivered = self._failed = 0
        self._outcomes: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._why = _LastWord()
        self._thread = threading.Thread(target=self._send, name="ragbench-otlp", daemon=True)
        self._thread.start()

    def add(self, result: TestRecord) -> None:
        """Put the spans of one test into the queue."""
        self._outcomes[result.outcome] += 1
        self._put(list(spans_of(masked(result), self._run, time.time())))

    def finish(self, run: RunReport) -> Iterable[str]:
        """Send what is left, for some seconds at most, and say what became of all."""
        self._put([run_span(self._run, run.finished or time.time(), self._outcomes)])
        self._queue.put(None)
        self._thread.join(LAST_WAIT_S)
        if self._thread.is_alive():
            self._exporter.shutdown()  # type: ignore[no-untyped-call]  # ends the waits between attempts
            self._thread.join(1.0)
        where = getattr(self._exporter, "_endpoint", "the collector")
        with self._lock:
            lost = self._dropped + self._failed + self._waiting
            told = f"otel: {self._delivered} spans delivered to {where}"
            if lost:
                told += f", {lost} not delivered: {self._why.text or 'no reply in time'}"
        return [told]

    def _put(self, spans: list[SpanData]) -> None:
        with self._lock:
            if self._waiting + len(spans) > QUEUE_SPANS:
                self._dropped += len(spans)
                self._why.text = self._why.text or "the collector was too slow"
                return
            self._waiting += len(spans)
        self._queue.put(spans)

    def _send(self) -> None:
        last = False
        while not last:
            batch: list[SpanData] = []
            item = self._queue.get()
            while item is not None:
                batch += item
                if len(batch) >= BATCH_SPANS:
                    break
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
            last = item is None
            if batch:
                delivered = self._exported(batch)
                with self._lock:
                    self._waiting -= len(batch)
                    self._delivered += len(batch) if delivered else 0
                    self._failed += 0 if delivered else len(batch)

    def _exported(self, batch: Sequence[SpanData]) -> bool:
        from opentelemetry.sdk.trace.export import SpanExportResult

        # The exporter says why it failed in its log only.
        logger = logging.getLogger(_LOGGER)
        logger.addHandler(self._why)
        logger.propagate = False
        try:
            spans = [_readable(each, self._resource) for each in batch]
            return self._exporter.export(spans) is SpanExportResult.SUCCESS
        except Exception as error:
            self._why.text = f"{type(error).__name__}: {error}"
            return False
        finally:
            logger.removeHandler(self._why)
            logger.propagate = True


class _LastWord(logging.Handler):
    """Keeps the last message of a log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()[:300]


def _named() -> dict[str, str]:
    """Unless the variables name something else; Phoenix sorts traces by project."""
    given = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    told = {} if "openinference.project.name" in given else {"openinference.project.name": "ragbench"}
    named = "service.name" in given or os.environ.get("OTEL_SERVICE_NAME")
    return told if named else {**told, "service.name": "ragbench"}


def _readable(span: SpanData, resource: Any) -> ReadableSpan:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    def context(span_id: str) -> SpanContext:
        return SpanContext(
            int(span.trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=TraceFlags(1)
        )

    return ReadableSpan(
        name=span.name,
        context=context(span.span_id),
        parent=context(span.parent_id) if span.parent_id else None,
        resource=resource,
        attributes={"openinference.span.kind": span.kind, **span.attributes},
        kind=SpanKind.CLIENT if span.kind in ("RETRIEVER", "LLM") else SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.OK),
        start_time=int(span.start * 1e9),
        end_time=int(span.end * 1e9),
        instrumentation_scope=InstrumentationScope("pytest_ragbench"),
    )
