"""What to say of a service that sent no usable reply: the cause first, then what to do about it.

Summaries show the beginning of a message only, and what stands before its first ``"; "`` is the same for all
requests that fail this way: see :func:`~pytest_ragbench.model.errors.cause_of`.
"""

from __future__ import annotations

import re

DOCTOR = "try ragbench doctor"

ADVICE = {
    "connection": "is it running, and is the address right? Behind a proxy, set HTTPS_PROXY and NO_PROXY",
    "timeout": "it did not answer in time: raise timeout, or look at its log",
    "tls": "is its certificate valid for this address? For a certificate authority of your own set ca_file "
    "(SSL_CERT_FILE for the service)",
    "http_401": "the key is refused: is the right variable named in {key}?",
    "http_403": "the key has no right to this model or path",
    "http_404": "no such model or path: check model and base_url (path for the service)",
    "http_429": "it is busy, or the quota is small: lower max_concurrency",
    "insufficient_quota": "the quota is used up: look at the provider's billing page",
}
"""What to do, by the ``code`` of an error; ``{key}``: the setting that names the variable with the key."""

# In this order: "connect call failed" stands in the text of any of them.
_CAUSES = (
    ("no such host", r"dnserror|getaddrinfo|name or service not known|nodename nor servname|name resolution"),
    ("unreachable", r"unreachable|no route to host"),
    ("refused", r"refused|connect call failed"),
    ("closed before it replied", r"reset|disconnected|closed|broken pipe|payload is not completed"),
)


def no_reply(code: str, reason: str, url: str, who: str, *, seconds: float | None = None) -> str:
    """The cause of an outage and its cure, in one line.

    Parameters
    ----------
    code
        As of :class:`~pytest_ragbench.http.client.HttpError`: ``"connection"``, ``"timeout"``, ``"tls"``,
        ``"not_http"``.
    reason
        What the client library said.
    url
        Where the service is; without credentials.
    who
        ``"the service"``, or the provider that was asked.
    seconds
        The time limit, where it is known here.
    """
    if code == "timeout":
        limit = "in time" if seconds is None else f"within {seconds:g} s"
        return f"no reply from {url} {limit}: is {who} overloaded, or its timeout too short? {DOCTOR}"
    if code == "tls":
        return f"no secure connection to {url} ({_tls(reason)}): is its certificate right? {DOCTOR}"
    if code == "not_http":
        return f"no HTTP from {url}: does another kind of server listen there? {DOCTOR}"
    if "ClientProxyConnectionError" in reason or "ProxyError" in reason:
        return f"no connection to {url} (its proxy): are HTTP_PROXY, HTTPS_PROXY and NO_PROXY right? {DOCTOR}"
    why = next((cause for cause, signs in _CAUSES if re.search(signs, reason, re.IGNORECASE)), "")
    told = f" ({why})" if why else ""
    cure = "is the address right?" if why == "no such host" else f"is {who} running?"
    return f"no connection to {url}{told}: {cure} {DOCTOR}"


def _tls(reason: str) -> str:
    if re.search(r"wrong.version.number|record layer|unknown protocol", reason, re.IGNORECASE):
        return "it does not speak TLS, is it http://?"
    found = re.search(r"certificate verify failed(?:: [^('\"]+)?", reason, re.IGNORECASE)
    return found[0].strip() if found else "TLS failed"


def refusal(status: int, key: str) -> str:
    """What to do about a reply with this status, to be put behind what the service said; "" where only it can tell."""
    if status not in (401, 403, 404):
        return ""
    return f" ({ADVICE[f'http_{status}'].format(key=key)})"
