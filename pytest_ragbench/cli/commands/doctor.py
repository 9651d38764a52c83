"""``ragbench doctor``: is everything there that a run needs?"""

from __future__ import annotations

from typing import Any

import click

from pytest_ragbench.cli.checks import run_checks
from pytest_ragbench.cli.shared import Exit, configured, emit, json_option

_MARKS = {"ok": "✓", "warning": "!", "failed": "✗", "skipped": "-"}


@click.command()
@click.option("--offline", is_flag=True, help="Call nobody: check what can be checked without.")
@click.option(
    "--question", default="What can you help me with?", metavar="TEXT", help="What the service is asked."
)
@configured("rag_url", "judge", "embedder", "store")
@json_option
def command(offline: bool, question: str, as_json: bool, **options: Any) -> int:
    """Check configuration, key, endpoint, model, JSON schema support, embedder, service and store.

    The judge grades one short answer, the embedder embeds two texts, the service is asked one question.

    \b
      ragbench doctor
      ragbench doctor --judge openai:gpt-4o-mini --rag-url http://localhost:8080
      ragbench doctor --offline --json
    """
    checks = run_checks(options, question=question, offline=offline)
    told = [vars(check) for check in checks]
    # Not the largest number: a mistake in the settings explains an outage that follows from it.
    code = max((check.code for check in checks), key=[Exit.OK, Exit.UNSCORED, Exit.USAGE].index)
    emit({"ok": code == Exit.OK, "checks": told}, lambda: _text(told), as_json=as_json)
    return code


def _text(checks: list[dict[str, Any]]) -> str:
    width = max(len(check["name"]) for check in checks)
    lines = []
    for check in checks:
        # A refused configuration is a list of all that is wrong.
        first, *rest = check["said"].splitlines() or [""]
        lines.append(f"{_MARKS[check['state']]} {check['name']:{width}}  {first}")
        lines += [f"  {'':{width}}  {line}" for line in rest]
        if check["advice"]:
            lines.append(f"  {'':{width}}  → {check['advice']}")
    return "\n".join(lines)
