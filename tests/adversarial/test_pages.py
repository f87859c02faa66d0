"""Checks that hold for every page (checklist LG-02, LG-22, LG-23)."""

from pathlib import Path

import pytest

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.field_checks import check_nick
from gatehouse.audit.model import AuditOrigin
from gatehouse.oauth.clients import check_client
from gatehouse.oauth.errors import BadClient
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import a_client
from tests.support.service import RunningService, running_service

PAGES = ("/", "/sign-in", "/register", "/forgot", "/setup?token=guess", "/nowhere", "/docs", "/reset?token=guess")
DECEPTIVE = ("\u202eanna", "an\u200bna", "anna\u0000", "anna\nbob", "\u2066anna", "")


async def test_lg_22_every_page_has_the_strict_headers(installed_url: str, tmp_path: Path) -> None:
    async with running_service(installed_url, tmp_path) as service:
        for path in PAGES:
            headers = (await service.client.get(path)).headers
            policy = headers["content-security-policy"]
            assert policy.startswith("default-src 'none'"), path
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert headers["referrer-policy"] == "no-referrer"
            assert headers["cross-origin-opener-policy"] == "same-origin"


async def test_lg_02_over_https_every_cookie_is_bound_to_this_host(installed_url: str, tmp_path: Path) -> None:
    https = {"GATEHOUSE__SERVER__BASE_URL": "https://localhost"}
    async with running_service(installed_url, tmp_path, environment=https) as service:
        await service.services.accounts.administration.create(
            login="anna@studio.example", nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
        )
        for cookie in await cookies_of_a_sign_in(service):
            assert cookie.startswith("__Host-gh_")
            assert "Secure" in cookie
            assert "HttpOnly" in cookie
            assert "Path=/" in cookie
            assert "Domain" not in cookie


async def cookies_of_a_sign_in(service: RunningService) -> list[str]:
    browser_client = HttpBrowser(service)
    response = await browser_client.get("/sign-in")
    browser = response.headers["set-cookie"]
    # A client that does not send Secure cookies over http; the test passes them explicitly.
    browser_client.client.headers["Cookie"] = browser.partition(";")[0]
    signed_in = await browser_client.post("/sign-in", login="anna@studio.example", password=PASSWORD)
    await browser_client.client.aclose()
    assert signed_in.status_code == 303
    return [browser, *signed_in.headers.get_list("set-cookie")]


@pytest.mark.parametrize("name", DECEPTIVE)
def test_lg_23_names_that_seem_to_be_others_are_refused(name: str) -> None:
    with pytest.raises(BadAccount):
        check_nick(name)
    with pytest.raises(BadClient):
        check_client(a_client(name=name))
