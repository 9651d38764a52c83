"""What ``ragbench doctor`` looks at, one function each."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ragbench import building
from pytest_ragbench.building import store_place
from pytest_ragbench.clean import counted
from pytest_ragbench.cli.shared import Exit, engine_of, settings_of
from pytest_ragbench.engine.inventory import StoreError, inventory_of
from pytest_ragbench.http.outages import ADVICE, DOCTOR
from pytest_ragbench.model.errors import RagbenchError, Unscored
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.model.thresholds import parse_threshold
from pytest_ragbench.questions import load_questions
from pytest_ragbench.settings import systems_of
from pytest_ragbench.text import is_blank

if TYPE_CHECKING:
    from pytest_ragbench.engine import Engine
    from pytest_ragbench.settings import ServiceSettings, Settings


@dataclass(frozen=True)
class Check:
    """``state`` is ``"ok"``, ``"warning"``, ``"failed"`` or ``"skipped"``; ``advice`` says what to do."""

    name: str
    state: str
    said: str
    advice: str = ""
    code: Exit = Exit.OK


def run_checks(options: Mapping[str, Any], *, question: str, offline: bool) -> list[Check]:
    """All checks; where the configuration can't be read, that one only."""
    try:
        settings = settings_of(options)
    except RagbenchError as error:
        return [Check("configuration", "failed", str(error), "correct the key named above", Exit.USAGE)]
    read = [name for name in settings.sources if name]
    found = ", ".join(read) if read else "none found: defaults"
    advice = "" if read else "`ragbench init` writes one"
    checks = [Check("configuration", "ok" if read else "warning", found, advice)]
    checks += _caught("thresholds", lambda: _thresholds(settings))
    checks += _caught("questions", lambda: _questions(settings))
    checks += _caught("store", lambda: _store(settings))
    # Nothing kept may answer for a service that is down.
    with engine_of(settings.model_copy(update={"store": "off"})) as engine:
        checks += _caught("judge", lambda: _judge(settings, engine, offline))
        checks += _caught("embedder", lambda: _embedder(settings, engine, offline))
        systems: Mapping[str, ServiceSettings | None] = systems_of(settings) or {"": None}
        for system, spec in systems.items():
            name = f"service {system}".rstrip()
            checks += _caught(name, partial(_service, name, spec, settings, engine, question, offline))
    return checks


def _caught(name: str, work: Callable[[], Iterator[Check]]) -> list[Check]:
    # Not list(work()): what was found before the error is to be shown, too.
    found: list[Check] = []
    try:
        found += work()
    except Unscored as error:
        # By code, since the messages are the services' own words.
        advice = ADVICE.get(error.code, "see the message; docs/judges.md and docs/rag-service.md")
        advice = advice.format(key="api_key_env (auth_env for the service)")
        told = str(error).replace(f" {DOCTOR}", "")  # this is the doctor
        found.append(Check(name, "failed", told, advice, Exit.UNSCORED))
    except RagbenchError as error:
        found.append(Check(name, "failed", str(error), "", Exit.USAGE))
    return found


def _thresholds(settings: Settings) -> Iterator[Check]:
    from pytest_ragbench.metrics.registry import find

    for name, limit in settings.thresholds.items():
        parse_threshold(limit, find(name).scale)
    if settings.thresholds:
        shown = ", ".join(f"{name} {limit}" for name, limit in settings.thresholds.items())
        yield Check("thresholds", "ok", shown)


def _questions(settings: Settings) -> Iterator[Check]:
    if settings.questions:
        questions = load_questions(settings.questions)
        with_reference = sum(question.reference is not None for question in questions)
        yield Check(
            "questions",
            "ok",
            f"{len(questions)}, the first at {questions[0].location}, {with_reference} with a reference",
        )


def _redis(url: str) -> Check:
    store = inventory_of(url)
    assert store is not None
    try:
        store.check()
    except StoreError as error:
        return Check(
            "store", "failed", f"{store.name}: {error}", "start the server, or set another store", Exit.USAGE
        )
    finally:
        store.close()
    return Check("store", "ok", store.name)


def _store(settings: Settings) -> Iterator[Check]:
    path = store_place(settings, Path(".pytest_cache/d/ragbench"))
    if isinstance(path, str):
        yield _redis(path)
        return
    if path is None:
        yield Check("store", "warning", "off: every run pays for every call")
        return
    # The first run makes missing directories.
    nearest = next(parent for parent in path.absolute().parents if parent.exists())
    if not os.access(nearest, os.W_OK):
        yield Check("store", "failed", f"{nearest} can't be written", "set store to another file", Exit.USAGE)
    elif not path.exists():
        yield Check("store", "ok", f"{path} (made by the first run)")
    else:
        try:
            # Read-only: a look at a store must neither make nor migrate one.
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
                [said] = db.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.Error as error:
            said = str(error)
        if said == "ok":
            yield Check("store", "ok", f"{path} ({path.stat().st_size / 1e6:.1f} MB)")
        else:
            advice = "remove the file; the next run begins a new one"
            yield Check("store", "failed", f"{path} is damaged: {said}", advice, Exit.USAGE)


def _judge(settings: Settings, engine: Engine, offline: bool) -> Iterator[Check]:
    from pytest_ragbench.batch.scorer import Scorer

    name = building.judge_name(settings)
    scorer = Scorer(["abstention"], engine, settings)  # refuses a missing key, model or address
    if name == "local":
        advice = (
            ""
            if settings.judge
            else 'write judge = "local" into ragbench.toml: in CI it must be chosen by name'
        )
        said = "local: no key, no network; does not do every metric (docs/local-judge.md)"
        yield Check("judge", "warning" if advice else "ok", said, advice)
        return
    if offline:
        yield Check("judge", "skipped", f"{name}: key and address are set; not called (--offline)")
        return
    # Whatever a model knows, it can tell that this answers nothing.
    sample = RagSample(question="When do you open on Sunday?", answer="I don't know when we open on Sunday.")
    outcome = engine.wait(scorer.scores(sample))["abstention"]
    if not isinstance(outcome, Score):
        raise outcome
    took = f"{outcome.duration:.1f} s, {outcome.usage.tokens} tokens"
    if outcome.value == 1:
        yield Check("judge", "ok", f"{name}: graded a short answer ({took})")
    else:
        yield Check(
            "judge",
            "warning",
            f"{name} took {sample.answer!r} for an answer ({took})",
            "a model that gets this wrong is too weak to judge; choose another",
        )
    # Only judges behind an OpenAI-compatible API have it.
    output = getattr(scorer.judge, "output_taken", None)
    if output is not None and output != "json_schema":
        advice = (
            "replies are checked all the same, but go wrong more often; prefer a service that takes schemas"
        )
        yield Check("JSON schema", "warning", f"not taken; asked by {output}", advice)
    elif output is not None:
        yield Check("JSON schema", "ok", "taken")


def _embedder(settings: Settings, engine: Engine, offline: bool) -> Iterator[Check]:
    embedder = building.embedder(None, engine, settings)
    if offline and embedder.name != "local" and not embedder.name.startswith("local"):
        yield Check("embedder", "skipped", f"{embedder.name}: not called (--offline)")
        return
    # Two texts: some services answer one and refuse a batch.
    vectors = engine.wait(embedder.embed(["The shop opens at nine.", "It rains."]))
    yield Check("embedder", "ok", f"{embedder.name}: vectors of {len(vectors[0])} numbers")


def _service(
    name: str, spec: ServiceSettings | None, settings: Settings, engine: Engine, question: str, offline: bool
) -> Iterator[Check]:
    """The configured service, or the one of several that ``spec`` describes."""
    if spec is None and settings.rag.url is None and settings.rag.retriever is None:
        yield Check(name, "warning", "none configured", "--rag-url, or url in [rag] of ragbench.toml")
        return
    retriever = building.retriever(spec, engine, settings)
    if offline:
        yield Check(name, "skipped", f"{retriever.name}: not called (--offline)")
        return
    sample = engine.wait(retriever.ask(Question(id="doctor", question=question)))
    parts = [f"answered in {sample.latency or 0:.2f} s"]
    answer = None if is_blank(sample.answer) else sample.answer
    parts.append(f"answer of {len(answer)} letters" if answer else "no answer")
    parts.append("no chunks" if sample.contexts is None else counted(len(sample.contexts), "chunk"))
    parts.append("with ids" if sample.context_ids else "without ids")
    # An empty list is a reply: nothing was found for such a question.
    lacking = sample.contexts is None or answer is None
    advice = "map the reply: [rag.reply] answer, contexts (docs/rag-service.md)" if lacking else ""
    yield Check(name, "warning" if lacking else "ok", ", ".join(parts), advice)
