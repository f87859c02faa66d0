"""A person with a browser that keeps cookies and fills in forms, without JavaScript."""

import re
from collections.abc import Mapping
from html import unescape
from typing import Final

import httpx2

from tests.support.service import RunningService
from tests.support.trust import NO_TRUST_STORE

PASSWORD: Final = "correct horse battery staple"
FIELD: Final = re.compile(r'<input[^>]*type="hidden"[^>]*>')
FORM: Final = re.compile(r"<form.*?</form>", re.DOTALL)
ATTRIBUTE: Final = re.compile(r'(name|value)="([^"]*)"')


class HttpBrowser:
    def __init__(self, service: RunningService, *, agent: str = "Mozilla/5.0 (X11; Linux) Firefox/140.0") -> None:
        self._service = service
        self.client = httpx2.AsyncClient(
            base_url=service.client.base_url, headers={"User-Agent": agent}, timeout=10, verify=NO_TRUST_STORE
        )
        self.page: httpx2.Response | None = None

    async def get(self, path: str) -> httpx2.Response:
        self.page = await self.client.get(path)
        return self.page

    async def post(self, path: str, /, **fields: str | list[str]) -> httpx2.Response:
        """Send the form of the page last seen that goes there: its hidden fields and these."""
        hidden = {} if self.page is None else hidden_fields(form_to(path, self.page.text))
        self.page = await self.client.post(path, data={**hidden, **fields})
        return self.page

    async def follow(self) -> httpx2.Response:
        assert self.page is not None
        assert self.page.status_code == 303, self.page.text
        return await self.get(self.page.headers["location"])

    async def sign_in(self, login: str, password: str = PASSWORD) -> httpx2.Response:
        await self.get("/sign-in")
        return await self.post("/sign-in", login=login, password=password)

    @property
    def cookies(self) -> Mapping[str, str]:
        return dict(self.client.cookies)


def form_to(path: str, page: str) -> str:
    """The form that is sent to the path, or the whole page where none says so."""
    forms = [form for form in FORM.findall(page) if f'action="{path}"' in form.partition(">")[0]]
    return forms[0] if forms else page


def hidden_fields(page: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for tag in FIELD.findall(page):
        attributes = dict(ATTRIBUTE.findall(tag))
        fields.setdefault(unescape(attributes["name"]), unescape(attributes.get("value", "")))
    return fields
