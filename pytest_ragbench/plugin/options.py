"""Command-line and ini options."""

from __future__ import annotations

import pytest

# Dotted settings key of each option that is one; the rest is the plugin's own business.
SETTINGS = {
    "rag_url": "rag.url",
    "ragbench_judge": "judge",
    "ragbench_embedder": "embedder",
    "ragbench_store": "store",
    "ragbench_questions": "questions",
    "ragbench_lookahead": "lookahead",
    "ragbench_max_calls": "budget.max_calls",
    "ragbench_max_tokens": "budget.max_tokens",
    "ragbench_max_cost": "budget.max_cost",
    "ragbench_record": "record",
    "ragbench_replay": "replay",
    "ragbench_recorded": "recorded",
    "ragbench_baseline": "gating.baseline",
    "ragbench_history": "history",
    "ragbench_votes": "votes",
    "ragbench_report_replies": "report_replies",
}


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("ragbench", "RAG quality (pytest-ragbench)")
    group.addoption(
        "--rag-url", metavar="URL", help="The RAG service under test, e.g. http://localhost:8080."
    )
    group.addoption(
        "--ragbench-judge", metavar="SPEC", help="Judge: 'local', 'openai:MODEL', or 'PROVIDER:MODEL'."
    )
    group.addoption(
        "--ragbench-embedder",
        metavar="SPEC",
        help="Embedder: 'local', 'PROVIDER:MODEL', or 'sentence-transformers:MODEL'.",
    )
    group.addoption(
        "--ragbench-store",
        metavar="FILE",
        help="Where replies are kept; 'off' keeps none. Default: in the pytest cache.",
    )
    group.addoption(
        "--ragbench-questions",
        metavar="FILE",
        help="Question file for tests whose rag_questions mark names none.",
    )
    group.addoption(
        "--ragbench-tier",
        action="append",
        metavar="NAME",
        help="Only tests of this tier: embedding (0), retrieval (1), generation (2), end_to_end (3), judge, "
        "judge_pipeline, dialogue, real_users.",
    )
    group.addoption(
        "--ragbench-lookahead",
        metavar="N",
        help="While a test waits, ask for up to N of the tests to come; 0: for none. "
        "Default: enough to keep all call slots busy.",
    )
    group.addoption(
        "--ragbench-dry-run",
        action="store_true",
        help="Say what the run would ask and cost; ask nothing and run no test.",
    )
    for name, unit in (("calls", "requests"), ("tokens", "tokens"), ("cost", "US dollars")):
        group.addoption(
            f"--ragbench-max-{name}",
            metavar="N",
            help=f"The run's budget in {unit}; a call that is over it is an error.",
        )
    group.addoption(
        "--ragbench-record",
        metavar="FILE",
        help="Write all replies that the run uses to FILE, for --ragbench-replay.",
    )
    group.addoption(
        "--ragbench-replay",
        metavar="FILE",
        help="Take replies from FILE and ask nobody; what FILE does not hold is an error.",
    )
    group.addoption(
        "--ragbench-recorded",
        metavar="KINDS",
        help="What these two are about: rag, judge, embedding, with commas between. Default: all.",
    )
    group.addoption(
        "--ragbench-gate",
        action="append",
        metavar="RULE",
        help="Decide at the end: 'faithfulness >= 0.85', 'pass_rate >= 0.9 with 95%% confidence', "
        "'faithfulness no worse than baseline by more than 0.02'. May be given several times.",
    )
    group.addoption(
        "--ragbench-votes",
        metavar="N",
        help="Let the judge score each sample up to N times; the median counts. Asks for the rest only where "
        "the majority does not agree.",
    )
    group.addoption(
        "--ragbench-preflight",
        action="store_true",
        help="First see whether the judge can be talked into verdicts, and agrees with the configured anchors.",
    )
    group.addoption(
        "--ragbench-mutate",
        action="store_true",
        help="After the tests, make answers that passed worse by rule, and say how much of that judge, thresholds and "
        "gates catch.",
    )
    group.addoption("--ragbench-no-gates", action="store_true", help="Leave the configured gates out.")
    group.addoption(
        "--ragbench-baseline",
        metavar="FILE|REF",
        help="The run to compare with: a JSON report, or a branch, of which the history's last run is taken.",
    )
    group.addoption("--ragbench-json", metavar="FILE", help="Write results to FILE as they come.")
    group.addoption(
        "--ragbench-report-replies",
        metavar="N",
        help="Characters of each judge's reply that the reports hold; 0: none. Default: 2000.",
    )
    group.addoption(
        "--ragbench-csv", metavar="FILE", help="At the end, write a table of the scores for a spreadsheet."
    )
    group.addoption(
        "--ragbench-verbose",
        action="store_true",
        help="Show what the scores of passing questions rest on, too.",
    )
    group.addoption(
        "--ragbench-history",
        metavar="FILE",
        help="Add the run to FILE, for `ragbench history` and the page's trend.",
    )
    group.addoption(
        "--ragbench-html",
        metavar="FILE",
        help="At the end, write a report for the browser: one file, no network.",
    )
    parser.addini(
        "ragbench_questions", "Question file for tests whose rag_questions mark names none.", default=""
    )
