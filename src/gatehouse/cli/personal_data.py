"""What `gatehouse user export` and `user gdpr` do and show."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from gatehouse.accounts.model import User
from gatehouse.accounts.own.export import PersonalDataExport
from gatehouse.app.house import Services
from gatehouse.app.own_account import export
from gatehouse.audit.model import AuditOrigin
from gatehouse.cli.output import format_time, print_table
from gatehouse.cli.people import find_user
from gatehouse.personal_data.model import DataCall, DataRequest

POLL_SECONDS: Final = 1.0  # seconds
REQUEST_HEADINGS: Final = ("REQUEST", "KIND", "REQUESTED", "APPLICATION", "URL", "STATE", "ATTEMPTS", "NEXT", "ERROR")


class DataCallEntry(msgspec.Struct, frozen=True, kw_only=True):
    application_id: int
    application: str
    url: str
    state: str
    tries: int
    next_try: str
    done: str
    trouble: str
    answer_kept: bool


class DataRequestEntry(msgspec.Struct, frozen=True, kw_only=True):
    request_id: str
    kind: str
    user_id: str
    asked: str
    kept_until: str
    settled: bool
    calls: Sequence[DataCallEntry]


class UserExport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    requests: Sequence[DataRequestEntry]
    data: PersonalDataExport | None = None


async def export_user_data(services: Services, user: User, origin: AuditOrigin, *, seconds: int) -> UserExport:
    """Ask; with seconds to wait, make the calls from here too: a server need not be running."""
    request_id = await services.data_requests.request_export(user.user_id, origin)
    if not seconds:
        return UserExport(requests=await requests_of(services, request_id))
    try:
        async with asyncio.timeout(seconds):
            await wait_until_settled(services, request_id)
    except TimeoutError:
        pass  # what is there is printed, and the status tells what is missing
    data = await export(services).export_user(user, origin)
    return UserExport(requests=await requests_of(services, request_id), data=data)


async def wait_until_settled(services: Services, request_id: str) -> None:
    while not all(request.is_settled for request in await services.data_requests.find_requests(request_id)):
        await services.data_jobs.run_once()
        await services.clock.sleep(POLL_SECONDS)


async def find_requests(services: Services, name: str) -> list[DataRequestEntry]:
    """By the id of a request or a user, or by the login of somebody who is still there."""
    if "@" in name:
        name = (await find_user(services, name)).user_id
    return await requests_of(services, name)


async def requests_of(services: Services, name: str) -> list[DataRequestEntry]:
    return [request_entry(request) for request in await services.data_requests.find_requests(name)] if name else []


def request_entry(request: DataRequest) -> DataRequestEntry:
    return DataRequestEntry(
        request_id=request.request_id,
        kind=request.kind.value,
        user_id=request.user_id,
        asked=format_time(request.created_at),
        kept_until=format_time(request.ends_at),
        settled=request.is_settled,
        calls=[call_entry(call) for call in request.calls],
    )


def call_entry(call: DataCall) -> DataCallEntry:
    return DataCallEntry(
        application_id=call.application_id,
        application=call.application,
        url=call.url,
        state=call.state.value,
        tries=call.tries,
        next_try="" if call.done_at else format_time(call.next_try_at),
        done=format_time(call.done_at),
        trouble=call.trouble,
        answer_kept=call.is_answer_kept,
    )


def print_requests(requests: Sequence[DataRequestEntry]) -> None:
    rows = [
        (
            *(request.request_id, request.kind, request.asked, call.application or call.application_id, call.url),
            *(call.state, call.tries, call.next_try, call.trouble),
        )
        for request in requests
        for call in request.calls
    ]
    if rows:
        print_table(REQUEST_HEADINGS, rows)
    else:
        print_table((), [("No applications were contacted.",)])
