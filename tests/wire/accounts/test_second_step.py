"""An account may change between the password and the second factor (R2)."""

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, HttpBrowser, hidden_fields, totp_code
from tests.support.oauth import a_native_client
from tests.support.service import RunningService

NEW = "another horse battery staple 9"


@pytest.fixture
async def secret(service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser) -> str:
    """The secret of Anna's authenticator app, whose code is required after her password."""
    secret, _ = await account_browser.set_up_totp(service)
    await service.clock.advance(60)
    await at_the_second_step(browser_client)
    return secret


async def at_the_second_step(browser_client: HttpBrowser, begun_at: str = "/sign-in") -> None:
    await browser_client.get(begun_at)
    await browser_client.post("/sign-in", login=LOGIN, password=PASSWORD)
    assert (await browser_client.follow()).url.path == "/sign-in/factor"


async def assert_has_to_start_again(service: RunningService, browser_client: HttpBrowser, secret: str) -> None:
    response = await browser_client.post("/sign-in/factor", otp=totp_code(secret, service))
    assert (response.status_code, "set-cookie" in response.headers) == (400, False)
    assert (await browser_client.get("/account")).status_code == 303


async def test_a_code_is_good_as_its_app_shows_it(
    service: RunningService, browser_client: HttpBrowser, secret: str
) -> None:
    def spaced_code() -> str:
        code = totp_code(secret, service)
        return f" {code[:3]} {code[3:]}\t"

    assert (await browser_client.post("/sign-in/factor", otp=spaced_code())).status_code == 303
    await service.clock.advance(60)
    ask = {"login": LOGIN, "password": PASSWORD, "otp": spaced_code()}
    assert (await service.client.post("/proxy/api/login", json=ask)).json()["status"] == "OK"


async def test_a_first_step_with_the_old_password_ends_with_it(
    service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser, secret: str
) -> None:
    await account_browser.submit_and_read_notice("/account/password", current=PASSWORD, password=NEW)
    await assert_has_to_start_again(service, browser_client, secret)
    assert (await account_browser.get("/account")).status_code == 200


async def test_a_first_step_ends_with_a_sign_out_everywhere(
    service: RunningService, browser_client: HttpBrowser, anna: User, secret: str
) -> None:
    await service.services.accounts.sessions.sign_out_everywhere(anna.user_id, AuditOrigin(actor="test"))
    await assert_has_to_start_again(service, browser_client, secret)


async def test_first_step_of_a_client_sign_in_ends_with_a_sign_out_everywhere(
    service: RunningService, browser_client: HttpBrowser, anna: User, secret: str
) -> None:
    web = await a_native_client(service)
    await browser_client.get(web.authorize_path())
    await at_the_second_step(browser_client, browser_client.page.headers["location"] if browser_client.page else "")
    await service.services.accounts.sessions.sign_out_everywhere(anna.user_id, AuditOrigin(actor="test"))
    await assert_has_to_start_again(service, browser_client, secret)


async def test_second_step_restarts_without_a_factor_after_the_factor_is_removed(
    service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser, secret: str
) -> None:
    assert browser_client.page is not None
    step, fields = browser_client.page.url, hidden_fields(browser_client.page.text)
    await account_browser.submit_and_read_notice("/account/totp/remove")
    assert (await browser_client.client.get(step)).status_code == 400
    for path, typed in (("/sign-in/factor", {"otp": totp_code(secret, service)}), ("/sign-in/factor/method", {})):
        assert (await browser_client.client.post(path, data={**fields, "method": "totp", **typed})).status_code == 400
    assert (await browser_client.sign_in(LOGIN)).headers["location"] == "/account"
