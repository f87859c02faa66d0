"""A browser without JavaScript that keeps cookies and submits forms."""

import re
from collections.abc import Mapping
from html import unescape
from typing import Final

import httpx2
import pyotp

from tests.support.second_factors import code_at
from tests.support.service import PATIENCE, RunningService
from tests.support.tls import NO_TRUST_STORE

PASSWORD: Final = "correct horse battery staple"
FIELD: Final = re.compile(r'<input[^>]*type="hidden"[^>]*>')
FORM: Final = re.compile(r"<form.*?</form>", re.DOTALL)
ATTRIBUTE: Final = re.compile(r'(name|value)="([^"]*)"')


class HttpBrowser:
    def __init__(self, service: RunningService, *, agent: str = "Mozilla/5.0 (X11; Linux) Firefox/140.0") -> None:
        self._service = service
        self.client = httpx2.AsyncClient(
            base_url=service.client.base_url, headers={"User-Agent": agent}, timeout=PATIENCE, verify=NO_TRUST_STORE
        )
        self.page: httpx2.Response | None = None

    async def get(self, path: str) -> httpx2.Response:
        self.page = await self.client.get(path)
        return self.page

    async def post(self, path: str, /, **fields: str | list[str]) -> httpx2.Response:
        """Submit the form of the current page with this action: its hidden fields and the given ones."""
        hidden = {} if self.page is None else hidden_fields(form_to(path, self.page.text))
        self.page = await self.client.post(path, data={**hidden, **fields})
        return self.page

    async def follow(self) -> httpx2.Response:
        assert self.page is not None
        assert self.page.status_code == 303, self.page.text
        return await self.get(self.page.headers["location"])

    async def sign_in(self, login: str, password: str = PASSWORD, *, stays: bool = False) -> httpx2.Response:
        await self.get("/sign-in")
        choice = {"stay": "1"} if stays else {}
        return await self.post("/sign-in", login=login, password=password, **choice)

    @property
    def cookies(self) -> Mapping[str, str]:
        return dict(self.client.cookies)


def form_to(path: str, page: str) -> str:
    """Return the form with this action, or all of the page but its menu of languages and Undo if there is none."""
    forms: list[str] = FORM.findall(page)
    wanted = [form for form in forms if f'action="{path}"' in form.partition(">")[0]]
    if wanted:
        return wanted[0]
    for form in forms:
        page = page.replace(form, "") if 'name="next"' in form or ">Undo</button>" in form else page
    return page


def hidden_fields(page: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for tag in FIELD.findall(page):
        attributes = dict(ATTRIBUTE.findall(tag))
        fields.setdefault(unescape(attributes["name"]), unescape(attributes.get("value", "")))
    return fields


# An account page in a browser: submits only forms that the current page contains.


LOGIN: Final = "anna@studio.example"
SECRET: Final = re.compile(r'id="secret"[^>]*>([A-Z2-7 ]+)<')
RECOVERY_CODE: Final = re.compile(r"<li><code>([0-9a-z]{5}-[0-9a-z]{5})</code></li>")
NOTICE: Final = re.compile(r'role="status" class="notice">([^<]+)<')
PROBLEM: Final = re.compile(
    r'role="alert" class="(?:problem"|wrong"[^>]*)>(?:<svg.*?</svg><span>)?([^<]+)<', re.DOTALL
)


class AccountBrowser(HttpBrowser):
    async def sign_in_and_open_account(self, login: str = LOGIN, password: str = PASSWORD) -> httpx2.Response:
        """Sign in and open the account page."""
        await self.sign_in(login, password)
        page = await self.follow()
        return await self.get("/account") if page.url.path == "/console" else page

    async def submit(self, path: str, holding: str = "", **fields: str) -> httpx2.Response:
        """Submit the form of the current page with this action; `holding` selects one of several by its text."""
        assert self.page is not None
        forms = re.findall(rf'<form method="post" action="{re.escape(path)}".*?</form>', self.page.text, re.DOTALL)
        matching = [form for form in forms if holding in form]
        assert matching, f"no form for {path} on {self.page.url}"
        self.page = await self.client.post(path, data={**hidden_fields(matching[0]), **fields})
        return self.page

    async def post_with_csrf(self, path: str, **fields: str) -> httpx2.Response:
        """Post fields that no form of the page contains, with the right CSRF value."""
        await self.get("/account")
        assert self.page is not None
        csrf = hidden_fields(self.page.text)["csrf"]
        self.page = await self.client.post(path, data={"csrf": csrf, **fields})
        return self.page

    async def submit_and_read_notice(self, path: str, holding: str = "", **fields: str) -> str:
        """Submit a form of the account page and return the notice shown afterwards."""
        await self.get("/account")
        response = await self.submit(path, holding, **fields)
        assert response.status_code == 303, response.text
        assert response.headers["location"].startswith("/account"), response.headers["location"]
        return self.notice_in(await self.follow())

    async def confirm(self, **proof: str) -> httpx2.Response:
        """Submit the re-authentication page that the last response redirected to."""
        page = await self.follow()
        assert page.url.path == "/confirm"
        return await self.submit("/confirm", **proof)

    async def set_up_totp(self, service: RunningService) -> tuple[str, list[str]]:
        """Read the secret and submit its first code; return the secret and the recovery codes shown."""
        page = await self.get("/account/totp")
        secret = self.secret_in(page)
        response = await self.submit("/account/totp", otp=totp_code(secret, service))
        assert RECOVERY_CODE.findall(response.text), response.text
        return secret, RECOVERY_CODE.findall(response.text)

    def secret_in(self, page: httpx2.Response) -> str:
        match = SECRET.search(page.text)
        assert match is not None, page.text
        return match.group(1).replace(" ", "")

    def notice_in(self, page: httpx2.Response) -> str:
        match = NOTICE.search(page.text)
        assert match is not None, page.text
        return match.group(1)

    def problem_in(self, page: httpx2.Response) -> str:
        match = PROBLEM.search(page.text)
        assert match is not None, page.text
        return match.group(1)

    async def is_signed_in(self) -> bool:
        return (await self.client.get("/account")).status_code == 200


def totp_code(secret: str, service: RunningService, *, steps: int = 0) -> str:
    return code_at(pyotp.TOTP(secret), service.clock, steps=steps)
