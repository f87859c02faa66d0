"""Contract tests of EmailLinkStore (accounts/store.py)."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from gatehouse.accounts.address_proofs.model import ProofNotices, ProvingBrowser
from gatehouse.accounts.errors import LinkDead, LoginTaken
from gatehouse.accounts.model import EmailLink, LinkKind, OpenLink, SessionStrength, SignInMethod, User
from gatehouse.accounts.session_model import Session
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord
from gatehouse.mail.model import OutboxMail
from gatehouse.storage.accounts import registration
from gatehouse.storage.accounts.users import update_user
from gatehouse.storage.database import Storage
from gatehouse.throttle.limits import ThrottleSubject
from gatehouse.throttle.quotas import Quota, quota_limit
from tests.support.builders import NOW, a_pending_registration, a_record, a_user
from tests.support.clock import MovableClock
from tests.support.mail import a_mail

HALF_AN_HOUR = 1_800
Spend = Callable[[Storage, bytes, int], Awaitable[None]]


def a_link(kind: LinkKind = LinkKind.RESET, digest: bytes = b"link", **fields: Any) -> EmailLink:
    return replace(EmailLink(kind=kind, digest=digest, created_at=NOW, expires_at=NOW + HALF_AN_HOUR), **fields)


async def link_owner(storage: Storage, kind: LinkKind, digest: bytes, now: int) -> User | None:
    link = await storage.registration.find_link(kind, digest, now)
    return link.owner if link else None


def notices_of(entry: AuditRecord, *mails: OutboxMail) -> ProofNotices:
    return lambda _: ([entry], mails)


async def verify(storage: Storage, digest: bytes, now: int) -> None:
    notices = notices_of(a_record(AuditEvent.EMAIL_VERIFIED))
    await storage.registration.verify_email(digest, None, ProvingBrowser(), notices, now)


async def accept(storage: Storage, digest: bytes, now: int) -> None:
    notices = notices_of(a_record(AuditEvent.INVITATION_ACCEPTED))
    await storage.registration.accept_invitation(
        digest, ProvingBrowser(sets_password=True), notices, now, nick="Chosen", password_hash="$new", lang="de"
    )


async def reset(storage: Storage, digest: bytes, now: int) -> None:
    notices = notices_of(a_record(AuditEvent.PASSWORD_RESET), a_mail())
    await storage.registration.reset_password(digest, "$new", ProvingBrowser(sets_password=True), notices, now)


SPENDING: dict[LinkKind, Spend] = {LinkKind.VERIFY: verify, LinkKind.INVITE: accept, LinkKind.RESET: reset}


async def create_someone(storage: Storage, **fields: Any) -> User:
    user = a_user(**fields)
    await storage.accounts.create_user(user, a_record())
    return user


async def mail_to(storage: Storage, user: User, link: EmailLink) -> None:
    await storage.registration.send_link(user, link, a_record(AuditEvent.RESET_ASKED), [a_mail()])


async def count_waiting_mails(storage: Storage) -> int:
    return (await storage.mail.outbox_status()).waiting


@pytest.fixture(params=list(SPENDING))
def kind(request: pytest.FixtureRequest) -> LinkKind:
    return LinkKind(request.param)


async def test_a_link_names_its_owner_and_looking_takes_nothing(storage: Storage, kind: LinkKind) -> None:
    user = await create_someone(storage)
    await mail_to(storage, user, a_link(kind))
    for _ in range(2):
        assert await link_owner(storage, kind, b"link", NOW) == user
    for other in SPENDING.keys() - {kind}:
        assert await link_owner(storage, other, b"link", NOW) is None
    assert await count_waiting_mails(storage) == 1


async def test_a_link_is_spent_once_by_one_of_many(storage: Storage, kind: LinkKind) -> None:
    await mail_to(storage, await create_someone(storage), a_link(kind))
    answers = await asyncio.gather(
        *(SPENDING[kind](storage, b"link", NOW) for _ in range(12)), return_exceptions=True
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["LinkDead"] * 11 + ["NoneType"]
    assert await link_owner(storage, kind, b"link", NOW) is None


async def test_a_link_ends_at_its_time(storage: Storage, kind: LinkKind) -> None:
    user = await create_someone(storage)
    await mail_to(storage, user, a_link(kind))
    last = NOW + HALF_AN_HOUR - 1
    assert await link_owner(storage, kind, b"link", last) == user
    assert await link_owner(storage, kind, b"link", last + 1) is None
    with pytest.raises(LinkDead):
        await SPENDING[kind](storage, b"link", last + 1)
    assert await storage.accounts.user(user.user_id) == user


async def test_a_newer_link_of_a_kind_ends_the_older_and_no_other(storage: Storage, kind: LinkKind) -> None:
    user, bystander = await create_someone(storage), await create_someone(storage)
    for other in SPENDING.keys() - {kind}:
        await mail_to(storage, user, a_link(other, b"other"))
    await mail_to(storage, bystander, a_link(kind, b"bystander"))
    await mail_to(storage, user, a_link(kind, b"old"))
    await mail_to(storage, user, a_link(kind, b"new"))
    assert await link_owner(storage, kind, b"old", NOW) is None
    assert await link_owner(storage, kind, b"new", NOW) == user
    assert await link_owner(storage, kind, b"bystander", NOW) == bystander
    for other in SPENDING.keys() - {kind}:
        assert await link_owner(storage, other, b"other", NOW) == user


async def test_a_link_dies_with_the_address_it_was_mailed_to(storage: Storage, kind: LinkKind) -> None:
    user = await create_someone(storage)
    await mail_to(storage, user, a_link(kind))
    moved = replace(user, login="elsewhere@studio.example")
    await storage.runner.write(partial(update_user, moved))
    assert await link_owner(storage, kind, b"link", NOW) is None
    with pytest.raises(LinkDead):
        await SPENDING[kind](storage, b"link", NOW)
    # Nothing was used: a person who gets their address back gets their link back, until it expires.
    await storage.runner.write(partial(update_user, replace(user, version=2)))
    await SPENDING[kind](storage, b"link", NOW)


async def test_a_link_opens_nothing_for_someone_blocked(storage: Storage, kind: LinkKind) -> None:
    user = await create_someone(storage)
    await mail_to(storage, user, a_link(kind))
    await storage.accounts.set_blocked(user.user_id, a_record(), blocked=True, now=NOW)
    assert await link_owner(storage, kind, b"link", NOW) is None
    with pytest.raises(LinkDead):
        await SPENDING[kind](storage, b"link", NOW)


async def test_an_unknown_link_is_dead(storage: Storage, kind: LinkKind) -> None:
    assert await link_owner(storage, kind, b"guess", NOW) is None
    with pytest.raises(LinkDead):
        await SPENDING[kind](storage, b"guess", NOW)


async def test_a_refused_spending_leaves_no_record_and_no_mail(storage: Storage, kind: LinkKind) -> None:
    with pytest.raises(LinkDead):
        await SPENDING[kind](storage, b"guess", NOW)
    assert await storage.audit.unsealed_records(10) == []
    assert await count_waiting_mails(storage) == 0


async def test_registering_keeps_account_link_letter_and_record_together(storage: Storage) -> None:
    user = a_user(password_hash="$hash")
    await storage.registration.create_with_link(user, a_link(LinkKind.VERIFY), a_record(), [a_mail()])
    assert await storage.registration.user_by_login(user.login_key or "") == user
    assert await link_owner(storage, LinkKind.VERIFY, b"link", NOW) == user
    assert (await count_waiting_mails(storage), len(await storage.audit.unsealed_records(10))) == (1, 1)


async def test_registering_a_login_that_is_taken_changes_nothing(storage: Storage) -> None:
    known = await create_someone(storage, login="anna@studio.example")
    second = a_user(login="ANNA@studio.example")
    with pytest.raises(LoginTaken):
        await storage.registration.create_with_link(second, a_link(LinkKind.VERIFY), a_record(), [a_mail()])
    assert await storage.registration.user_by_login("anna@studio.example") == known
    assert await link_owner(storage, LinkKind.VERIFY, b"link", NOW) is None
    assert (await count_waiting_mails(storage), len(await storage.audit.unsealed_records(10))) == (0, 1)


async def test_only_one_of_many_concurrent_registrations_gets_the_login(storage: Storage) -> None:
    answers = await asyncio.gather(
        *(
            storage.registration.create_with_link(
                a_user(login="anna@studio.example"), a_link(LinkKind.VERIFY, bytes([n])), a_record(), [a_mail()]
            )
            for n in range(12)
        ),
        return_exceptions=True,
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["LoginTaken"] * 11 + ["NoneType"]
    assert await count_waiting_mails(storage) == 1


async def test_registering_again_ends_what_would_confirm_the_address_and_tells_the_owner(storage: Storage) -> None:
    user = await create_someone(storage)
    await mail_to(storage, user, a_link(LinkKind.VERIFY))
    await mail_to(storage, user, a_link(LinkKind.RESET))
    again = a_record(AuditEvent.REGISTERED_AGAIN)
    await storage.registration.record_repeated_registration(user, again, [a_mail()], a_pending_registration())
    assert await link_owner(storage, LinkKind.VERIFY, b"link", NOW) is None
    assert await link_owner(storage, LinkKind.RESET, b"link", NOW) == user
    assert await storage.accounts.user(user.user_id) == user
    assert await count_waiting_mails(storage) == 3


async def test_the_proof_confirms_the_address_and_nothing_else(storage: Storage) -> None:
    user = await create_someone(storage, password_hash="$old")
    await mail_to(storage, user, a_link(LinkKind.VERIFY))
    await verify(storage, b"link", NOW)
    assert await storage.accounts.user(user.user_id) == replace(user, email_verified=True, version=2)


async def test_accepting_sets_name_and_first_password_and_ends_every_link(storage: Storage) -> None:
    user = await create_someone(storage)
    for kind in SPENDING:
        await mail_to(storage, user, a_link(kind))
    await accept(storage, b"link", NOW)
    after = await storage.accounts.user(user.user_id)
    assert after == replace(user, nick="Chosen", password_hash="$new", lang="de", email_verified=True, version=2)
    assert [await link_owner(storage, kind, b"link", NOW) for kind in SPENDING] == [None, None, None]


async def test_a_link_that_was_shown_sets_the_password_and_proves_nothing(storage: Storage) -> None:
    for kind, held in ((LinkKind.INVITE, None), (LinkKind.RESET, "$old")):
        user = await create_someone(storage, password_hash=held, sealed_totp=b"sealed")
        await storage.sessions.open_session(a_session(user), a_record(), replaces=None)
        await mail_to(storage, user, a_link(kind, user.user_id.encode(), shown=b"shown" + user.user_id.encode()))
        link = await storage.registration.find_link(kind, b"shown" + user.user_id.encode(), NOW)
        assert link == OpenLink(owner=user, is_shown=True)
        await SPENDING[kind](storage, b"shown" + user.user_id.encode(), NOW)
        after = await storage.accounts.user(user.user_id)
        assert (after.password_hash, after.email_verified, after.sealed_totp) == ("$new", False, b"sealed")
        assert await link_owner(storage, kind, user.user_id.encode(), NOW) is None


async def test_an_invitation_never_replaces_a_password(storage: Storage) -> None:
    user = await create_someone(storage, password_hash="$old")
    await mail_to(storage, user, a_link(LinkKind.INVITE))
    with pytest.raises(LinkDead):
        await accept(storage, b"link", NOW)
    assert await storage.accounts.user(user.user_id) == user


async def test_a_reset_replaces_the_password_and_ends_everything_of_the_user(storage: Storage) -> None:
    user, bystander = await create_someone(storage, password_hash="$old"), await create_someone(storage)
    for owner in (user, bystander):
        await storage.sessions.open_session(a_session(owner), a_record(), replaces=None)
        await mail_to(storage, owner, a_link(LinkKind.VERIFY, owner.user_id.encode()))
    await mail_to(storage, user, a_link())
    await reset(storage, b"link", NOW)
    after = await storage.accounts.user(user.user_id)
    assert after == replace(user, password_hash="$new", email_verified=True, version=2, rev=after.rev)
    assert after.rev > user.rev
    assert await storage.sessions.sessions_of_user(user.user_id, NOW) == []
    assert await link_owner(storage, LinkKind.VERIFY, user.user_id.encode(), NOW) is None
    assert len(await storage.sessions.sessions_of_user(bystander.user_id, NOW)) == 1
    assert await link_owner(storage, LinkKind.VERIFY, bystander.user_id.encode(), NOW) == bystander


async def test_a_reset_keeps_second_factors(storage: Storage) -> None:
    user = await create_someone(storage, sealed_totp=b"sealed", password_hash="$old")
    await mail_to(storage, user, a_link())
    await reset(storage, b"link", NOW)
    assert (await storage.accounts.user(user.user_id)).sealed_totp == b"sealed"


async def test_pretending_leaves_no_letter_no_record_and_no_link_that_opens_anything(
    storage: Storage, kind: LinkKind
) -> None:
    await storage.registration.simulate_send(a_user(), a_link(kind), a_record(), [a_mail()])
    await storage.registration.simulate_send(a_user(), a_link(kind, b"again"), a_record(), [a_mail()])
    assert await count_waiting_mails(storage) == 0
    assert await storage.audit.unsealed_records(10) == []
    for digest in (b"link", b"again"):
        assert await link_owner(storage, kind, digest, NOW) is None
        with pytest.raises(LinkDead):
            await SPENDING[kind](storage, digest, NOW)


def test_pretending_takes_as_many_statements_as_sending() -> None:
    sent = list(registration.send_link(a_user(), a_link(), a_record(), [a_mail()]))
    pretended = list(registration.simulate_send(a_user(), a_link(), a_record(), [a_mail()]))
    assert len(sent) == len(pretended)


async def test_an_allowance_is_exact_under_races_and_starts_anew(storage: Storage) -> None:
    clock = MovableClock(NOW)
    allowance = Quota(store=storage.throttle, clock=clock)
    anna = [ThrottleSubject(("letter-to", "anna"), quota_limit(5, 60))]
    answers = await asyncio.gather(*(allowance.consume(anna) for _ in range(20)))
    assert sorted(answers) == [False] * 15 + [True] * 5
    assert await allowance.consume([ThrottleSubject(("letter-to", "bob"), quota_limit(5, 60))])
    await clock.advance(59)
    assert not await allowance.consume(anna)
    await clock.advance(1)
    assert await allowance.consume(anna)


def a_session(user: User) -> Session:
    return Session(
        digest=user.user_id.encode(),
        session_id=user.user_id,
        user_id=user.user_id,
        rev=user.rev,
        auth=SignInMethod.LOGIN,
        strength=SessionStrength.FULL,
        created_at=NOW,
        proved_at=NOW,
        seen_at=NOW,
        idle_ends_at=NOW + 9_999,
        ends_at=NOW + 9_999,
        address="192.0.2.7",
        agent="",
    )
