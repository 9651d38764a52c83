"""A file of answers in, a file of scores out: bounded memory, and resumed where it was interrupted.

While it runs, rows are written to ``OUTPUT.part``, and ``OUTPUT.part.run`` says what they are of. Both
are gone when the output is complete.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from zlib import crc32

from pytest_ragbench.batch.output import finish, kind_of
from pytest_ragbench.batch.rows import Entry, entries
from pytest_ragbench.batch.scorer import Outcome, Scorer
from pytest_ragbench.batch.totals import Totals
from pytest_ragbench.model.errors import RagbenchError, Unscored, UsageError
from pytest_ragbench.model.scores import Score

if TYPE_CHECKING:
    from pytest_ragbench.engine import Engine
    from pytest_ragbench.settings import Settings

Progress = Callable[[Totals], None]
_PAUSE = 100
"""After so many rows of mere arithmetic the event loop has its turn."""


@dataclass(frozen=True)
class Job:
    """What to score, and how to read it.

    Parameters
    ----------
    path, output
        The file of answers, and the file of scores (``.jsonl``, ``.csv``, ``.parquet``).
    metrics
        Names.
    format, encoding, delimiter, columns, keep_going
        See :func:`~pytest_ragbench.batch.rows.entries`.
    share
        Share of the rows to score, above 0 to 1: always the same rows for the same ``seed``.
    limit
        Stop after so many rows.
    thresholds
        By metric, what its mean is held against: votes and second judges are counted by it, too.
    """

    path: Path
    output: Path
    metrics: Sequence[str]
    format: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    keep_going: bool = False
    share: float = 1.0
    seed: int = 0
    limit: int | None = None
    thresholds: Mapping[str, str] = field(default_factory=dict)

    @property
    def part(self) -> Path:
        """Rows that are done, while others are not; JSON Lines."""
        return self.output.with_name(f"{self.output.name}.part")

    @property
    def run(self) -> Path:
        """What the rows of :attr:`part` were scored with; JSON."""
        return self.output.with_name(f"{self.output.name}.part.run")


def score_file(
    job: Job,
    engine: Engine,
    settings: Settings,
    *,
    fresh: bool = False,
    progress: Progress = lambda totals: None,
) -> Totals:
    """Score every row of the file and return the sums.

    A run that was interrupted goes on where it stopped, if file, metrics and judge are the same.

    Parameters
    ----------
    fresh
        Replace the output, and forget what an interrupted run has done.
    progress
        Called after every row.

    Raises
    ------
    UsageError
        A file that can't be read, a row that can't (unless ``keep_going``), metrics that no row has the
        fields for, an output that exists; an interrupted run of something else. Before any call, as far as the
        first rows show it.
    """
    kind_of(job.output)
    scorer = Scorer(job.metrics, engine, settings, thresholds=job.thresholds)
    totals = Totals(scorer.metrics)
    done = _begin(job, scorer, totals, fresh)
    with job.part.open("a", encoding="utf-8") as file:
        rows = _wanted(job, scorer, done)
        engine.wait(_score_all(rows, scorer, file, totals, progress, _window(settings)))
    finish(job.part, job.output, list(scorer.metrics))
    job.run.unlink(missing_ok=True)
    return totals


def _begin(job: Job, scorer: Scorer, totals: Totals, fresh: bool) -> tuple[int, int]:
    """Number and line of the last row that is done; its file is cut after the last whole line."""
    identity = _identity(job, scorer)
    if fresh:
        for file in (job.part, job.run, job.output):
            file.unlink(missing_ok=True)
    if job.output.exists():
        raise UsageError(f"{job.output}: exists already; give another --output, or --fresh to replace it")
    if not job.part.exists():
        _write(job.run, json.dumps(identity, ensure_ascii=False))
        return 0, 0
    try:
        before = json.loads(job.run.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        before = {}
    different = [name for name, value in identity.items() if before.get(name) != value]
    if different:
        raise UsageError(
            f"{job.part}: an interrupted run had another {' and '.join(different)}; "
            "give another --output, or --fresh to begin anew"
        )
    return _rows_done(job.part, totals)


def _identity(job: Job, scorer: Scorer) -> dict[str, Any]:
    """What must be the same for a run to go on. (``keep_going`` may be what a bad row calls for.)"""
    stat = job.path.stat() if job.path.is_file() else None
    free = {"path", "output", "limit", "keep_going"} | (set() if job.thresholds else {"thresholds"})
    reading = {name: value for name, value in asdict(job).items() if name not in free}
    return {
        "file": [str(job.path.resolve()), stat.st_size if stat else 0],
        "judge": scorer.judge.name if scorer.judge else None,
        "embedder": scorer.embedder.name if scorer.embedder else None,
        # As JSON has it (lists for tuples): it is compared with what was read from JSON.
        **json.loads(json.dumps(reading)),
    }


def _rows_done(part: Path, totals: Totals) -> tuple[int, int]:
    last, whole = (0, 0), 0
    with part.open("rb") as file:
        for line in file:
            # Half a line, from a run that was killed: its row is scored again.
            if not line.endswith(b"\n"):
                break
            row = json.loads(line)
            totals.add(row)
            last, whole = (row["row"], row["line"]), whole + len(line)
    with part.open("r+b") as file:
        file.truncate(whole)
    return last


def _wanted(job: Job, scorer: Scorer, done: tuple[int, int]) -> Iterator[Entry]:
    """The rows still to be scored; the first ones are checked before any is asked about."""
    checked = False
    # What was drawn before the interruption counts against the limit, too.
    taken = sum(_drawn(job, number) for number in range(1, done[0] + 1))
    if job.limit is not None and taken >= job.limit:
        return
    for chunk in entries(
        job.path,
        format=job.format,
        encoding=job.encoding,
        delimiter=job.delimiter,
        columns=job.columns,
        keep_going=job.keep_going,
        after=done,
    ):
        if not checked:
            checked = True
            scorer.check_file([entry.sample for entry in chunk if entry.sample], str(job.path))
        for entry in chunk:
            if not _drawn(job, entry.number):
                continue
            taken += 1
            yield entry
            if job.limit is not None and taken >= job.limit:
                return


def _drawn(job: Job, number: int) -> bool:
    """Whether the row is in the share: only its number and the seed decide."""
    # By the row's number, so that a run that is taken up again draws the same rows.
    return job.share >= 1 or crc32(f"{job.seed}:{number}".encode()) / 2**32 < job.share


def _window(settings: Settings) -> int:
    """Rows under way at once: enough to keep all call slots busy with one call each."""
    slots = [provider.max_concurrency for provider in settings.providers.values()]
    return 2 * max(slots, default=16)


async def _score_all(
    rows: Iterator[Entry], scorer: Scorer, file: IO[str], totals: Totals, progress: Progress, window: int
) -> None:
    """Rows are written in the order of the file, so that a run can go on after the last one written."""
    pending: deque[tuple[Entry, asyncio.Task[dict[str, Outcome]] | None]] = deque()

    def put(entry: Entry, outcomes: Mapping[str, Outcome]) -> None:
        row = row_of(entry, outcomes)
        file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
        totals.add(row)
        progress(totals)

    async def write() -> None:
        entry, task = pending.popleft()
        put(entry, await task if task else {})

    try:
        for number, entry in enumerate(rows):
            # A task costs more than most arithmetic, and gains it nothing.
            if scorer.waits:
                task = asyncio.ensure_future(scorer.scores(entry.sample)) if entry.sample else None
                pending.append((entry, task))
                if len(pending) >= window:
                    await write()
            else:
                put(entry, await scorer.scores(entry.sample) if entry.sample else {})
                if number % _PAUSE == 0:  # for Ctrl-C, which comes by the loop
                    await asyncio.sleep(0)
        while pending:
            await write()
    finally:
        # Also on Ctrl-C: what was paid for is on disk.
        file.flush()
        for _, task in pending:
            if task is not None:
                task.cancel()


def row_of(entry: Entry, outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """A row of the output; see docs/budget.md for its fields."""
    row: dict[str, Any] = {"row": entry.number, "line": entry.line}
    sample = entry.sample
    if sample is None:
        return {**row, "error": entry.problem}
    row |= {"id": sample.id, "question": sample.question}
    scores = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, Score)}
    # Null where there is none: each row has each metric, in the same order.
    row["scores"] = {name: scores[name].value if name in scores else None for name in outcomes}
    reasons = {name: score.error_message or score.reason for name, score in scores.items()}
    if any(reasons.values()):
        row["reasons"] = {name: reason for name, reason in reasons.items() if reason}
    errors = {name: error_of(error) for name, error in outcomes.items() if isinstance(error, RagbenchError)}
    if errors:
        row["errors"] = errors
    return row


def error_of(error: RagbenchError) -> dict[str, str]:
    """Type, code and message of what stands in a score's place."""
    code = error.code if isinstance(error, Unscored) else "usage"
    return {"type": type(error).__name__, "code": code, "message": str(error)}


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: can't be written: {error.strerror}") from None
