"""Contract tests of PushedRequestStore in oauth/store.py."""

import asyncio
from functools import partial

import pytest
from msgspec.structs import replace

from gatehouse.oauth.model import PushedRequest
from gatehouse.storage.database import Storage
from gatehouse.storage.epoch import raise_epoch
from tests.support.builders import NOW, a_client, a_record

MINUTE = 60


def a_pushed_request(digest: bytes = b"pushed", **fields: object) -> PushedRequest:
    request = PushedRequest(
        digest=digest,
        client_id="web",
        source="192.0.2.7",
        request="{}",
        created_at=NOW,
        ends_at=NOW + MINUTE,
    )
    return replace(request, **fields)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
async def client(storage: Storage) -> None:
    await storage.clients.create_client(a_client(), a_record())


async def test_a_pushed_request_is_found_by_its_own_client_until_it_ends(storage: Storage) -> None:
    store = storage.pushed_requests
    assert await store.add_pushed_request(a_pushed_request(), most=100) == 0
    assert await store.find_pushed_request(b"pushed", "web", NOW + 59) == a_pushed_request()
    for digest, client_id, now in ((b"pushed", "web", NOW + 60), (b"pushed", "app", NOW), (b"other", "web", NOW)):
        assert await store.find_pushed_request(digest, client_id, now) is None
        assert await store.take_pushed_request(digest, client_id, now) is None
    assert await store.take_pushed_request(b"pushed", "web", NOW + 59) == a_pushed_request()


async def test_of_concurrent_takers_exactly_one_gets_a_pushed_request(storage: Storage) -> None:
    store = storage.pushed_requests
    await store.add_pushed_request(a_pushed_request(), most=100)
    taken = await asyncio.gather(*(store.take_pushed_request(b"pushed", "web", NOW) for _ in range(8)))
    assert [request for request in taken if request] == [a_pushed_request()]


async def test_no_more_than_most_requests_of_one_client_and_source_are_open(storage: Storage) -> None:
    store = storage.pushed_requests
    pushes = (store.add_pushed_request(a_pushed_request(bytes([n])), most=5) for n in range(12))
    assert sorted(await asyncio.gather(*pushes)) == [0] * 5 + [MINUTE] * 7
    assert await store.add_pushed_request(a_pushed_request(b"elsewhere", source="192.0.2.8"), most=5) == 0
    assert await store.add_pushed_request(a_pushed_request(b"other", client_id="app"), most=5) == 0
    later = a_pushed_request(b"later", created_at=NOW + 20, ends_at=NOW + 80)
    assert await store.add_pushed_request(later, most=5) == 40
    after = replace(later, created_at=NOW + MINUTE, ends_at=NOW + 2 * MINUTE)
    assert await store.add_pushed_request(after, most=5) == 0


async def test_an_expired_pushed_request_is_swept(storage: Storage) -> None:
    store = storage.pushed_requests
    await store.add_pushed_request(a_pushed_request(), most=1)
    await storage.sweep(NOW + 59)
    assert await store.find_pushed_request(b"pushed", "web", NOW) is not None
    await storage.sweep(NOW + 60)
    assert await store.find_pushed_request(b"pushed", "web", NOW) is None


async def test_a_promotion_or_restore_ends_pushed_requests(storage: Storage) -> None:
    store = storage.pushed_requests
    await store.add_pushed_request(a_pushed_request(), most=1)
    await storage.runner.write(partial(raise_epoch, NOW * 1_000))
    assert await store.take_pushed_request(b"pushed", "web", NOW) is None
    assert await store.add_pushed_request(a_pushed_request(b"later"), most=1) == 0
