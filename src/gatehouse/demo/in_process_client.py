"""A browser without JavaScript, or a program, that needs no network.

It calls the application directly, with its own client address, stores cookies and fills in forms.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any, Final
from urllib.parse import urlencode

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message

from gatehouse.kernel.errors import GatehouseError
from gatehouse.web.server.protocol import CONNECTION_KEY

FORM: Final = "application/x-www-form-urlencoded"
HIDDEN_INPUT: Final = re.compile(r'<input[^>]*type="hidden"[^>]*>')
ATTRIBUTE: Final = re.compile(r'(name|value)="([^"]*)"')
REDIRECTS: Final = (302, 303)
MAX_EXPECTED_STATUS: Final = 499


class WentWrong(GatehouseError):
    """A step of the replayed day did not go as expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessResponse:
    status: int
    headers: Headers
    body: bytes

    @property
    def location(self) -> str:
        return self.headers.get("location", "")

    def json(self) -> Any:  # noqa: ANN401 - whatever the service says
        return json.loads(self.body)

    def hidden_fields(self) -> dict[str, str]:
        tags = [dict(ATTRIBUTE.findall(tag)) for tag in HIDDEN_INPUT.findall(self.body.decode())]
        return {unescape(tag["name"]): unescape(tag.get("value", "")) for tag in tags}


class OpenConnection:
    """The connection of a poll that is answered at once."""

    def is_open(self) -> bool:
        return True

    def when_lost(self, callback: Callable[[], object]) -> None:
        """Do nothing: this connection is never lost."""


class InProcessClient:
    def __init__(self, app: ASGIApp, *, host: str, address: str, agent: str) -> None:
        self._app = app
        self._address = address
        self._headers = {"host": host, "user-agent": agent}
        self._cookies: dict[str, str] = {}

    async def get(self, target: str) -> InProcessResponse:
        """Return the page; redirects to pages of this service are followed."""
        answer = await self._request("GET", target)
        while answer.status in REDIRECTS and answer.location.startswith("/"):
            answer = await self._request("GET", answer.location)
        return answer

    async def submit(self, path: str, page: InProcessResponse, **fields: str) -> InProcessResponse:
        """Send the form of a page."""
        return await self.post(path, {**page.hidden_fields(), **fields})

    async def post(self, path: str, fields: Mapping[str, str], **headers: str) -> InProcessResponse:
        return await self._request("POST", path, urlencode(fields).encode(), {"content-type": FORM, **headers})

    async def post_json(self, path: str, value: object, **headers: str) -> InProcessResponse:
        return await self._request(
            "POST", path, json.dumps(value).encode(), {"content-type": "application/json", **headers}
        )

    async def _request(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> InProcessResponse:
        path, _, query = target.partition("?")
        sent = {**self._headers, **(headers or {}), "content-length": str(len(body))}
        if self._cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in sent.items()],
            "client": (self._address, 50_000),
            "server": ("127.0.0.1", 80),
            "state": {},
            CONNECTION_KEY: OpenConnection(),
        }
        answer = await call_app(self._app, scope, body)
        if answer.status > MAX_EXPECTED_STATUS:
            raise WentWrong(f"{method} {path} returned {answer.status}")
        self._keep_cookies(answer)
        return answer

    def _keep_cookies(self, answer: InProcessResponse) -> None:
        for line in answer.headers.getlist("set-cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            self._cookies[name] = value


async def call_app(app: ASGIApp, scope: dict[str, Any], body: bytes) -> InProcessResponse:
    messages: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, send)
    return InProcessResponse(
        status=messages[0]["status"],
        headers=Headers(raw=[(bytes(name), bytes(value)) for name, value in messages[0]["headers"]]),
        body=b"".join(message.get("body", b"") for message in messages[1:]),
    )
