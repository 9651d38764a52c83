"""Runs of pytest: the test files of a case, or projects written here for what a case tells in words."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import distributions
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pytest_ragbench.clean import clean
from tests.cases import sources
from tests.cases.given import Given
from tests.cases.outcomes import Outcome
from tests.cases.projects import Project, Run, project
from tests.cases.registry import Input, op
from tests.cases.servers import serving
from tests.cases.steps import Unreadable, from_steps

_CACHED = ("--lf", "--ff", "--sw", "--last-failed", "--failed-first", "--stepwise", "--nf")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS", re.IGNORECASE)
_CODES = {"pass": 0, "quality_failure": 1, "usage_error": 4}
_UNSCORED = 8


@op("pytest_run")
def pytest_run(given: Input) -> Outcome:
    """Run the case's files; else the project that its other keys ask for.

    ``runs``: several runs in one folder, each with ``args``, ``env`` and ``files`` of its own; they are the outcomes.
    """
    if lacking := _not_installed(given.get("plugins", [])):
        return Outcome("crash", message=f"not installed: {', '.join(lacking)}")
    if "runs" in given:
        return _run_in_turn(given)
    if "scores" in given:
        return _run_each_score(given)
    if "files" in given:
        return _run_files(given)
    if "judge_http" in given:
        return _run_judge_http(given)
    if "cache_dir" in given:
        return _run_unwritable_store(given)
    if "outcomes" in given:
        return _run_outcomes(given)
    try:
        written = from_steps(given["steps"]) if "steps" in given else _for_words(given)
    except Unreadable as error:
        return Outcome("crash", message=str(error))
    with project(written) as made:
        run = made.run("-p", "conftest_plugin", *pytest_args(given), "--junitxml=j.xml", env=given.get("env"))
        return outcome_of(run, noise_in(run))


def _for_words(given: Input) -> sources.Files:
    words = ", ".join([given["test"]] if "test" in given else given.get("tests", []))
    written = sources.for_words(words)
    if written is None:
        raise Unreadable(f"no test can be written from these words: {words!r}")
    return written


def _not_installed(names: Sequence[str]) -> list[str]:
    known = {dist.metadata["Name"].casefold() for dist in distributions()}
    return [name for name in names if name.casefold() not in known]


_IN_WORDS = ("test", "tests", "needs", "note_args")
"""What the files of a case are, told to readers."""


def pytest_args(given: Input) -> list[str]:
    args = [arg for arg in given.get("args", []) if isinstance(arg, str)] + list(given.get("extra_args", []))
    if mode := given.get("asyncio_mode"):
        args += ["-o", f"asyncio_mode={mode}"]
    return args


def outcome_of(run: Run, problems: Sequence[str], kind: str | None = None) -> Outcome:
    """The outcome of a run: what its tests came to, where they all came to the same."""
    kinds = {found for found in run.kinds.values() if found}
    names = {"quality": "quality_failure", "undefined": "not_applicable"}
    told = {names.get(found, f"{found}_error") for found in kinds}
    chosen = kind or ("pass" if run.code == 0 else told.pop() if len(told) == 1 else "property")
    return Outcome(chosen, message=run.text, facts={"machine": run}, problems=list(problems))


def noise_in(run: Run) -> list[str]:
    return run.lacks(["INTERNALERROR", "DumpError", "was never awaited", "Different tests were collected"])


# Files of the case


def _run_files(given: Input) -> Outcome:
    files: Mapping[str, str] = given["files"]
    for key in _IN_WORDS:
        given.get(key)
    args = pytest_args(given)
    cached = any(arg.startswith(_CACHED) for arg in args)  # a second run is meant to differ
    plugins = [] if cached else ["-p", "no:cacheprovider"]
    junit = [] if any("junit" in arg for arg in args) else ["--junitxml=j.xml"]
    targets = [name for name in ("test_case.py",) if name in files] or sorted(
        name for name in files if name.rpartition("/")[2].startswith("test_")
    )
    problems: list[str] = []
    runs: list[Run] = []
    with project(files) as made:
        command = [*plugins, "-p", "conftest_plugin", *args, *junit, *targets]
        for _ in range(int(given.get("repeat", 1))):
            runs.append(made.run(*command, env=given.get("env")))
        if "-n" in args:  # workers change nothing
            alone = made.run(*_with_workers(command, "0"), env=given.get("env"))
            if (alone.code, set(alone.kinds)) != (runs[0].code, set(runs[0].kinds)):
                problems.append(f"with -n 0: exit code {alone.code}, {sorted(alone.kinds)}: {alone.tail}")
    problems += [told for run in runs for told in noise_in(run)]
    if not cached and len({(run.code, tuple(sorted(run.kinds))) for run in runs}) > 1:
        problems.append(f"the runs differ: {[(run.code, sorted(run.kinds)) for run in runs]}")
    outcome = outcome_of(runs[0], problems)
    outcome.facts["numbers"] = [len(runs)]
    return outcome


def _with_workers(command: list[str], number: str) -> list[str]:
    changed = list(command)
    changed[changed.index("-n") + 1] = number
    return changed


def _run_in_turn(given: Input) -> Outcome:
    """Runs in one folder, so that a second one finds what the first has left there."""
    made_runs: list[Outcome] = []
    with project(given.get("files", {})) as made:
        for step in given["runs"]:
            one = Given({"args": [], **step})
            made.write(one.get("files", {}))
            env = {**given.get("env", {}), **one.get("env", {})}
            args = [*pytest_args(given), *pytest_args(one)]
            junit = [] if any("junit" in arg for arg in args) else ["--junitxml=j.xml"]
            run = made.run("-p", "conftest_plugin", *args, *junit, env=env)
            problems = [f"keys of a run that are not read: {key}" for key in one.unread()]
            made_runs.append(outcome_of(run, [*problems, *noise_in(run)]))
    return Outcome("property", each=made_runs)


def _run_each_score(given: Input) -> Outcome:
    """The files once for each way to write the score; the first is the one that stands in them."""
    first, *others = [str(text) for text in given["scores"]]
    rest = given.without("scores")
    files: Mapping[str, str] = given["files"]
    outcome = _run_files(rest)
    for text in others:
        if not any(first in content for content in files.values()):
            outcome.problems.append(f"no file has the score {first}")
        changed = {
            name: f"from decimal import Decimal\n{content.replace(first, text)}"
            if first in content
            else content
            for name, content in files.items()
        }
        other = _run_files(rest.over({"files": changed}))
        got, wanted = other.facts["machine"], outcome.facts["machine"]
        outcome.problems += [f"{text}: {told}" for told in other.problems]
        if (got.code, set(got.kinds.items())) != (wanted.code, set(wanted.kinds.items())):
            outcome.problems.append(f"{text}: exit code {got.code}, {dict(got.kinds)}: {got.tail}")
    return outcome


# What a case tells by keys


def _run_judge_http(given: Input) -> Outcome:
    """A judge behind HTTP that refuses, with a key in the environment that must not turn up anywhere."""
    env = dict(given.get("env", {}))
    secrets = [value for name, value in env.items() if _SECRET.search(name)]
    reply = given["judge_http"]
    with serving([reply]) as server, project(sources.JUDGED) as made:
        env |= {"OPENAI_BASE_URL": f"{server.url}/v1", "RAGBENCH_JUDGE": "openai:case-model"}
        env.setdefault("OPENAI_API_KEY", "sk-case-0000")
        args = pytest_args(given)
        junit = [] if any("junit" in arg for arg in args) else ["--junitxml=j.xml"]
        run = made.run(*args, *junit, "--ragbench-json=out.json", env=env)
        problems = [*noise_in(run), *leaks(secrets, run.output, made)]
    status = str(reply.get("status", 200))
    if status not in run.text:
        problems.append(f"the output does not name the status {status}")
    problems += [
        f"the output does not say {words!r}" for words in _says(reply, secrets) if words not in run.text
    ]
    if run.code == 0:
        problems.append("exit code 0")
    if "judge" not in run.kinds.values():
        problems.append(f"no judge error among {dict(run.kinds)}")
    return outcome_of(run, problems, kind="judge_error")


def leaks(secrets: Sequence[str], output: bytes, made: Project) -> list[str]:
    """Where a secret turned up: in the output, or in a file that the run left."""
    found = []
    for secret in secrets:
        needle = secret.encode()
        places = [name for name, content in made.contents().items() if needle in content]
        found += [f"a secret is in {name}" for name in (["the output"] if needle in output else []) + places]
    return found


def _says(reply: Mapping[str, Any], secrets: Sequence[str]) -> list[str]:
    """The beginning of the provider's own message, up to the first secret."""
    error = (reply.get("json") or {}).get("error", {})
    message = str(error.get("message", "")) if isinstance(error, Mapping) else ""
    for secret in secrets:
        message = message.partition(secret)[0]
    return [message.strip(" :")] if message.strip(" :") else []


def _run_unwritable_store(given: Input) -> Outcome:
    """A store below a regular file: it can't be made, not even by root."""
    written = _for_words(given) if "test" in given else sources.PASSING
    with project({**written, "blocker": "a file"}) as made:
        store = made.path / "blocker" / "cache" / "store.sqlite"
        run = made.run(
            *pytest_args(given), f"--ragbench-store={store}", "--junitxml=j.xml", env=given.get("env")
        )
        problems = noise_in(run)
        warned = [
            line for line in run.text.splitlines() if str(store.parent.parent) in line and "Warning" in line
        ]
        if len(warned) != 1:
            problems.append(f"{len(warned)} warnings name the path, one expected: {run.tail}")
    if run.code != 0 or run.count("passed") != 1:
        problems.append(f"exit code {run.code}: {run.tail}")
    return outcome_of(run, problems)


def _run_outcomes(given: Input) -> Outcome:
    """One test for each outcome."""
    outcomes: list[str] = list(given["outcomes"])
    counts = Counter(outcomes)
    with project(sources.of_outcomes(outcomes)) as made:
        run = made.run(*pytest_args(given), "--junitxml=j.xml", env=given.get("env"))
    problems = noise_in(run)
    if run.code != code_of(counts):
        problems.append(f"exit code {run.code}, {code_of(counts)} expected: {run.tail}")
    problems += [
        f"the summary lacks {text!r}: {run.tail}" for text in summary_parts(counts) if text not in run.text
    ]
    told = Counter(kind for kind in run.kinds.values() if kind)
    wanted = Counter({_JUNIT[name]: number for name, number in counts.items() if name != "pass"})
    if told != wanted:
        problems.append(f"JUnit has {dict(told)}, {dict(wanted)} expected")
    return outcome_of(run, problems)


_SUMMARY = {
    "pass": "{} passed",
    "quality_failure": "{} quality failure",
    "judge_error": "{} judge error",
    "endpoint_error": "{} endpoint error",
    "embedding_error": "{} embedding error",
    "usage_error": "{} usage error",
    "not_applicable": "{} undefined score",
}
_JUNIT = {
    "quality_failure": "quality",
    "judge_error": "judge",
    "endpoint_error": "endpoint",
    "embedding_error": "embedding",
    "usage_error": "usage",
    "not_applicable": "undefined",
}


def summary_parts(counts: Mapping[str, int]) -> list[str]:
    return [_SUMMARY[name].format(number) for name, number in counts.items() if number]


def code_of(counts: Mapping[str, int]) -> int:
    """The documented exit code of a run with these outcomes."""
    for name in ("quality_failure", "usage_error"):
        if counts.get(name):
            return _CODES[name]
    return 0 if set(counts) <= {"pass"} else _UNSCORED


@op("pytest_run_compare", whole=True)
def compare(given: Input) -> Outcome:
    """The same project alone and with workers: one summary, one request a question."""
    total, bad, broken = (int(given.get(name, 0)) for name in ("questions", "failing", "judge_errors"))
    wanted = {"pass": total - bad - broken, "quality_failure": bad, "judge_error": broken}
    told_counts = {"passed": wanted["pass"], "quality failure": bad, "judge error": broken}
    problems: list[str] = []
    for args in given["args"]:
        reply = {"status": 200, "json": {"answer": "a", "chunks": ["c"]}}
        with serving([reply]) as server, project(sources.many_questions(total, bad, broken)) as made:
            run = made.run(*args, f"--rag-url={server.url}", "--junitxml=j.xml", env=given.get("env"))
            asked = Counter(parse_qs(urlsplit(target).query)["questions"][0] for target in server.targets)
        told = [*noise_in(run)]
        told += [
            f"the summary lacks {text!r}: {run.tail}"
            for text in summary_parts(wanted)
            if text not in run.text
        ]
        if run.text.count("RAG quality") != 1:
            told.append(f"{run.text.count('RAG quality')} summaries")
        if len(asked) != total or set(asked.values()) != {1}:
            told.append(f"the service was asked {asked}")
        if run.code != code_of({name: number for name, number in wanted.items() if number}):
            told.append(f"exit code {run.code}")
        problems += [f"{' '.join(args)}: {text}" for text in told]
    return Outcome("property", problems=problems, facts={"counts": told_counts, "numbers": [total]})


@op("pytest_exit", items="files")
def pytest_exit(given: Input) -> Outcome:
    """A run whose question file holds no question, or does not exist."""
    name = given.get("name") or given["path"]
    files = {} if given.get("name") is None else {str(name): str(given.get("text", ""))}
    with project({**sources.asking(str(name)), **files}) as made:
        run = made.run("--junitxml=j.xml", "--rag-url=http://127.0.0.1:9")
    problems = noise_in(run)
    if run.code == 0:
        problems.append("exit code 0")
    if str(name) not in run.text:
        problems.append(f"the message does not name {name}")
    if files and "no question" not in run.text:
        problems.append(f"the message does not say that there are no questions: {run.tail}")
    return outcome_of(run, problems, kind="property")


@op("collect_ids", whole=True)
def collect_ids(given: Input) -> Outcome:
    """Ids of any letters as pytest's node ids."""
    ids, questions = list(given["ids"]), list(given.get("questions") or ["q?"] * len(given["ids"]))
    rows = [json.dumps({"id": i, "question": q}) for i, q in zip(ids, questions, strict=True)]
    with project({**sources.asking("q.jsonl"), "q.jsonl": "\n".join(rows) + "\n"}) as made:
        first, second = (_collected(made) for _ in range(2))
        failing = made.run("--junitxml=j.xml")
        problems = _id_problems(ids, first, second, failing)
        for number, node in enumerate(first):
            one = made.run(node)
            if one.count("failed") != 1 or one.count("passed"):
                problems.append(f"{ids[number]!r}: {node!r} selects {one.tail}")
                break
    return Outcome("property", problems=problems, facts={"machine": failing}, message=failing.text)


def _collected(made: Project) -> list[str]:
    listed = made.run("--collect-only")
    return [line for line in listed.text.splitlines() if line.startswith("test_case.py::")]


def _id_problems(ids: list[str], first: list[str], second: list[str], failing: Run) -> list[str]:
    problems = []
    if len(first) != len(ids) or len(set(first)) != len(ids):
        problems.append(f"{len(set(first))} distinct node ids of {len(ids)}: {first}")
    if first != second:
        problems.append(f"a second run has other node ids: {second}")
    for node in first:
        inner = node.partition("[")[2].removesuffix("]")
        if not inner.isprintable() or re.search(r"[/\[\]]|::", inner):
            problems.append(f"node id {node!r}")
    if failing.count("failed") != len(ids):
        problems.append(
            f"{failing.count('failed')} tests ran and failed, {len(ids)} expected: {failing.tail}"
        )
    for one in ids:
        if any(part and part not in failing.text for part in clean(one).split("\n")):
            problems.append(f"no failure shows the id {one!r}")
    return problems


@op("artifact_write", items="names", single="name")
def artifact_write(given: Input) -> Outcome:
    """A failing sample of this name, with every report: its files stay in their folder, and name it as it is."""
    name = str(next(given[key] for key in ("name", "id", "filename", "sample_id") if key in given))
    with project(sources.named(name)) as made:
        (made.path / "inner").mkdir()
        before = set(made.path.parent.glob("*")), set(made.contents())
        reports = [f"--ragbench-{kind}=out/report.{kind}" for kind in ("json", "html", "csv")]
        run = made.run(*pytest_args(given), *reports, "--junitxml=out/j.xml", "-p", "no:cacheprovider")
        after = set(made.path.parent.glob("*")), set(made.contents())
        written = {one for one in after[1] - before[1] if "__pycache__" not in one}
        stray = [one for one in written if not one.startswith("out/") and not one.startswith(".ragbench")]
        problems = [*noise_in(run), *(f"a file outside its folder: {one!r}" for one in stray)]
        problems += [
            f"a file beside the project: {one}" for one in after[0] - before[0] if name and name in one.name
        ]
        if run.code != 1:
            problems.append(f"exit code {run.code}, 1 expected: {run.tail}")
        if "out/report.json" in written:
            results = json.loads(made.contents()["out/report.json"])["results"]
            told = [sample.get("id") for result in results for sample in result.get("samples", ())]
            if name not in told:
                problems.append(f"the report names {told}")
        problems += [f"out/report.{kind} is missing" for kind in ("json", "html", "csv")
                     if f"out/report.{kind}" not in written]  # fmt: skip
        problems += [f"{file} {why}" for file, why in run.xml.items() if why]
    return outcome_of(run, problems, kind="property")
