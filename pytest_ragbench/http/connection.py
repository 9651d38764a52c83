"""How a service is connected to: proxy, certificates."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pytest_ragbench.model.errors import UsageError

if TYPE_CHECKING:
    import ssl

    from pytest_ragbench.settings import ProviderSettings


@dataclass(frozen=True)
class Connection:
    """Proxy and certificates of one service, as data; all None: the environment's and the system's."""

    proxy: str | None = None
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None

    @classmethod
    def of(cls, settings: ProviderSettings, where: str) -> Connection:
        """As a provider's settings say.

        Raises
        ------
        UsageError
            A file that can't be read or holds something else; the message begins with ``where`` and its key.
        """
        files = {name: getattr(settings, name) for name in ("ca_file", "client_cert", "client_key")}
        found = {name: str(Path(value).expanduser().absolute()) for name, value in files.items() if value}
        if found.keys() == {"client_key"}:
            raise UsageError(f"{where}.client_key needs {where}.client_cert")
        for name, path in found.items():
            if not Path(path).is_file():
                raise UsageError(f"{where}.{name}: there is no file {path!r}")
        connection = cls(settings.proxy, **found)
        try:
            connection.tls()
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            raise UsageError(f"{where}: {' and '.join(found)} can't be used: {error}") from None
        return connection

    def proxy_for(self, url: str) -> str | None:
        """The proxy's URL: the configured one, also for a service on this machine; else the environment's."""
        if self.proxy is None:
            return proxy_for(url)
        return None if self.proxy == "off" else self.proxy

    def tls(self) -> ssl.SSLContext | None:
        """Whom to trust, and what to show; None: as usual."""
        if not (self.ca_file or self.client_cert):
            return None
        import ssl

        context = ssl.create_default_context()
        if self.ca_file:
            context.load_verify_locations(self.ca_file)
        if self.client_cert:
            # Else a key with a password would be asked for on the terminal, where nobody may be.
            context.load_cert_chain(self.client_cert, self.client_key, password=_no_password)
        return context


def _no_password() -> str:
    raise ValueError("the key of client_cert has a password; give one without")


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
