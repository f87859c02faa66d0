"""Failed sign-ins of a known account: counted by the hour, shown to its owner, and gone with the sign-in history."""

import pytest

from gatehouse.accounts.failed_sign_ins.model import MAX_RECORDS_PER_DAY, FailedSignIn, FailureKey, FailureReason
from gatehouse.accounts.model import User
from gatehouse.app.housekeeping import delete_expired
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import LOGIN, AccountBrowser, HttpBrowser
from tests.support.service import RunningService

DAY = 86_400
TEST = AuditOrigin(actor="test")


async def stored(service: RunningService, user_id: str) -> list[FailedSignIn]:
    await service.services.core.failed_sign_ins.flush()
    return list(await service.services.storage.failed_sign_ins.failures_of_user(user_id, 0, 1_000))


async def counted(service: RunningService, user_id: str) -> list[tuple[str, str, int]]:
    return [(one.reason.value, one.network, one.times) for one in await stored(service, user_id)]


@pytest.mark.both_databases
async def test_failures_are_one_record_for_reason_network_and_hour(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    for _ in range(3):
        await browser_client.sign_in(LOGIN, "not the password")
    await browser_client.sign_in("no_one@studio.example", "not the password")
    assert await counted(service, anna.user_id) == [("wrong_password", "127.0.0.0/24", 3)]
    for _ in range(9):
        await browser_client.sign_in(LOGIN, "not the password")
    assert await counted(service, anna.user_id) == [
        ("locked", "127.0.0.0/24", 2),
        ("wrong_password", "127.0.0.0/24", 10),
    ]
    await service.clock.advance(DAY)
    await service.services.accounts.administration.block(anna.user_id, TEST)
    await service.client.post("/proxy/api/login", json={"login": LOGIN, "password": "not the password"})
    await browser_client.sign_in(LOGIN)
    assert min(await counted(service, anna.user_id)) == ("blocked", "127.0.0.0/24", 1)
    assert await stored(service, "") == []


async def test_owner_sees_the_failures_and_exports_them(
    service: RunningService, anna: User, other: HttpBrowser, account_browser: AccountBrowser
) -> None:
    await other.sign_in(LOGIN, "not the password")
    assert len(await stored(service, anna.user_id)) == 1
    page = (await account_browser.get("/account")).text
    assert "Failed sign-ins" in page
    assert "127.0.0.0/24" in page
    export = (await account_browser.submit("/account/export")).json()
    (one,) = export["failed_sign_ins"]
    assert (one["reason"], one["network"], one["times"]) == ("wrong_password", "127.0.0.0/24", 1)


@pytest.mark.both_databases
async def test_an_account_gets_fifty_records_a_day(service: RunningService, anna: User) -> None:
    storage, now = service.services.storage.failed_sign_ins, service.clock.now()
    noon = now - now % DAY + DAY // 2
    keys = [FailureKey(noon, FailureReason.LOCKED, f"192.0.{place}.0/24") for place in range(70)]
    for start in (0, 35):
        await storage.add_failures(anna.user_id, dict.fromkeys(keys[start : start + 35], 1))
    assert len(await stored(service, anna.user_id)) == MAX_RECORDS_PER_DAY
    await storage.add_failures(anna.user_id, {keys[0]: 4, keys[-1]: 4})  # the stored one goes on counting
    assert sum(one.times for one in await stored(service, anna.user_id)) == MAX_RECORDS_PER_DAY + 4
    await storage.add_failures(anna.user_id, {FailureKey(noon + DAY, FailureReason.LOCKED, ""): 1})
    assert len(await stored(service, anna.user_id)) == MAX_RECORDS_PER_DAY + 1


@pytest.mark.both_databases
async def test_failures_end_with_the_history_and_with_the_account(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await browser_client.sign_in(LOGIN, "not the password")
    assert await stored(service, anna.user_id)
    await service.clock.advance(91 * DAY)
    await delete_expired(service.services)
    assert await stored(service, anna.user_id) == []
    await browser_client.sign_in(LOGIN, "not the password")
    assert await stored(service, anna.user_id)
    await browser_client.sign_in(LOGIN, "not the password")  # counted in memory when the account is erased
    await service.services.accounts.erasure.erase(anna, TEST, even_last_administrator=True)
    assert await stored(service, anna.user_id) == []
