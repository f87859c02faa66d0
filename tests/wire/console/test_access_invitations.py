"""Invitations that carry a role or a group: sent, accepted, declined, and refused when they should be (R9)."""

import asyncio
from typing import Any

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.permissions.model.invitation import MAX_PROJECT_INVITATIONS
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import ORIGIN
from tests.support.console import ADA, DEV, MAX, OLGA, PIA, PROJECT, SHOP, ConsoleBrowsers, apply_document, login_of
from tests.support.mailbox import link_in_message, new_messages
from tests.support.oauth import an_oidc_client
from tests.support.service import RunningService
from tests.support.studio import FACTOR, bearer_headers
from tests.wire.console.test_api_calls import jwt_of

BOB = "bob@elsewhere.example"
API = "/api/permissions/user"
PAGE = "/account/invitations"
DAY = 86_400
MODERATOR = {"application_id": SHOP, "name": "moderator"}
IN_PROJECT = {**MODERATOR, "project_id": PROJECT}


class Inviter:
    """Someone who invites over the API."""

    def __init__(self, studio: RunningService, user_id: str) -> None:
        self._studio = studio
        self.user_id = user_id

    async def post(self, action: str = "invite", /, **data: Any) -> httpx2.Response:
        headers = bearer_headers(await jwt_of(self._studio, self.user_id), **{"User-Factor": FACTOR})
        body = {"action": action, "factor": FACTOR, "data": data}
        return await self._studio.client.post(API, json=body, headers=headers)

    async def invite(self, **data: Any) -> Any:
        response = await self.post(**data)
        assert response.status_code == 200, response.text
        return response.json()["data"]


async def accept_link(browser: HttpBrowser, link: str) -> None:
    await browser.get(link)
    response = await browser.post("/invite", nick="Bob", password=PASSWORD)
    assert response.status_code == 303, response.text


async def test_invitation_to_an_application_shows_it_and_leads_there(studio: RunningService) -> None:
    browser_client = HttpBrowser(studio)
    client = await an_oidc_client(studio, application_id=SHOP, client_uri="https://shop.example/")
    await Inviter(studio, ADA).invite(login=BOB, role=MODERATOR)
    (message,) = await new_messages(studio)
    page = await browser_client.get(link_in_message(studio, message))
    assert "Accept and continue to" in page.text
    done = await browser_client.post("/invite", nick="Bob", password=PASSWORD)
    assert (done.status_code, done.headers["location"]) == (303, client.client.client_uri)
    await browser_client.client.aclose()


async def account(studio: RunningService, login: str) -> User | None:
    return await studio.services.storage.accounts.user_by_login(login)


async def roles_of(studio: RunningService, user_id: str) -> list[tuple[str, str, int]]:
    """Project, role and end of what the person was assigned in the shop."""
    facts = await studio.services.storage.permissions.facts(user_id, (SHOP,))
    assert facts is not None
    return [
        (scope.project_id, one.role, one.end.expired)
        for scope, held in facts.records[SHOP].scopes.items()
        for one in held.roles
    ]


async def events(studio: RunningService, event: AuditEvent) -> list[Any]:
    return list(await studio.services.storage.audit.newest_records(100, "", event.value))


async def sign_in_and_open(browsers: ConsoleBrowsers, user_id: str) -> HttpBrowser:
    browser = await browsers(user_id)
    await browser.get(PAGE)
    return browser


async def test_invitation_of_a_new_address_gives_role_and_group_when_it_is_accepted(
    studio: RunningService,
) -> None:
    (group,) = [one for one in await groups(studio) if one.title == "Testers"]
    end = studio.clock.now() + 3 * DAY
    await Inviter(studio, ADA).invite(login=BOB, role={**MODERATOR, "expired": end}, group_id=group.group_id)
    bob = await account(studio, BOB)
    assert bob is not None
    assert await roles_of(studio, bob.user_id) == []
    (message,) = await new_messages(studio)
    browser = HttpBrowser(studio)
    await accept_link(browser, link_in_message(studio, message))
    await browser.client.aclose()
    assert await roles_of(studio, bob.user_id) == [("", "moderator", end)]
    assert bob.user_id in (await studio.services.storage.groups.group(group.group_id)).users
    (record,) = await events(studio, AuditEvent.ACCESS_ACCEPTED)
    assert (record.actor, record.subject, record.details["inviter"]) == (bob.user_id, bob.user_id, ADA)


async def groups(studio: RunningService) -> list[Any]:
    model = await studio.services.storage.projects.project(PROJECT)
    return list(model.groups.values())


async def test_owner_gets_the_same_answer_for_known_and_unknown_and_the_known_accept_signed_in(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga, dev = Inviter(studio, OLGA), login_of(DEV)
    before = await account(studio, dev)
    known = await olga.invite(login=dev, project_id=PROJECT, role=IN_PROJECT)
    unknown = await olga.invite(login=BOB, project_id=PROJECT, role=IN_PROJECT)
    assert (known, unknown) == ({"invited": [dev]}, {"invited": [BOB]})
    assert await account(studio, dev) == before
    mails = {message.to: link_in_message(studio, message) for message in await new_messages(studio)}
    assert mails[dev] == PAGE
    assert mails[BOB].startswith("/invite?token=")

    guest = HttpBrowser(studio)
    await guest.get(PAGE)
    assert guest.page is not None
    assert "/sign-in?interaction=" in guest.page.headers["location"]  # the mail's link leads through the sign-in
    await guest.client.aclose()
    browser = await sign_in_and_open(console_browsers, DEV)
    assert browser.page is not None
    assert all(words in browser.page.text for words in ("Shop", "moderator", "Mind Games"))
    accepted = await browser.post(PAGE, decision="accept")
    assert accepted.status_code == 303, accepted.text
    assert (PROJECT, "moderator", 0) in await roles_of(studio, DEV)
    assert "No open invitations" in (await browser.get(PAGE)).text


@pytest.mark.parametrize(
    ("inviter", "data"),
    [
        (OLGA, {"role": MODERATOR}),  # only administrators invite without a project
        (OLGA, {"project_id": "other", "role": IN_PROJECT}),
        (DEV, {"project_id": PROJECT, "role": IN_PROJECT}),  # manages no one
        (
            OLGA,
            {"project_id": PROJECT, "role": {"application_id": 1, "name": "administrator", "project_id": PROJECT}},
        ),
    ],
)
async def test_pa_13_inviter_names_only_what_they_may_assign(
    studio: RunningService, inviter: str, data: dict[str, Any]
) -> None:
    response = await Inviter(studio, inviter).post(login=BOB, **data)
    assert response.status_code in (400, 403), response.text
    assert await account(studio, BOB) is None
    assert await new_messages(studio) == []


async def test_role_outside_the_project_and_an_end_in_the_past_are_refused_by_name(studio: RunningService) -> None:
    olga = Inviter(studio, OLGA)
    for role in ({**IN_PROJECT, "expired": studio.clock.now()}, MODERATOR):
        response = await olga.post(login=BOB, project_id=PROJECT, role=role)
        assert response.status_code in (400, 403), response.text
    assert await account(studio, BOB) is None


async def test_owner_invites_a_hundred_a_day_and_project(studio: RunningService) -> None:
    olga = Inviter(studio, OLGA)
    for number in range(MAX_PROJECT_INVITATIONS):
        await olga.invite(login=f"p{number}@elsewhere.example", project_id=PROJECT, role=IN_PROJECT)
    assert (await olga.post(login=BOB, project_id=PROJECT, role=IN_PROJECT)).status_code == 429
    assert await account(studio, BOB) is None
    await studio.clock.advance(DAY + 1)
    await olga.invite(login=BOB, project_id=PROJECT, role=IN_PROJECT)


async def test_invitation_gives_nothing_when_the_inviter_lost_the_right_meanwhile(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await Inviter(studio, OLGA).invite(login=login_of(DEV), project_id=PROJECT, role=IN_PROJECT)
    browser = await sign_in_and_open(console_browsers, DEV)
    await studio.services.accounts.administration.block(OLGA, ORIGIN)
    refused = await browser.post(PAGE, decision="accept")
    assert (refused.status_code, "could not be accepted" in refused.text) == (409, True)
    assert (PROJECT, "moderator", 0) not in await roles_of(studio, DEV)
    (record,) = await events(studio, AuditEvent.ACCESS_NOT_GIVEN)
    assert record.details["reason"] == "NoRight"


async def test_invitation_with_a_role_that_has_ended_gives_nothing(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    end = studio.clock.now() + DAY
    await Inviter(studio, OLGA).invite(login=login_of(DEV), project_id=PROJECT, role={**IN_PROJECT, "expired": end})
    await studio.clock.advance(DAY)
    browser = await sign_in_and_open(console_browsers, DEV)
    assert (await browser.post(PAGE, decision="accept")).status_code == 409
    assert await roles_of(studio, DEV) == []


async def test_unverified_account_accepts_only_after_its_address_is_proved(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await Inviter(studio, OLGA).invite(login=login_of(PIA), project_id=PROJECT, role={**IN_PROJECT})
    browser = await sign_in_and_open(console_browsers, PIA)
    assert browser.page is not None
    assert "Verify your email first" in browser.page.text
    assert (await browser.post(PAGE, decision="accept")).status_code == 409
    assert (PROJECT, "moderator", 0) not in await roles_of(studio, PIA)


async def test_of_two_acceptances_at_once_one_gives_the_role(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await Inviter(studio, OLGA).invite(login=login_of(DEV), project_id=PROJECT, role=IN_PROJECT)
    first, second = [await sign_in_and_open(console_browsers, DEV) for _ in range(2)]
    answers = await asyncio.gather(*(one.post(PAGE, decision="accept") for one in (first, second)))
    assert sorted(answer.status_code for answer in answers) == [303, 409]
    assert len(await events(studio, AuditEvent.ACCESS_ACCEPTED)) == 1


@pytest.mark.both_databases
async def test_invitation_that_was_declined_withdrawn_or_of_an_erased_person_is_gone(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga, store = Inviter(studio, OLGA), studio.services.storage.access_invitations
    await olga.invite(login=login_of(DEV), project_id=PROJECT, role=IN_PROJECT)
    browser = await sign_in_and_open(console_browsers, DEV)
    assert (await browser.post(PAGE, decision="decline")).status_code == 303
    assert await store.into_project(PROJECT, studio.clock.now(), 10) == []
    assert len(await events(studio, AuditEvent.ACCESS_DECLINED)) == 1

    await olga.invite(login=BOB, project_id=PROJECT, role=IN_PROJECT)
    bob = await account(studio, BOB)
    assert bob is not None
    await studio.services.accounts.erasure.erase(bob, ORIGIN)
    assert await store.into_project(PROJECT, studio.clock.now(), 10) == []


@pytest.mark.both_databases
async def test_invitations_of_an_erased_inviter_give_nothing(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    """A member-to-be accepts after the erasure; the link of a new person makes an account only."""
    await apply_document(studio, 'memberships: [{id: $project, users: {"$max": {roles: [project_owner]}}}]')
    inviter = Inviter(studio, MAX)
    await inviter.invite(login=login_of(DEV), project_id=PROJECT, role=IN_PROJECT)
    await inviter.invite(login=BOB, project_id=PROJECT, role=IN_PROJECT)
    browser = await sign_in_and_open(console_browsers, DEV)
    link = next(message for message in await new_messages(studio) if message.to == BOB)
    max_account = await studio.services.storage.accounts.user(MAX)
    await studio.services.accounts.erasure.erase(max_account, ORIGIN)
    assert (await browser.post(PAGE, decision="accept")).status_code == 409
    assert (PROJECT, "moderator", 0) not in await roles_of(studio, DEV)
    bob = HttpBrowser(studio)
    await accept_link(bob, link_in_message(studio, link))
    await bob.client.aclose()
    invited = await account(studio, BOB)
    assert invited is not None
    assert await roles_of(studio, invited.user_id) == []


@pytest.mark.both_databases
async def test_open_invitations_into_a_project_do_not_tell_who_has_an_account(studio: RunningService) -> None:
    await studio.services.accounts.administration.block(PIA, ORIGIN)
    olga, typed = Inviter(studio, OLGA), [login.upper() for login in (BOB, login_of(DEV), login_of(PIA))]
    for login in typed:
        await olga.invite(login=login, project_id=PROJECT, role=IN_PROJECT)
    listed = (await olga.post("invitations", project_id=PROJECT)).json()["data"]
    assert sorted(one["login"] for one in listed) == sorted(typed)
    assert login_of(PIA) not in {message.to for message in await new_messages(studio)}


@pytest.mark.both_databases
async def test_invitations_are_listed_page_by_page_and_withdrawn_from_any_page(studio: RunningService) -> None:
    olga, ada = Inviter(studio, OLGA), Inviter(studio, ADA)
    for withdrawing, place in ((olga, {"project_id": PROJECT}), (ada, {"user_id": PIA})):
        await studio.clock.advance(1)
        await olga.invite(login=login_of(PIA), project_id=PROJECT, role=IN_PROJECT)
        (older,) = (await olga.post("invitations", project_id=PROJECT, limit=1)).json()["data"]
        await studio.clock.advance(1)
        await olga.invite(login=login_of(DEV), project_id=PROJECT, role=IN_PROJECT)
        await ada.invite(login=login_of(PIA), role=MODERATOR)
        first = (await olga.post("invitations", project_id=PROJECT, limit=1)).json()
        second = (await olga.post("invitations", project_id=PROJECT, limit=1, after=first["after"])).json()
        assert [one["data"][0]["login"] for one in (first, second)] == [login_of(DEV), login_of(PIA)]
        assert (second["data"], second["after"]) == ([older], None)
        for other, where in ((ada, {"project_id": PROJECT}), (ada, {"user_id": PIA})):
            assert (await other.post("invitations", **where, after=first["after"])).status_code == 400
        withdrawal = await withdrawing.post("withdraw", invitation_id=older["invitation_id"], **place)
        assert withdrawal.status_code == 200
        store, now = studio.services.storage.access_invitations, studio.clock.now()
        left = await store.of_user(PIA, now, 10)
        assert [one.inviter for one in left] == [ADA]


async def test_owner_and_administrator_list_and_withdraw_invitations_by_the_api(studio: RunningService) -> None:
    olga, ada = Inviter(studio, OLGA), Inviter(studio, ADA)
    await olga.invite(login=login_of(PIA), project_id=PROJECT, role=IN_PROJECT)
    (listed,) = (await olga.post("invitations", project_id=PROJECT)).json()["data"]
    assert (listed["login"], listed["inviter"], listed["role"]) == (login_of(PIA), OLGA, "moderator")
    assert (await ada.post("invitations", user_id=PIA)).json()["data"] == [listed]
    for refused in ({"user_id": PIA}, {"project_id": "elsewhere"}):
        assert (await olga.post("invitations", **refused)).status_code == 403, refused
        withdrawal = await olga.post("withdraw", invitation_id=listed["invitation_id"], **refused)
        assert withdrawal.status_code == 403, refused
    assert (await ada.post("withdraw", user_id=PIA, invitation_id=listed["invitation_id"])).status_code == 200
    assert (await olga.post("invitations", project_id=PROJECT)).json()["data"] == []
    (record,) = await events(studio, AuditEvent.ACCESS_WITHDRAWN)
    assert (record.actor, record.subject) == (ADA, PIA)
    await olga.invite(login=login_of(PIA), project_id=PROJECT, role=IN_PROJECT)
    (again,) = (await olga.post("invitations", project_id=PROJECT)).json()["data"]
    await olga.post("withdraw", project_id=PROJECT, invitation_id=again["invitation_id"])
    assert (await ada.post("invitations", user_id=PIA)).json()["data"] == []
