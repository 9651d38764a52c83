"""Every option that pytest gets, in one table: the plugin, the ``ragbench`` command and the settings read it.

It stands apart from the settings' model because it is imported in every pytest run on a machine, and so must
not import pydantic.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Option(NamedTuple):
    """An option of the command line."""

    flag: str
    """Of pytest: ``--ragbench-judge``."""
    metavar: str | None
    """None for a flag without a value."""
    help: str
    setting: str | None = None
    """Dotted key of the setting that it sets; None where there is none."""
    command_flag: str | None = None
    """Of the commands of ``ragbench`` that take it: ``--judge``."""
    repeats: bool = False

    @property
    def dest(self) -> str:
        """Its name in pytest's config: ``ragbench_judge``."""
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def parameter(self) -> str:
        """Its name as an argument of a ``ragbench`` command: ``judge``."""
        return (self.command_flag or self.flag).removeprefix("--").replace("-", "_")


OPTIONS = (
    Option(
        "--rag-url",
        "URL",
        "The RAG service under test, e.g. http://localhost:8080.",
        "rag.url",
        "--rag-url",
    ),
    Option(
        "--ragbench-retrievers",
        "NAMES",
        "Ask several systems every question, each test once for each of them: names of [retrievers], or NAME=URL, "
        "with commas between.",
        "rag.retrievers",
    ),
    Option(
        "--ragbench-judge",
        "SPEC",
        "Judge: 'local', 'PROVIDER', 'PROVIDER:MODEL' (such as 'openai:gpt-4o-mini') or 'gguf:FILE'.",
        "judge",
        "--judge",
    ),
    Option(
        "--ragbench-embedder",
        "SPEC",
        "Embedder: 'local', 'PROVIDER:MODEL' or 'sentence-transformers:MODEL'.",
        "embedder",
        "--embedder",
    ),
    Option(
        "--ragbench-store",
        "FILE",
        "Where replies are kept: a file, 'off' for nowhere, or the URL of a Redis server. "
        "Default: in the pytest cache.",
        "store",
        "--store",
    ),
    Option(
        "--ragbench-questions",
        "FILE",
        "Question file for tests whose rag_questions mark names none.",
        "questions",
    ),
    Option(
        "--ragbench-tier",
        "NAME",
        "Only tests of this tier: embedding (0), retrieval (1), generation (2), end_to_end (3), judge, "
        "judge_pipeline, dialogue, real_users.",
        repeats=True,
    ),
    Option(
        "--ragbench-lookahead",
        "N",
        "While a test waits, ask for up to N of the tests to come; 0: for none. "
        "Default: enough to keep all call slots busy.",
        "lookahead",
    ),
    Option("--ragbench-dry-run", None, "Say what the run would ask and cost; ask nothing and run no test."),
    Option(
        "--ragbench-max-calls",
        "N",
        "The run's budget in requests, retries included; a call that is over it is an error.",
        "budget.max_calls",
    ),
    Option(
        "--ragbench-max-tokens",
        "N",
        "The run's budget in tokens; a call that is over it is an error.",
        "budget.max_tokens",
    ),
    Option(
        "--ragbench-max-cost",
        "N",
        "The run's budget in US dollars; a call that is over it is an error.",
        "budget.max_cost",
    ),
    Option(
        "--ragbench-record",
        "FILE",
        "Write all replies that the run uses to FILE, for --ragbench-replay.",
        "record",
    ),
    Option(
        "--ragbench-replay",
        "FILE",
        "Take replies from FILE and ask nobody; what FILE does not hold is an error.",
        "replay",
    ),
    Option(
        "--ragbench-recorded",
        "KINDS",
        "What record and replay are about: rag, judge, embedding, with commas between. Default: all.",
        "recorded",
    ),
    Option(
        "--ragbench-gate",
        "RULE",
        "Decide at the end: 'faithfulness >= 0.85', 'pass_rate >= 0.9 with 95% confidence', "
        "'faithfulness no worse than baseline by more than 0.02'. May be given several times.",
        repeats=True,
    ),
    Option(
        "--ragbench-votes",
        "N",
        "Let the judge score each sample up to N times; the median counts. Asks for the rest only where "
        "the majority does not agree.",
        "votes",
    ),
    Option(
        "--ragbench-preflight",
        None,
        "First see whether the judge can be talked into verdicts, and agrees with the configured anchors.",
    ),
    Option(
        "--ragbench-mutate",
        None,
        "After the tests, make answers that passed worse by rule, and say how much of that judge, thresholds and "
        "gates catch.",
    ),
    Option("--ragbench-no-gates", None, "Leave the configured gates out."),
    Option(
        "--ragbench-baseline",
        "FILE|REF",
        "The run to compare with: a JSON report, or a branch, of which the history's last run is taken.",
        "gating.baseline",
    ),
    Option("--ragbench-json", "FILE", "Write results to FILE as they come."),
    Option(
        "--ragbench-report",
        "NAME=FILE",
        "Write a report in the format NAME: json, csv, html, matrix, markdown, history, or one that an installed "
        "package adds (entry point group ragbench.reports). May be given several times.",
        repeats=True,
    ),
    Option(
        "--ragbench-report-replies",
        "N",
        "Characters of each judge's reply that the reports hold; 0: none. Default: 2000.",
        "report_replies",
    ),
    Option("--ragbench-csv", "FILE", "At the end, write a table of the scores for a spreadsheet."),
    Option("--ragbench-verbose", None, "Show what the scores of passing questions rest on, too."),
    Option(
        "--ragbench-history",
        "FILE",
        "Add the run to FILE, for `ragbench history` and the page's trend.",
        "history",
    ),
    Option(
        "--ragbench-history-reports",
        "FOLDER",
        "Keep the JSON report of each run of the history in FOLDER, all texts included, so that `ragbench view` "
        "can open it.",
        "history_reports",
    ),
    Option(
        "--ragbench-otel", None, "Send the run as spans by OTLP, as the variables OTEL_* say (extra otel)."
    ),
    Option(
        "--ragbench-phoenix", "URL", "At the end, record the run as an experiment of that Phoenix server."
    ),
    Option("--ragbench-html", "FILE", "At the end, write a report for the browser: one file, no network."),
)

PREFIX = "RAGBENCH_"
SHORT_VARIABLES = {"RAGBENCH_RAG_URL": "rag.url"}
"""Every other setting is ``RAGBENCH_SECTION__KEY``."""

NOT_SETTINGS = ("RAGBENCH_TRACEBACK", "RAGBENCH_TEST_")
"""Beginnings of variables that are something else: the traceback of the command's errors, and those of tests."""


def setting_variables(names: Iterable[str]) -> list[str]:
    """Those of the environment's ``names`` that mean a setting, or a misspelt one."""
    return [
        name
        for name in names
        if name.upper().startswith(PREFIX) and not name.upper().startswith(NOT_SETTINGS)
    ]


def help_of(setting: str) -> str:
    """What the option for a setting says of it."""
    return next(option.help for option in OPTIONS if option.setting == setting)
