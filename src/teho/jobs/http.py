"""Asks a store of monitoring data over HTTP, or sends data to it.

The token of a store is read from a file. It is sent only to the given host, and is in no message.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Mapping
from email.message import Message
from pathlib import Path
from typing import IO, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

from teho.config.settings import Settings, expanded
from teho.errors import InputError, StoreBusyError, StoreError

__all__ = ["Store", "read_secret", "request", "store_at", "store_of"]

_SILENCE_S = 30.0
"""Longest time without a byte from the store."""
_WHOLE_S = 300.0
"""Longest time for one answer."""
_MOST_BYTES = 1 << 30
_PART = 1 << 20
_SHOWN = 200
"""Characters of an answer in a message."""
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
"""The store may accept the same request later."""
_NO_ACCESS = frozenset({401, 403})
_NOT_A_STORE = frozenset({404, 405, 501})
"""The server is not a store, or the address needs another path."""


class Store(NamedTuple):
    """A store, and what it needs to accept requests."""

    address: str
    """Beginning of all addresses, without a slash at the end."""
    authorization: str = ""
    """Value of the header; secret."""

    @property
    def host(self) -> str:
        """Name of the host, with its port; for messages."""
        return urlsplit(self.address).netloc

    def __repr__(self) -> str:
        return f"<store {self.host}>"


def store_at(address: str, token_file: Path | None) -> Store:
    """Return the store at an address.

    Args:
        address: begins with `https://` or `http://`.
        token_file: a file with a token, or with `NAME:PASSWORD`.

    Raises:
        InputError: the address or the file cannot be used.
    """
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        # The address may have a password, so it is not shown.
        raise InputError(
            "the address of the store is not an HTTP address",
            "an address such as https://metrics.example.org",
        )
    if not _has_valid_port(parts):
        raise InputError(
            f"the port in the address of the store {parts.hostname} is not valid",
            "a number from 1 to 65535, as in https://metrics.example.org:9090",
        )
    if parts.username is not None:
        raise InputError(
            f"the address of the store {parts.hostname} has a user name or a password",
            "an address without them",
            "write `NAME:PASSWORD` into a file, and set monitoring_token_file to its path",
        )
    if parts.query or parts.fragment:
        raise InputError(
            f"the address of the store {parts.hostname} has a part after `?` or `#`",
            "an address such as https://metrics.example.org",
        )
    store = Store(address.strip().rstrip("/"))
    if token_file is None:
        return store
    if parts.scheme == "http" and not _is_here(parts.hostname):
        raise InputError(
            f"the token for {parts.hostname} would be sent without encryption",
            "an address that begins with https://",
        )
    return store._replace(authorization=_authorization(token_file))


def _has_valid_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False


def store_of(settings: Settings, address: str = "") -> Store | None:
    """Return the store at an address, with the token of the settings; None without an address.

    Args:
        settings: the user's settings.
        address: empty: from the settings.

    Raises:
        InputError: the address or the file of the token cannot be used.
    """
    address = address or settings.monitoring
    token = settings.monitoring_token_file
    return store_at(address, expanded(token) if token else None) if address else None


def read_secret(path: Path) -> str:
    """Return the token in a file.

    Raises:
        InputError: the file cannot be read, or has more than one word.
    """
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        words = getattr(error, "strerror", None) or "it is not text"
        raise InputError(f"{path}: {words}", "a file with the token of the store") from error
    if not secret or not secret.isprintable() or not secret.isascii() or " " in secret:
        raise InputError(f"{path} is not one word", "a token, or NAME:PASSWORD, on one line")
    return secret


def _authorization(path: Path) -> str:
    secret = read_secret(path)
    if ":" in secret:
        return f"Basic {base64.b64encode(secret.encode()).decode()}"
    return f"Bearer {secret}"


def _is_here(host: str) -> bool:
    """Return whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirect: the token would be sent to another host."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        del req, fp, code, msg, headers, newurl


def _opener(host: str) -> OpenerDirector:
    # A proxy of the environment cannot reach this machine.
    return build_opener(_NoRedirects, *([ProxyHandler({})] if _is_here(host) else []))


def request(
    store: Store,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "POST",
) -> bytes:
    """Send one request, and return the content of the answer.

    Args:
        store: the store.
        path: begins with a slash.
        body: content to send.
        headers: of the content.
        method: `GET` or `POST`.

    Raises:
        StoreBusyError: no answer, or the store asks to repeat the request later.
        StoreError: the store refuses.
    """
    # `store_at` has checked that the address is an HTTP address.
    outgoing = Request(  # noqa: S310
        store.address + path, data=body, headers=dict(headers or {}), method=method
    )
    if store.authorization:
        outgoing.add_unredirected_header("Authorization", store.authorization)
    host = urlsplit(store.address).hostname or ""
    deadline_s = time.monotonic() + _WHOLE_S
    try:
        with _opener(host).open(outgoing, timeout=_SILENCE_S) as answer:
            return _content(answer, store, deadline_s)
    except HTTPError as error:
        with error:
            raise _refusal(store, path, error) from None
    except (OSError, http.client.HTTPException) as error:
        raise _no_answer(store, error.reason if isinstance(error, URLError) else error) from error


def _content(answer: IO[bytes], store: Store, deadline_s: float) -> bytes:
    parts, size = [], 0
    while part := answer.read(_PART):
        parts.append(part)
        size += len(part)
        if size > _MOST_BYTES:
            raise StoreError(f"the answer of the store {store.host} is larger than 1 GiB")
        if time.monotonic() > deadline_s:
            raise TimeoutError
    return b"".join(parts)


def _no_answer(store: Store, reason: object) -> StoreError:
    """Return what an error of the connection means."""
    if isinstance(reason, ssl.SSLCertVerificationError):
        return StoreError(
            f"the certificate of the store {store.host} is not valid: {reason.verify_message}",
            "a certificate that this machine accepts",
            "check the address, or set SSL_CERT_FILE to the file with the site's certificates",
        )
    if isinstance(reason, ssl.SSLError):
        # A server that only closes the connection may be busy.
        kind = StoreBusyError if isinstance(reason, ssl.SSLEOFError) else StoreError
        return kind(
            f"the store {store.host} does not answer with https",
            next_step="if the store has only http, write http:// in the address; otherwise, repeat "
            "the command later",
        )
    return StoreBusyError(
        f"the store {store.host} does not answer: {_words(reason)}",
        next_step="check the address, or repeat the command later",
    )


def _words(reason: object) -> str:
    if isinstance(reason, (TimeoutError, socket.timeout)):
        return f"nothing within {_SILENCE_S:g} s"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return str(reason)[:_SHOWN] or type(reason).__name__


def _refusal(store: Store, path: str, error: HTTPError) -> StoreError:
    """Return what a status of an answer means."""
    if error.code in _NO_ACCESS:
        return StoreError(
            f"the store {store.host} answers {error.code}: it does not accept "
            f"{'this token' if store.authorization else 'a request without a token'}",
            "the token that the site gave you",
            "write it into a file, and set monitoring_token_file to its path",
        )
    target = error.headers.get("Location", "")
    if target:
        return StoreError(
            f"the store {store.host} redirects to {urlsplit(target).netloc or target[:_SHOWN]}",
            "an address that answers without a redirect",
            "set the new address, if you trust it",
        )
    try:
        message = error.read(4 * _SHOWN).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException):
        message = ""
    is_page = message.startswith("<")
    words = f": {' '.join(message.split())[:_SHOWN]}" if message and not is_page else ""
    found = f"the store {store.host} answers {error.code} {error.reason}{words}"
    if error.code in _BUSY:
        return StoreBusyError(found, next_step="repeat the command later")
    if error.code in _NOT_A_STORE:
        whole = f"{urlsplit(store.address).path}{path}"
        return StoreError(found, f"a store that accepts requests at {whole}", "check the address")
    return StoreError(found, next_step="ask the administrators of the store for the reason")
