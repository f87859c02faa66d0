"""What people learn of sign-ins to their account: an email about a new device, and a history."""

import re

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.app.housekeeping import delete_expired
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, HttpBrowser
from tests.support.mailbox import new_messages
from tests.support.service import RunningService

DAY = 86_400
SUBJECT = "New sign-in to your account"


async def sign_in_anew(service: RunningService, login: str = LOGIN) -> None:
    """Sign in with a browser that has no cookies."""
    unknown = HttpBrowser(service)
    assert (await unknown.sign_in(login)).status_code == 303
    await unknown.client.aclose()


def history_in(page: httpx2.Response) -> str:
    return page.text.partition("Sign-in history")[2].partition("</section>")[0]


async def subjects(service: RunningService) -> list[str]:
    return [message.subject for message in await new_messages(service)]


async def save_setting(service: RunningService, name: str, value: object) -> None:
    await service.services.settings_editor.save({name: value}, AuditOrigin(actor="test"))


async def test_new_browser_is_reported_by_email_and_a_known_one_is_not(
    service: RunningService, anna: User, browser_client: HttpBrowser
) -> None:
    await service.clock.advance(3_600)
    await browser_client.sign_in(LOGIN)
    (message,) = await new_messages(service)
    assert (message.to, message.subject) == (anna.login, SUBJECT)
    assert "Firefox, Linux" in message.text
    await browser_client.get("/account")
    await browser_client.post("/sign-out")
    await browser_client.sign_in(LOGIN)
    assert await subjects(service) == []
    await save_setting(service, "sessions.new_device_email", False)
    await sign_in_anew(service)
    assert await subjects(service) == []


async def test_people_who_share_a_browser_are_both_known_there(
    service: RunningService, anna: User, browser_client: HttpBrowser
) -> None:
    people = [anna.login or "", *(f"{name}@studio.example" for name in ("bo", "cleo", "dana", "eli"))]
    for login in people[1:]:
        await service.services.accounts.administration.create(
            login=login, nick="Someone", password=PASSWORD, origin=AuditOrigin(actor="test")
        )
    await service.clock.advance(3_600)
    for _ in range(2):
        for login in people:
            await browser_client.sign_in(login)
            await browser_client.get("/account")
            await browser_client.post("/sign-out")
    assert sorted(message.to for message in await new_messages(service)) == people
    await browser_client.sign_in(people[0])
    assert browser_client.client.cookies["gh_device"].count(".") == 2 * len(people)


async def test_new_device_emails_are_limited_to_five_a_day(service: RunningService, anna: User) -> None:
    await service.clock.advance(3_600)
    for _ in range(7):
        await sign_in_anew(service, anna.login or "")
    assert await subjects(service) == [SUBJECT] * 5
    await service.clock.advance(DAY + 1)
    await sign_in_anew(service, anna.login or "")
    assert await subjects(service) == [SUBJECT]


@pytest.mark.both_databases
async def test_history_lists_sign_ins_and_loses_addresses_and_devices_after_its_days(
    service: RunningService, anna: User, account_browser: AccountBrowser
) -> None:
    storage = service.services.storage
    await service.client.post("/proxy/api/login", json={"login": LOGIN, "password": PASSWORD})
    history = history_in(await account_browser.get("/account"))
    assert len(re.findall(r"Password · .*127\.0\.0\.1", history)) == 2
    assert history.count("Firefox, Linux") == 1  # the login API knows no browser
    export = (await account_browser.submit("/account/export")).json()
    assert any(record["personal"].get("agent", "").endswith("Firefox/140.0") for record in export["activity"])

    await service.clock.advance(90 * DAY)
    await delete_expired(service.services)
    records = await storage.audit.newest_records(100, anna.user_id, "")
    sign_ins = [record for record in records if record.event in ("session.opened", "login.done")]
    assert [record.personal for record in sign_ins] == [None, None]
    assert all(record.personal for record in records if record not in sign_ins)
    await service.services.audit.sealer.seal_all()
    assert (await service.services.audit.make_verifier().verify()).problems == ()
    await account_browser.sign_in_and_open_account()
    history = history_in(await account_browser.get("/account"))
    assert history.count("<li>") == 1


async def test_longer_history_is_kept_when_the_setting_says_so(service: RunningService, anna: User) -> None:
    await save_setting(service, "sessions.history_days", 365)
    await sign_in_anew(service)
    await service.clock.advance(100 * DAY)
    await delete_expired(service.services)
    (record,) = await service.services.storage.audit.newest_records(1, anna.user_id, "session.opened")
    assert record.personal is not None
    assert record.personal["address"] == "127.0.0.1"
