"""The pages over HTTP, on this machine only and behind a key.

A page of another site can send requests to a local server, and by a name of its own that it lets point to 127.0.0.1
(DNS rebinding) also read the answers. So nothing is answered without the key, under another host's name, or to a POST
that another site's page has sent.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.report.html.runs import message_page
from pytest_ragbench.view.pages import PAGE, Pages
from pytest_ragbench.view.runs import NotThere

ADDRESS = "127.0.0.1"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_MOST = 100_000
"""Runs that a list may have."""
_LARGEST = 100_000_000
"""Bytes of labels that may come at once: each brings its question's chunks along."""
_HEADERS = {
    # Questions and answers stay out of the browser's cache, and of other sites' frames.
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def new_key() -> str:
    """A key that can't be guessed, for one server."""
    return secrets.token_urlsafe(24)


def application(pages: Pages, key: str) -> web.Application:
    """The server's routes; each address begins with the key."""
    app = web.Application(middlewares=[_guard(key)], client_max_size=_LARGEST)
    handlers = _Handlers(pages)
    app.add_routes(
        [
            web.get("/{key}", handlers.top),
            web.get("/{key}/", handlers.list),
            web.get("/{key}/run/{run}", handlers.run),
            web.get("/{key}/compare", handlers.compare),
            web.post("/{key}/labels", handlers.labels),
        ]
    )
    return app


async def serve(pages: Pages, *, port: int, ready: Callable[[str], None]) -> None:
    """Serve until the task is cancelled.

    Parameters
    ----------
    port
        0: a free one.
    ready
        Called with the address to open, key included, once the server answers.

    Raises
    ------
    UsageError
        The port is taken, or not allowed.
    """
    key = new_key()
    # Browsers keep connections open; the end doesn't wait for them.
    runner = web.AppRunner(application(pages, key), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, ADDRESS, port).start()
        except OSError as error:
            why = error.strerror or str(error)
            raise UsageError(
                f"--port {port}: {why.partition(': ')[2] or why}; choose another, or leave it out for a free one"
            ) from None
        ready(f"http://{ADDRESS}:{runner.addresses[0][1]}/{key}/")
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


class _Handlers:
    """Pages are made in threads: a large report takes seconds."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    async def top(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPPermanentRedirect(f"{request.path}/")

    async def list(self, request: web.Request) -> web.StreamResponse:
        given = request.query.get("count", "")
        count = min(int(given), _MOST) if given.isdecimal() else PAGE
        return await _page(
            lambda: self._pages.list(count=count, branch=request.query.get("branch")), home=None
        )

    async def run(self, request: web.Request) -> web.StreamResponse:
        return await _page(lambda: self._pages.run(request.match_info["run"]), home="../")

    async def compare(self, request: web.Request) -> web.StreamResponse:
        return await _page(lambda: self._pages.compare(request.query.getall("run", [])), home=".")

    async def labels(self, request: web.Request) -> web.StreamResponse:
        """``{"marked": [...], "cleared": [...]}``, both of lines of a labels file; of the latter what they are about
        is enough.
        """
        try:
            given = await request.json()
            if not isinstance(given, dict) or not all(
                isinstance(given.get(name), list) for name in ("marked", "cleared")
            ):
                raise UsageError("'marked' and 'cleared' are wanted, both lists of labels")
            await asyncio.to_thread(self._pages.labels.save, given["marked"], given["cleared"])
        except (UsageError, ValueError) as error:
            return web.json_response({"error": str(error)}, status=400, headers=_HEADERS)
        return web.json_response({"saved": len(given["marked"])}, headers=_HEADERS)


async def _page(make: Callable[[], str], *, home: str | None) -> web.Response:
    try:
        text, status = await asyncio.to_thread(make), 200
    except NotThere as error:
        text, status = message_page("There is no such page", str(error), home=home), 404
    except UsageError as error:
        text, status = message_page("This can't be shown", str(error), home=home), 400
    return web.Response(text=text, status=status, content_type="text/html", charset="utf-8", headers=_HEADERS)


def _guard(key: str) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if refused := _refused(request, key):
            text = message_page("Refused", refused)
            return web.Response(text=text, status=403, content_type="text/html", headers=_HEADERS)
        return await handler(request)

    return guard


def _refused(request: web.Request, key: str) -> str:
    """Why a request isn't answered; empty where it is."""
    if _host(f"//{request.headers.get('Host', '')}") not in _LOOPBACK:
        return "This server answers under 127.0.0.1 and localhost only."
    given = request.path.split("/")[1]
    if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), key.encode()):
        return "The key is missing or wrong: open the address that `ragbench view` has printed."
    if request.method not in ("GET", "HEAD") and not _from_own_page(request):
        return "Only pages of this server may send this."
    return ""


def _from_own_page(request: web.Request) -> bool:
    # A form of another site can't send this type; its script would have to ask first, and is not answered.
    if request.content_type != "application/json":
        return False
    fetched = request.headers.get("Sec-Fetch-Site")
    if fetched is not None:  # set by the browser, and by no script
        return fetched == "same-origin"
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == request.headers["Host"]


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
