"""`stoken`: a browser session from a login elsewhere, once, from the same address (R1)."""

import pytest

from gatehouse.accounts.model import SessionStrength, SignInMethod, User
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.digests import sha256
from tests.support.browser import PASSWORD, HttpBrowser, hidden_fields
from tests.support.guests import Device, turn_guests_on
from tests.support.service import RunningService


async def short_token(service: RunningService) -> str:
    body = {"login": "anna@studio.example", "password": PASSWORD, "short_token": "1"}
    stoken: str = (await service.client.post("/proxy/api/login", json=body)).json()["stoken"]
    return stoken


@pytest.mark.usefixtures("anna")
async def test_short_token_asks_first_and_opens_one_limited_session(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    stoken = await short_token(service)
    response = await browser_client.get(f"/?stoken={stoken}")
    assert response.status_code == 200
    assert "Anna" in response.text
    assert "gh_session" not in browser_client.cookies
    assert (await browser_client.post("/sign-in/stoken")).status_code == 303
    session = await service.services.storage.sessions.find_session(
        sha256(browser_client.cookies["gh_session"]), service.clock.now()
    )
    assert session is not None
    assert session.session.strength is SessionStrength.LIMITED
    assert (await browser_client.get(f"/?stoken={stoken}")).status_code == 403


async def test_short_token_of_a_guest_proves_no_password(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await turn_guests_on(service)
    stoken = (await Device().log_in(service, short_token="1"))["stoken"]
    await browser_client.get(f"/?stoken={stoken}")
    assert (await browser_client.post("/sign-in/stoken")).status_code == 303
    session = await service.services.storage.sessions.find_session(
        sha256(browser_client.cookies["gh_session"]), service.clock.now()
    )
    assert session is not None
    assert session.session.auth is SignInMethod.GUEST


@pytest.mark.usefixtures("anna")
async def test_short_token_expires_after_five_minutes(service: RunningService, browser_client: HttpBrowser) -> None:
    stoken = await short_token(service)
    await service.clock.advance(300)
    assert (await browser_client.get(f"/?stoken={stoken}")).status_code == 403


async def test_short_token_ends_with_a_revocation(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    stoken = await short_token(service)
    await service.services.accounts.administration.block(anna.user_id, AuditOrigin(actor="test"))
    await service.services.accounts.administration.unblock(anna.user_id, AuditOrigin(actor="test"))
    assert (await browser_client.get(f"/?stoken={stoken}")).status_code == 403


@pytest.mark.usefixtures("anna")
async def test_an_address_that_someone_only_says_proves_nothing(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    stoken = await short_token(service)
    headers = {"X-Forwarded-For": "203.0.113.9"}  # from a peer that is not a trusted proxy
    assert (await browser_client.client.get(f"/?stoken={stoken}", headers=headers)).status_code == 403
    await browser_client.get(f"/?stoken={stoken}")
    form = hidden_fields(browser_client.page.text if browser_client.page else "")
    assert (await browser_client.client.post("/sign-in/stoken", data=form, headers=headers)).status_code == 403
    assert "gh_session" not in browser_client.cookies
    assert (await browser_client.post("/sign-in/stoken")).status_code == 303


@pytest.mark.usefixtures("anna")
async def test_short_token_from_another_address_is_refused_and_not_spent(service: RunningService) -> None:
    stoken = await short_token(service)
    store, now = service.services.storage.logins, service.clock.now()
    assert await store.take_short_token(sha256(stoken), "192.0.2.1", now) is None
    assert await store.take_short_token(sha256(stoken), "127.0.0.1", now) is not None
    assert await store.take_short_token(sha256(stoken), "127.0.0.1", now) is None
