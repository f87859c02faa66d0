"""Verbs that recognize what an earlier run of them has committed (docs/decisions/0030-unknown-outcomes.md).

The runner runs such a verb again when the outcome is unknown; here the second run always follows a first that was
committed, on both databases.
"""

from collections.abc import Callable
from typing import Any

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditRecord
from gatehouse.gamesessions.model import GameSessionState
from gatehouse.oauth.model import DeviceRequest
from gatehouse.oauth.store import RedeemOutcome, RotationOutcome
from gatehouse.storage.database import Storage
from tests.conformance.test_device_requests import a_request, device_grant
from tests.conformance.test_game_sessions import a_login, a_mark, a_turn, confirm_session, find_session
from tests.support.builders import NOW, a_client, a_client_secret, a_game_session, a_record, a_user
from tests.support.oauth import a_grant
from tests.support.permission_builders import an_access_key, create_application


@pytest.fixture
async def anna(storage: Storage) -> User:
    user = a_user()
    await storage.accounts.create_user(user, a_record())
    await storage.clients.create_client(a_client(), a_record())
    await storage.grants.create_grant(a_grant(grant_id="g1", user_id=user.user_id, rev=user.rev), a_record())
    await storage.game_sessions.register_session(a_game_session())
    return user


def runs_twice(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the same verb with the same arguments again, as after an unknown outcome."""
    runner: Any = storage.runner
    write = runner.write

    async def run_twice(make: Callable[[], Any], **how: Any) -> Any:
        assert how.get("repeatable"), make
        await write(make, **how)
        return await write(make, **how)

    monkeypatch.setattr(runner, "write", run_twice)


def fail_if_called() -> AuditRecord:
    raise AssertionError("the repeated run was taken for reuse")


async def test_tk_90_a_code_and_a_refresh_token_taken_by_the_run_before_are_taken(
    storage: Storage, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs_twice(storage, monkeypatch)
    assert (
        await storage.grants.redeem_code(b"code", NOW, generation=1, reused=fail_if_called) is RedeemOutcome.REDEEMED
    )
    rotated = await storage.grants.rotate("g1", 1, NOW + 5, kid="key", grace=0, reused=fail_if_called)
    assert (rotated.outcome, rotated.generation, rotated.refreshed_at) == (RotationOutcome.ROTATED, 2, NOW + 5)
    holder = await storage.grants.find_live_grant("g1", NOW)
    assert holder is not None
    assert (holder.user, holder.grant.generation) == (anna, 2)


@pytest.mark.usefixtures("anna")
async def test_tk_90_what_another_has_taken_is_still_reused(storage: Storage) -> None:
    assert await storage.grants.redeem_code(b"code", NOW, generation=1, reused=a_record) is RedeemOutcome.REDEEMED
    assert await storage.grants.redeem_code(b"code", NOW, generation=1, reused=a_record) is RedeemOutcome.REUSED
    assert await storage.grants.find_live_grant("g1", NOW) is None


@pytest.mark.usefixtures("anna")
async def test_tk_90_revocations_assertions_and_secrets_of_the_run_before_are_done(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        runs_twice(storage, patch)
        await storage.clients.create_client(a_client("other"), a_record())
        await storage.clients.rotate_secret("web", a_client_secret(secret=b"new"), a_record(), old_ends_at=NOW + 60)
        assert await storage.grants.spend_assertion(b"digest", "web", NOW, ends_at=NOW + 60)
        assert await storage.grants.revoke_grant("g1", NOW, a_record())
    assert not await storage.grants.spend_assertion(b"digest", "web", NOW, ends_at=NOW + 60)
    assert not await storage.grants.revoke_grant("g1", NOW, a_record())
    secrets = (await storage.clients.client("web")).secrets
    assert sorted((secret.secret, secret.expires_at) for secret in secrets) == [(b"digest", NOW + 60), (b"new", 0)]


async def test_tk_90_a_device_code_taken_by_the_run_before_is_taken(
    storage: Storage, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.device_requests.create_request(a_request())
    await storage.device_requests.approve_request("BCDFGHJK", device_grant(anna, "g2"), NOW, a_record())
    request: DeviceRequest | None
    request, _ = await storage.device_requests.record_poll(b"device", NOW)
    assert request is not None
    with monkeypatch.context() as patch:
        runs_twice(storage, patch)
        holder = await storage.device_requests.redeem_request(request, NOW, generation=1)
    assert holder is not None
    assert (holder.user, holder.grant.generation) == (anna, 1)
    assert await storage.device_requests.redeem_request(request, NOW, generation=1) is None


async def test_ak_90_an_access_key_added_by_the_run_before_takes_one_place(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = await create_application(storage)
    keys = [an_access_key(f"key{n}", application.application_id) for n in range(2)]
    runs_twice(storage, monkeypatch)
    for key in keys:
        await storage.application_keys.add_access_key(key, [a_record()])
    assert list(await storage.application_keys.access_keys(application.application_id)) == keys


async def test_gs_90_an_answer_taken_by_the_run_before_is_taken_and_given_back_once(
    storage: Storage, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = storage.game_sessions
    await store.claim_session(a_mark(), "here", tell=False)
    with monkeypatch.context() as patch:
        runs_twice(storage, patch)
        assert await confirm_session(storage, anna)
        assert await store.take_answer("g1", a_turn(), NOW, a_login(anna), a_record())
        await store.return_answer("g1", a_turn(), a_login(anna), a_record())
    session = await find_session(storage)
    assert (session.state, session.delivered_at, session.polls) == (GameSessionState.CONFIRMED, 0, 2)
    assert await storage.logins.live_login_token(b"token", NOW) is None
    # The same poll never gets it again, even if its take comes late; the next one does.
    assert not await store.take_answer("g1", a_turn(), NOW, a_login(anna), a_record())
    assert await store.take_answer("g1", a_turn(2), NOW, a_login(anna, b"other"), a_record())
    await store.return_answer("g1", a_turn(), a_login(anna), a_record())  # of a session without an answer
    assert (await find_session(storage)).state is GameSessionState.DELIVERED


async def test_gs_33_only_a_session_that_is_not_over_is_extended(storage: Storage, anna: User) -> None:
    store = storage.game_sessions
    await store.claim_session(a_mark(), "here", tell=False)
    assert await confirm_session(storage, anna)
    assert await store.take_answer("g1", a_turn(), NOW, a_login(anna), a_record())
    ends_at = (await find_session(storage)).ends_at
    await store.record_polls([a_mark(2, NOW + 100)], "here")
    await store.claim_session(a_mark(3, NOW + 110), "there", tell=False)
    assert (await find_session(storage)).ends_at == ends_at
