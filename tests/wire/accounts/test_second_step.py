"""Between the password and the second factor an account may change (R2)."""

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, HttpBrowser, hidden_fields, totp_code
from tests.support.oauth import a_native_client
from tests.support.service import RunningService

NEW = "another horse battery staple 9"


@pytest.fixture
async def secret(service: RunningService, resident: AccountBrowser, visitor: HttpBrowser) -> str:
    """Of Anna's authenticator app, which the visitor, who knows her password, is asked for."""
    secret, _ = await resident.set_up_totp(service)
    await service.clock.advance(60)
    await at_the_second_step(visitor)
    return secret


async def at_the_second_step(visitor: HttpBrowser, begun_at: str = "/sign-in") -> None:
    await visitor.get(begun_at)
    await visitor.post("/sign-in", login=LOGIN, password=PASSWORD)
    assert (await visitor.follow()).url.path == "/sign-in/factor"


async def assert_has_to_start_again(service: RunningService, visitor: HttpBrowser, secret: str) -> None:
    answer = await visitor.post("/sign-in/factor", otp=totp_code(secret, service))
    assert (answer.status_code, "set-cookie" in answer.headers) == (400, False)
    assert (await visitor.get("/account")).status_code == 303


async def test_a_code_is_good_as_its_app_shows_it(service: RunningService, visitor: HttpBrowser, secret: str) -> None:
    def spaced() -> str:
        code = totp_code(secret, service)
        return f" {code[:3]} {code[3:]}\t"

    assert (await visitor.post("/sign-in/factor", otp=spaced())).status_code == 303
    await service.clock.advance(60)
    ask = {"login": LOGIN, "password": PASSWORD, "otp": spaced()}
    assert (await service.client.post("/proxy/api/login", json=ask)).json()["status"] == "OK"


async def test_a_first_step_with_the_old_password_ends_with_it(
    service: RunningService, resident: AccountBrowser, visitor: HttpBrowser, secret: str
) -> None:
    await resident.submit_and_read_notice("/account/password", current=PASSWORD, password=NEW, repeated=NEW)
    await assert_has_to_start_again(service, visitor, secret)
    assert (await resident.get("/account")).status_code == 200


async def test_a_first_step_ends_with_a_sign_out_everywhere(
    service: RunningService, visitor: HttpBrowser, anna: User, secret: str
) -> None:
    await service.services.sessions.sign_out_everywhere(anna.user_id, AuditOrigin(actor="test"))
    await assert_has_to_start_again(service, visitor, secret)


async def test_so_does_one_for_the_sake_of_a_client(
    service: RunningService, visitor: HttpBrowser, anna: User, secret: str
) -> None:
    web = await a_native_client(service)
    await visitor.get(web.authorize_path())
    await at_the_second_step(visitor, visitor.page.headers["location"] if visitor.page else "")
    await service.services.sessions.sign_out_everywhere(anna.user_id, AuditOrigin(actor="test"))
    await assert_has_to_start_again(service, visitor, secret)


async def test_anyone_who_has_no_factor_any_more_starts_again_and_needs_none(
    service: RunningService, resident: AccountBrowser, visitor: HttpBrowser, secret: str
) -> None:
    assert visitor.page is not None
    step, fields = visitor.page.url, hidden_fields(visitor.page.text)
    await resident.submit_and_read_notice("/account/totp/remove")
    assert (await visitor.client.get(step)).status_code == 400
    for path, typed in (("/sign-in/factor", {"otp": totp_code(secret, service)}), ("/sign-in/factor/method", {})):
        assert (await visitor.client.post(path, data={**fields, "method": "totp", **typed})).status_code == 400
    assert (await visitor.sign_in(LOGIN)).headers["location"] == "/account"
