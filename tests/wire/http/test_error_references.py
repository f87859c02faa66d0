"""The reference on an error page leads operators to its client, endpoint and reason."""

import re
from collections.abc import AsyncIterator, Sequence

import httpx2
import msgspec
import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.web.http.page_refusals import PAGE_RATES, PROCESS, SOURCE
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import a_record
from tests.support.logs import capture_logs
from tests.support.oauth import an_oidc_client
from tests.support.service import RunningService

AUTHORIZE = "/proxy/oauth/authorize"
LOGOUT = "/proxy/oauth/logout"
SHOP = "https://shop.example/cb"


@pytest.fixture
async def browser_client(service: RunningService) -> AsyncIterator[HttpBrowser]:
    someone = HttpBrowser(service)
    yield someone
    await someone.client.aclose()


@pytest.fixture
async def root(service: RunningService) -> User:
    root = await service.services.accounts.administration.new_user(
        login="root@studio.example", nick="Root", password=PASSWORD
    )
    await service.services.storage.accounts.create_user(root, a_record(), administrator=True)
    return root


def reference_of(page: httpx2.Response) -> str:
    found = re.search(r"Reference for support: <code>([0-9a-f]{16})</code>", page.text)
    assert found is not None, page.text
    assert found[1] == page.headers["x-request-id"]
    return found[1]


async def stored(service: RunningService, reference: str) -> AuditRecord | Refusal | None:
    return await service.services.storage.audit.find_record(reference)


async def all_stored(service: RunningService, pages: Sequence[httpx2.Response]) -> int:
    return sum([await stored(service, reference_of(page)) is not None for page in pages])


EVIL = "https://evil.example/"
NOT_OURS = "the id_token_hint was not issued by this service"
UNKNOWN = "the client is unknown or removed"
WRONG_REDIRECT = "redirect_uri is not registered for this client"
WRONG_TARGET = "the post_logout_redirect_uri is not registered for this client"
CASES = [
    (f"{AUTHORIZE}?client_id=shop&redirect_uri={EVIL}", "shop", "oauth.authorize", WRONG_REDIRECT),
    (f"{AUTHORIZE}?client_id=none&redirect_uri={SHOP}", "none", "oauth.authorize", UNKNOWN),
    (f"{LOGOUT}?client_id=shop&post_logout_redirect_uri={EVIL}", "shop", "oauth.logout", WRONG_TARGET),
    (f"{LOGOUT}?id_token_hint=x&client_id=shop", "shop", "oauth.logout", NOT_OURS),
    (f"{LOGOUT}?state=a&state=b", "", "oauth.logout", "state"),
]


@pytest.mark.both_databases
@pytest.mark.parametrize("case", CASES, ids=["redirect", "client", "target", "hint", "repeated"])
async def test_the_reference_of_a_page_is_stored_with_client_endpoint_and_reason(
    service: RunningService, browser_client: HttpBrowser, case: tuple[str, str, str, str]
) -> None:
    address, client, endpoint, reason = case
    await an_oidc_client(service, "shop", redirect_uris=(SHOP,), post_logout_uris=(SHOP,))
    page = await browser_client.get(address)
    assert page.status_code == 400
    found = await stored(service, reference_of(page))
    assert isinstance(found, Refusal)
    received = {"received": EVIL} if reason == WRONG_REDIRECT else {}
    assert (found.event, found.subject, found.details) == ("page.refused", client, {"endpoint": endpoint, **received})
    assert reason in found.reason
    assert found.personal == {"address": "127.0.0.1", "actor": ""}


@pytest.mark.parametrize("case", CASES, ids=["redirect", "client", "target", "hint", "repeated"])
async def test_the_log_has_client_endpoint_and_reason_of_the_reference(
    service: RunningService, browser_client: HttpBrowser, case: tuple[str, str, str, str]
) -> None:
    address, client, endpoint, reason = case
    await an_oidc_client(service, "shop", redirect_uris=(SHOP,), post_logout_uris=(SHOP,))
    with capture_logs() as stream:
        page = await browser_client.get(address)
        lines = list(map(msgspec.json.decode, stream.lines()))
    [line] = [one for one in lines if one["event"] == "refused"]
    assert (line["request_id"], line["client_id"], line["endpoint"]) == (reference_of(page), client, endpoint)
    assert reason in line["detail"]


async def test_an_unexpected_error_is_stored_by_its_kind_only(
    service: RunningService, browser_client: HttpBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise LookupError("a secret")

    monkeypatch.setattr(service.services.oauth.logout_requests, "check", fail)
    page = await browser_client.get(LOGOUT)
    assert page.status_code == 500
    found = await stored(service, reference_of(page))
    assert isinstance(found, Refusal)
    assert found.reason == "unexpected error LookupError"


async def test_the_reference_of_a_console_page_is_stored_with_the_reader(
    service: RunningService, browser_client: HttpBrowser, root: User
) -> None:
    await browser_client.sign_in(root.login or "")
    page = await browser_client.get("/console/games/0000000000000000")
    assert page.status_code == 404
    found = await stored(service, reference_of(page))
    assert isinstance(found, Refusal)
    assert (found.reason, found.personal["actor"]) == ("no such game session", root.user_id)


async def test_op_14_what_is_stored_of_a_signed_in_reader_is_a_number(
    service: RunningService, browser_client: HttpBrowser, root: User
) -> None:
    """It stays when the account is erased: refused requests are not found by the person."""
    await browser_client.sign_in(root.login or "")
    page = await browser_client.get(f"{AUTHORIZE}?client_id=none&redirect_uri={SHOP}")
    found = await stored(service, reference_of(page))
    assert isinstance(found, Refusal)
    assert found.personal == {"address": "", "actor": root.user_id}


async def test_administrators_look_up_a_reference_in_the_console(
    service: RunningService, browser_client: HttpBrowser, root: User
) -> None:
    reference = reference_of(await browser_client.get(f"{AUTHORIZE}?client_id=none&redirect_uri={SHOP}"))
    await browser_client.sign_in(root.login or "")
    page = await browser_client.get(f"/console/games/record?id={reference}")
    assert page.status_code == 200
    for text in ("the client is unknown or removed", "oauth.authorize", "none", "A page showed an error"):
        assert text in page.text
    assert f"gatehouse audit show --record {reference}" in page.text
    refused = await browser_client.get("/console/activity/refusals")
    assert f"/console/games/record?id={reference}" in refused.text
    unknown = await browser_client.get("/console/games/record?id=0123456789abcdef")
    assert unknown.status_code == 404
    assert "Nothing is stored under this ID." in unknown.text
    assert service.base_url not in unknown.text


async def test_a_page_that_says_all_there_is_to_say_has_no_reference(browser_client: HttpBrowser) -> None:
    page = await browser_client.get("/no-such-page")
    assert page.status_code == 404
    assert "Reference" not in page.text


async def test_strangers_store_a_few_error_pages_a_minute(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    bad = f"{AUTHORIZE}?client_id=none&redirect_uri={SHOP}"
    most = PAGE_RATES[SOURCE].per_minute
    pages = [await browser_client.get(bad) for _ in range(most + 5)]
    assert await all_stored(service, pages) == most
    await service.clock.advance(60)
    assert await all_stored(service, [await browser_client.get(bad)]) == 1


async def test_all_sources_together_store_a_few_error_pages_a_minute(
    service: RunningService, browser_client: HttpBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(service.services.audit.page_refusals._rates._limits, SOURCE)  # type: ignore[attr-defined]
    bad = f"{AUTHORIZE}?client_id=none&redirect_uri={SHOP}"
    most = PAGE_RATES[PROCESS].per_minute
    pages = [await browser_client.get(bad) for _ in range(most + 5)]
    assert await all_stored(service, pages) == most


async def test_what_is_stored_of_a_request_is_short_and_printable(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    page = await browser_client.get(f"{AUTHORIZE}?client_id=%E2%80%AE%C2%85{'x' * 2_000}&redirect_uri={SHOP}")
    found = await stored(service, reference_of(page))
    assert isinstance(found, Refusal)
    assert found.subject == "x" * 198
