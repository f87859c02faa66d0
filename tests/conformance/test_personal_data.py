"""Contract tests of PersonalDataStore: GDPR requests to applications."""

import asyncio
from functools import partial
from typing import Any

import pytest

from gatehouse.accounts.errors import UserNotFound
from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.errors import Conflict
from gatehouse.permissions.errors import LastOwner
from gatehouse.personal_data.model import MAX_ANSWER_BYTES, CallState, ClaimedCall, DataJobKind, DataRequest
from gatehouse.storage import personal_data
from gatehouse.storage.accounts.erasure import delete_user
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.sweep import sweep_small_tables
from tests.support import permission_racers
from tests.support.builders import NOW, a_record
from tests.support.database_contents import read_all_tables, tables_that_mention
from tests.support.permission_builders import (
    a_person,
    a_project,
    create_application,
    install_central,
    publish,
    set_fields,
    set_project_fields,
)
from tests.support.racers import WON, race

ANNA, BOB = "1000000001", "1000000002"
LEASE = 300
DAY = 86_400


def sources(name: str) -> dict[str, Any]:
    base = f"https://{name}.example"
    return {
        "gdpr": {
            "char_sources": [f"{base}/characters"],
            "data_sources": [{"fetch": f"{base}/fetch", "remove": f"{base}/remove"}],
        }
    }


@pytest.fixture
async def seeded_storage(storage: Storage) -> Storage:
    """Anna and Bob; a shop and a forum with GDPR URLs, and a game without."""
    await fill(storage)
    return storage


async def fill(storage: Storage) -> None:
    await install_central(storage)
    await a_person(storage, ANNA)
    await a_person(storage, BOB)
    await create_application(storage, name="Shop", settings=sources("shop"))
    await create_application(storage, name="Forum", settings=sources("forum"))
    await create_application(storage, name="Game", settings={"restricted_domains": ["x.example"]})


async def ask(storage: Storage, user_id: str = ANNA, now: int = NOW) -> str:
    return await storage.personal_data.request_export(user_id, a_record(AuditEvent.DATA_ASKED, user_id), now)


async def erase(storage: Storage, user_id: str = ANNA) -> None:
    entry = a_record(AuditEvent.USER_ERASED, user_id)
    await storage.profile.erase_user(user_id, entry, even_last_administrator=False, now=NOW)


async def only_request(storage: Storage, name: str) -> DataRequest:
    [request] = await storage.personal_data.find_requests(name)
    return request


async def complete_call(storage: Storage, call: ClaimedCall, sealed: bytes | None = None) -> bool:
    return await storage.personal_data.complete_call(
        call, sealed, a_record(AuditEvent.DATA_ANSWERED, call.user_id), NOW + 5
    )


def urls(calls: Any) -> list[str]:
    return sorted(call.url.removeprefix("https://") for call in calls)


# -- export -------------------------------------------------------------------------------------------


async def test_an_export_goes_to_every_address_that_tells_and_a_removal_to_those_that_remove(
    seeded_storage: Storage,
) -> None:
    request = await only_request(seeded_storage, await ask(seeded_storage))
    assert (request.kind, request.user_id, request.created_at) == (DataJobKind.EXPORT, ANNA, NOW)
    assert urls(request.calls) == [
        *("forum.example/characters", "forum.example/fetch", "shop.example/characters", "shop.example/fetch"),
    ]
    assert {call.application for call in request.calls} == {"Shop", "Forum"}
    await erase(seeded_storage, BOB)
    removal = await only_request(seeded_storage, BOB)
    assert (removal.kind, urls(removal.calls)) == (
        DataJobKind.REMOVAL,
        ["forum.example/remove", "shop.example/remove"],
    )
    assert {call.state for call in removal.calls} == {CallState.WAITING}


async def test_removed_applications_and_those_of_removed_projects_are_not_asked(seeded_storage: Storage) -> None:
    await publish(seeded_storage, a_project(), owners=[BOB])
    await seeded_storage.applications.edit_application(50_001, set_fields(removed=True))
    await seeded_storage.applications.edit_application(50_002, set_fields(project_id="mind_games"))
    assert urls((await only_request(seeded_storage, await ask(seeded_storage))).calls) == [
        "forum.example/characters",
        "forum.example/fetch",
    ]
    await seeded_storage.projects.edit_project("mind_games", set_project_fields(removed=True))
    assert await ask(seeded_storage, BOB) == ""
    assert not await seeded_storage.personal_data.has_export_sources()


async def test_asking_again_finds_what_is_under_way_and_asks_anew_once_all_is_collected(
    seeded_storage: Storage,
) -> None:
    first, again = await asyncio.gather(ask(seeded_storage), ask(seeded_storage))
    assert first == again
    for call in await seeded_storage.personal_data.claim_due_calls(NOW, LEASE, 9):
        assert await complete_call(seeded_storage, call, b"sealed")
    assert await ask(seeded_storage) == first, "there must be responses to collect"
    for answer in await seeded_storage.personal_data.uncollected_answers(ANNA, NOW):
        await seeded_storage.personal_data.delete_answer(answer)
    assert await seeded_storage.personal_data.uncollected_answers(ANNA, NOW) == []
    assert await ask(seeded_storage) != first
    assert len(await seeded_storage.personal_data.find_requests(ANNA)) == 2


async def test_export_request_for_an_unknown_account_is_refused(seeded_storage: Storage) -> None:
    with pytest.raises(UserNotFound):
        await ask(seeded_storage, "1000000009")


async def test_no_data_request_is_stored_without_export_urls(storage: Storage) -> None:
    await install_central(storage)
    await a_person(storage, ANNA)
    assert not await storage.personal_data.has_export_sources()
    assert await ask(storage) == ""
    await erase(storage)
    assert await storage.personal_data.find_requests(ANNA) == []


# -- erasing ------------------------------------------------------------------------------------------


async def test_an_erasure_that_does_not_happen_asks_no_one(seeded_storage: Storage) -> None:
    """Either refused before anything is written, or failing after all of it."""
    await publish(seeded_storage, owners=[ANNA])
    with pytest.raises(LastOwner):
        await erase(seeded_storage, ANNA)
    taken = a_record(AuditEvent.USER_ERASED, BOB)
    await seeded_storage.accounts.add_record(taken)
    with pytest.raises(Conflict):  # the record's id is taken: the last write of the verb fails
        await seeded_storage.profile.erase_user(BOB, taken, even_last_administrator=False, now=NOW)
    assert (await seeded_storage.accounts.user(BOB)).user_id == BOB
    assert [await seeded_storage.personal_data.find_requests(user_id) for user_id in (ANNA, BOB)] == [[], []]
    assert await seeded_storage.personal_data.claim_due_calls(NOW, LEASE, 9) == []


async def test_collected_data_is_deleted_with_the_account(seeded_storage: Storage) -> None:
    await ask(seeded_storage)
    calls = await seeded_storage.personal_data.claim_due_calls(NOW, LEASE, 9)
    assert await complete_call(seeded_storage, calls[0], b"what is kept")
    assert tables_that_mention(await read_all_tables(seeded_storage), "what is kept") == {"gdpr_calls"}
    await erase(seeded_storage)
    assert tables_that_mention(await read_all_tables(seeded_storage), "what is kept") == set()
    request = await only_request(seeded_storage, ANNA)
    assert request.kind is DataJobKind.REMOVAL
    assert await complete_call(seeded_storage, calls[1], b"too late")
    assert await seeded_storage.personal_data.uncollected_answers(ANNA, NOW) == []


async def test_an_account_that_a_file_removes_is_removed_in_applications_too(seeded_storage: Storage) -> None:
    user = await seeded_storage.accounts.user(ANNA)
    await seeded_storage.runner.write(partial(delete_user, seeded_storage.ban_copies, user, NOW))
    assert (await only_request(seeded_storage, ANNA)).kind is DataJobKind.REMOVAL


# -- calls --------------------------------------------------------------------------------------------


async def test_a_call_is_no_one_elses_until_its_lease_ends_and_then_goes_on_elsewhere(
    seeded_storage: Storage,
) -> None:
    await erase(seeded_storage)
    first = await seeded_storage.personal_data.claim_due_calls(NOW, LEASE, 9)
    assert (len(first), {call.tries for call in first}) == (2, {1})
    assert await seeded_storage.personal_data.claim_due_calls(NOW + LEASE - 1, LEASE, 9) == []
    again = await seeded_storage.personal_data.claim_due_calls(NOW + LEASE, LEASE, 9)
    assert sorted(call.url for call in again) == sorted(call.url for call in first)
    assert {call.tries for call in again} == {2}


async def test_worker_that_lost_its_lease_changes_nothing_about_a_call(seeded_storage: Storage) -> None:
    await erase(seeded_storage)
    slow = (await seeded_storage.personal_data.claim_due_calls(NOW, LEASE, 1))[0]
    [quick] = [
        call
        for call in await seeded_storage.personal_data.claim_due_calls(NOW + LEASE, LEASE, 9)
        if call.url == slow.url
    ]
    await seeded_storage.personal_data.reschedule_call(slow, "too late", NOW)
    await seeded_storage.personal_data.fail_call(slow, "too late", a_record(AuditEvent.DATA_GIVEN_UP, ANNA), NOW)
    assert await complete_call(seeded_storage, slow)
    assert await seeded_storage.personal_data.claim_due_calls(NOW + LEASE, LEASE, 9) == []
    [state] = [call for call in (await only_request(seeded_storage, ANNA)).calls if call.url == quick.url]
    assert (state.state, state.trouble) == (CallState.WAITING, "")
    assert await complete_call(seeded_storage, quick)


async def test_no_url_is_claimed_twice_and_the_longest_due_call_goes_first(seeded_storage: Storage) -> None:
    await erase(seeded_storage, ANNA)
    await seeded_storage.runner.write(partial(personal_data.request_removal, BOB, NOW + 1))
    first = await seeded_storage.personal_data.claim_due_calls(NOW + 9, LEASE, 9)
    assert [(call.user_id, call.url) for call in first] == [
        (ANNA, "https://forum.example/remove"),
        (ANNA, "https://shop.example/remove"),
    ]
    assert await seeded_storage.personal_data.claim_due_calls(NOW + 9, LEASE, 9) == []
    await complete_call(seeded_storage, first[0])
    assert [
        (call.user_id, call.url) for call in await seeded_storage.personal_data.claim_due_calls(NOW + 9, LEASE, 9)
    ] == [(BOB, "https://forum.example/remove")]


async def test_each_call_and_each_url_is_claimed_by_one_of_many_workers(seeded_storage: Storage) -> None:
    await ask(seeded_storage)
    await ask(seeded_storage, BOB)
    batches = await asyncio.gather(*(seeded_storage.personal_data.claim_due_calls(NOW, LEASE, 3) for _ in range(8)))
    claimed = [call.url for batch in batches for call in batch]
    assert (len(claimed), len(set(claimed))) == (4, 4)


async def test_between_processes_too_an_address_is_called_by_one(migrated_url: str) -> None:
    async with open_storage(migrated_url, migrate=False) as storage:
        await fill(storage)
        await ask(storage)
        await ask(storage, BOB)
    assert race(permission_racers.claim_data_call, migrated_url) == {WON: 4, "NotFound": 16}


async def test_rescheduled_call_is_due_on_time_and_keeps_its_error(seeded_storage: Storage) -> None:
    await erase(seeded_storage)
    for call in await seeded_storage.personal_data.claim_due_calls(NOW, LEASE, 9):
        await seeded_storage.personal_data.reschedule_call(call, "answered 503", NOW + 60)
    request = await only_request(seeded_storage, ANNA)
    assert {(call.state, call.trouble, call.next_try_at) for call in request.calls} == {
        (CallState.WAITING, "answered 503", NOW + 60)
    }
    assert await seeded_storage.personal_data.claim_due_calls(NOW + 59, LEASE, 9) == []
    assert {call.tries for call in await seeded_storage.personal_data.claim_due_calls(NOW + 60, LEASE, 9)} == {2}


async def test_failed_call_is_never_due_again_and_is_recorded(seeded_storage: Storage) -> None:
    await erase(seeded_storage)
    for call in await seeded_storage.personal_data.claim_due_calls(NOW, LEASE, 9):
        await seeded_storage.personal_data.fail_call(
            call, "answered 500", a_record(AuditEvent.DATA_GIVEN_UP, ANNA), NOW + 7
        )
    request = await only_request(seeded_storage, ANNA)
    assert request.is_settled
    assert {(call.state, call.trouble, call.done_at) for call in request.calls} == {
        (CallState.FAILED, "answered 500", NOW + 7)
    }
    assert await seeded_storage.personal_data.claim_due_calls(NOW + 10**7, LEASE, 9) == []
    events = [record.event for record in await seeded_storage.audit.newest_records(9, ANNA, "")]
    assert events.count("user.data_given_up") == 2


async def test_calls_of_an_application_removed_meanwhile_are_given_up(seeded_storage: Storage) -> None:
    await erase(seeded_storage)
    await seeded_storage.applications.edit_application(50_001, set_fields(removed=True))
    assert urls(await seeded_storage.personal_data.claim_due_calls(NOW, LEASE, 9)) == ["forum.example/remove"]
    [dead] = [call for call in (await only_request(seeded_storage, ANNA)).calls if call.state is CallState.FAILED]
    assert (dead.application, dead.trouble) == ("Shop", "the application was removed")


# -- responses ----------------------------------------------------------------------------------------


async def test_answers_are_kept_until_they_are_collected_or_the_request_ends(seeded_storage: Storage) -> None:
    await ask(seeded_storage)
    calls = await seeded_storage.personal_data.claim_due_calls(NOW, LEASE, 9)
    for number, call in enumerate(calls):
        assert await complete_call(seeded_storage, call, bytes([number]))
    uncollected = await seeded_storage.personal_data.uncollected_answers(ANNA, NOW)
    assert sorted(answer.sealed for answer in uncollected) == [bytes([number]) for number in range(4)]
    await seeded_storage.personal_data.delete_answer(uncollected[0])
    assert len(await seeded_storage.personal_data.uncollected_answers(ANNA, NOW)) == 3
    assert await seeded_storage.personal_data.uncollected_answers(BOB, NOW) == []
    assert await seeded_storage.personal_data.uncollected_answers(ANNA, NOW + 7 * DAY) == []
    await seeded_storage.runner.write(partial(sweep_small_tables, NOW + 7 * DAY - 1))
    assert len(await seeded_storage.personal_data.find_requests(ANNA)) == 1
    await seeded_storage.runner.write(partial(sweep_small_tables, NOW + 7 * DAY))
    assert await seeded_storage.personal_data.find_requests(ANNA) == []
    assert await seeded_storage.personal_data.claim_due_calls(NOW + 8 * DAY, LEASE, 9) == []


async def test_answers_that_grow_too_large_together_are_not_kept(
    seeded_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_ANSWER_BYTES > 10**6
    monkeypatch.setattr(personal_data, "MAX_ANSWER_BYTES", 10)
    await ask(seeded_storage)
    calls = await seeded_storage.personal_data.claim_due_calls(NOW, LEASE, 9)
    assert await complete_call(seeded_storage, calls[0], b"x" * 6)
    assert not await complete_call(seeded_storage, calls[1], b"x" * 5)
    assert await complete_call(seeded_storage, calls[1], b"x" * 4)


async def test_asking_wakes_the_worker_after_the_commit(seeded_storage: Storage) -> None:
    event = asyncio.Event()
    forget = seeded_storage.runner.listen(personal_data.CHANNEL, lambda _: event.set())
    await ask(seeded_storage)
    await asyncio.wait_for(event.wait(), 10)
    forget()
