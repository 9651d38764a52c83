"""Failures grouped by what they have in common."""

from __future__ import annotations

from typing import Any

from pytest_ragbench.report.causes import Group, failures_by_cause
from pytest_ragbench.report.rows import rows_of
from tests.report_html.pages import a_report, a_result, a_score


def groups_of(results: list[dict[str, Any]]) -> list[Group]:
    return failures_by_cause(rows_of(a_report(results)))


def told(groups: list[Group]) -> list[tuple[str, str, list[str | None]]]:
    return [(each.cause.kind, each.cause.text, [row.sample.id for row in each.rows]) for each in groups]


def claim(name: str, text: str, reason: str, chunk: int | None = None, **sample: Any) -> dict[str, Any]:
    score = a_score(0.5, evidence=[{"text": text, "ok": False, "reason": reason, "chunk": chunk}])
    return a_result(name, 0.5, scores=[score], **sample)


def lacking(name: str, document: str, **score: Any) -> dict[str, Any]:
    missed = a_score(0.0, **{"metric": "recall@5", "tier": "retrieval", **score})
    return a_result(
        name, 0.0, scores=[missed], context_ids=["other.md"], relevant_ids={document: 1, "unneeded.md": 0}
    )


def outage(name: str, message: str) -> dict[str, Any]:
    gone = {"outcome": "error", "kind": "endpoint", "message": message}
    return {**a_result(name, None, scores=[]), "samples": [], **gone}


def test_the_same_error_is_one_cause_and_comes_first() -> None:
    groups = groups_of(
        [
            a_result("good", 0.9),
            a_result("poor", 0.5),
            outage("down-1", "no connection to http://a/?q=down-1 (after 3 attempts); try ragbench doctor"),
            outage("down-2", "no connection to http://a/?q=down-2 (after 9 attempts); try ragbench doctor"),
        ]
    )
    assert told(groups) == [
        ("error", "no connection to http://a/?q=…", ["down-1", "down-2"]),
        ("metric", "below >=0.8", ["poor"]),
    ]


def test_a_document_that_several_questions_miss_or_are_held_against() -> None:
    chunks = {"contexts": ["It is 13.", "It is 14."], "context_ids": ["prices.md", "more.md"]}
    groups = groups_of(
        [
            lacking("a", "offices.md"),
            lacking("b", "offices.md"),
            lacking("alone", "parking.md"),
            *(claim(f"c{n}", f"It is {n}.", "the context says otherwise", 1, **chunks) for n in range(3)),
        ]
    )
    # Worst first: three claims that lack a half each, two retrievals that lack all.
    assert told(groups) == [
        ("document", "claims that prices.md contradicts", ["c0", "c1", "c2"]),
        ("document", "offices.md was not retrieved", ["a", "b"]),
        ("metric", "below >=0.8", ["alone"]),
    ]
    # Without ids a chunk is called by how it begins.
    unnamed = [claim(name, name, "no", 2, contexts=["x", "Returns take a week."]) for name in ("y", "z")]
    assert told(groups_of(unnamed))[0][1] == "claims that “Returns take a week.” contradicts"


def test_the_same_words_about_different_claims_are_one_cause() -> None:
    groups = groups_of(
        [
            claim("a", "Socks are blue.", "no chunk mentions blue socks"),
            claim("b", "Shops open at 9.", "no chunk mentions shops"),
            claim("c", "It is 13.", "no chunk says so; missing: 13"),
            claim("d", "It is red.", "no chunk says so; missing: red"),
            claim("e", "The judge is a model.", "Nothing that I was shown speaks of it"),
            claim("f", "Which writes freely.", "The context is about something else"),
        ]
    )
    assert told(groups) == [
        ("metric", "claims that are in no chunk", ["e", "f"]),
        ("claim", "no chunk mentions …", ["a", "b"]),
        ("claim", "no chunk says so", ["c", "d"]),
    ]


def test_each_failure_is_in_one_group_of_the_largest_cause_it_has() -> None:
    both = lacking("both", "x.md")
    both["samples"][0]["relevant_ids"]["y.md"] = 2
    groups = groups_of([lacking("a", "x.md"), both, lacking("b", "y.md"), lacking("c", "y.md")])
    assert told(groups) == [
        ("document", "y.md was not retrieved", ["both", "b", "c"]),
        ("metric", "below >=0.8", ["a"]),  # what is left of the other document is no cause of several
    ]
    shared = lacking("shared", "large.md")
    shared["samples"][0]["relevant_ids"]["small.md"] = 1
    most = [lacking(f"l{n}", "large.md") for n in range(3)]
    rest = [lacking(f"s{n}", "small.md") for n in range(2)]
    assert told(groups_of([*rest, shared, *most])) == [
        ("document", "large.md was not retrieved", ["shared", "l0", "l1", "l2"]),
        ("document", "small.md was not retrieved", ["s0", "s1"]),  # without the one that is told of already
    ]
    plain = {**a_result("q", 0.9), "outcome": "failed", "kind": None}
    assert told(groups_of([plain])) == [
        ("test", "test_a.py::test_answer failed, with no score below its threshold", ["q"])
    ]
