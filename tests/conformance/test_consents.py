"""Contract tests of ConsentStore in oauth/store.py."""

import asyncio

import pytest
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.oauth.model import SCOPES, Consent
from gatehouse.storage.database import Storage
from tests.support.builders import NOW, a_client, a_record, a_user
from tests.support.oauth import a_grant

ANNA = "1000000001"


def a_consent(*scopes: str, client_id: str = "web", user_id: str = ANNA, at: int = NOW) -> Consent:
    return Consent(user_id=user_id, client_id=client_id, scopes=scopes, given_at=at)


@pytest.fixture(autouse=True)
async def people_and_clients(storage: Storage) -> None:
    for user_id in (ANNA, "1000000002"):
        await storage.accounts.create_user(a_user(user_id=user_id, login=f"{user_id}@studio.example"), a_record())
    for client_id in ("web", "other"):
        await storage.clients.create_client(a_client(client_id), a_record())


async def test_stored_consent_is_read_back(storage: Storage) -> None:
    assert await storage.consents.consent(ANNA, "web") is None
    await storage.consents.add_consent(a_consent("openid", "email"), a_record(AuditEvent.CONSENT_GIVEN))
    assert await storage.consents.consent(ANNA, "web") == a_consent("openid", "email")
    assert await storage.consents.consent("1000000002", "web") is None
    assert await storage.consents.consent(ANNA, "other") is None


async def test_scopes_are_added_to_what_is_allowed_already(storage: Storage) -> None:
    await storage.consents.add_consent(a_consent("openid", "email"), a_record())
    await storage.consents.add_consent(a_consent("openid", "profile", at=NOW + 5), a_record())
    consent = await storage.consents.consent(ANNA, "web")
    assert consent == a_consent("openid", "email", "profile", at=NOW + 5)


async def test_windows_that_allow_at_once_lose_nothing(storage: Storage) -> None:
    await asyncio.gather(*(storage.consents.add_consent(a_consent(scope), a_record()) for scope in SCOPES))
    consent = await storage.consents.consent(ANNA, "web")
    assert consent is not None
    assert set(consent.scopes) == set(SCOPES)


async def test_everything_a_person_allowed_is_listed_with_the_clients_that_are_left(storage: Storage) -> None:
    await storage.clients.create_client(a_client("gone", removed=True), a_record())
    for client_id in ("web", "other", "gone"):
        await storage.consents.add_consent(a_consent("openid", client_id=client_id), a_record())
    await storage.consents.add_consent(a_consent("openid", user_id="1000000002"), a_record())
    listed = await storage.consents.consents(ANNA, NOW)
    assert [(consent.client_id, client.client_id) for consent, client in listed] == [
        ("other", "other"),
        ("web", "web"),
    ]
    assert all(client.name == "Web shop" for _, client in listed)


async def test_withdrawing_forgets_it_and_revokes_the_grants_of_that_person_to_that_client(storage: Storage) -> None:
    remaining = [
        a_grant(user_id=ANNA, code=b"1"),
        a_grant(user_id=ANNA, code=b"2"),
        a_grant(user_id="1000000002", code=b"3"),
        a_grant(user_id=ANNA, client_id="other", code=b"4"),
    ]
    for grant in remaining:
        assert await storage.grants.create_grant(grant, a_record())
    await storage.consents.add_consent(a_consent("openid"), a_record())
    assert await storage.consents.withdraw_consent(ANNA, "web", NOW + 1, a_record(AuditEvent.CONSENT_WITHDRAWN))
    assert await storage.consents.consent(ANNA, "web") is None
    alive = [await storage.grants.find_live_grant(grant.grant_id, NOW + 1) is not None for grant in remaining]
    assert alive == [False, False, True, True]


async def test_withdrawing_what_is_not_there_is_told_and_leaves_no_record(storage: Storage) -> None:
    before = len(await storage.audit.unsealed_records(100))
    assert not await storage.consents.withdraw_consent(ANNA, "web", NOW, a_record(AuditEvent.CONSENT_WITHDRAWN))
    assert len(await storage.audit.unsealed_records(100)) == before


async def test_a_grant_without_consent_is_withdrawn_as_well(storage: Storage) -> None:
    grant = replace(a_grant(user_id=ANNA), code=b"c")
    await storage.grants.create_grant(grant, a_record())
    assert await storage.consents.withdraw_consent(ANNA, "web", NOW, a_record(AuditEvent.CONSENT_WITHDRAWN))
    assert await storage.grants.find_live_grant(grant.grant_id, NOW) is None


async def test_grants_without_a_consent_are_listed_once_per_client(storage: Storage) -> None:
    taken = {"user_id": ANNA, "code_taken_at": NOW, "rev": 0}
    for grant in (
        a_grant(**taken, code=b"1", scopes=("openid",), created_at=NOW - 9),
        a_grant(**taken, code=None, scopes=("openid", "email")),
        a_grant(**taken, client_id="other", code=b"2", revoked_at=NOW),
        a_grant(**taken, client_id="other", code=b"3", ends_at=NOW),
        a_grant(user_id=ANNA, client_id="other", code=b"4"),  # its code was not redeemed
        a_grant(**(taken | {"user_id": "1000000002"}), client_id="other", code=b"5"),
    ):
        assert await storage.grants.create_grant(grant, a_record())
    listed = await storage.consents.consents(ANNA, NOW)
    assert [consent for consent, _ in listed] == [a_consent("openid", "email", at=NOW - 9)]
    await storage.sessions.revoke_user(ANNA, a_record(), keep=None, now=NOW)
    assert await storage.consents.consents(ANNA, NOW) == []
