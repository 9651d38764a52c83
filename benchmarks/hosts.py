"""Two hosts that have nothing in common but a network and a Redis server: network namespaces of this machine.

    python benchmarks/hosts.py [--questions 40] [--latency 0.5] [--max-calls 100]

Needs root, iproute2 and redis-server. Each host is a network namespace with a folder and a temporary directory of
its own, in which execnet's socket server waits for a worker of pytest-xdist; tests are copied there. Calls and the
most requests at a time are counted at the service; each is printed beside what it should be.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from speed import HERE, OTHERS, call, project

BRIDGE, NET = "rbench0", "10.93.0"
HOSTS = ("rbench1", "rbench2")


def sh(command: str) -> None:
    subprocess.run(command.split(), check=True)


@contextmanager
def network() -> Iterator[None]:
    """A bridge at NET.1, and a namespace for each host at NET.11, NET.12."""
    try:
        sh(f"ip link add {BRIDGE} type bridge")
        sh(f"ip addr add {NET}.1/24 dev {BRIDGE}")
        sh(f"ip link set {BRIDGE} up")
        for number, host in enumerate(HOSTS):
            sh(f"ip netns add {host}")
            sh(f"ip link add {host}v type veth peer name eth0 netns {host}")
            sh(f"ip link set {host}v master {BRIDGE} up")
            sh(f"ip -n {host} addr add {NET}.{11 + number}/24 dev eth0")
            sh(f"ip -n {host} link set eth0 up")
            sh(f"ip -n {host} link set lo up")
        yield
    finally:
        for host in HOSTS:
            subprocess.run(["ip", "netns", "del", host], check=False)
        subprocess.run(["ip", "link", "del", BRIDGE], check=False)


def wait_for(host: str, port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host, port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nobody answers at {host}:{port}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument("--max-calls", type=int, default=100)
    parser.add_argument("--slots", type=int, default=8)
    given = parser.parse_args()
    environ = {**os.environ, "SPEED_KEY": "none", "PYTHONPATH": str(HERE.parent)}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    started: list[subprocess.Popen[str]] = []
    with tempfile.TemporaryDirectory() as directory, network():
        where = Path(directory)
        try:
            redis = ["redis-server", "--bind", f"{NET}.1", "--port", "6399", "--save", "", "--dir", directory]
            started.append(
                subprocess.Popen([*redis, "--protected-mode", "no"], stdout=subprocess.DEVNULL, text=True)
            )
            command = [sys.executable, str(HERE / "speed_server.py"), "--host", f"{NET}.1"]
            server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            started.append(server)
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            tx = []
            for number, host in enumerate(HOSTS):
                folder = where / host
                (folder / "tmp").mkdir(parents=True)
                waiting = ["ip", "netns", "exec", host, sys.executable, "-m", "execnet.script.socketserver"]
                address = f"{NET}.{11 + number}:8899"
                own = {**environ, "TMPDIR": str(folder / "tmp")}
                started.append(
                    subprocess.Popen(
                        [*waiting, address], cwd=folder, env=own, stdout=subprocess.DEVNULL, text=True
                    )
                )
                tx.append(f"--tx=socket={address}//chdir={folder}")
            wait_for(f"{NET}.1", 6399)
            time.sleep(2)  # execnet's servers; each takes one connection: none may be spent on finding out
            tests = where / "tests"
            tests.mkdir()
            project(tests, url, "grades", given.slots, given.questions)
            toml = tests / "ragbench.toml"
            toml.write_text(
                f'store = "redis://{NET}.1:6399/0"\n{toml.read_text()}\n[budget]\nmax_calls = {given.max_calls}\n'
            )
            call(f"{url}/config", {"latency": given.latency})
            call(f"{url}/stats")
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                *OTHERS,
                "-d",
                *tx,
                f"--rsyncdir={tests}",
                str(tests),
            ]
            began = time.perf_counter()
            ran = subprocess.run(command, cwd=where, env=environ, capture_output=True, text=True, check=False)
            stats = call(f"{url}/stats")
            print(f"{time.perf_counter() - began:.1f} s, exit code {ran.returncode}")
            print("  " + "\n  ".join(ran.stdout.strip().splitlines()[-8:]))
            print(
                f"  calls at the server {stats['calls']} (budget {given.max_calls}), repeated {stats['repeated']}, "
                f"most at a time {stats['peak']} (slots {given.slots} each)"
            )
        finally:
            for process in started:
                process.kill()


if __name__ == "__main__":
    main()
