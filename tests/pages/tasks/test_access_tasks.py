"""What administrators do with permissions, each task within its ceiling."""

from collections.abc import AsyncIterator
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio
from playwright.async_api import expect

from gatehouse.kernel.times import DAY
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rules import ROOT
from tests.pages.tasks.conftest import begin_as_administrator, find_by, find_person, go
from tests.pages.tasks.counting import Person
from tests.support.console import PIA, SHOP, STUDIO
from tests.support.staged_tables import record_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

BERLIN = ZoneInfo("Europe/Berlin")  # of the browsers
GATED = """
      operator:
        description: Restarts servers
        condition: {tag: staff}
        condition_mode: require
        meta: {private_data: {store: {edit: {value: true}}}}
"""


@pytest_asyncio.fixture(loop_scope="session")
async def admin(person: Person) -> AsyncIterator[Person]:
    await begin_as_administrator(person, STUDIO.replace("    roles:\n", f"    roles:{GATED}", 1))
    yield person


SENTENCES = {"en": "assign operator to pia until friday", "de": "gib operator an pia bis freitag"}


@pytest.mark.ceiling(taps=2, fields=1)
async def test_role_is_given_until_friday_and_says_that_its_condition_is_not_met(admin: Person) -> None:
    await find_by(admin, SENTENCES[admin.lang], "operator")
    await admin.sees("without_effect.condition", nick="Pia")
    await admin.sees("access.test_tag", wanted="staff")
    await admin.tap(admin.button("people.assign_role"))
    await admin.sees("note.role_assigned_without_effect")
    [assignment] = [one for one in (await record_of(admin.service, SHOP, PIA)).root.roles if one.role == "operator"]
    end = datetime.fromtimestamp(assignment.end.expired, BERLIN)
    assert (end.weekday(), end.hour, end.minute, end.second) == (4, 23, 59, 59)
    assert assignment.end.expired - admin.service.clock.now() <= 8 * DAY  # on a Friday: the next one


@pytest.mark.ceiling(taps=4, fields=1)
async def test_role_is_given_for_a_week_on_the_page_of_a_person(admin: Person) -> None:
    await find_person(admin, "Pia")
    await admin.tap(admin.page.get_by_role("button", name="cashier · Shop"))
    await admin.tap(admin.page.locator("#assign ~ form").get_by_role("button", name=admin.words("end.week")))
    await admin.tap(admin.button("people.assign_role"))
    await admin.sees("note.role_assigned")


@pytest.mark.ceiling(taps=4, fields=3)
async def test_what_somebody_cannot_do_is_explained_and_allowed(admin: Person) -> None:
    await go(admin, "nav.check")
    await admin.fill(admin.field("access.person"), "Pia")
    await admin.fill(admin.field("access.application"), "Shop")
    await admin.fill(admin.field("access.rule"), "store.refund")
    await admin.tap(admin.button("access.ask"))
    await admin.sees_heading("access.verdict_no", nick="Pia", rule="store.refund", application="Shop")
    await admin.tap(admin.button("access.review").first)
    await admin.tap(admin.button("staging.apply", count=1))
    await admin.sees_heading("access.verdict_yes", nick="Pia", rule="store.refund", application="Shop")


@pytest.mark.ceiling(taps=4, fields=2)
async def test_player_is_banned_for_three_days_from_one_game_with_a_public_text(admin: Person) -> None:
    await find_person(admin, "Pia")
    scopes = admin.page.locator("section", has=admin.page.locator("#ban-from"))
    await admin.tap(scopes.get_by_role("button", name="Shop"))
    await admin.fill(admin.field("bans.public_text"), "Cheating in the arena.")
    await admin.tap(admin.button("end.three_days"))
    await admin.tap(admin.button("review.apply_ban"))
    await admin.sees("note.person_banned")
    [ban] = (await admin.service.services.storage.accounts.user(PIA)).bans
    assert (ban.application_id, ban.project_id, ban.public_text) == (SHOP, "", "Cheating in the arena.")
    assert abs(ban.until - admin.service.clock.now() - 3 * 86_400) <= 1


@pytest.mark.ceiling(taps=4, fields=2)
async def test_who_can_do_something_is_seen_and_one_of_them_removed(admin: Person) -> None:
    await go(admin, "nav.who")
    await admin.fill(admin.field("access.application"), "Shop")
    await admin.fill(admin.field("access.rules"), "user.kick")
    await admin.press_enter(admin.field("access.rules"))
    remove = admin.button("access.remove_from", role="moderator", nick="Pia")
    await expect(remove).to_have_count(1)  # of one permission
    await admin.tap(remove)
    await admin.tap(admin.button("staging.apply", count=1))
    await admin.sees("access.who_none")
    assert ROOT not in (await record_of(admin.service, SHOP, PIA)).scopes


@pytest.mark.ceiling(taps=5, fields=2)
async def test_new_permission_is_allowed_in_a_role(admin: Person) -> None:
    await go(admin, "nav.applications")
    await admin.tap(admin.page.get_by_role("link", name="Shop", exact=True))
    await admin.tap(admin.link("applications.tab_permissions"))
    await admin.tap(admin.page.locator("a[href$='/rules/new']").first)
    await admin.fill(admin.field("field.rule"), "server.restart")
    await admin.choose(admin.field("applications.allowed_in"), "cashier")
    await admin.tap(admin.page.locator("form[action$='/rules/new'] button[type=submit]").last)
    model: ApplicationModel = (await admin.service.services.storage.permissions.application_models([SHOP]))[SHOP]
    assert model.roles["cashier"].meta["private_data"]["server"] == {"restart": {"value": True}}
