"""A person with a browser who uses the service and its samples."""

import re
from typing import Final, Self

import httpx2

from tests.support.browser import hidden_fields

AGENT: Final = {"User-Agent": "Mozilla/5.0 (X11; Linux) Firefox/140.0"}
RULE: Final = re.compile(r'<li class="(yes|no)">.*?<code>([^<]+)</code>', re.DOTALL)


class DemoPerson:
    def __init__(self, login: str, password: str) -> None:
        self._proof = {"login": login, "password": password}
        self.browser = httpx2.Client(headers=AGENT, timeout=20, follow_redirects=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.browser.close()

    def sign_in_to(self, sample_app: str) -> str:
        """Start there, sign in, consent if asked to; return the last page."""
        page = self.browser.post(f"{sample_app}sign-in")
        if 'name="password"' in page.text:
            page = self._submit(page, **self._proof)
        if 'value="allow"' in page.text:
            page = self._submit(page, decision="allow")
        assert str(page.url) == sample_app, page.text
        return page.text

    def confirm(self, link: str) -> None:
        page = self.browser.get(link)
        if 'name="password"' in page.text:
            page = self._submit(page, **self._proof)
        assert self._submit(page, decision="confirm").url.path == "/game/done"

    def sign_out_of(self, sample_app: str) -> httpx2.Response:
        return self.browser.post(f"{sample_app}sign-out")

    def _submit(self, page: httpx2.Response, **fields: str) -> httpx2.Response:
        response = self.browser.post(page.url, data={**hidden_fields(page.text), **fields})
        assert response.is_success, f"{response.url} {response.status_code}\n{response.text}"
        return response


def rules_on(page: str) -> dict[str, bool]:
    return {rule: word == "yes" for word, rule in RULE.findall(page)}
