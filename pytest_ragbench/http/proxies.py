"""The proxy that the environment names, as other HTTP tools take it."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def proxy_for(url: str) -> str | None:
    """The proxy's URL, or None; a service on this machine is never asked through a proxy.

    (aiohttp's ``trust_env`` would also send passwords from ``~/.netrc``.)
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host == "localhost" or host.endswith(".localhost") or _loopback(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    # The scheme's own proxy wins, as in curl and requests.
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy:
        return None
    # Some environments write HOST:PORT.
    return proxy if "://" in proxy else f"http://{proxy}"


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
