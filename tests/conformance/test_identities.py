"""Identities are unique and the last sign-in method stays, between processes too, on both databases (R10)."""

import pytest
from msgspec.structs import replace

from gatehouse.accounts.errors import IdentityNotFound, IdentityTaken, LastSignInMethod, UserChanged
from gatehouse.accounts.model import ProvidedLabels, ProviderAnswer, SignInMethod
from gatehouse.accounts.own_account.label_rules import AFTER_START, LabelRules
from gatehouse.audit.model import AuditRecord
from gatehouse.storage.accounts.provided_labels import AT_ONCE
from gatehouse.storage.database import Storage
from tests.conformance.test_sessions import a_session
from tests.support import racers
from tests.support.builders import (
    ALL_METHODS,
    ISSUER,
    NOW,
    ORIGIN,
    PASSKEY_HOST,
    RECORDER,
    a_passkey,
    a_record,
    a_user,
    an_identity,
)
from tests.support.clock import MovableClock
from tests.support.racers import RACED_USER, WON, race

TRIES = 20  # four processes, five attempts each


async def test_first_sign_ins_at_the_same_time_make_one_account(storage: Storage, migrated_url: str) -> None:
    assert race(racers.take_identity, migrated_url) == {WON: 1, "IdentityTaken": TRIES - 1}
    user = await storage.profile.user_by_identity(ISSUER, "0")
    assert user is not None
    assert [one.user_id for one in await storage.accounts.all_users()] == [user.user_id]


async def test_pl_02_first_tickets_at_the_same_time_make_one_account(storage: Storage, migrated_url: str) -> None:
    assert race(racers.sign_in_with_identity, migrated_url) == {WON: 1, "SecondFactorWrong": TRIES - 1}
    (user,) = await storage.accounts.all_users()
    assert (user.service_tags, user.provided_purchases) == ({"linked_steam"}, {"steam:480"})


async def test_pl_01_ticket_is_used_once_between_processes(migrated_url: str) -> None:
    assert race(racers.use_ticket, migrated_url) == {WON: 1, "SecondFactorWrong": TRIES - 1}


async def test_of_the_last_two_sign_in_methods_one_stays_when_both_are_removed(
    storage: Storage, migrated_url: str
) -> None:
    await storage.accounts.create_user(a_user(user_id=RACED_USER, password_hash=None), a_record())
    for subject in ("0", "1"):
        await storage.profile.link_identity(an_identity(RACED_USER, subject), a_record(), (), rev=0)
    outcomes = race(racers.drop_an_identity, migrated_url)
    assert outcomes[WON] == 1
    assert sum(outcomes.values()) == TRIES
    left = (await storage.profile.account_details(RACED_USER, NOW)).identities
    assert len(left) == 1
    assert (await storage.accounts.user(RACED_USER)).service_tags == {"linked_google"}


async def test_pf_02_password_and_last_passkey_are_not_removed_at_the_same_time(
    storage: Storage, migrated_url: str
) -> None:
    user = a_user(user_id=RACED_USER, password_hash="hash", email_verified=True)
    await storage.accounts.create_user(user, a_record())
    await storage.passkeys.add_passkey(
        a_passkey(user_id=RACED_USER, credential_id=b"credential"), [b"code"], a_record(), (), host=PASSKEY_HOST
    )
    outcomes = race(racers.drop_password_or_passkey, migrated_url)
    assert outcomes[WON] == 1
    left = await storage.accounts.user(RACED_USER)
    assert (left.password_hash is not None) + left.passkeys == 1


async def test_answer_of_a_provider_is_used_once(storage: Storage, migrated_url: str) -> None:
    await storage.profile.save_provider_request(b"state", {"provider": "google"}, NOW, NOW + 600)
    assert race(racers.take_provider_request, migrated_url) == {WON: 1, "SecondFactorWrong": TRIES - 1}


async def test_id_09_identity_is_linked_only_while_the_sessions_of_the_account_go_on(storage: Storage) -> None:
    user = a_user(password_hash="hash")
    await storage.accounts.create_user(user, a_record())
    await storage.sessions.revoke_user(user.user_id, a_record(), keep=None, now=NOW)
    with pytest.raises(UserChanged):
        await storage.profile.link_identity(an_identity(user.user_id), a_record(), (), rev=user.rev)
    assert (await storage.profile.account_details(user.user_id, NOW)).identities == []


async def test_identity_of_an_account_is_linked_nowhere_else(storage: Storage) -> None:
    first, second = a_user(password_hash="hash"), a_user(password_hash="hash")
    for user in (first, second):
        await storage.accounts.create_user(user, a_record())
    await storage.profile.link_identity(an_identity(first.user_id), a_record(), (), rev=0)
    with pytest.raises(IdentityTaken):
        await storage.profile.link_identity(an_identity(second.user_id), a_record(), (), rev=0)
    with pytest.raises(IdentityNotFound):
        await storage.profile.unlink_identity(second.user_id, ISSUER, "0", a_record(), (), methods=ALL_METHODS)
    await storage.profile.unlink_identity(first.user_id, ISSUER, "0", a_record(), (), methods=ALL_METHODS)
    assert (await storage.accounts.user(first.user_id)).service_tags == frozenset()


async def test_service_tags_survive_changes_of_other_tags_and_end_with_the_account(storage: Storage) -> None:
    user = a_user(password_hash=None, tags=frozenset({"beta"}))
    await storage.profile.create_with_identity(user, an_identity(user.user_id), a_record())
    changed = await storage.accounts.set_labels(user.user_id, a_record(), tags=frozenset({"gamma"}))
    assert (changed.tags, changed.service_tags) == ({"gamma"}, {"linked_google"})
    with pytest.raises(LastSignInMethod):
        await storage.profile.unlink_identity(user.user_id, ISSUER, "0", a_record(), (), methods=ALL_METHODS)
    await storage.profile.erase_user(user.user_id, a_record(), even_last_administrator=False, now=NOW)
    assert await storage.profile.user_by_identity(ISSUER, "0") is None


async def test_id_16_sessions_of_unknown_origin_end_with_an_identity(storage: Storage) -> None:
    """They are older than the record of what a session was made with, or came from a game."""
    user = a_user(password_hash="hash")
    await storage.profile.create_with_identity(user, an_identity(user.user_id), a_record())
    for number, auth in enumerate(SignInMethod):
        session = a_session(user, bytes([number]), session_id=auth.value, auth=auth, proved=())
        await storage.sessions.open_session(session, a_record(), replaces=None)
    await storage.profile.unlink_identity(
        user.user_id, ISSUER, "0", replace(a_record(), at=NOW), (), methods=ALL_METHODS, keep="platform"
    )
    left = {one.session_id for one in await storage.sessions.sessions_of_user(user.user_id, NOW)}
    assert left == set(SignInMethod) - {"provider"}


async def test_id_14_labels_without_a_rule_end_in_small_transactions(storage: Storage) -> None:
    answer = ProviderAnswer(tags={"artist": True, "staff": True}, purchases={"steam:480": True})
    users = [a_user() for _ in range(AT_ONCE + 1)]
    for user in users:
        identity = an_identity(user.user_id, user.user_id)
        await storage.profile.create_with_identity(user, identity, a_record())
        await storage.profile.record_identity_use(identity, answer, lambda _: a_record())
    rules = {"google": ProvidedLabels(tags={"staff": False})}
    ended: list[tuple[str, str]] = []

    def record(user_id: str, provider: str) -> AuditRecord:
        ended.append((user_id, provider))
        return a_record()

    rounds = 1
    while await storage.profile.end_labels_without_rule(rules, record):
        rounds += 1
    assert rounds == 5  # two for each label, and one that finds nothing
    assert sorted(ended) == sorted((user.user_id, "google") for user in users for _ in range(2))
    for user in await storage.accounts.all_users():
        assert (user.provided_tags, user.provided_purchases) == ({"staff"}, set())


async def test_id_14_process_that_starts_with_other_rules_ends_labels_after_an_hour(storage: Storage) -> None:
    """It may have the wrong file, or an older one; a change while it runs is meant."""
    user, clock = a_user(), MovableClock(NOW)
    identity = an_identity(user.user_id)
    await storage.profile.create_with_identity(user, identity, a_record())
    answer = ProviderAnswer(tags={"artist": True, "staff": True})
    await storage.profile.record_identity_use(identity, answer, lambda _: a_record())
    rules = {"google": ProvidedLabels(tags={"staff": False})}

    def start() -> LabelRules:
        return LabelRules(
            store=storage.profile, recorder=RECORDER, origin=ORIGIN, clock=clock, rules=lambda: dict(rules)
        )

    async def tags() -> frozenset[str]:
        return (await storage.accounts.user(user.user_id)).provided_tags

    started = start()
    await started.apply()
    await clock.advance(AFTER_START - 1)
    await started.apply()
    assert await tags() == {"artist", "staff"}
    await clock.advance(1)
    await started.apply()
    assert await tags() == {"staff"}
    rules["google"] = ProvidedLabels()
    await started.apply()
    assert await tags() == set()
