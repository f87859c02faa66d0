"""Accounts managed over the API: what administrators do, what readers of an application see, and no one else (R9)."""

import httpx2

from gatehouse.accounts.model import SignInMethod
from gatehouse.audit.events import AuditEvent
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import ORIGIN
from tests.support.mailbox import new_messages
from tests.support.studio import (
    Person,
    Studio,
    audit_records,
    bearer_headers,
    create_administrator,
    create_person,
    create_person_with,
    secret_document,
    write_user_record,
)

BOB = "bob@studio.example"
EVE = "eve@studio.example"
READS_ALL = secret_document(roles=("all", "self"), public=("all", "self"), private=("all", "self"))


def user_action(action: str, **data: object) -> dict[str, object]:
    return {"action": action, "data": data}


async def can_sign_in(studio: Studio, login: str) -> bool:
    response = await studio.service.client.post("/proxy/api/login", json={"login": login, "password": PASSWORD})
    return bool(response.json()["status"] == "OK")


async def test_administrator_creates_saves_and_blocks_an_account(studio: Studio) -> None:
    admin = await create_administrator(studio)
    given = {"login": BOB, "nick": "Bob", "lang": "de", "country": "DE", "tags": ["staff"], "email_verified": True}
    given |= {"name": "Bob Stone", "username": "bob.stone", "zoneinfo": "Europe/Berlin"}
    ask = user_action("create", password=PASSWORD, **given)
    created = (await studio.expect_ok("user", ask, admin.headers))["data"]
    assert given.items() <= created.items()
    assert await can_sign_in(studio, BOB)
    user_id, version = created["user_id"], created["version"]

    saved = (await studio.expect_ok("user", user_action("save", user_id=user_id, nick="Rob"), admin.headers))["data"]
    assert (saved["nick"], saved["tags"], saved["country"]) == ("Rob", ["staff"], "DE")
    cleared = user_action("save", user_id=user_id, tags=None, country=None, name=None, version=saved["version"])
    saved = (await studio.expect_ok("user", cleared, admin.headers))["data"]
    assert (saved["tags"], saved["country"], saved["login"]) == ([], "", BOB)
    assert (saved["name"], saved["username"], saved["zoneinfo"]) == ("", "bob.stone", "Europe/Berlin")
    await studio.expect_error(
        409, "user", user_action("save", user_id=user_id, nick="X", version=version), admin.headers
    )

    blocked = (await studio.expect_ok("user", user_action("block", user_id=user_id), admin.headers))["data"]
    assert blocked["blocked"]
    assert not await can_sign_in(studio, BOB)
    await studio.expect_ok("user", user_action("unblock", user_id=user_id), admin.headers)
    assert await can_sign_in(studio, BOB)
    for event in (
        AuditEvent.USER_CREATED,
        AuditEvent.USER_CHANGED,
        AuditEvent.USER_BLOCKED,
        AuditEvent.USER_UNBLOCKED,
    ):
        assert admin.user_id in {record.actor for record in await audit_records(studio, event)}, event


async def test_bad_input_is_refused_by_name_and_creates_nothing(studio: Studio) -> None:
    admin = await create_administrator(studio)
    for data, error in (
        ({}, "email address"),
        ({"login": "bob"}, "email address"),
        ({"login": BOB, "password": "1234"}, ""),
        ({"login": BOB, "lang": "english"}, "language"),
        ({"login": BOB, "tags": ["2step"]}, "2step"),
        ({"login": BOB, "tags": ["a", "a"]}, "data.tags"),
        ({"login": BOB, "user_id": "77"}, "data.user_id"),
        ({"login": BOB, "colour": "red"}, "colour"),
        ({"login": BOB, "username": "admin"}, "reserved"),
        ({"login": BOB, "zoneinfo": "Berlin"}, "time zone"),
    ):
        assert error in await studio.expect_error(400, "user", user_action("create", **data), admin.headers), data
    await studio.expect_ok("user", user_action("create", login=BOB), admin.headers)
    await studio.expect_error(409, "user", user_action("create", login=BOB.upper()), admin.headers)
    for action in ("save", "block", "end_sessions", "reset_factors", "export", "erase", "get"):
        needed = {"reason": "lost phone"} if action == "reset_factors" else {}
        assert "data.user_id" in await studio.expect_error(400, "user", user_action(action, **needed), admin.headers)
        unknown = user_action(action, user_id="77", **needed)
        assert "user not found" in await studio.expect_error(404, "user", unknown, admin.headers), action
    assert "reason" in await studio.expect_error(
        400, "user", user_action("reset_factors", user_id=studio.owner.user_id), admin.headers
    )
    await studio.expect_error(409, "user", user_action("block", user_id=admin.user_id), admin.headers)
    await studio.expect_error(409, "user", user_action("erase", user_id=admin.user_id), admin.headers)


async def test_ma_01_link_is_returned_only_for_an_account_that_was_never_signed_in_to(studio: Studio) -> None:
    admin = await create_administrator(studio)
    invited = (await studio.expect_ok("user", user_action("invite", login=BOB), admin.headers))["data"]
    assert invited["link"].startswith(f"{studio.service.base_url}/invite?token=")
    (message,) = await new_messages(studio.service)
    assert "/invite?token=" in message.text
    assert invited["link"] not in message.text  # a copy, which proves no address (R9)

    again = (await studio.expect_ok("user", user_action("invite", login=BOB), admin.headers))["data"]
    assert again["user"]["user_id"] == invited["user"]["user_id"]
    assert again["link"] not in ("", invited["link"])
    browser = HttpBrowser(studio.service)
    await browser.get(again["link"].removeprefix(studio.service.base_url))
    await browser.post("/invite", nick="Bob", password=PASSWORD)
    await browser.client.aclose()
    assert await can_sign_in(studio, BOB)
    await new_messages(studio.service)
    user_id = invited["user"]["user_id"]
    await studio.expect_error(409, "user", user_action("invite", login=BOB), admin.headers)
    reset = (await studio.expect_ok("user", user_action("invite", user_id=user_id), admin.headers))["data"]
    assert reset["link"] == ""
    (message,) = await new_messages(studio.service)
    assert "/reset?token=" in message.text

    created = (await studio.expect_ok("user", user_action("create", login=EVE, nick="Eve"), admin.headers))["data"]
    eve = await studio.service.services.storage.accounts.user(created["user_id"])
    for link_is_shown in (True, False):  # no password, but a sign-in with a passkey is one
        invited = await studio.expect_ok("user", user_action("invite", user_id=eve.user_id), admin.headers)
        assert bool(invited["data"]["link"]) is link_is_shown
        await studio.service.services.accounts.sessions.open(eve, SignInMethod.PASSKEY, origin=ORIGIN, agent="")


async def test_sessions_factors_export_and_erasure(studio: Studio) -> None:
    admin = await create_administrator(studio)
    created = (await studio.expect_ok("user", user_action("create", login=BOB, password=PASSWORD), admin.headers))[
        "data"
    ]
    user_id = created["user_id"]
    browser = HttpBrowser(studio.service)
    await browser.sign_in(BOB)
    await studio.expect_ok("user", user_action("end_sessions", user_id=user_id), admin.headers)
    assert (await browser.get("/account")).status_code == httpx2.codes.SEE_OTHER

    await browser.sign_in(BOB)
    listed = (await studio.expect_ok("user/sessions", user_action("get", user_id=user_id), admin.headers))["data"]
    (session,) = listed["sessions"]
    one = user_action("end_sessions", user_id=user_id, session_id=session["session_id"])
    await studio.expect_ok("user", one, admin.headers)
    assert (await browser.get("/account")).status_code == httpx2.codes.SEE_OTHER
    await browser.client.aclose()

    reset = user_action("reset_factors", user_id=user_id, reason="lost phone")
    await studio.expect_ok("user", reset, admin.headers)
    missing = user_action("reset_factors", user_id=user_id, reason="lost phone", factor="totp")
    await studio.expect_error(404, "user", missing, admin.headers)

    exported = (await studio.expect_ok("user", user_action("export", user_id=user_id), admin.headers))["data"]
    assert exported["request_id"] == ""  # no application has an address for it
    assert exported["export"]["account"]["login"] == BOB
    await studio.expect_ok("user", user_action("erase", user_id=user_id), admin.headers)
    await studio.expect_error(404, "user", user_action("get", user_id=user_id), admin.headers)
    assert [record.subject for record in await audit_records(studio, AuditEvent.USER_ERASED)] == [user_id]


async def test_ma_02_no_one_else_manages_accounts(studio: Studio) -> None:
    admin = await create_administrator(studio)
    reader = await create_person_with(studio, secret_data=READS_ALL)
    vouched = bearer_headers(admin.jwt, Service_Jwt=await studio.service_jwt())
    victim = studio.other_user.user_id
    asks = [
        user_action("create", login=BOB),
        user_action("invite", login=BOB),
        *(
            user_action(action, user_id=victim)
            for action in ("save", "block", "unblock", "invite", "end_sessions", "reset_factors", "export", "erase")
        ),
        user_action("reset_factors", user_id=victim, reason="x"),
    ]
    for ask in asks:
        for about in ({}, {"application_id": studio.shop.application_id}):
            for headers in (studio.owner.headers, studio.other_user.headers, reader.headers, vouched):
                await studio.expect_error(403, "user", ask | about, headers)
    before = (await studio.expect_ok("user", user_action("get", user_id=victim), admin.headers))["data"]
    assert (before["blocked"], before["version"]) == (False, 1)


async def test_ma_03_reader_of_an_application_gets_nicks_of_people_with_a_record_there(studio: Studio) -> None:
    shop = studio.shop.application_id
    reader = await create_person_with(studio, secret_data=READS_ALL)
    reads_some = await create_person_with(studio, secret_data=secret_document(roles=("all", "self")))
    player: Person = await create_person(studio.service, "1000000077")
    await write_user_record(studio, player, shop)

    def ask_about(user_id: str, application_id: int = shop) -> dict[str, object]:
        return user_action("get", user_id=user_id) | {"application_id": application_id}

    found = (await studio.expect_ok("user", ask_about(player.user_id), reader.headers))["data"]
    assert found == {"user_id": player.user_id, "nick": "Anna"}
    errors = {
        await studio.expect_error(404, "user", ask_about(user_id), reader.headers)
        for user_id in (studio.other_user.user_id, "77")  # without a record, and without an account
    }
    assert errors == {"user not found"}
    for person in (reads_some, studio.other_user):
        await studio.expect_error(403, "user", ask_about(player.user_id), person.headers)
    await studio.expect_error(403, "user", ask_about(player.user_id, studio.other.application_id), reader.headers)
    await studio.expect_error(403, "user", user_action("get", user_id=player.user_id), reader.headers)
