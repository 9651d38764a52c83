"""The URL of a Redis server, as the configuration has it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

SCHEMES = ("redis", "rediss")
PREFIX = "ragbench"


def is_redis(store: str) -> bool:
    """Whether the setting ``store`` is a URL rather than a file name."""
    return store.partition("://")[0].lower() in SCHEMES


@dataclass(frozen=True)
class Address:
    """Where to connect to, and what all keys begin with. No repr, no message shows the password."""

    url: str = field(repr=False)
    """For the client; may hold a password."""
    shown: str
    prefix: str
    password: str | None = field(repr=False)

    @classmethod
    def parse(cls, store: str) -> Address:
        """``redis://[[USER]:PASSWORD@]HOST[:PORT][/DB][?prefix=NAME]``; ``rediss://`` with TLS.

        Other parameters of the query are the client's (``socket_timeout=10``, in seconds).

        Raises
        ------
        ValueError
            It isn't such a URL; the message leaves the password out.
        """
        parts = urlsplit(store)
        try:
            port = parts.port
        except ValueError:
            raise ValueError("the port of the Redis URL must be a number") from None
        if parts.scheme not in SCHEMES or not parts.hostname:
            raise ValueError("must be redis://HOST:PORT/DB")
        if not re.fullmatch(r"/?\d*", parts.path):
            raise ValueError(
                "the path of the Redis URL must be the number of a database: redis://HOST:PORT/0"
            )
        query = dict(parse_qsl(parts.query))
        prefix = query.pop("prefix", PREFIX)
        if not re.fullmatch(r"[\w.-]{1,64}", prefix):
            raise ValueError("prefix of the Redis URL: letters, digits, '_', '-' and '.' only")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        host += f":{port}" if port else ""
        # The user's name helps to find a mistake; the password is shown to nobody.
        masked = f"{quote(unquote(parts.username or ''))}:***@" if parts.password else ""
        # Without our own parameter, which the client would refuse.
        url = urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(query), ""))
        shown = f"{parts.scheme}://{masked}{host}{parts.path}"
        shown += f"?prefix={prefix}" if prefix != PREFIX else ""
        return cls(url, shown, prefix, unquote(parts.password) if parts.password else None)

    def without_password(self, text: str) -> str:
        """A message that may be shown."""
        # Clients repeat the URL in their errors.
        return text.replace(self.password, "***") if self.password else text


def shown(store: str) -> str:
    """The setting for people: a URL without its password."""
    try:
        return Address.parse(store).shown if is_redis(store) else store
    except ValueError:
        return f"{store.partition('://')[0]}://***"


def is_installed() -> bool:
    """Whether the extra ``redis`` is there."""
    return find_spec("redis") is not None
