"""Every way to ask one judged metric: seconds beside the ideal of its calls, and the calls it made.

    python benchmarks/ways.py [--questions 100] [--latency 1] [--only helper,votes] [--beside CHECKOUT]

A way is a helper, a vote count, a panel, a set or a YAML file. The ideal is bare asyncio with aiohttp making the
same calls with the same dependencies (start of the process included); the aim is 1.3 times that. ``--beside``
measures another checkout of this project in the same run, so that a change can be told from the machine's mood.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speed import HERE, TOML, call, measured, project, serving

METRIC = "faithfulness_holistic"
HEAD = "import pytest\nimport pytest_ragbench as rb\n\n"
ONE = HEAD + '@pytest.mark.rag_questions("q.jsonl")\ndef test_answer(rag_sample):\n    {}\n'
SET = HEAD + '@pytest.mark.rag_questions("q.jsonl")\ndef test_answers(rag_samples):\n    {}\n'
OWN = (
    HEAD
    + f'def check(sample):\n    rb.assert_metric("{METRIC}", sample, ">=0.1")\n\n'
    + '@pytest.mark.rag_questions("q.jsonl")\ndef test_answer(rag_sample):\n    check(rag_sample)\n'
)
YAML = "questions: q.jsonl\n{}:\n  " + METRIC + ': ">=0.1"\n'
PANEL = (
    'judges = ["judge:m", "judge:other"]\n'  # both get the same prompt, which the server counts as repeated
)


@dataclass(frozen=True)
class Way:
    """How the metric is asked for: the test file, options, lines for ragbench.toml, judge calls a question."""

    test: str
    options: tuple[str, ...] = ()
    toml: str = ""
    judged: int = 1
    file: str = "test_way.py"


WAYS = {
    "assert_metric": Way(ONE.format(f'rb.assert_metric("{METRIC}", rag_sample, ">=0.1")')),
    "helper": Way(ONE.format(f'rb.assert_{METRIC}(rag_sample, ">=0.1")')),
    "own helper": Way(OWN),
    "assert_quality": Way(ONE.format(f'rb.assert_quality(rag_sample, {METRIC}=">=0.1")')),
    "score": Way(ONE.format(f'assert rb.score("{METRIC}", rag_sample).value > 0')),
    "votes": Way(ONE.format(f'rb.assert_{METRIC}(rag_sample, ">=0.1")'), ("--ragbench-votes", "3"), judged=2),
    "panel": Way(ONE.format(f'rb.assert_{METRIC}(rag_sample, ">=0.1")'), toml=PANEL, judged=2),
    "assert_over": Way(SET.format(f'rb.assert_over(rag_samples, "{METRIC}", ">=0.1")')),
    "assert_retrieval": Way(SET.format('rb.assert_retrieval(rag_samples, "hit_rate@1", ">=0.1")'), judged=0),
    "yaml": Way(YAML.format("thresholds"), file="way.rag.yaml"),
    "yaml over": Way(YAML.format("over"), file="way.rag.yaml"),
}


async def ideal(url: str, questions: int, judged: int) -> None:
    """A question, then its judge calls at once; all questions at once."""
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def judge(number: int, vote: int) -> None:
            body = {
                "model": "m",
                "messages": [{"role": "user", "content": f"{number} {vote}"}],
                "response_format": {"json_schema": {"schema": {"properties": {"grade": {"type": "number"}}}}},
            }
            async with session.post(f"{url}/v1/chat/completions", json=body) as reply:
                await reply.json()

        async def one(number: int) -> None:
            async with session.get(f"{url}/llm/search-rag", params={"questions": f"F{number}"}) as reply:
                await reply.json()
            await asyncio.gather(*(judge(number, vote) for vote in range(judged)))

        await asyncio.gather(*(one(number) for number in range(questions)))


def timed(way: Way, url: str, questions: int, package: Path) -> tuple[float, dict[str, Any], int, str]:
    """Seconds, the server's counters, exit code and last line of one way's run by one checkout."""
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        project(where, url, "grades", 200, questions)
        (where / "test_speed.py").unlink()
        (where / way.file).write_text(way.test)
        (where / "ragbench.toml").write_text(way.toml + TOML.format(url=url, slots=400))
        if way.judged == 0:  # there has to be something to find
            rows = (where / "q.jsonl").read_text().replace('?"}', '?", "relevant_ids": ["d1"]}')
            (where / "q.jsonl").write_text(rows)
        call(f"{url}/stats")
        seconds, _, code = measured([sys.executable, "-m", "pytest", "-q", *way.options], where, package)
        stats = call(f"{url}/stats")
        last = (where / "output.txt").read_text().strip().splitlines()[-1:]
    return seconds, stats, code, "".join(last)[:40]


def row(name: str, way: Way, url: str, questions: int, packages: dict[str, Path]) -> list[str]:
    bare = [
        sys.executable,
        __file__,
        "--ideal",
        url,
        "--questions",
        str(questions),
        "--judged",
        str(way.judged),
    ]
    with tempfile.TemporaryDirectory() as directory:
        least, _, _ = measured(bare, Path(directory))
    lines = []
    for label, package in packages.items():
        seconds, stats, code, last = timed(way, url, questions, package)
        calls, wanted = stats["calls"], way.judged * questions
        counted = f"{calls.get('rag', 0)} + {calls.get('judge', 0)} of {questions} + {wanted}"
        cells = [name, label, f"{seconds:.1f} s", f"{least:.1f} s", f"{seconds / least:.2f}", counted]
        lines.append(f"| {' | '.join([*cells, str(stats['repeated']), str(code), last])} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--only", default=",".join(WAYS))
    parser.add_argument("--beside", type=Path, help="Another checkout to measure in the same run.")
    parser.add_argument("--ideal", help=argparse.SUPPRESS)
    parser.add_argument("--judged", type=int, default=1, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ideal:
        asyncio.run(ideal(given.ideal, given.questions, given.judged))
        return
    packages = {"this": HERE.parent}
    if given.beside is not None:
        packages = {"beside": given.beside.resolve(), **packages}
    with serving(given.latency) as url:
        print("| way | checkout | wall | ideal | ratio | calls (RAG + judge) | repeated | exit | said |")
        print("|---|---|---|---|---|---|---|---|---|")
        for name in given.only.split(","):
            for line in row(name, WAYS[name], url, given.questions, packages):
                print(line, flush=True)


if __name__ == "__main__":
    main()
