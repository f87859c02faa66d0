"""What players and employees do, on a phone, each within its ceiling."""

import pytest
from playwright.async_api import expect

from gatehouse.audit.model import AuditOrigin
from tests.pages.tasks.counting import Person
from tests.support.browser import LOGIN, PASSWORD

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.on_phone]

ORIGIN = AuditOrigin(actor="test")


@pytest.mark.ceiling(taps=1, fields=2)
async def test_person_signs_in_and_sees_their_account(person: Person) -> None:
    accounts = person.service.services.accounts
    await accounts.administration.create(login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN)
    await person.open("/account")
    await person.fill(person.field("sign_in.login"), LOGIN)
    await person.fill(person.field("field.password"), PASSWORD)
    await person.press_enter(person.field("field.password"))
    await expect(person.page.get_by_role("heading", level=1, name="Anna")).to_be_visible()
