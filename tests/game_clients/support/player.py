"""A player with a browser: opens the link, signs in, and approves or denies (interface §4.3)."""

import re
from types import TracebackType
from typing import Final, Self

import httpx2

from tests.support.browser import hidden_fields
from tests.support.processes import LOOPBACK
from tests.support.tls import NO_TRUST_STORE

LOGIN: Final = "anna@studio.example"
PASSWORD: Final = "correct horse battery staple"
NICK: Final = "Anna"
ELSEWHERE: Final = "127.0.0.2"
AGENT: Final = {"User-Agent": "Mozilla/5.0 (X11; Linux) Firefox/140.0"}
CHOICE: Final = re.compile(r'name="code"[^>]*value="(\d\d)"')


class Player:
    """A player, on a different device than the game if `address` is given."""

    def __init__(self, *, address: str = LOOPBACK) -> None:
        way = httpx2.HTTPTransport(local_address=address, verify=NO_TRUST_STORE)
        self.client = httpx2.Client(headers=AGENT, timeout=20, follow_redirects=True, transport=way)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.client.close()

    def open(self, link: str) -> httpx2.Response:
        """Open the confirmation page, signing in first if required."""
        page = self.client.get(link)
        if 'name="password"' in page.text:
            page = self._send(page, login=LOGIN, password=PASSWORD)
        assert 'name="decision"' in page.text, f"{page.url}\n{page.text}"
        return page

    def decide(self, page: httpx2.Response, decision: str, **more: str) -> httpx2.Response:
        return self._send(page, decision=decision, **more)

    def confirm(self, link: str) -> httpx2.Response:
        return self.decide(self.open(link), "confirm")

    def _send(self, page: httpx2.Response, **fields: str) -> httpx2.Response:
        response = self.client.post(page.url, data={**hidden_fields(page.text), **fields})
        assert response.is_success, f"{response.url} {response.status_code}\n{response.text}"
        return response


def choices_in(page: httpx2.Response) -> list[str]:
    return CHOICE.findall(page.text)
