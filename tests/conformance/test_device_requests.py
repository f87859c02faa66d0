"""Contract tests of DeviceStore in oauth/store.py."""

import asyncio

import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.oauth.model import Consent, DeviceRequest, DeviceState, Grant
from gatehouse.storage.database import Storage
from tests.support.builders import NOW, a_client, a_record, a_user
from tests.support.oauth import a_grant


def a_request(digest: bytes = b"device", **fields: object) -> DeviceRequest:
    request = DeviceRequest(
        digest=digest,
        user_code="BCDFGHJK",
        client_id="web",
        scopes=("openid", "email"),
        address="192.0.2.7",
        created_at=NOW,
        ends_at=NOW + 600,
    )
    return replace(request, **fields)  # type: ignore[arg-type]


@pytest.fixture
async def anna(storage: Storage) -> User:
    user = a_user()
    await storage.accounts.create_user(user, a_record())
    await storage.clients.create_client(a_client(), a_record())
    return user


def device_grant(user: User, grant_id: str = "g1") -> Grant:
    return a_grant(grant_id=grant_id, user_id=user.user_id, rev=user.rev, code=None, redirect_uri="")


async def test_a_request_is_found_by_its_user_code_while_it_waits(storage: Storage) -> None:
    assert await storage.device_requests.create_request(a_request())
    assert await storage.device_requests.find_pending_request("BCDFGHJK", NOW + 599) == a_request()
    assert await storage.device_requests.find_pending_request("BCDFGHJK", NOW + 600) is None
    assert await storage.device_requests.find_pending_request("BCDFGHJL", NOW) is None


async def test_a_user_code_in_use_is_not_given_twice(storage: Storage) -> None:
    answers = await asyncio.gather(*(storage.device_requests.create_request(a_request(bytes([n]))) for n in range(6)))
    assert sorted(answers) == [False] * 5 + [True]


async def test_exactly_one_of_many_answers_to_a_device_request_counts(storage: Storage, anna: User) -> None:
    await storage.device_requests.create_request(a_request())
    answers = await asyncio.gather(
        *(
            storage.device_requests.approve_request("BCDFGHJK", device_grant(anna, f"g{n}"), NOW, a_record())
            for n in range(4)
        ),
        *(storage.device_requests.deny_request("BCDFGHJK", NOW, a_record()) for _ in range(4)),
    )
    assert sorted(answers) == [False] * 7 + [True]
    request, _ = await storage.device_requests.record_poll(b"device", NOW)
    assert request is not None
    created = [n for n in range(4) if await storage.grants.find_live_grant(f"g{n}", NOW) is not None]
    assert len(created) == (1 if request.state is DeviceState.APPROVED else 0)


async def test_device_request_of_a_revoked_account_is_not_approved(storage: Storage, anna: User) -> None:
    await storage.device_requests.create_request(a_request())
    await storage.sessions.revoke_user(anna.user_id, a_record(), keep=None, now=NOW)
    assert not await storage.device_requests.approve_request("BCDFGHJK", device_grant(anna), NOW, a_record())
    assert await storage.device_requests.find_pending_request("BCDFGHJK", NOW) is not None


async def test_a_poll_before_its_time_lengthens_the_interval(storage: Storage) -> None:
    await storage.device_requests.create_request(a_request())
    early = [(await storage.device_requests.record_poll(b"device", NOW + at))[1] for at in (0, 5, 9, 18, 32, 52)]
    assert early == [False, False, True, True, True, False]
    assert await storage.device_requests.record_poll(b"other", NOW) == (None, False)


async def test_an_approved_request_is_taken_once_with_its_first_refresh_token(storage: Storage, anna: User) -> None:
    await storage.device_requests.create_request(a_request())
    assert await storage.device_requests.redeem_request(a_request(), NOW, generation=1) is None
    assert await storage.device_requests.approve_request("BCDFGHJK", device_grant(anna), NOW, a_record())
    takers = await asyncio.gather(
        *(storage.device_requests.redeem_request(a_request(), NOW + 7, generation=1) for _ in range(6))
    )
    (holder,) = [holder for holder in takers if holder is not None]
    assert (holder.user, holder.client.client_id) == (anna, "web")
    assert (holder.grant.generation, holder.grant.refreshed_at) == (1, NOW + 7)


async def test_an_approved_request_is_not_taken_late_or_after_a_revocation(storage: Storage, anna: User) -> None:
    await storage.device_requests.create_request(a_request())
    await storage.device_requests.approve_request("BCDFGHJK", device_grant(anna), NOW, a_record())
    assert await storage.device_requests.redeem_request(a_request(), NOW + 600, generation=0) is None
    await storage.sessions.revoke_user(anna.user_id, a_record(), keep=None, now=NOW)
    assert await storage.device_requests.redeem_request(a_request(), NOW, generation=0) is None


async def test_a_device_of_others_needs_a_consent_that_still_stands(storage: Storage, anna: User) -> None:
    await storage.device_requests.create_request(a_request())
    grant = replace(device_grant(anna), scopes=("openid", "email"))
    for scopes in ((), ("openid",)):
        consent = Consent(user_id=anna.user_id, client_id="web", scopes=scopes, given_at=NOW)
        await storage.consents.add_consent(consent, a_record())
        assert not await storage.device_requests.approve_request("BCDFGHJK", grant, NOW, a_record(), consented=True)
    await storage.consents.add_consent(replace(consent, scopes=("email",)), a_record())
    assert await storage.device_requests.approve_request("BCDFGHJK", grant, NOW, a_record(), consented=True)


async def test_expired_device_request_is_deleted_after_ten_minutes(storage: Storage) -> None:
    await storage.device_requests.create_request(a_request())
    await storage.sweep(NOW + 600 + 599)
    assert (await storage.device_requests.record_poll(b"device", NOW))[0] is not None
    await storage.sweep(NOW + 600 + 600)
    assert (await storage.device_requests.record_poll(b"device", NOW))[0] is None
