"""Export of everything stored about a person, and deletion of the account (checklist OP-14)."""

import json
from typing import Any

import pytest

from gatehouse.accounts.errors import UserIdTaken, UserNotFound
from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, HttpBrowser
from tests.support.builders import PASSKEY_HOST, a_passkey, a_record, a_user
from tests.support.database_contents import read_all_tables, tables_that_mention
from tests.support.mailbox import new_messages
from tests.support.service import RunningService

TRACES = ("anna", "Anna", "studio.example", "127.0.0.1", "Firefox", "Blue key")
GONE = "Account deleted"


async def copy_of(account_browser: AccountBrowser) -> Any:
    await account_browser.get("/account")
    response = await account_browser.submit("/account/export")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["content-disposition"].startswith('attachment; filename="gatehouse-')
    return json.loads(response.text)


async def delete(account_browser: AccountBrowser, login: str = LOGIN) -> str:
    await account_browser.get("/account/delete")
    return (await account_browser.submit("/account/delete", login=login)).text


# -- export -------------------------------------------------------------------------------------------


async def test_op_14_the_copy_holds_everything_that_is_kept_and_no_secret(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    secret, codes = await account_browser.set_up_totp(service)
    key = a_passkey(user_id=anna.user_id, name="Blue key", public_key=b"the-public-key")
    await service.services.storage.passkeys.add_passkey(key, (), a_record(), (), host=PASSKEY_HOST)
    await account_browser.submit_and_read_notice("/account/email", login="anna@new.example")
    written = await copy_of(account_browser)
    account = written["account"]
    assert (account["user_id"], account["login"], account["nick"]) == (anna.user_id, LOGIN, "Anna")
    assert (account["new_login"], account["has_password"]) == ("anna@new.example", True)
    assert account["tags"] == ["2step", "2step_passkey", "2step_totp"]
    assert account["registered"] == "2027-01-15T08:00:00Z"
    factors = written["second_factors"]
    assert (factors["totp_since"], factors["recovery_codes_left"]) == ("2027-01-15T08:00:00Z", 10)
    assert factors["passkeys"][0]["name"] == "Blue key"
    (session,) = written["sessions"]
    assert session["address"] == "127.0.0.1"
    assert "Firefox" in session["browser"]
    assert {record["event"] for record in written["activity"]} == {
        "user.created",
        "session.opened",
        "factor.added",
        "user.email_change_asked",
        "user.data_exported",
    }
    text = json.dumps(written)
    session_cookie = account_browser.cookies["gh_session"]
    for hidden in (secret, *codes, session_cookie, "argon2", "the-public-key", anna.password_hash or ""):
        assert hidden not in text


async def test_op_14_every_record_is_in_the_copy_also_the_old_ones(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    for number in range(60):
        await service.clock.advance(1)
        await account_browser.post_with_csrf("/account/profile", nick=f"Anna {number}")
    assert (
        len(
            [
                record
                for record in (await copy_of(account_browser))["activity"]
                if record["event"] == "user.profile_changed"
            ]
        )
        == 60
    )
    assert len(await service.services.storage.audit.newest_records(100, anna.user_id, "")) == 63


async def test_the_copy_tells_roles_and_leaves_other_people_out(service: RunningService) -> None:
    await service.services.accounts.administration.create(
        login=LOGIN,
        nick="Anna",
        password=PASSWORD,
        origin=AuditOrigin(actor="1234567890", address="203.0.113.9"),
        administrator=True,
    )
    account_browser = AccountBrowser(service)
    await account_browser.sign_in_and_open_account()
    written = await copy_of(account_browser)
    assert written["roles"] == [{"application_id": 1, "role": "administrator", "project_id": "", "ends": ""}]
    assert "203.0.113.9" not in json.dumps(written)
    assert "1234567890" not in json.dumps(written)
    await account_browser.client.aclose()


# -- deletion -----------------------------------------------------------------------------------------


async def test_op_14_nothing_of_the_person_is_left_but_a_number(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await account_browser.set_up_totp(service)
    key = a_passkey(user_id=anna.user_id, name="Blue key")
    await service.services.storage.passkeys.add_passkey(
        key, (), a_record(subject=anna.user_id), (), host=PASSKEY_HOST
    )
    await account_browser.submit_and_read_notice("/account/email", login="anna@new.example")
    await service.client.post("/proxy/api/login", json={"login": LOGIN, "password": PASSWORD})
    await account_browser.get("/account/totp")
    await service.services.audit.sealer.seal_all()
    before = await read_all_tables(service.services.storage)
    assert tables_that_mention(before, *TRACES) >= {"users", "sessions", "passkeys", "audit_events", "once"}
    assert GONE in await delete(account_browser)
    await new_messages(service)
    after = await read_all_tables(service.services.storage)
    assert tables_that_mention(after, *TRACES) == set()
    assert tables_that_mention(after, anna.user_id) == {"user_ids", "audit_events"}


async def test_op_14_the_audit_log_keeps_its_records_about_a_number_and_still_verifies(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await service.services.audit.sealer.seal_all()
    before = [
        record.record_id for record in await service.services.storage.audit.newest_records(99, anna.user_id, "")
    ]
    await delete(account_browser)
    await service.services.audit.sealer.seal_all()
    records = await service.services.storage.audit.newest_records(99, anna.user_id, "")
    assert {record.event for record in records} == {"user.created", "session.opened", "user.erased"}
    assert set(before) < {record.record_id for record in records}
    assert [record.personal for record in records if record.event != "user.erased"] == [None, None]
    verdict = await service.services.audit.make_verifier().verify()
    assert (verdict.problems, verdict.unsealed) == ((), 0)


async def test_the_browser_is_signed_out_and_told_so(
    service: RunningService, account_browser: AccountBrowser
) -> None:
    page = await delete(account_browser)
    assert GONE in page
    assert 'name="password"' in page
    assert "gh_session" not in account_browser.cookies
    assert not await account_browser.is_signed_in()
    assert (await account_browser.post("/sign-in", login=LOGIN, password=PASSWORD)).status_code == 403
    assert (await service.client.get("/sign-in")).status_code == 200


async def test_the_id_is_never_given_out_again_but_the_address_is_free(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await delete(account_browser)
    store = service.services.storage.accounts
    with pytest.raises(UserNotFound):
        await store.user(anna.user_id)
    with pytest.raises(UserIdTaken):
        await store.create_user(a_user(user_id=anna.user_id), a_record())
    await service.services.accounts.administration.create(
        login=LOGIN, nick="New", password=None, origin=AuditOrigin(actor="test")
    )


@pytest.mark.parametrize("typed", ["", "anna", "bob@studio.example", "anna@studio.example.evil"])
async def test_account_is_kept_unless_its_email_is_typed(
    service: RunningService, account_browser: AccountBrowser, anna: User, typed: str
) -> None:
    assert "This is not the email of this account." in await delete(account_browser, typed)
    assert (await service.services.storage.accounts.user(anna.user_id)).login == LOGIN
    assert await account_browser.is_signed_in()


async def test_the_last_administrator_stays(service: RunningService, browser_client: HttpBrowser) -> None:
    admin = await service.services.accounts.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test"), administrator=True
    )
    second = await service.services.accounts.administration.create(
        login="bob@studio.example", nick="Bob", password=None, origin=AuditOrigin(actor="test"), administrator=True
    )
    await service.services.accounts.administration.block(second.user_id, AuditOrigin(actor="test"))
    account_browser = AccountBrowser(service)
    await account_browser.sign_in_and_open_account()
    assert "You are the last administrator" in await delete(account_browser)
    assert await service.services.storage.accounts.user(admin.user_id) == admin
    await service.services.accounts.administration.unblock(second.user_id, AuditOrigin(actor="test"))
    assert GONE in await delete(account_browser)
    assert (await browser_client.sign_in(LOGIN)).status_code == 403
    await account_browser.client.aclose()
