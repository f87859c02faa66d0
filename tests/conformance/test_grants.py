"""Contract tests of GrantStore in oauth/store.py."""

import asyncio
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import Conflict
from gatehouse.oauth.model import SCOPES, Consent, Grant
from gatehouse.oauth.store import RedeemOutcome, RotationOutcome, RotationResult
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.promotion import record_timeline
from tests.conformance.test_sessions import a_session
from tests.support import racers
from tests.support.builders import NOW, a_client, a_client_secret, a_record, a_user
from tests.support.oauth import DAY, a_grant
from tests.support.racers import WON, race

TRIES = 20  # four processes, five attempts each
ANNA = "1000000001"
REUSED = a_record(AuditEvent.CODE_REUSED)


async def anna_and_web(storage: Storage) -> User:
    anna = a_user(user_id=ANNA, tags=frozenset({"staff"}))
    await storage.accounts.create_user(anna, a_record())
    await storage.clients.create_client(a_client("web"), a_record())
    return anna


async def create_grant(storage: Storage, **fields: Any) -> Grant:
    grant = a_grant(grant_id=racers.GRANT, code=racers.CODE, **fields)
    assert await storage.grants.create_grant(grant, a_record(AuditEvent.GRANT_MADE))
    return grant


@pytest.fixture
async def anna(storage: Storage) -> User:
    return await anna_and_web(storage)


async def events(storage: Storage) -> list[str]:
    return [record.event for record in await storage.audit.unsealed_records(100)]


async def take(storage: Storage, now: int = NOW + 1, generation: int = 1) -> RedeemOutcome:
    return await storage.grants.redeem_code(
        racers.CODE, now, generation=generation, reused=lambda: a_record(AuditEvent.CODE_REUSED)
    )


async def turn(storage: Storage, generation: int, now: int, grace: int = 0) -> RotationResult:
    record = a_record(AuditEvent.REFRESH_REUSED)
    return await storage.grants.rotate(
        racers.GRANT, generation, now, kid=f"key{now - NOW}", grace=grace, reused=lambda: record
    )


async def test_a_grant_comes_back_with_its_user_its_client_and_both_secrets(storage: Storage, anna: User) -> None:
    newer = a_client_secret(secret=b"2", created_at=NOW + 1)
    await storage.clients.rotate_secret("web", newer, a_record(), old_ends_at=NOW + 9)
    grant = await create_grant(storage, wanted_claims=("email",), code_challenge="c", session_id="s9")
    client = await storage.clients.client("web")
    for context in (
        await storage.grants.find_grant_by_code(racers.CODE),
        await storage.grants.find_live_grant(racers.GRANT, NOW),
    ):
        assert context is not None
        assert context.grant == grant
        assert context.user == anna
        assert context.client == client
        assert len(context.client.secrets) == 2


async def test_a_client_without_secrets_is_found_too(storage: Storage, anna: User) -> None:
    await storage.clients.create_client(replace(a_client("app", public=True), secrets=()), a_record())
    await create_grant(storage, client_id="app", user_id=anna.user_id)
    context = await storage.grants.find_live_grant(racers.GRANT, NOW)
    assert context is not None
    assert context.client.secrets == ()


@pytest.mark.usefixtures("anna")
async def test_a_grant_is_not_kept_when_the_user_is_blocked_or_their_rev_moved_on(storage: Storage) -> None:
    for grant in (a_grant(rev=1), a_grant(user_id="2")):
        assert not await storage.grants.create_grant(grant, a_record(AuditEvent.GRANT_MADE))
        assert await storage.grants.find_grant_by_code(b"code") is None
    await storage.accounts.set_blocked(ANNA, a_record(), blocked=True, now=NOW)
    blocked = await storage.accounts.user(ANNA)
    assert not await storage.grants.create_grant(a_grant(rev=blocked.rev), a_record(AuditEvent.GRANT_MADE))
    assert AuditEvent.GRANT_MADE.value not in await events(storage)


@pytest.mark.usefixtures("anna")
async def test_a_grant_that_needs_consent_is_kept_while_all_of_it_is_allowed(storage: Storage) -> None:
    grant = a_grant(scopes=("openid", "email"))

    async def begin() -> bool:
        return await storage.grants.create_grant(grant, a_record(AuditEvent.GRANT_MADE), consented=True)

    assert not await begin()
    allowed = Consent(user_id=ANNA, client_id="web", scopes=("openid", "profile"), given_at=NOW)
    await storage.consents.add_consent(allowed, a_record())
    assert not await begin()
    await storage.consents.add_consent(replace(allowed, scopes=("email",)), a_record())
    assert await begin()
    assert await storage.consents.withdraw_consent(ANNA, "web", NOW, a_record())
    grant = a_grant(scopes=("openid",), code=b"another")
    assert not await begin()
    assert (await events(storage)).count(AuditEvent.GRANT_MADE.value) == 1


async def signed_in_and_allowed(storage: Storage, anna: User) -> None:
    await storage.sessions.open_session(a_session(anna, b"cookie", session_id="s1"), a_record(), replaces=None)
    await storage.consents.add_consent(
        Consent(user_id=ANNA, client_id="web", scopes=SCOPES, given_at=NOW), a_record()
    )


WHATEVER_IS_ASKED = [{}, {"in_session": True}, {"consented": True}, {"in_session": True, "consented": True}]


@pytest.mark.parametrize("asked", WHATEVER_IS_ASKED)
async def test_a_grant_is_kept_with_its_record_or_not_at_all(
    storage: Storage, anna: User, asked: dict[str, bool]
) -> None:
    await signed_in_and_allowed(storage, anna)
    grant = a_grant(session_id="s1", nonce="n", wanted_claims=("email",))
    entry = a_record(AuditEvent.GRANT_MADE)
    assert await storage.grants.create_grant(grant, entry, **asked)
    context = await storage.grants.find_live_grant(grant.grant_id, NOW)
    assert context is not None
    assert context.grant == grant
    assert await storage.audit.find_record(entry.record_id) == entry
    with pytest.raises(Conflict):  # a record with that id exists
        await storage.grants.create_grant(a_grant(session_id="s1", code=b"other"), entry, **asked)
    assert await storage.grants.find_grant_by_code(b"other") is None


@pytest.mark.parametrize("asked", WHATEVER_IS_ASKED)
async def test_a_grant_that_has_lost_its_ground_is_not_kept_nor_recorded(
    storage: Storage, anna: User, asked: dict[str, bool]
) -> None:
    await signed_in_and_allowed(storage, anna)
    lost = [a_grant(session_id="s1", rev=anna.rev + 1)]
    if "in_session" in asked:
        lost.append(a_grant(session_id="s2"))
    if "consented" in asked:
        lost.append(a_grant(session_id="s1", client_id="other"))
    for grant in lost:
        assert not await storage.grants.create_grant(grant, a_record(AuditEvent.GRANT_MADE), **asked)
        assert await storage.grants.find_grant_by_code(b"code") is None
    assert AuditEvent.GRANT_MADE.value not in await events(storage)


@pytest.mark.usefixtures("anna")
async def test_no_grant_survives_a_concurrent_withdrawal_of_consent(storage: Storage) -> None:
    allowed = Consent(user_id=ANNA, client_id="web", scopes=SCOPES, given_at=NOW)
    for number in range(10):
        await storage.consents.add_consent(allowed, a_record())
        grants = [a_grant(code=bytes([number, n])) for n in range(4)]
        started = (storage.grants.create_grant(grant, a_record(), consented=True) for grant in grants)
        await asyncio.gather(*started, storage.consents.withdraw_consent(ANNA, "web", NOW, a_record()))
        assert [await storage.grants.find_live_grant(grant.grant_id, NOW) for grant in grants] == [None] * 4


@pytest.mark.usefixtures("anna")
async def test_a_code_is_taken_once_and_the_second_taker_revokes_what_the_first_one_got(storage: Storage) -> None:
    await create_grant(storage)
    assert await take(storage) is RedeemOutcome.REDEEMED
    context = await storage.grants.find_live_grant(racers.GRANT, NOW + 1)
    assert context is not None
    assert (context.grant.generation, context.grant.refreshed_at, context.grant.code_taken_at) == (
        1,
        NOW + 1,
        NOW + 1,
    )
    assert await take(storage, NOW + 30) is RedeemOutcome.REUSED
    assert await storage.grants.find_live_grant(racers.GRANT, NOW + 30) is None
    assert await take(storage, NOW + 31) is RedeemOutcome.REUSED
    assert (await events(storage)).count(AuditEvent.CODE_REUSED.value) == 1


@pytest.mark.usefixtures("anna")
async def test_a_code_is_gone_at_its_end_after_five_failures_or_when_it_never_was(storage: Storage) -> None:
    assert await take(storage) is RedeemOutcome.GONE
    await create_grant(storage)
    assert await take(storage, NOW + 60) is RedeemOutcome.GONE
    for _ in range(4):
        await storage.grants.count_code_failure(racers.CODE, most=5)
    context = await storage.grants.find_grant_by_code(racers.CODE)
    assert context is not None
    assert (context.grant.code_failures, context.grant.code_ends_at) == (4, NOW + 60)
    await storage.grants.count_code_failure(racers.CODE, most=5)
    assert await take(storage) is RedeemOutcome.GONE
    assert AuditEvent.CODE_REUSED.value not in await events(storage)


@pytest.mark.usefixtures("anna")
async def test_failures_after_the_code_was_taken_change_nothing(storage: Storage) -> None:
    await create_grant(storage)
    await take(storage)
    for _ in range(9):
        await storage.grants.count_code_failure(racers.CODE, most=5)
    assert await storage.grants.find_live_grant(racers.GRANT, NOW + 1) is not None


@pytest.mark.usefixtures("anna")
async def test_a_refresh_token_turns_into_the_next_one(storage: Storage) -> None:
    await create_grant(storage)
    await take(storage)
    assert await turn(storage, 1, NOW + 5) == RotationResult(
        outcome=RotationOutcome.ROTATED, generation=2, refreshed_at=NOW + 5, kid="key5"
    )
    assert await turn(storage, 2, NOW + 6) == RotationResult(
        outcome=RotationOutcome.ROTATED, generation=3, refreshed_at=NOW + 6, kid="key6"
    )


@pytest.mark.usefixtures("anna")
async def test_a_rotated_refresh_token_ends_the_family_with_its_record(storage: Storage) -> None:
    await create_grant(storage)
    await take(storage)
    await turn(storage, 1, NOW + 5)
    assert (await turn(storage, 1, NOW + 5)).outcome is RotationOutcome.REUSED
    assert (await turn(storage, 2, NOW + 6)).outcome is RotationOutcome.GONE
    assert await storage.grants.find_live_grant(racers.GRANT, NOW + 6) is None
    assert (await events(storage)).count(AuditEvent.REFRESH_REUSED.value) == 1


@pytest.mark.usefixtures("anna")
async def test_within_the_grace_the_one_before_the_newest_is_repeated_and_no_other(storage: Storage) -> None:
    await create_grant(storage)
    await take(storage)
    await turn(storage, 1, NOW + 5, grace=10)
    for now in (NOW + 5, NOW + 14):
        repeated = RotationResult(outcome=RotationOutcome.REPEATED, generation=2, refreshed_at=NOW + 5, kid="key5")
        assert await turn(storage, 1, now, grace=10) == repeated
    await turn(storage, 2, NOW + 14, grace=10)
    assert (await turn(storage, 1, NOW + 14, grace=10)).outcome is RotationOutcome.REUSED


@pytest.mark.usefixtures("anna")
@pytest.mark.parametrize("now", [NOW + 15, NOW - 3_600])  # the clock moved forward or back
async def test_repeated_refresh_after_the_grace_period_is_reuse(storage: Storage, now: int) -> None:
    await create_grant(storage)
    await take(storage)
    await turn(storage, 1, NOW + 5, grace=10)
    assert (await turn(storage, 1, now, grace=10)).outcome is RotationOutcome.REUSED


@pytest.mark.usefixtures("anna")
async def test_a_number_that_was_never_given_is_gone_and_ends_nothing(storage: Storage) -> None:
    await create_grant(storage)
    await take(storage)
    assert (await turn(storage, 7, NOW + 5)).outcome is RotationOutcome.GONE
    assert await storage.grants.find_live_grant(racers.GRANT, NOW + 5) is not None


async def raise_rev(storage: Storage) -> None:
    await storage.sessions.revoke_user(ANNA, a_record(AuditEvent.SIGNED_OUT_EVERYWHERE), keep=None, now=NOW)


async def promote(storage: Storage) -> None:
    """Change only the epoch, not the grants themselves."""
    for timeline in ("1", "2"):
        record = a_record(AuditEvent.PROMOTED)
        noted = partial(record_timeline, timeline, lossless=False, epoch=NOW * 1_000, entry=record)
        await storage.runner.write(noted)


async def block(storage: Storage) -> None:
    await storage.accounts.set_blocked(ANNA, a_record(), blocked=True, now=NOW)


async def remove_client(storage: Storage) -> None:
    await storage.clients.remove_client("web", a_record(AuditEvent.CLIENT_REMOVED))


async def revoke(storage: Storage) -> None:
    assert await storage.grants.revoke_grant(racers.GRANT, NOW + 2, a_record(AuditEvent.GRANT_REVOKED))


async def revoke_client(storage: Storage) -> None:
    assert await storage.grants.revoke_client_tokens("web", NOW + 2, a_record(AuditEvent.GRANT_REVOKED)) == 1


@pytest.mark.usefixtures("anna")
async def test_ci_04_each_revocation_of_a_client_raises_its_epoch(storage: Storage) -> None:
    seen = []
    for at in (NOW + 2, NOW + 2, NOW - 9):  # also within a second, and where a clock went back
        await storage.grants.revoke_client_tokens("web", at, a_record(AuditEvent.CLIENT_TOKENS_REVOKED))
        seen.append((await storage.clients.client("web")).rev)
    epoch = (NOW + 2) * 1_000
    assert seen == [epoch, epoch + 1, epoch + 2]


@pytest.mark.usefixtures("anna")
@pytest.mark.parametrize("end", [raise_rev, promote, block, remove_client, revoke, revoke_client])
async def test_a_dead_grant_gives_nothing_any_more(storage: Storage, end: Any) -> None:
    await create_grant(storage)
    await take(storage)
    await end(storage)
    assert await storage.grants.find_live_grant(racers.GRANT, NOW + 2) is None
    assert (await turn(storage, 1, NOW + 2)).outcome is RotationOutcome.GONE
    assert not await storage.grants.revoke_grant(racers.GRANT, NOW + 3, a_record(AuditEvent.GRANT_REVOKED))


@pytest.mark.usefixtures("anna")
@pytest.mark.parametrize("end", [raise_rev, promote, block, remove_client, revoke, revoke_client])
async def test_the_code_of_a_dead_grant_is_gone(storage: Storage, end: Any) -> None:
    await create_grant(storage)
    await end(storage)
    assert await take(storage, NOW + 2) is RedeemOutcome.GONE


@pytest.mark.usefixtures("anna")
async def test_a_family_ends_at_its_end(storage: Storage) -> None:
    await create_grant(storage)
    await take(storage)
    assert await storage.grants.find_live_grant(racers.GRANT, NOW + 90 * DAY - 1) is not None
    assert await storage.grants.find_live_grant(racers.GRANT, NOW + 90 * DAY) is None
    assert (await turn(storage, 1, NOW + 90 * DAY)).outcome is RotationOutcome.GONE


@pytest.mark.usefixtures("anna")
async def test_an_assertion_is_spent_once_for_each_client(storage: Storage) -> None:
    assert await storage.grants.spend_assertion(sha256("1"), "web", NOW, ends_at=NOW + 60)
    assert not await storage.grants.spend_assertion(sha256("1"), "web", NOW, ends_at=NOW + 60)
    assert await storage.grants.spend_assertion(sha256("2"), "web", NOW, ends_at=NOW + 60)


@pytest.mark.usefixtures("anna")
async def test_the_sweep_takes_what_has_ended_and_codes_no_one_came_for(storage: Storage) -> None:
    remaining = [a_grant(code=b"new"), a_grant(code=None), a_grant(code=b"taken", code_taken_at=NOW)]
    removed = [
        a_grant(code=b"unclaimed", created_at=NOW - DAY),
        a_grant(code=b"ended", code_taken_at=NOW, ends_at=NOW - 2 * DAY),
        a_grant(code=b"revoked", code_taken_at=NOW, revoked_at=NOW - 2 * DAY),
    ]
    for grant in (*remaining, *removed):
        await storage.grants.create_grant(grant, a_record(AuditEvent.GRANT_MADE))
    await storage.sweep(NOW)
    for grant in remaining:
        assert await storage.grants.find_live_grant(grant.grant_id, NOW) is not None
    for grant in removed:
        assert await storage.grants.find_grant_by_code(grant.code or b"") is None


async def test_authorization_code_is_redeemed_by_one_of_many_processes(migrated_url: str) -> None:
    async with open_storage(migrated_url, migrate=False) as storage:
        await anna_and_web(storage)
        await create_grant(storage)
        assert race(racers.take_code, migrated_url) == {WON: 1, "REUSED": TRIES - 1}
        assert await storage.grants.find_live_grant(racers.GRANT, NOW + 1) is None
        assert (await events(storage)).count(AuditEvent.CODE_REUSED.value) == 1


async def test_refresh_token_is_rotated_by_one_of_many_processes(migrated_url: str) -> None:
    async with open_storage(migrated_url, migrate=False) as storage:
        await anna_and_web(storage)
        await create_grant(storage, code_taken_at=NOW, generation=1, refreshed_at=NOW)
        outcomes = race(racers.turn_refresh_token, migrated_url)
        assert outcomes[WON] == 1
        assert outcomes["REUSED"] + outcomes["GONE"] == TRIES - 1
        assert (await events(storage)).count(AuditEvent.REFRESH_REUSED.value) == 1


async def test_within_the_grace_many_processes_get_the_same_next_one(migrated_url: str) -> None:
    async with open_storage(migrated_url, migrate=False) as storage:
        await anna_and_web(storage)
        await create_grant(storage, code_taken_at=NOW, generation=1, refreshed_at=NOW)
        assert race(racers.turn_refresh_token_with_grace, migrated_url) == {WON: 1, "REPEATED 2": TRIES - 1}


async def test_assertion_is_accepted_by_one_of_many_processes(migrated_url: str) -> None:
    assert race(racers.spend_assertion, migrated_url) == {WON: 1, "SecondFactorWrong": TRIES - 1}


async def test_failures_of_many_processes_are_all_counted(migrated_url: str) -> None:
    async with open_storage(migrated_url, migrate=False) as storage:
        await anna_and_web(storage)
        await create_grant(storage)
        assert race(racers.fail_code, migrated_url) == {WON: TRIES}
        context = await storage.grants.find_grant_by_code(racers.CODE)
        assert context is not None
        assert context.grant.code_failures == TRIES
