"""What administrators do with people, each task within its ceiling."""

import csv
import io
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.async_api import expect

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.statements import Verb
from tests.pages.tasks.conftest import find_person, go
from tests.pages.tasks.counting import Person
from tests.support.browser import PASSWORD
from tests.support.builders import ORIGIN
from tests.support.console import OLGA, PIA, SHOP, login_of
from tests.support.mailbox import new_messages

pytestmark = pytest.mark.asyncio(loop_scope="session")

NEW_PEOPLE = [f"p{number:02}@elsewhere.example" for number in range(20)]
DAY = 86_400


def text_of(path: Path) -> str:
    return path.read_text()


@pytest.mark.ceiling(taps=4, fields=1)
async def test_twenty_people_are_invited_with_a_role(admin: Person) -> None:
    await admin.tap(admin.button("home.invite"))
    await admin.fill(admin.field("people.emails"), "\n".join(NEW_PEOPLE))
    await admin.tap(admin.page.get_by_role("combobox", name=admin.words("people.role"), exact=True))
    await admin.tap(admin.page.get_by_role("option", name="moderator"))
    await admin.tap(admin.button("people.add"))
    await admin.sees("invite.made", count=20)
    async with admin.page.expect_download() as started:
        await admin.button("invite.download").click()
    links = csv.DictReader(io.StringIO(text_of(await (await started.value).path())))
    assert [row["email"] for row in links] == NEW_PEOPLE
    assert {message.to for message in await new_messages(admin.service)} == set(NEW_PEOPLE)
    invited = await admin.service.services.storage.accounts.user_by_login(NEW_PEOPLE[0])
    assert invited is not None
    (invitation,) = await admin.service.services.storage.access_invitations.of_user(
        invited.user_id, admin.service.clock.now(), 2
    )
    assert (invitation.access.application_id, invitation.access.role) == (SHOP, "moderator")


@pytest.mark.ceiling(taps=3, fields=2)
async def test_person_who_lost_the_second_factor_is_helped(admin: Person) -> None:
    olga = await admin.service.services.storage.accounts.user(OLGA)
    await admin.service.services.factors.email_codes.enable(olga, origin=ORIGIN)
    await find_person(admin, "Olga")
    await admin.tap(admin.button("people.remove_all"))
    await admin.fill(admin.field("people.reason"), "She called; we know her voice.")
    await admin.tap(admin.button("people.remove"))
    await admin.sees("note.factor_removed")
    assert not (await admin.service.services.storage.accounts.user(OLGA)).has_second_factor


@pytest.mark.ceiling(taps=2, fields=1)
async def test_data_of_a_person_is_exported(admin: Person) -> None:
    await find_person(admin, "Pia")
    async with admin.page.expect_download() as started:
        await admin.tap(admin.button("people.download"))
    assert login_of(PIA) in text_of(await (await started.value).path())


@pytest.mark.ceiling(taps=2, fields=1)
async def test_all_sessions_of_a_person_are_ended(admin: Person) -> None:
    pia = await admin.on_another_device()
    await pia.open("/account")
    await pia.page.locator("input[name=login]").fill(login_of(PIA))
    await pia.page.locator("input[name=password]").fill(PASSWORD)
    await pia.page.locator("input[name=password]").press("Enter")
    await pia.page.wait_for_url("**/account")
    await find_person(admin, "Pia")
    await admin.tap(admin.button("person_act.sign_out"))
    await admin.sees("note.person_sign_out")
    assert await admin.service.services.accounts.sessions.of_user(PIA) == []


@pytest.mark.ceiling(taps=3, fields=1)
async def test_it_is_seen_who_changed_a_role_yesterday(admin: Person) -> None:
    services, now = admin.service.services, admin.service.clock.now()
    changed = services.core.recorder.record(
        AuditEvent.ROLE_SAVED, AuditOrigin(actor=OLGA), subject=f"application {SHOP}", details={"role": "moderator"}
    )

    def verb() -> Verb[None]:
        yield from add_audit_record(replace(changed, at=now - DAY))

    await services.storage.runner.write(verb)
    await go(admin, "nav.activity")
    await admin.choose(admin.field("activity.group"), "role")
    entry = admin.page.locator(".log .said").filter(has_text="moderator").first
    await expect(entry).to_contain_text("Olga")
    await admin.sees("time.yesterday")
