"""Two hosts that have nothing in common but a network and a Redis server on a third: network namespaces.

    python benchmarks/hosts.py [--questions 40] [--latency 0.5] [--max-calls 1000] [--fault none,worker,restart,cut]

Needs root, iproute2 and redis-server. Each host is a network namespace with a folder and a temporary directory of
its own, in which execnet's socket server waits for a worker of pytest-xdist; tests are copied there. Calls and the
most requests at a time are counted at the service; each is printed beside what it should be. When a third of the
calls have been made,

- worker: all processes of the second host are killed;
- restart: Redis is killed, and started anew two seconds later, empty;
- cut: packets of the second host to Redis get lost.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from speed import HERE, call, environment, project

BRIDGE, NET = "rbench0", "10.93.0"
HOSTS = ("rbench1", "rbench2", "rbench3")
"""The last one is the Redis server's."""
REDIS = f"{NET}.13"


def sh(command: str) -> None:
    subprocess.run(command.split(), check=True)


@contextmanager
def network() -> Iterator[None]:
    """A bridge at NET.1, and a namespace for each host at NET.11, NET.12, NET.13."""
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


class Network:
    """The processes on the hosts, and what may happen to them."""

    def __init__(self, where: Path, environ: dict[str, str]) -> None:
        self.where = where
        self.environ = environ
        self.started: list[subprocess.Popen[str]] = []
        self.redis = self.start_redis()

    def start(self, host: str, *command: str, **more: str) -> subprocess.Popen[str]:
        folder = self.where / host
        (folder / "tmp").mkdir(parents=True, exist_ok=True)
        own = {**self.environ, "TMPDIR": str(folder / "tmp"), **more}
        process = subprocess.Popen(
            ["ip", "netns", "exec", host, *command], cwd=folder, env=own, stdout=subprocess.DEVNULL, text=True
        )
        self.started.append(process)
        return process

    def start_redis(self) -> subprocess.Popen[str]:
        options = ["--port", "6399", "--save", "", "--protected-mode", "no"]
        return self.start(HOSTS[2], "redis-server", "--bind", REDIS, *options)

    def worker(self, number: int) -> str:
        """Start a host's server for workers; what ``--tx`` has to say of it."""
        address = f"{NET}.{11 + number}:8899"
        self.start(HOSTS[number], sys.executable, "-m", "execnet.script.socketserver", address)
        return f"--tx=socket={address}//chdir={self.where / HOSTS[number]}"

    def kill_worker(self) -> None:
        found = subprocess.run(["ip", "netns", "pids", HOSTS[1]], capture_output=True, text=True, check=True)
        for number in found.stdout.split():
            os.kill(int(number), 9)

    def restart_redis(self) -> None:
        self.redis.kill()
        self.redis.wait()
        time.sleep(2)
        self.redis = self.start_redis()

    def cut(self) -> None:
        """Packets go to a card that nobody has: nothing comes back, not even a refusal."""
        sh(f"ip -n {HOSTS[1]} neigh replace {REDIS} lladdr 02:00:00:00:00:99 dev eth0 nud permanent")

    def close(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()


FAULTS: dict[str, Callable[[Network], None] | None] = {
    "none": None,
    "worker": Network.kill_worker,
    "restart": Network.restart_redis,
    "cut": Network.cut,
}


def run(fault: str, given: argparse.Namespace) -> None:
    environ = environment()
    with tempfile.TemporaryDirectory() as directory, network():
        where = Path(directory)
        hosts = Network(where, environ)
        command = [sys.executable, str(HERE / "speed_server.py"), "--host", f"{NET}.1"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            tx = [hosts.worker(number) for number in range(2)]
            wait_for(REDIS, 6399)
            time.sleep(2)  # execnet's servers; each takes one connection: none may be spent on finding out
            tests = where / "tests"
            tests.mkdir()
            project(tests, url, "grades", given.slots, given.questions)
            toml = tests / "ragbench.toml"
            toml.write_text(
                f'store = "redis://{REDIS}:6399/0"\n{toml.read_text()}\n[budget]\nmax_calls = {given.max_calls}\n'
            )
            call(f"{url}/config", {"latency": given.latency})
            call(f"{url}/stats")
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-d",
                *tx,
                f"--rsyncdir={tests}",
                str(tests),
            ]
            began = time.perf_counter()
            with (where / "output.txt").open("w") as output:
                ran = subprocess.Popen(
                    [*command, "--max-worker-restart=0"], cwd=where, env=environ, stdout=output, stderr=output
                )
                happen = FAULTS[fault]
                while happen is not None and ran.poll() is None:
                    if sum(call(f"{url}/peek")["calls"].values()) >= given.questions:
                        happen(hosts)
                        break
                    time.sleep(0.1)
                ran.wait()
            seconds = time.perf_counter() - began
            stats = call(f"{url}/stats")
            print(f"{fault}: {seconds:.1f} s, exit code {ran.returncode}")
            said = (where / "output.txt").read_text().strip().splitlines()
            told = [
                line
                for line in said
                if "edis" in line or "rash" in line or line.startswith(("FAILED", "ERROR"))
            ]
            print("  " + "\n  ".join([*dict.fromkeys(told[:12]), *said[-6:]]))
            print(
                f"  calls at the server {stats['calls']} (budget {given.max_calls}), repeated {stats['repeated']}, "
                f"most at a time {stats['peak']} (slots {given.slots} each)",
                flush=True,
            )
            if given.verbose:
                print("\n".join(said))
        finally:
            hosts.close()
            server.kill()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument("--max-calls", type=int, default=1000)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--fault", default=",".join(FAULTS))
    parser.add_argument("--verbose", action="store_true", help="All that pytest said.")
    given = parser.parse_args()
    for fault in given.fault.split(","):
        run(fault, given)


if __name__ == "__main__":
    main()
