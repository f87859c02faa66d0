"""Contract tests of accounts/own_account/model.py."""

import asyncio
from functools import partial

import pytest
from msgspec.structs import replace

from gatehouse.accounts.errors import LinkDead, UserChanged, UsernameChangedRecently, UsernameTaken, UserNotFound
from gatehouse.accounts.model import EmailLink, LinkKind, SignInMethod, User
from gatehouse.accounts.own_account.model import MAX_ACTIVITY_SHOWN, EmailChange, LastAdministrator
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord
from gatehouse.storage.accounts.users import set_blocked
from gatehouse.storage.database import Storage
from tests.conformance.test_sessions import a_session, open_session
from tests.support.builders import (
    ALL_METHODS,
    NOW,
    ORIGIN,
    PASSKEY_HOST,
    RECORDER,
    a_passkey,
    a_pending_registration,
    a_user,
)
from tests.support.database_contents import read_all_tables, tables_that_mention
from tests.support.mail import a_mail
from tests.support.postgres_session import run_interleaved

NAMES = {
    "nick": "Änne",
    "name": "Anna Berg",
    "given_name": "Anna",
    "family_name": "Berg",
    "zoneinfo": "Europe/Berlin",
}
NEW = "new@studio.example"
ENDS = NOW + 1_800


def entry_about(user: User, event: AuditEvent = AuditEvent.PROFILE_CHANGED) -> AuditRecord:
    return RECORDER.record(event, ORIGIN, subject=user.user_id)


async def a_person(storage: Storage, *, administrator: bool = False) -> User:
    user = a_user(password_hash="old")
    await storage.accounts.create_user(user, entry_about(user, AuditEvent.USER_CREATED), administrator=administrator)
    return user


@pytest.fixture
async def anna(storage: Storage) -> User:
    return await a_person(storage)


async def read_user(storage: Storage, user: User) -> User:
    return await storage.accounts.user(user.user_id)


async def ask_for(storage: Storage, user: User, login: str = NEW, digest: bytes = b"link") -> EmailChange:
    link = EmailLink(kind=LinkKind.CHANGE, digest=digest, created_at=NOW, expires_at=ENDS)
    asked = EmailChange(owner=user, login=login, session_id="asked")
    await storage.profile.save_email_change(asked, link, entry_about(user), ())
    change = await storage.profile.find_email_change(digest, NOW)
    assert change is not None
    return change


async def confirm_change(storage: Storage, change: EmailChange, digest: bytes = b"link", at: int = NOW) -> None:
    await storage.profile.apply_email_change(
        digest, change, entry_about(change.owner, AuditEvent.EMAIL_CHANGED), (), at
    )


# -- reading ------------------------------------------------------------------------------------------


async def test_holdings_are_everything_that_is_kept_beside_the_account(storage: Storage, anna: User) -> None:
    await storage.passkeys.add_passkey(
        a_passkey(user_id=anna.user_id), [b"1", b"2"], entry_about(anna), (), host=PASSKEY_HOST
    )
    await open_session(storage, a_session(anna))
    await ask_for(storage, anna)
    details = await storage.profile.account_details(anna.user_id, NOW)
    assert [key.name for key in details.passkeys] == ["Laptop"]
    assert [session.digest for session in details.sessions] == [b"cookie"]
    assert (details.overview.recovery_left, details.pending_login) == (2, NEW)
    assert {record.subject for record in details.records} == {anna.user_id}
    assert (await storage.profile.account_details(anna.user_id, ENDS)).pending_login == ""


async def test_holdings_hold_the_newest_records_and_everything_holds_all(storage: Storage, anna: User) -> None:
    for second in range(MAX_ACTIVITY_SHOWN + 5):
        await storage.profile.add_record(replace(entry_about(anna), at=NOW + second))
    times = [record.at for record in (await storage.profile.account_details(anna.user_id, NOW)).records]
    assert times == [NOW + second for second in range(MAX_ACTIVITY_SHOWN + 4, 4, -1)]
    everything = await storage.profile.personal_records(anna.user_id, NOW)
    assert len(everything.details.records) == MAX_ACTIVITY_SHOWN + 6


async def test_everything_names_the_roles(storage: Storage) -> None:
    admin = await a_person(storage, administrator=True)
    (role,) = (await storage.profile.personal_records(admin.user_id, NOW)).roles
    assert (role.application_id, role.role, role.project_id, role.ends_at) == (1, "administrator", "", 0)


async def test_name_and_language_are_set_and_recorded(storage: Storage, anna: User) -> None:
    await storage.profile.set_profile(replace(anna, **NAMES), entry_about(anna))
    await storage.profile.set_lang(anna.user_id, "de", entry_about(anna))
    assert await read_user(storage, anna) == replace(anna, **NAMES, lang="de", updated_at=NOW, version=3)
    assert len(await storage.audit.newest_records(9, anna.user_id, AuditEvent.PROFILE_CHANGED)) == 2
    no_one = a_user()
    for change in (storage.profile.set_lang, storage.profile.generate_username):
        with pytest.raises(UserNotFound):
            await change(no_one.user_id, "de", entry_about(no_one))
    assert await storage.audit.newest_records(9, no_one.user_id, "") == []


# -- changing the address -----------------------------------------------------------------------------


async def test_only_one_of_many_uses_of_an_email_change_link_succeeds(storage: Storage, anna: User) -> None:
    change = await ask_for(storage, anna)
    answers = await asyncio.gather(*(confirm_change(storage, change) for _ in range(5)), return_exceptions=True)
    assert [answer for answer in answers if not isinstance(answer, LinkDead)] == [None]
    assert await read_user(storage, anna) == replace(anna, login=NEW, email_verified=True, version=2)
    assert await storage.profile.find_email_change(b"link", NOW) is None


async def test_only_one_of_two_accounts_gets_the_same_new_email(storage: Storage, anna: User) -> None:
    bob = await a_person(storage)
    first, second = await ask_for(storage, anna), await ask_for(storage, bob, NEW.upper(), b"other")
    await confirm_change(storage, first)
    with pytest.raises(LinkDead):
        await confirm_change(storage, second, b"other")
    assert (await read_user(storage, bob)).login == bob.login
    assert await storage.profile.find_email_change(b"other", NOW) is not None


async def test_a_change_is_dead_when_replaced_expired_or_its_account_is_another_one_now(
    storage: Storage, anna: User
) -> None:
    older = await ask_for(storage, anna)
    await ask_for(storage, anna, digest=b"newer")
    assert await storage.profile.find_email_change(b"link", NOW) is None
    assert await storage.profile.find_email_change(b"newer", ENDS) is None
    with pytest.raises(LinkDead):
        await confirm_change(storage, older)
    with pytest.raises(LinkDead):
        await confirm_change(storage, older, b"newer", ENDS)
    await storage.sessions.revoke_user(anna.user_id, entry_about(anna), keep=None, now=NOW)
    assert await storage.profile.find_email_change(b"newer", NOW) is None
    with pytest.raises(LinkDead):
        await confirm_change(storage, older, b"newer")
    assert (await read_user(storage, anna)).login == anna.login


async def test_other_links_die_with_the_old_address(storage: Storage, anna: User) -> None:
    reset = EmailLink(kind=LinkKind.RESET, digest=b"reset", created_at=NOW, expires_at=ENDS)
    await storage.registration.send_link(anna, reset, entry_about(anna), ())
    await confirm_change(storage, await ask_for(storage, anna))
    assert "reset" not in repr((await read_all_tables(storage))["once"])


# -- proofs -------------------------------------------------------------------------------------------


async def test_a_new_password_keeps_one_session_and_ends_everything_else(storage: Storage, anna: User) -> None:
    for digest in (b"mine", b"other"):
        await open_session(storage, a_session(anna, digest))
    await ask_for(storage, anna)
    await storage.profile.set_password(anna, "new", entry_about(anna), (), keep=b"mine", proved=["password"], now=NOW)
    mine = await storage.sessions.find_session(b"mine", NOW)
    assert mine is not None
    assert mine.session.proved == ("password",)
    assert await storage.sessions.find_session(b"other", NOW) is None
    assert await storage.profile.find_email_change(b"link", NOW) is None
    assert (await read_user(storage, anna)).password_hash == "new"


async def test_password_change_fails_after_sign_out_everywhere(storage: Storage, anna: User) -> None:
    await storage.sessions.revoke_user(anna.user_id, entry_about(anna), keep=None, now=NOW)
    with pytest.raises(UserChanged):
        await storage.profile.set_password(
            anna, "new", entry_about(anna), (), keep=b"mine", proved=["password"], now=NOW
        )
    assert (await read_user(storage, anna)).password_hash == "old"


async def test_only_one_of_many_confirmations_rotates_the_session_secret(storage: Storage, anna: User) -> None:
    await open_session(storage, a_session(anna))
    answers = await asyncio.gather(
        *(
            storage.profile.rotate_session_secret(
                b"cookie", bytes([n]), SignInMethod.PASSKEY, entry_about(anna), NOW + 9, proved=["passkey:a"]
            )
            for n in range(5)
        )
    )
    assert sorted(answers) == [False, False, False, False, True]
    fresh = bytes([answers.index(True)])
    session = await storage.sessions.find_session(fresh, NOW + 9)
    assert session is not None
    assert session.session == replace(
        a_session(anna), digest=fresh, auth=SignInMethod.PASSKEY, proved_at=NOW + 9, proved=("passkey:a",)
    )
    assert await storage.sessions.find_session(b"cookie", NOW + 9) is None


# -- deletion -----------------------------------------------------------------------------------------


async def test_an_erased_person_leaves_a_spent_id_and_records_without_personal_parts(
    storage: Storage, anna: User
) -> None:
    await storage.passkeys.add_passkey(
        a_passkey(user_id=anna.user_id), [b"1"], entry_about(anna), (), host=PASSKEY_HOST
    )
    await open_session(storage, a_session(anna))
    await ask_for(storage, anna)
    await storage.profile.erase_user(
        anna.user_id, entry_about(anna, AuditEvent.USER_ERASED), even_last_administrator=False, now=NOW
    )
    rows = await read_all_tables(storage)
    assert tables_that_mention(rows, anna.user_id) == {"user_ids", "audit_events"}
    records = await storage.audit.newest_records(9, anna.user_id, "")
    assert [record.personal for record in records if record.event != AuditEvent.USER_ERASED] == [None, None, None]
    with pytest.raises(UserNotFound):
        await storage.profile.erase_user(anna.user_id, entry_about(anna), even_last_administrator=False, now=NOW)


async def test_letters_that_wait_go_with_the_person_and_those_of_others_stay(storage: Storage, anna: User) -> None:
    other, mails = await a_person(storage), [a_mail() for _ in range(8)]
    key, link = (
        a_passkey(user_id=anna.user_id),
        EmailLink(kind=LinkKind.RESET, digest=b"r", created_at=NOW, expires_at=ENDS),
    )
    await storage.passkeys.add_passkey(key, [b"1"], entry_about(anna), mails[:1], host=PASSKEY_HOST)
    await storage.passkeys.remove_passkey(
        anna.user_id, key.credential_id, entry_about(anna), mails[1:2], methods=ALL_METHODS
    )
    await storage.registration.send_link(anna, link, entry_about(anna), mails[2:3])
    await storage.registration.record_repeated_registration(
        anna, entry_about(anna), mails[3:4], a_pending_registration()
    )
    await storage.sessions.open_session(a_session(anna), entry_about(anna), replaces=None, mails=mails[4:5])
    await storage.second_factors.put_email_code(anna.user_id, b"c", mails[5:6], now=NOW, expires_at=ENDS)
    await storage.profile.set_password(anna, "new", entry_about(anna), mails[6:7], keep=b"", proved=(), now=NOW)
    await storage.second_factors.put_email_code(other.user_id, b"c", mails[7:], now=NOW, expires_at=ENDS)
    assert (await storage.mail.outbox_status()).waiting == len(mails)
    await storage.profile.erase_user(anna.user_id, entry_about(anna), even_last_administrator=False, now=NOW)
    assert [claim.mail for claim in await storage.mail.claim_due(NOW, 60, 9)] == mails[7:]


async def test_one_of_the_last_two_administrators_stays_when_both_are_erased(storage: Storage) -> None:
    pair = [await a_person(storage, administrator=True) for _ in range(2)]
    answers = await asyncio.gather(
        *(
            storage.profile.erase_user(user.user_id, entry_about(user), even_last_administrator=False, now=NOW)
            for user in pair
        ),
        return_exceptions=True,
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["LastAdministrator", "NoneType"]
    left = pair[[isinstance(answer, LastAdministrator) for answer in answers].index(True)]
    assert await read_user(storage, left) == left
    await storage.profile.erase_user(left.user_id, entry_about(left), even_last_administrator=True, now=NOW)


async def test_the_last_administrator_left_is_found_by_the_one_whose_check_came_second(
    storage: Storage, migrated_url: str
) -> None:
    if not migrated_url.startswith("postgresql"):
        pytest.skip("on SQLite writes run one at a time")
    anna, bert = [await a_person(storage, administrator=True) for _ in range(2)]
    first = partial(set_blocked, anna.user_id, entry_about(anna), blocked=True, now=NOW)
    second = storage.accounts.set_blocked(bert.user_id, entry_about(bert), blocked=True, now=NOW)
    outcomes = await run_interleaved(storage, migrated_url, first, second)
    assert [type(outcome).__name__ for outcome in outcomes] == ["User", "LastAdministrator"]
    assert not (await read_user(storage, bert)).blocked


@pytest.mark.parametrize("second", ["block", "erase"])
async def test_one_of_the_last_two_administrators_stays_when_one_is_blocked(storage: Storage, second: str) -> None:
    anna, bert = [await a_person(storage, administrator=True) for _ in range(2)]
    blocking = storage.accounts.set_blocked(anna.user_id, entry_about(anna), blocked=True, now=NOW)
    other = (
        storage.accounts.set_blocked(bert.user_id, entry_about(bert), blocked=True, now=NOW)
        if second == "block"
        else storage.profile.erase_user(bert.user_id, entry_about(bert), even_last_administrator=False, now=NOW)
    )
    answers = await asyncio.gather(blocking, other, return_exceptions=True)
    assert [type(answer).__name__ for answer in answers].count("LastAdministrator") == 1
    left = anna if isinstance(answers[0], LastAdministrator) else bert
    assert await read_user(storage, left) == left
    allowed = await storage.accounts.set_blocked(
        left.user_id, entry_about(left), blocked=True, now=NOW, even_last_administrator=True
    )
    assert allowed.blocked


# -- user names ---------------------------------------------------------------------------------------


async def test_lg_30_exactly_one_of_many_accounts_gets_a_user_name(storage: Storage) -> None:
    people = [await a_person(storage) for _ in range(8)]
    answers = await asyncio.gather(
        *(storage.profile.set_username(one.user_id, "anna", entry_about(one), chosen_before=NOW) for one in people),
        return_exceptions=True,
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["NoneType"] + ["UsernameTaken"] * 7
    owner = await storage.accounts.user_by_username("anna")
    assert owner is not None
    assert owner.user_id == people[answers.index(None)].user_id


async def test_lg_30_former_user_name_is_never_given_to_another_account(storage: Storage, anna: User) -> None:
    other = await a_person(storage)
    await storage.profile.set_username(anna.user_id, "adela", entry_about(anna), chosen_before=NOW)
    await storage.profile.set_username(anna.user_id, "berg", entry_about(anna), chosen_before=NOW)
    with pytest.raises(UsernameTaken):
        await storage.profile.set_username(other.user_id, "adela", entry_about(other), chosen_before=NOW)
    await storage.profile.set_username(anna.user_id, "adela", entry_about(anna), chosen_before=NOW)
    await storage.profile.erase_user(anna.user_id, entry_about(anna), even_last_administrator=False, now=NOW)
    assert await storage.accounts.user_by_username("adela") is None
    for name in ("adela", "berg"):
        with pytest.raises(UsernameTaken):
            await storage.profile.set_username(other.user_id, name, entry_about(other), chosen_before=NOW)
        with pytest.raises(UsernameTaken):
            await storage.accounts.create_user(a_user(username=name), entry_about(other))
    assert (await read_user(storage, other)).username is None
    assert tables_that_mention(await read_all_tables(storage), "adela", "berg") == set()


async def test_lg_30_user_name_is_not_changed_again_too_soon(storage: Storage, anna: User) -> None:
    await storage.profile.set_username(anna.user_id, "anna", entry_about(anna), chosen_before=NOW - 1)
    with pytest.raises(UsernameChangedRecently):
        await storage.profile.set_username(anna.user_id, "berg", entry_about(anna), chosen_before=NOW - 1)
    with pytest.raises(UserNotFound):
        await storage.profile.set_username("1000000009", "berg", entry_about(anna), chosen_before=NOW)
    assert (await read_user(storage, anna)).username == "anna"


async def test_concurrent_callers_that_need_a_user_name_get_the_same_one(storage: Storage, anna: User) -> None:
    other = await a_person(storage)
    await storage.profile.set_username(other.user_id, "anna", entry_about(other), chosen_before=NOW)
    names = await asyncio.gather(
        *(
            storage.profile.generate_username(anna.user_id, ("anna", f"anna-{number}"), entry_about(anna))
            for number in range(6)
        )
    )
    stored = await read_user(storage, anna)
    assert set(names) == {stored.username}
    assert stored.username_at == 0
    assert len(await storage.audit.newest_records(9, anna.user_id, AuditEvent.PROFILE_CHANGED)) == 1
    assert (
        await storage.profile.generate_username((await a_person(storage)).user_id, ("anna",), entry_about(anna))
        is None
    )
