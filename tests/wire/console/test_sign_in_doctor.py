"""The sign-in doctor: what a person would meet at a sign-in, for administrators and for readers of an application."""

import pytest

from gatehouse.audit.model import AuditOrigin
from tests.support.browser import HttpBrowser
from tests.support.console import ADA, DEV, MAX, PIA, SHOP, ConsoleBrowsers, post_form
from tests.support.service import RunningService

PATH = "/console/access/sign-in"
TEST = AuditOrigin(actor="test")


async def ask(browser: HttpBrowser, person: str, application: int = SHOP) -> str:
    await browser.get(PATH)
    answer = await post_form(browser, PATH, user_id=person, application_id=str(application or ""))
    return answer.text


@pytest.mark.both_databases
async def test_doctor_tells_an_administrator_what_stops_the_sign_in(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, services = await console_browsers(ADA), studio.services
    pia = await services.storage.accounts.user(PIA)
    assert "Pia can sign in to Shop" in await ask(ada, pia.login or "")
    await services.accounts.administration.block(PIA, TEST)
    blocked = await ask(ada, PIA)
    assert "Pia cannot sign in to Shop" in blocked
    assert "The account is blocked." in blocked
    assert f"/console/people/{PIA}/act/unblock" in blocked
    refused = await services.permissions.login_rules.find_refusal(PIA, (SHOP,))
    assert refused is not None  # the decision of the sign-in itself
    assert "No account has the email no_one@players.example" in await ask(ada, "no_one@players.example")
    records = await services.storage.audit.newest_records(10, PIA, "user.sign_in_examined")
    assert [record.actor for record in records] == [ADA, ADA]


async def test_doctor_tells_readers_of_an_application_its_own_reasons_only(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    reader = await console_browsers(MAX)
    await studio.services.accounts.administration.block(PIA, TEST)
    answer = await ask(reader, PIA)
    assert "can sign in to Shop" in answer
    assert "blocked" not in answer
    assert "You see what the application refuses." in answer
    assert "check_sign_in" in answer


async def test_doctor_answers_no_one_without_the_right(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    dev = await console_browsers(DEV)
    for person in (PIA, DEV, "9999999999"):
        assert "can sign in" not in await ask(dev, person)
    assert await studio.services.storage.audit.newest_records(10, PIA, "user.sign_in_examined") == []
