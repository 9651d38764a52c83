"""``python -m rag_service``: print the URL, then serve until the end."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rag_service.app import create_app
from rag_service.server import HOST, listening_socket, stop_when_unused, url_of, uvicorn_server


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line; by default that of this process."""
    parser = argparse.ArgumentParser(prog="python -m rag_service", description=__doc__)
    parser.add_argument("--host", default=HOST)
    parser.add_argument("--port", type=int, default=8080, help="0 takes a free one (default: %(default)s)")
    parser.add_argument(
        "--hallucinate",
        action="store_true",
        default=os.environ.get("RAG_SERVICE_HALLUCINATE", "") not in ("", "0"),
        help="falsify every answer; also RAG_SERVICE_HALLUCINATE=1",
    )
    parser.add_argument("--instance", default="", help=argparse.SUPPRESS)
    parser.add_argument("--while-locked", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main() -> int:
    """Serve; returns the exit code."""
    options = parse()
    try:
        sock = listening_socket(options.port, options.host)
    except OSError as error:
        sys.exit(f"can't listen on {options.host}:{options.port}: {error.strerror}")
    server = uvicorn_server(create_app(hallucinate=options.hallucinate, instance=options.instance))
    print(url_of(sock), flush=True)
    if options.while_locked:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - the reader of the URL has closed its end
        stop_when_unused(server, options.while_locked)
    server.run(sockets=[sock])
    return 0


if __name__ == "__main__":
    sys.exit(main())
