"""Limits of the demo's server: no files, small requests, a bounded queue, and sessions and files that don't stay."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from .options import StoryLimits

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# Of a request, unless longer stories are allowed.
MAX_BODY_BYTES = 64 * 1024
# Requests that wait for their turn; others are told to come back.
MAX_QUEUE = 128
# Sessions whose answers wait to be fetched, and characters of the name of one, which clients choose.
MAX_SESSIONS, MAX_SESSION_NAME = 256, 64
# Gradio's temporary files: how often they are looked at, and how old they get, in seconds.
CACHE_SECONDS = (600, 3600)


def max_body_bytes(limits: StoryLimits) -> int:
    """Bytes of a request: JSON takes 12 for a character of the longest story; the rest is for the other values."""
    return max(MAX_BODY_BYTES, 16 * limits.max_characters)


class RecentSessions(OrderedDict[str, Any]):
    """Values of the sessions used last: Gradio would keep for ever what nobody fetches."""

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self.move_to_end(name)
        if len(self) > MAX_SESSIONS:
            self.popitem(last=False)

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        self.move_to_end(name)
        return value

    def __contains__(self, name: object) -> bool:
        is_known = super().__contains__(name)
        if is_known:
            self.move_to_end(str(name))
        return is_known


class LimitRequests:
    """
    ASGI middleware that refuses uploads, links to states, large bodies and values that Gradio would take for files.

    Args:
        app: The application behind it.
        max_body_bytes: Longest body of a request.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], max_body_bytes: int = MAX_BODY_BYTES):
        self.app = app
        self.max_body_bytes = max_body_bytes

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if _is_closed(scope["path"]):
            await _refuse(send, 403, "This demo takes no files and keeps none.")
            return
        headers = {bytes(name).lower(): bytes(value) for name, value in scope["headers"]}
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > self.max_body_bytes:
            await self._refuse_length(send)
            return
        body = await self._read(receive)
        if body is None:
            await self._refuse_length(send)
            return
        problem = _problem_with(body)
        if problem is not None:
            await _refuse(send, 400, problem)
            return
        await self.app(scope, _replay(body, receive), send)

    async def _refuse_length(self, send: Send) -> None:
        await _refuse(send, 413, f"A request may have {self.max_body_bytes:,} bytes.")

    async def _read(self, receive: Receive) -> bytes | None:
        """Return the body, whatever length it was said to have; None if it is too long."""
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return bytes(body)
            body += message.get("body", b"")
            if len(body) > self.max_body_bytes:
                return None
            if not message.get("more_body"):
                return bytes(body)


def _is_closed(path: str) -> bool:
    """Uploads, and links to the state of a page, each of which Gradio would keep as a file for ever."""
    name = path.rstrip("/").rsplit("/", 1)[-1]
    return "upload" in name or "deep_link" in name


def _problem_with(body: bytes) -> str | None:
    """Return why a body is refused: what is no JSON, names of sessions to fill the memory with, objects as values."""
    if not body:
        return None
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return "A request must be JSON."
    if not isinstance(content, dict):
        return "A request must be a JSON object."
    session = content.get("session_hash")
    if session is not None and (not isinstance(session, str) or len(session) > MAX_SESSION_NAME):
        return f"`session_hash` must be a string of at most {MAX_SESSION_NAME} characters."
    # Arguments are a list, `data`, or have their names; `event_data` is what a component tells of an event.
    if any(_has_object(value) for name, value in content.items() if name != "event_data"):
        # Gradio would fetch the file that such a value describes, from any address.
        return "Arguments may be strings, numbers and lists of them."
    return None


def _has_object(values: Any) -> bool:
    waiting = [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            return True
        if isinstance(value, list):
            waiting += value
    return False


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


async def _refuse(send: Send, status: int, message: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": message.encode()})
