"""`gatehouse user export` and `gdpr`: requests for personal data."""

import asyncio
from collections.abc import Sequence
from typing import Final

import click
import msgspec

from gatehouse.accounts.model import User
from gatehouse.accounts.own_account.export import PersonalDataExport
from gatehouse.app.services import Services
from gatehouse.audit.model import AuditOrigin
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.output import format_time, print_table
from gatehouse.cli.services import find_user, operator_origin, run_with_services
from gatehouse.fields.derive import copy_as
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
    """Request the data; with seconds to wait, also make the calls here: the server need not be running."""
    request_id = await services.personal_data.requests.request_export(user.user_id, origin)
    if not seconds:
        return UserExport(requests=await requests_of(services, request_id))
    try:
        async with asyncio.timeout(seconds):
            await wait_until_settled(services, request_id)
    except TimeoutError:
        pass  # print what was found; the exit status tells that something is missing
    data = await services.personal_data.export.export_user(user, origin)
    return UserExport(requests=await requests_of(services, request_id), data=data)


async def wait_until_settled(services: Services, request_id: str) -> None:
    while not all(request.is_settled for request in await services.personal_data.requests.find_requests(request_id)):
        await services.personal_data.jobs.run_once()
        await services.clock.sleep(POLL_SECONDS)


async def find_requests(services: Services, name: str) -> list[DataRequestEntry]:
    """By the ID of a request or a user, or by the login of an existing account."""
    if "@" in name:
        name = (await find_user(services, name)).user_id
    return await requests_of(services, name)


async def requests_of(services: Services, name: str) -> list[DataRequestEntry]:
    return (
        [request_entry(request) for request in await services.personal_data.requests.find_requests(name)]
        if name
        else []
    )


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
    return copy_as(
        DataCallEntry,
        call,
        state=call.state.value,
        next_try="" if call.done_at else format_time(call.next_try_at),
        done=format_time(call.done_at),
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


@click.command("export")
@common_options
@json_option
@click.argument("user_name", metavar="USER")
@click.option("--wait", is_flag=True, help="Wait for the applications' answers and print all data.")
@click.option("--seconds", type=click.IntRange(1, 3_600), default=60, help="Maximum seconds to wait.  [default: 60]")
def export_user(invocation: Invocation, *, user_name: str, wait: bool, seconds: int, as_json: bool) -> None:
    """Request a person's data from applications; with --wait, print it together with the data stored here.

    Answers are kept for seven days and returned once. Run the command again to see the progress.
    """

    async def work(services: Services) -> UserExport:
        found = await find_user(services, user_name)
        return await export_user_data(services, found, operator_origin(), seconds=seconds if wait else 0)

    result = run_with_services(invocation, work)
    if as_json or wait:
        print_json(result)
    else:
        print_requests(result.requests)


@click.command()
@common_options
@json_option
@click.argument("name", metavar="USER_OR_REQUEST")
def gdpr(invocation: Invocation, *, name: str, as_json: bool) -> None:
    """Show the data requests sent to applications about a person, including erased ones, and their results."""

    async def work(services: Services) -> list[DataRequestEntry]:
        return await find_requests(services, name)

    found = run_with_services(invocation, work)
    if as_json:
        print_json(found)
    else:
        print_requests(found)
