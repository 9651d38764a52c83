"""The speed job by other tools' drivers, beside ours, in one run.

    python benchmarks/peers.py DRIVERS ENVIRONMENTS [--only ours,evaltrack] [--questions 100]

DRIVERS is a folder with ``fake_server.py`` (a service and a judge on loopback: ``--port``, ``POST /reset``,
``GET /stats``) and ``peers/NAME/`` with a driver for each tool; ENVIRONMENTS has a Python environment for
each, by the same name. Ours asks the scripted server of this folder, which waits just as long. Tools that are
not there are left out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from speed import HERE, call, cpu, environment, memory, project

_PROMPTFOO = (
    "{python} gen.py {questions} {scratch}/config.json {url} && cd {scratch} && "
    "{bin}/promptfoo eval -c config.json --no-cache -j 200 --no-progress-bar --no-table --no-write"
)
PEERS: dict[str, tuple[str, list[str], dict[str, str]]] = {
    "floor": ("naive", ["{python}", "floor_async.py"], {}),
    "evaltrack": ("evaltrack", ["{python}", "-m", "pytest", "-q", "test_et.py"], {}),
    "pydantic-evals": ("pydantic_evals", ["{python}", "run_pe.py"], {}),
    "ragas": ("ragas", ["{python}", "run_ragas.py"], {"MODE": "experiment", "MW": "200"}),
    "ragas, evaluate()": ("ragas", ["{python}", "run_ragas.py"], {"MODE": "evaluate", "MW": "200"}),
    "deepeval, evaluate()": ("deepeval", ["{python}", "run_evaluate.py"], {"MC": "100"}),
    "deepeval test run -n 16": (
        "deepeval",
        ["{bin}/deepeval", "test", "run", "test_deepeval.py", "-n", "16"],
        {},
    ),
    "promptfoo -j 200": ("promptfoo", ["sh", "-c", _PROMPTFOO], {}),
}
ENVIRONMENTS = {"naive": "pydantic_evals"}
"""Drivers that need no environment of their own."""


def measured(
    command: list[str], where: Path, environ: dict[str, str], limit: float
) -> tuple[float, float, int, str]:
    """Wall and CPU seconds, peak of the summed memory (MB), and the last line that was printed."""
    before, began, peak = cpu(), time.perf_counter(), 0
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command, cwd=where, env=environ, stdout=output, stderr=output, start_new_session=True
        )
        while process.poll() is None:
            peak = max(peak, memory(process.pid))
            time.sleep(0.1)
            if time.perf_counter() - began > limit:
                os.killpg(process.pid, 9)
                process.wait()
        output.seek(0)
        said = [line for line in output.read().splitlines() if line.strip()]
    last = next((line for line in reversed(said) if line.startswith("RESULT")), said[-1] if said else "")
    return time.perf_counter() - began, cpu() - before, peak // 2**20, f"{process.returncode}: {last}"


def ours(options: list[str], questions: int, limit: float) -> tuple[Any, dict[str, int]]:
    server = subprocess.Popen(
        [sys.executable, str(HERE / "speed_server.py")], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    try:
        call(f"{url}/config", {"latency": 1.0})
        with tempfile.TemporaryDirectory() as folder:
            project(Path(folder), url, "grades", 200, questions)
            environ = environment()
            command = [sys.executable, "-m", "pytest", "-q", *options]
            return measured(command, Path(folder), environ, limit), call(f"{url}/stats")["calls"]
    finally:
        server.kill()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("drivers", type=Path)
    parser.add_argument("environments", type=Path)
    parser.add_argument("--only", help="Names, with semicolons between them.")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--port", type=int, default=8931)
    parser.add_argument("--limit", type=float, default=200, help="Seconds until a tool is stopped.")
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    url = f"http://127.0.0.1:{given.port}"
    server = subprocess.Popen(
        [sys.executable, str(given.drivers / "fake_server.py"), "--port", str(given.port)],
        stdout=subprocess.DEVNULL,
    )
    while server.poll() is None:
        try:
            call(f"{url}/stats")
            break
        except OSError:
            time.sleep(0.1)
    names = given.only.split(";") if given.only else ["ours", *PEERS]
    print(f"load average before: {os.getloadavg()[0]:.1f}\n")
    print("| tool | wall | CPU | memory | calls | exit code: last line |\n|---|---|---|---|---|---|")
    scratch = tempfile.mkdtemp()
    try:
        for name in names:
            if name == "ours":
                found, calls = ours([], given.questions, given.limit)
            else:
                driver, command, more = PEERS[name]
                where = given.environments.absolute() / ENVIRONMENTS.get(driver, driver)
                folder = next(
                    (path for path in (where / "bin", where / "node_modules/.bin") if path.exists()), None
                )
                if folder is None:
                    continue
                python = folder / "python" if (folder / "python").exists() else Path(sys.executable)
                environ = {
                    **os.environ, **more, "N": str(given.questions), "RAG_URL": f"{url}/llm/search-rag",
                    "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none", "PATH": f"{folder}:{os.environ['PATH']}",
                    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "RAGAS_DO_NOT_TRACK": "true",
                    "PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1",
                    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1", "PROMPTFOO_CONFIG_DIR": scratch,
                }  # fmt: skip
                environ.pop("PYTHONPATH", None)
                call(f"{url}/reset", {"latency": 1.0})
                values = {"questions": given.questions, "url": url, "scratch": scratch}
                filled = [part.format(python=python, bin=folder, **values) for part in command]
                found = measured(filled, given.drivers / "peers" / driver, environ, given.limit)
                stats = call(f"{url}/stats")
                calls = stats.get(
                    "calls", {key: stats[key] for key in ("rag", "chat", "embed") if key in stats}
                )
            wall, computed, megabytes, said = found
            print(
                f"| {name} | {wall:.1f} s | {computed:.1f} s | {megabytes} MB | {calls} | {said[:90]} |",
                flush=True,
            )
    finally:
        server.kill()
        shutil.rmtree(scratch)
    print(f"\nload average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
