"""What one pytest process knows of its ragbench run; everything in it is made when first needed."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragbench.clean import clean
from pytest_ragbench.config_files import Tree, find_directory
from pytest_ragbench.garbage import uncollected
from pytest_ragbench.model.errors import RagbenchError, UsageError
from pytest_ragbench.options import OPTIONS, setting_variables
from pytest_ragbench.plugin.options import given_settings

if TYPE_CHECKING:
    from pytest_ragbench.engine import Engine
    from pytest_ragbench.engine.wire import Address
    from pytest_ragbench.model.retrievers import NamedRetriever
    from pytest_ragbench.model.tests import TestRecord
    from pytest_ragbench.plugin.mutating import PassedAnswers
    from pytest_ragbench.plugin.reception import Reception
    from pytest_ragbench.scoring.results import Result
    from pytest_ragbench.settings import Settings

STATE = pytest.StashKey["RunState"]()
RESULTS = pytest.StashKey[list["Result"]]()


_RUN_NO_TEST = (
    "collectonly",
    "setuponly",
    "setupplan",
    "showfixtures",
    "show_fixtures_per_test",
    "cacheshow",
    "ragbench_dry_run",
)
"""Options, by their names in pytest's config."""
_SECOND_JUDGES = ("judge_confirm", "judge_cascade", "judge_dual", "judge_fallback")


class RunState:
    """One per process: the controller's, or a worker's."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.lock = threading.RLock()
        self.collect_error = False
        self._worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._run_id: str | None = self._worker and self._worker.get("ragbench_run_id")
        self._settings: Settings | None = None
        self.refused = ""
        """In a worker: why no test that asks for metrics may run with these settings."""
        self._engine: Engine | None = None
        self._coerced: dict[tuple[str, int], tuple[object, Any]] = {}
        self._warnings: list[str] = []
        self.passed: PassedAnswers | None = None
        """With ``--ragbench-mutate``, what passed in this process."""
        self.trials: list[dict[str, Any]] = []
        """What became of its variants."""
        self.is_timed = False
        """Latency is asserted: questions are asked one at a time, or as many as is configured for that."""
        self._reception: Reception | None = None
        self._temporary: Path | None = None

    def reception(self) -> tuple[int, str]:
        """On the controller: where its workers reach it (port and key). The engine is made when the first comes."""
        from pytest_ragbench.plugin.reception import Reception

        # Workers ask for the address while they start; the engine itself may never be needed.
        if self._reception is None:
            self._reception = Reception(lambda: self.engine)
        return self._reception.port, self._reception.key.hex()

    @property
    def is_controller(self) -> bool:
        """True in a run without xdist, too."""
        return self._worker is None

    @property
    def run_id(self) -> str:
        """The same in all processes of a run."""
        if self._run_id is None:
            self._run_id = uuid.uuid4().hex
        return self._run_id

    @cached_property
    def runs_tests(self) -> bool:
        """False where pytest was asked to list or plan only: such a run decides, records and reports nothing."""
        return not any(self.config.getoption(name, False) for name in _RUN_NO_TEST)

    @property
    def settings(self) -> Settings:
        # No lock once they are there: the engine's loop reads them too, and who holds the lock may wait for it.
        if self._settings is not None:
            return self._settings
        with self.lock:
            if self._settings is None:
                self._settings = self._load()
            return self._settings

    def _load(self) -> Settings:
        with uncollected():
            from pytest_ragbench.settings import load_settings

        options = given_settings(self.config)
        if options["questions"] is None:
            options["questions"] = self.config.getini("ragbench_questions") or None
        typed = [
            text
            for text in self.config.getoption("ragbench_gate") or ()
            if text.strip().startswith("must_pass")
        ]
        if typed:  # such questions get three votes, wherever the gate is written
            options["gates"] = dict.fromkeys(typed, True)
        for key in ("record", "replay"):  # a test may change the directory before they are used
            if options[key]:
                options[key] = str(self.config.invocation_params.dir / Path(options[key]).expanduser())
        directory = self.config_directory
        settings = load_settings(
            directory or self.config.rootpath,
            root=directory or self.config.rootpath,
            environ=self._environ(),
            options=options,
            flags={option.setting: option.flag for option in OPTIONS if option.setting},
        )
        # The fixtures of --setup-only ask the service all the same.
        return settings if self.runs_tests else settings.model_copy(update={"record": None})

    @cached_property
    def systems(self) -> Mapping[str, NamedRetriever]:
        """By name those that each question is asked; empty in a run of one system."""
        if not self.is_configured:
            return {}
        from pytest_ragbench.model.retrievers import NamedRetriever
        from pytest_ragbench.settings import systems_of

        # Made once: pytest tells parameters apart by their identity.
        return {name: NamedRetriever(name, spec) for name, spec in systems_of(self.settings).items()}

    def _environ(self) -> dict[str, str]:
        """On another host, what the controller's variables say of ragbench holds where there are none."""
        return {**((self._worker or {}).get("ragbench_environ") or {}), **os.environ}

    def base_of(self, option: str, given: str) -> Path:
        """What a path is relative to: the working directory on the command line, else the root."""
        typed = self.config.getoption(option) == given
        return self.config.invocation_params.dir if typed else self.config.rootpath

    def located(self, option: str, given: str) -> Path:
        """A path as it was given by ``option`` or by its setting."""
        return self.base_of(option, given) / Path(given).expanduser()

    @cached_property
    def config_directory(self) -> Path | None:
        """Whose files configure this run; None: there are none.

        Raises
        ------
        UsageError
            Two that configure tests of this run disagree.
        """
        if self._worker is not None and self._worker.get("ragbench_root") == str(self.config.rootpath):
            told = self._worker[
                "ragbench_config"
            ]  # else the tests have been copied, to another host as a rule
            return Path(told) if told else None
        root, started = self.config.rootpath, self.config.invocation_params.dir
        return find_directory(self.given_paths() or [root], tops=[root, started], tree=self.tree())

    def given_paths(self) -> list[Path]:
        """Files and folders that pytest was told to look for tests in."""
        given = (self.config.invocation_params.dir / str(arg).split("::")[0] for arg in self.config.args)
        return [path for path in given if path.exists()]

    def tree(self) -> Tree:
        """Where pytest looks for tests."""
        return Tree(self.config.getini("python_files"), self.config.getini("norecursedirs"))

    @property
    def is_loaded(self) -> bool:
        """Whether the configuration has been read, which it is at the start in each project that has one."""
        if self._settings is None and self._worker is not None and self._worker.get("ragbench_loaded"):
            with suppress(RagbenchError):  # which each test that needs it will say
                return self.settings is not None
        return self._settings is not None

    def asks_service(self, items: Iterable[pytest.Item]) -> bool:
        """Whether there are tests that ask the configured service, and they will be run."""
        if not self.runs_tests or self._settings is None:
            return False
        if not self._settings.rag.url and not self._settings.rag.retrievers:
            return False
        return any("retriever" in getattr(item, "fixturenames", ()) for item in items)

    def load_client(self) -> None:
        """What the first test imports otherwise."""
        from importlib import import_module

        for module in ("aiohttp", "pytest_ragbench.engine.core", "pytest_ragbench.rag.http"):
            import_module(module)

    @property
    def engine(self) -> Engine:
        if self._engine is not None:  # as with the settings
            return self._engine
        with self.lock:
            if self._engine is None:
                from pytest_ragbench import building

                self._engine = building.engine(
                    self.settings,
                    run_id=self.run_id,
                    cache=self.cache(),
                    controller=self._controller(),
                    on_warning=self._warnings.append,
                )
                self._limit_questions()
            return self._engine

    def look_at_latency(self, items: Sequence[pytest.Item]) -> None:
        """Questions are asked one at a time where a test or a gate of the run is about how long answers take."""
        from pytest_ragbench.plugin.collected import has_questions

        if not any(map(has_questions, items)):
            return
        from pytest_ragbench.plugin.gating import gates_latency
        from pytest_ragbench.plugin.timing import asserts_latency

        with suppress(RagbenchError):  # which is said as soon as the settings are wanted
            self.is_timed = asserts_latency(items) or gates_latency(self.config, self)
        if self._engine is not None:
            self._limit_questions()

    def _limit_questions(self) -> None:
        rag = self.settings.rag
        if self.is_timed and rag.latency_concurrency < rag.max_concurrency and self._engine is not None:
            from pytest_ragbench.engine.limits import limits_of

            alone = rag.model_copy(update={"max_concurrency": rag.latency_concurrency})
            self._engine.set_limits("rag", limits_of(alone))

    @property
    def live_engine(self) -> Engine | None:
        """The engine, where there is one already."""
        return self._engine

    def cache(self) -> Path:
        """Where the store is, unless it is configured."""
        cache = getattr(self.config, "cache", None)
        if cache is not None:
            return Path(cache.mkdir("ragbench"))
        if self._temporary is None:  # -p no:cacheprovider: nothing may stay
            self._temporary = Path(tempfile.gettempdir()) / f"ragbench-{self.run_id}"
        return self._temporary

    def _controller(self) -> Address | None:
        """In a worker of this host: where its controller listens."""
        if self._worker is None or "ragbench_controller" not in self._worker:
            return None
        from pytest_ragbench.engine.wire import Address

        port, key = self._worker["ragbench_controller"]
        return Address(port, bytes.fromhex(key))

    def coerce(self, kind: str, value: object) -> Any:
        """What a fixture returned, as a judge, embedder or retriever; the same object for the same value."""
        from pytest_ragbench import building

        # By identity: judges and retrievers need not be hashable or comparable.
        key = (kind, id(value))
        if (known := self._coerced.get(key)) is not None:
            return known[1]
        with self.lock:
            if key not in self._coerced:
                made = getattr(building, kind)(value, self.engine, self.settings)
                self._coerced[key] = (value, made)  # holds the value, so that its id stays its own
            return self._coerced[key][1]

    def is_configured_judge(self, judge: object) -> bool:
        """Whether it is the one that the settings name, not one that a fixture returned."""
        ours = self._coerced.get(("judge", id(None)))
        return ours is not None and ours[1] is judge

    def header(self, start_path: Path) -> list[str]:
        """A line for the header, in projects that configure ragbench."""
        if not self.is_configured:
            return []
        try:
            return [f"ragbench: {self.describe()} (as configured)"]
        except RagbenchError as error:
            raise pytest.UsageError(str(error)) from None

    @cached_property
    def is_configured(self) -> bool:
        """Whether anything of the project, the command line or the environment speaks of ragbench."""
        if any(given_settings(self.config).values()) or self.config.getini("ragbench_questions"):
            return True
        if setting_variables(self._environ()):
            return True
        try:
            return self.config_directory is not None
        except UsageError:
            return True  # which is said as soon as the settings are wanted

    @property
    def tells_junit(self) -> bool:
        """Whether scores become properties of a test in JUnit's file."""
        if self._settings is None and not self.is_configured:  # it looks for files: not after every test
            return True
        return self.settings.junit_properties

    @cached_property
    def columns(self) -> int:
        """Cells of a line of the terminal that shows the run (``COLUMNS`` where it is set, 80 without a terminal)."""
        if self._worker is not None:
            return int(self._worker["ragbench_columns"])
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        return int(reporter._tw.fullwidth) if reporter is not None else shutil.get_terminal_size().columns

    def describe(self) -> str:
        """Judges, embedder, service and store in one line, as configured: a fixture or a test may choose others."""
        settings = self.settings
        named = self._judge_name()
        parts = [f"judge{'s' * (len(settings.judges) > 1)} {named}"]
        parts += [
            f"{key.partition('_')[2]} {value}" for key in _SECOND_JUDGES if (value := getattr(settings, key))
        ]
        parts.append(f"embedder {settings.embedder or 'local'}")
        return self._with_places(parts)

    def describe_used(self, judges: Sequence[str], embedders: Sequence[str]) -> str:
        """The same of those that gave the scores of the run; nothing of a judge or embedder where none did."""
        kinds = (("judge", judges), ("embedder", embedders))
        return self._with_places(
            [f"{kind}{'s' * (len(names) > 1)} {', '.join(names)}" for kind, names in kinds if names]
        )

    def _with_places(self, parts: list[str]) -> str:
        from pytest_ragbench import building
        from pytest_ragbench.model.redis_url import shown as store_shown

        settings = self.settings
        store = building.store_place(settings, Path("cache"))
        shown = (
            "off" if store is None else store_shown(str(store)) if settings.store else "in the pytest cache"
        )
        if self.systems:
            parts.append(f"retrievers {', '.join(self.systems)}")
        elif settings.rag.url and not settings.rag.retriever:
            parts.append(f"service {_shown(settings.rag.url)}")
        parts.append(f"store {shown}")
        if settings.replay:
            parts.append(f"replayed from {settings.replay}")
        return clean(", ".join(parts))

    def check_recording(self) -> None:
        """Refuse a recording that can't be read or written, before any test."""
        settings = self.settings if self.is_configured else None
        if settings is not None and settings.replay:
            from pytest_ragbench.engine.recording import load

            load(Path(settings.replay).expanduser())
        elif settings is not None and settings.record:
            from pytest_ragbench.engine.recording import check_target

            check_target(Path(settings.record).expanduser())

    def end_recording(self) -> str | None:
        """On the controller, when all tests are done: bring the recording up to date; says what is in it."""
        if not self.is_configured or not self.settings.record:
            return None
        from pytest_ragbench.engine.recording import merge

        path = Path(self.settings.record).expanduser()
        return f"recorded in {self.settings.record}: {merge(path)}"

    def _judge_name(self) -> str:
        from pytest_ragbench import building

        try:
            return building.judge_name(self.settings)
        except UsageError:  # the tests that need a judge say so; a run of other metrics is none the worse
            return "none chosen"

    def new_usage(self) -> dict[str, Any]:
        """Calls, tokens and latencies since this was last asked."""
        return {} if self._engine is None else self._engine.news()

    @property
    def n_workers(self) -> int:
        """Processes that run tests of this run."""
        return int(self._worker["workercount"]) if self._worker is not None else 1

    def take_results(self, results: Sequence[Result]) -> None:
        """What a test of this process found out, before only its record is kept."""
        if results and self.config.getoption("ragbench_mutate"):
            from pytest_ragbench.plugin.mutating import PassedAnswers

            self.passed = self.passed or PassedAnswers(self.n_workers)
            self.passed.add(results)

    def try_worse_answers(self) -> None:
        """Leave in ``trials`` what became of variants of the answers that passed here."""
        if self.passed is not None:
            try:
                self.trials = self.passed.tried(self.engine)
            except RagbenchError as error:
                self.warn(f"--ragbench-mutate: {error}")

    @property
    def keeps_its_tests(self) -> bool:
        """Whether this process runs all tests that it has been given (with ``--dist worksteal`` others take some)."""
        return self._worker is None or not self._worker.get("ragbench_steals")

    @property
    def worker_number(self) -> int:
        """0 .. :attr:`n_workers` - 1."""
        digits = "".join(filter(str.isdigit, str((self._worker or {}).get("workerid", ""))))
        return int(digits or 0) % self.n_workers

    def hand_over(self, collected: Sequence[TestRecord]) -> None:
        """In a worker: leave the controller what came after the last report, and the tests ``collected`` where no
        report has told of them: a worker that is dealt no test sends none.
        """
        # What the last test took over is counted on the loop, which may not have come to it yet.
        if self._engine is not None:
            self._engine.settle()
        if self._worker is not None:
            output = self.config.workeroutput  # type: ignore[attr-defined]
            news = {"usage": self.new_usage(), "warnings": self.new_warnings(), "trials": self.trials}
            if collected:
                from pytest_ragbench.report.writing import to_json

                news["collected"] = to_json(collected)
            output["ragbench"] = news

    def warn(self, text: str) -> None:
        self._warnings.append(text)

    def new_warnings(self) -> list[str]:
        new, self._warnings[:] = list(self._warnings), []
        return new

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None
        if self._reception is not None:
            self._reception.close()
            self._reception = None
        if self._temporary is not None and self.is_controller:
            shutil.rmtree(self._temporary, ignore_errors=True)


def _shown(url: str) -> str:
    """Without its query, which may carry a key."""
    return url.partition("?")[0]


def state_of(config: pytest.Config) -> RunState:
    return config.stash[STATE]


__all__ = ["RESULTS", "STATE", "RunState", "UsageError", "state_of"]
