"""A person with a browser: follows every redirect and submits the forms of our sign-in pages."""

from html import unescape
from typing import Final

import httpx2

from tests.support.browser import hidden_fields
from tests.support.oauth import FORM
from tests.support.tls import NO_TRUST_STORE

LOGIN: Final = "anna@studio.example"
PASSWORD: Final = "correct horse battery staple"
NICK: Final = "Anna"
STEPS_MOST: Final = 20


class PersonInBrowser:
    """Keeps cookies, so that after one sign-in it is not asked again."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        agent = {"User-Agent": "Mozilla/5.0 (X11; Linux) Firefox/140.0"}
        self.client = httpx2.Client(headers=agent, timeout=20, verify=NO_TRUST_STORE)
        self.forms: list[str] = []  # the names of submitted fields that matter

    def open_address(self, address: str, *, until: str | None = None) -> httpx2.Response:
        """Return the page at the end of the redirects, outside of the service; or the redirect to `until`."""
        page = self.client.get(address)
        for _ in range(STEPS_MOST):
            if page.is_redirect and until is not None and page.headers["location"].startswith(until):
                return page
            if page.is_redirect:
                page = self.client.get(page.url.join(page.headers["location"]))
            elif str(page.url).startswith(self._issuer) and page.is_success:
                page = self._fill_in(page)
            else:
                return page
        raise AssertionError(f"did not arrive: {page.status_code} {page.url}\n{page.text}")

    def _fill_in(self, page: httpx2.Response) -> httpx2.Response:
        form = FORM.search(page.text)
        assert form is not None, f"{page.url}\n{page.text}"
        fields = hidden_fields(form[0])
        if 'name="password"' in form[0]:
            self.forms.append("password")
            fields |= {"login": LOGIN, "password": PASSWORD}
        if 'name="decision" value="confirm"' in form[0]:
            self.forms.append("sign-out")
            fields |= {"decision": "confirm"}
        elif 'name="decision"' in form[0]:
            self.forms.append("decision")
            fields |= {"decision": "allow"}
        return self.client.post(page.url.join(unescape(form[1])), data=fields)
