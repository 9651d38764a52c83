"""Judges that are moved by length or order, and one that is not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from scipy.stats import binomtest

from pytest_ragbench.calibration.asking import ask_again
from pytest_ragbench.calibration.probes import Probe, compared, probes, variants
from pytest_ragbench.judge.callable import callable_judge
from pytest_ragbench.judge.local_judge import local_judge
from pytest_ragbench.statistics.bounds import mean_bounds
from tests.calibration.test_agreement import label, read
from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture

CLAIMS = [
    "Refunds take 14 days.",
    "Возврат занимает 14 дней.",
    "返金には14日かかります。",
    "Shipping is free.",
]
ROWS = [
    label(True, True, n=n // 2, claim=claim, lang=lang, contexts=[f"{claim} Really.", "Another chunk."])
    for n, (claim, lang) in enumerate(zip(CLAIMS, ("en", "ru", "ja", "en"), strict=True))
]
ROWS[2]["question_id"], ROWS[3]["question_id"] = "q8", "q9"


def fenced(text: str, name: str) -> list[str]:
    return [part.partition(">\n")[2].partition("\n</")[0] for part in text.split(f"<{name}-")[1:]]


def judge(kind: str) -> Any:
    """ "steady"; "long": believes what is long; "first": believes what the first chunk says; "top": the first claim."""

    def reply(messages: list[dict[str, str]]) -> str:
        text = messages[-1]["content"]
        claims, chunks = fenced(text, "claim"), fenced(text, "chunk")
        said = {}
        for number, claim in enumerate(claims, 1):
            core = next((known for known in CLAIMS if known in claim), claim)
            verdict = {
                "steady": any(core in chunk for chunk in chunks),
                "long": len(claim) > 30,
                "first": core in chunks[0],
                "top": number == 1,
            }[kind]
            said[str(number)] = {"reason": "r", "chunk": None, "verdict": verdict}
        return json.dumps({"verdicts": said})

    return callable_judge(reply, name=kind)


def probed(tested: Any, rows: list[dict[str, Any]] = ROWS) -> dict[str, Probe]:
    async def work() -> dict[str, Probe]:
        return await probes(await ask_again(read(rows), tested), tested)

    return asyncio.run(work())


def test_a_steady_judge_is_not_moved() -> None:
    found = probed(judge("steady"))
    assert set(found) == {"padded", "twice", "chunks_reversed"}
    for probe in found.values():
        assert (probe.n, probe.same.value, probe.to_yes, probe.to_no, probe.p) == (4, 1.0, 0, 0, None)
        assert probe.chance == 1.0
    assert probed(local_judge()).keys() >= {"padded", "twice", "chunks_reversed"}


def test_a_judge_that_believes_long_texts() -> None:
    found = probed(
        judge("long"), [ROWS[0], ROWS[3], *({**ROWS[0], "question_id": f"x{n}"} for n in range(4))]
    )
    assert (found["padded"].same.value, found["padded"].to_yes, found["padded"].to_no) == (0.0, 6, 0)
    assert found["padded"].p == pytest.approx(2 * 0.5**6)
    assert found["chunks_reversed"].same.value == 1.0
    assert "no chance: p 0.031" in str(found["padded"])
    assert found["padded"].turned[0] == "q0 faithfulness"


def test_a_judge_that_reads_the_first_chunk_only() -> None:
    found = probed(judge("first"))
    assert (found["chunks_reversed"].to_no, found["padded"].to_no) == (4, 0)


def test_a_judge_that_believes_the_first_claim() -> None:
    rows = [
        {**ROWS[n], "question_id": "q", "lang": "en", "contexts": ["A chunk."], "question": "?"}
        for n in range(4)
    ]
    found = probed(judge("top"), rows)
    assert (found["claims_reversed"].n, found["claims_reversed"].to_yes, found["claims_reversed"].to_no) == (
        4,
        1,
        1,
    )
    assert found["claims_together"].to_no == 3
    assert found["claims_reversed"].chance == pytest.approx(0.25**2 + 0.75**2)


def test_figures_beside_statsmodels_and_scipy() -> None:
    from statsmodels.stats.proportion import proportion_confint

    before = read([label(n < 12, True, n=n, value=0.5) for n in range(20)])
    after = read([label(n < 9 or n == 19, True, n=n, value=0.4 if n % 2 else 0.6) for n in range(20)])
    probe = compared("padded", before, after)
    assert probe is not None
    assert (probe.to_yes, probe.to_no, probe.same.value) == (1, 3, 0.8)
    assert (probe.same.low, probe.same.high) == pytest.approx(proportion_confint(16, 20, method="beta"))
    assert probe.p == pytest.approx(binomtest(1, 4).pvalue)
    assert probe.shift.value == pytest.approx(0)
    bounds = mean_bounds([0.1, -0.1] * 10, confidence=0.975, low=-1.0)
    assert [probe.shift.low, probe.shift.high] == pytest.approx([bounds.low, bounds.high], abs=1e-6)
    failed = [each.model_copy(update={"verdict": None}) for each in after]
    assert compared("padded", before, failed) is None


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("Sure! It takes 14 days. I hope this helps.", "It takes 14 days."),
        ("Конечно! Это 14 дней. Надеюсь, это поможет.", "Это 14 дней."),
        ("もちろんです。14日です。お役に立てば幸いです。", "14日です。"),
        ("It is certainly 14 days.", None),
    ],
)
def test_courtesies_are_left_out(text: str, bare: str | None) -> None:
    row = label(True, True, claim=None, answer=text)
    [shortened] = variants(read([row]))["shortened"]
    assert (shortened and (shortened.answer or "").strip()) == bare
    [padded] = variants(read([row]))["padded"]
    assert padded is not None
    assert text in str(padded.answer)
    assert padded.claim is None


def test_calibrate_probes(cli: Cli) -> None:  # noqa: F811
    cli.write("labels.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS))
    cli.write("ragbench.toml", 'judge = "local"\nstore = "off"\n')
    ran = cli("calibrate", "labels.jsonl", "--ask", "--probe", "--json")
    assert ran.code == 0
    assert set(ran.data["probes"]["json"]) == {"padded", "twice", "chunks_reversed"}
    shown = cli("calibrate", "labels.jsonl", "--ask", "--probe").out
    assert "what should not change a verdict:\n  padded with neutral words: the same verdict " in shown
    assert cli("calibrate", "labels.jsonl", "--probe").code == 4
