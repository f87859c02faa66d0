"""The change stream: who reads what, where it continues, and when it ends."""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest

from gatehouse.audit.events import AuditEvent
from gatehouse.permissions.changes import streams
from gatehouse.permissions.changes.model import user_bucket
from tests.support.builders import ORIGIN
from tests.support.event_stream import PATH, open_changes
from tests.support.nginx import nginx_proxy, proxy_address
from tests.support.service import RunningService, running_service
from tests.support.studio import (
    OTHER_USER,
    PROJECT,
    Person,
    Studio,
    a_studio,
    create_administrator,
    create_person_with,
    secret_document,
)

ALL = ("all", "none")
T = TypeVar("T")


async def save_record(studio: Studio, name: str, application_id: int | None = None) -> None:
    """Record a change of the other user in an application, and seal the log."""
    about = studio.shop.application_id if application_id is None else application_id
    entry = studio.service.services.core.recorder.record(
        AuditEvent.USER_SCHEMA_SAVED, ORIGIN, subject=OTHER_USER, details={"application_id": about, "note": name}
    )
    await add_records(studio, entry)


async def add_records(studio: Studio, *entries: Any) -> None:
    services = studio.service.services
    for entry in entries:
        await services.storage.profile.add_record(entry)
    await services.audit.sealer.seal_all()


async def record(studio: Studio, event: AuditEvent, subject: str, **details: Any) -> None:
    await add_records(
        studio, studio.service.services.core.recorder.record(event, ORIGIN, subject=subject, details=details)
    )


def key_headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def get(studio: Studio, headers: Mapping[str, str], **query: object) -> tuple[int, str]:
    """Status and error of a request that opens no stream."""
    response = await studio.service.client.get(PATH, params=query, headers=headers)
    return response.status_code, response.json()["error"]


async def a_reader(studio: Studio) -> Person:
    """A person who may read everyone's permissions in the shop."""
    return await create_person_with(studio, secret_data=secret_document(roles=ALL, public=ALL, private=ALL))


async def test_ch_01_change_arrives_once_sealed_and_the_stream_continues_after_its_id(
    installed_url: str, tmp_path: Path
) -> None:
    """Nothing is lost or repeated, also over a restart of the service."""
    async with running_service(installed_url, tmp_path) as service:
        studio = await a_studio(service)
        admin = await create_administrator(studio)
        ask = {"action": "save", "data": {"application_id": studio.shop.application_id, "description": "Sells"}}
        async with open_changes(service.client, admin.headers) as stream:
            assert stream.response.headers["content-type"] == "text/event-stream"
            assert stream.response.headers["x-accel-buffering"] == "no"
            await studio.expect_ok("application", ask, studio.owner.headers)
            await service.services.audit.sealer.seal_all()
            await save_record(studio, "a")
            first, second = await stream.changes(2)
            assert first == {
                "kind": "application",
                "event": "application.changed",
                "at": "2027-01-15T08:00:00Z",
                "application_id": studio.shop.application_id,
            }
            assert (second["kind"], second["user_id"]) == ("record", OTHER_USER)
        await save_record(studio, "b", 7)  # while no stream is open
        clock, last = service.clock, stream.last_id
    async with running_service(installed_url, tmp_path, clock=clock) as again:
        restarted = replace(studio, service=again)
        async with open_changes(again.client, (await renewed(restarted, admin)).headers, last) as stream:
            await save_record(restarted, "c", 8)
            assert [change["application_id"] for change in await stream.changes(2)] == [7, 8]


async def renewed(studio: Studio, person: Person) -> Person:
    """The person with a JWT of a service that has another address now."""
    services = studio.service.services
    user = await services.storage.accounts.user(person.user_id)
    jwt = await services.accounts.user_tokens.issue(user, auth="login", factor="the device")
    return Person(user_id=person.user_id, jwt=jwt)


async def test_ch_02_application_reads_its_own_changes_and_learns_no_other_name(studio: Studio) -> None:
    shop, other = studio.shop.application_id, studio.other.application_id
    key = await studio.access_key()
    await studio.service.services.audit.sealer.seal_all()
    async with open_changes(studio.service.client, key_headers(key)) as stream:
        await save_record(studio, "not of the shop", other)
        await record(studio, AuditEvent.SCHEMA_SAVED, f"application {other}")
        await save_record(studio, "of the shop")
        await record(studio, AuditEvent.USER_BLOCKED, OTHER_USER)
        await record(studio, AuditEvent.PROJECT_CHANGED, "project foreign")
        await record(studio, AuditEvent.GROUP_CHANGED, "group 5f", project_id=PROJECT)
        await record(studio, AuditEvent.CLIENT_REMOVED, "client-1")
        await record(studio, AuditEvent.KEY_DISTRUSTED, "keys")
        seen = await stream.changes(6)
    at = "2027-01-15T08:00:00Z"
    assert seen == [
        {"kind": "record", "event": "user_schema.saved", "at": at, "application_id": shop, "user_id": OTHER_USER},
        {"kind": "user", "at": at, "user_bucket": user_bucket(OTHER_USER)},
        {"kind": "project", "at": at},
        {"kind": "group", "event": "group.changed", "at": at, "project_id": PROJECT, "group_id": "5f"},
        {"kind": "client", "at": at},
        {"kind": "installation", "at": at},
    ]


async def test_ch_03_readers_see_what_their_rights_cover_and_filters_narrow_it(studio: Studio) -> None:
    shop = studio.shop.application_id
    reader, admin = await a_reader(studio), await create_administrator(studio)
    service = {"Service-Jwt": await studio.service_jwt()}
    client = studio.service.client
    async with (
        open_changes(client, reader.headers, application_id=shop, kind=["record", "schema"]) as of_reader,
        open_changes(client, admin.headers, application_id=shop, kind="user") as of_admin,
        open_changes(client, service, application_id=shop, kind="schema") as of_service,
    ):
        await save_record(studio, "a")
        await record(studio, AuditEvent.USER_BLOCKED, OTHER_USER)
        await record(studio, AuditEvent.ROLE_SAVED, f"application {shop}")
        assert [change["kind"] for change in await of_reader.changes(2)] == ["record", "schema"]
        assert (await of_admin.changes(1))[0]["user_id"] == OTHER_USER
        assert (await of_service.changes(1))[0]["event"] == "role.saved"
    stranger = studio.other_user.headers
    assert await get(studio, {}) == (401, "invalid token")
    assert (await get(studio, stranger, application_id=shop))[0] == 403
    assert (await get(studio, stranger, application_id=999_999))[0] == 403
    assert await get(studio, stranger) == (400, "application_id: required")
    assert (await get(studio, admin.headers, application_id=999_999))[0] == 404
    assert (await get(studio, service, application_id=studio.other.application_id))[0] == 403
    assert (await get(studio, admin.headers, kind="everything")) == (400, "kind[0]: invalid enum value 'everything'")
    assert (await get(studio, admin.headers, until="now"))[0] == 400


async def test_ch_04_foreign_or_altered_event_id_is_refused(studio: Studio) -> None:
    admin, other = await create_administrator(studio), await create_administrator(studio)
    async with open_changes(studio.service.client, admin.headers) as stream:
        issued = stream.last_id
    error = (400, "Last-Event-ID: not an id that this caller received.")
    for headers, given in (
        (other.headers, issued),
        (key_headers(await studio.access_key()), issued),
        (admin.headers, f"{issued[:-3]}AAA"),
        (admin.headers, issued[:20]),
        (admin.headers, "17"),
        (admin.headers, "ü" * 20),
        (admin.headers, "A" * 4_000),
    ):
        assert await get(studio, {**headers, "Last-Event-ID": given.encode()}) == error  # type: ignore[dict-item]


@pytest.mark.parametrize("by", ["key", "service_jwt", "person"])
async def test_ch_05_stream_ends_with_the_credential_before_another_change_is_sent(studio: Studio, by: str) -> None:
    services, shop = studio.service.services, studio.shop.application_id
    person = await a_reader(studio)
    issued = await services.permissions.service_tokens.issue(shop, origin=ORIGIN)
    headers = {
        "key": key_headers(await studio.access_key()),
        "service_jwt": {"Service-Jwt": issued.jwt},
        "person": person.headers,
    }[by]
    async with open_changes(studio.service.client, headers, application_id=shop) as stream:
        if by == "key":
            [key] = await services.storage.application_keys.access_keys(shop)
            ask = {"action": "delete", "application_id": shop, "data": {"id": key.key_id}}
            await studio.expect_ok("accessKey", ask, studio.owner.headers)
        elif by == "service_jwt":
            await services.permissions.service_tokens.revoke(shop, issued.token.jti, ORIGIN)
        else:
            await services.accounts.administration.block(person.user_id, ORIGIN)
        await save_record(studio, "secret")
        assert await stream.is_ended()
    assert not len(services.changes.streams)


async def test_heartbeat_keeps_the_position_and_ends_an_expired_credential(studio: Studio) -> None:
    reader = await a_reader(studio)
    client, clock = studio.service.client, studio.service.clock
    async with open_changes(client, reader.headers, application_id=studio.shop.application_id) as stream:
        await record(studio, AuditEvent.SCHEMA_SAVED, f"application {studio.other.application_id}")
        first = stream.last_id
        assert await while_time_passes(studio, stream.next()) is None
        assert stream.last_id != first
        clock.set_back(-365 * 86_400)  # forwards
        assert await while_time_passes(studio, stream.is_ended())


async def while_time_passes(studio: Studio, waiting: Coroutine[Any, Any, T]) -> T:
    """What it returns, while the clock moves as fast as the service takes part."""
    task = asyncio.create_task(waiting)
    while not task.done():
        await studio.service.clock.advance(1)
    return task.result()


async def test_ch_06_streams_are_limited_for_each_caller_and_in_total(installed_url: str, tmp_path: Path) -> None:
    limits = {"GATEHOUSE__PERMISSIONS__STREAMS_PER_CALLER": "1", "GATEHOUSE__PERMISSIONS__STREAMS_MOST": "2"}
    async with running_service(installed_url, tmp_path, environment=limits) as service:
        studio = await a_studio(service)
        first, second, third = [await create_administrator(studio) for _ in range(3)]
        async with open_changes(service.client, first.headers):
            assert (await get(studio, first.headers))[0] == 429
            async with open_changes(service.client, second.headers):
                assert (await get(studio, third.headers))[0] == 429
                assert len(service.services.changes.streams) == 2
            await until_streams(service, 1)
            async with open_changes(service.client, third.headers):
                pass
        await until_streams(service, 0)


async def until_streams(service: RunningService, count: int) -> None:
    """The server learns of a closed connection with the next event of its loop."""
    async with asyncio.timeout(10):
        while len(service.services.changes.streams) != count:  # noqa: ASYNC110 - no one is notified
            await asyncio.sleep(0)


async def test_stream_ends_when_the_service_stops(studio: Studio) -> None:
    admin = await create_administrator(studio)
    async with open_changes(studio.service.client, admin.headers) as stream:
        studio.service.stopping.begin()
        assert await stream.is_ended()


async def test_reader_too_far_behind_is_told_to_start_anew(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = await create_administrator(studio)
    async with open_changes(studio.service.client, admin.headers) as stream:
        last = stream.last_id
    for name in "ab":
        await save_record(studio, name)
    async with open_changes(studio.service.client, admin.headers, last) as stream:
        assert len(await stream.changes(2)) == 2
    monkeypatch.setattr(streams, "MAX_BEHIND", 1)
    async with open_changes(studio.service.client, admin.headers, last) as stream:
        assert await stream.next() == {"kind": "reset"}
        await save_record(studio, "c")
        assert (await stream.changes(1))[0]["kind"] == "record"


async def test_change_passes_nginx_at_once(installed_sqlite_url: str, tmp_path: Path) -> None:
    base_url, port = proxy_address()
    async with running_service(installed_sqlite_url, tmp_path) as service:
        studio = await a_studio(service)
        admin = await create_administrator(studio)
        with nginx_proxy(port, [f"127.0.0.1:{service.client.base_url.port}"]) as proxy:
            async with (
                httpx2.AsyncClient(base_url=base_url, verify=proxy.trust, timeout=10) as client,
                open_changes(client, admin.headers) as stream,
            ):
                await save_record(studio, "a")
                assert (await stream.changes(1))[0]["kind"] == "record"
            await until_streams(service, 0)
