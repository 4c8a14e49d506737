"""Checks every request before a page sees it, and adds the headers that protect every answer.

docs/portal.md has the threat model.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

__all__ = ["LONGEST_HEADERS", "POLICY", "Guard", "Link"]

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_App = Callable[[_Scope, _Receive, _Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""An answer of a page can replace only `cache-control`."""
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_LONGEST_QUERY = 4096
LONGEST_HEADERS = 16_384
_LONGEST_S = 90.0
"""Longest time for an answer, except for a stream of events."""
_STREAM = "/events"


class Link:
    """The secret of a portal that other users of the machine can connect to.

    The link with the token works once: it sets a cookie, and leads to an address without the token.
    Then there is a new link. So a link in a log, in a history or in a chat opens nothing.

    Args:
        say: is called with the token of each new link.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.cookie_name = f"teho_{secrets.token_hex(4)}"
        self._cookie = secrets.token_urlsafe(32)
        self._say = say
        self.token = secrets.token_urlsafe(32)

    def use(self, token: str) -> bool:
        """Return whether a token is right; it does not work a second time."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return False
        self.token = secrets.token_urlsafe(32)
        self._say(self.token)
        return True

    def has_cookie(self, header: str) -> bool:
        """Return whether a request's cookies have the secret."""
        try:
            cookies = SimpleCookie(header)
        except CookieError:
            return False
        given = cookies[self.cookie_name].value if self.cookie_name in cookies else ""
        return hmac.compare_digest(given.encode(), self._cookie.encode())

    def set_cookie(self) -> str:
        """Return the header that sets the cookie.

        It has no path: the browser then uses the folder of the portal, also behind a proxy. With
        `Strict` instead of `Lax`, a link that is opened from a chat would lead to a refusal.
        """
        return f"{self.cookie_name}={self._cookie}; HttpOnly; SameSite=Lax"


class Guard:
    """Wraps the application: only requests that pass every check reach it.

    Args:
        app: the application.
        link: the secret; None if only this user can connect, as to a Unix socket.
        hosts: names in the header `Host` that are allowed besides the loopback's.
    """

    def __init__(self, app: _App, link: Link | None, hosts: Collection[str] = ()) -> None:
        self._app = app
        self._link = link
        self._hosts = _LOOPBACK | {host.lower() for host in hosts}

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        refused = self._refused(scope, headers)
        if refused:
            await _answer(send, *refused)
            return
        if self._link is not None:
            token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if token:
                await self._exchange(token, send)
                return
            if not self._link.has_cookie(headers.get("cookie", "")):
                await _answer(
                    send,
                    403,
                    "This portal opens only with its link. `teho portal` printed this link in the "
                    "terminal. Each link works once.",
                )
                return
        await self._bounded(scope, receive, send)

    def _refused(self, scope: _Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return the status and a sentence if a request is not allowed."""
        # Before anything else: a page whose name was bound to this address has another host.
        host = headers.get("host", "").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name not in self._hosts:
            return 421, (
                "The address in the browser is not an address of this portal. If you use a proxy, "
                "start `teho portal` with --allow-host and the name of the proxy."
            )
        # The server itself limits only what comes in several parts.
        if sum(map(len, (*headers, *headers.values()))) > LONGEST_HEADERS:
            return 431, f"The headers are longer than {LONGEST_HEADERS} characters."
        if scope["method"] not in {"GET", "HEAD"}:
            return 405, "The portal only shows pages. It accepts no data."
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return 413, "The portal accepts no data."
        if len(scope["query_string"]) > _LONGEST_QUERY:
            return 414, f"The address is longer than {_LONGEST_QUERY} characters."
        is_foreign = headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}
        if is_foreign and (
            headers.get("sec-fetch-mode") != "navigate"
            or headers.get("sec-fetch-dest") != "document"
        ):
            return 403, "Another web page requested this page. The portal does not answer it."
        return None

    async def _exchange(self, token: str, send: _Send) -> None:
        link = self._link
        if link is None or not link.use(token):
            await _answer(send, 403, "This link was used before, or is not complete.")
            return
        # The same page without the token. Proxies put the path of the portal in front of a slash or
        # a dot, so that "./" would lead to a path below the right one.
        await _answer(send, 303, "", {"location": "?", "set-cookie": link.set_cookie()})

    async def _bounded(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        has_begun = False

        async def guarded(message: MutableMapping[str, Any]) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                own = {name.lower() for name, _ in message.get("headers", ())}
                message["headers"] = [
                    *((key, value) for key, value in message.get("headers", ())
                      if key.lower().decode() not in _HEADERS or key.lower() == b"cache-control"),
                    *((name.encode(), value.encode()) for name, value in _HEADERS.items()
                      if name != "cache-control" or b"cache-control" not in own),
                ]  # fmt: skip
            await send(message)

        if scope["path"].endswith(_STREAM):
            await self._app(scope, receive, guarded)
            return
        try:
            await asyncio.wait_for(self._app(scope, receive, guarded), _LONGEST_S)
        except asyncio.TimeoutError:
            if not has_begun:
                await _answer(send, 503, f"This page was not ready after {_LONGEST_S:.0f} s.")


async def _answer(
    send: _Send, status: int, sentence: str, more: dict[str, str] | None = None
) -> None:
    """Send a short answer as plain text."""
    headers = {**_HEADERS, "content-type": "text/plain; charset=utf-8", **(more or {})}
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": f"{sentence}\n".encode() * bool(sentence)})
