"""What `gatehouse user export` and `user gdpr` do and show."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from gatehouse.accounts.model import User
from gatehouse.accounts.own.export import PersonalData
from gatehouse.app.house import House
from gatehouse.app.own_account import export
from gatehouse.audit.model import Origin
from gatehouse.cli.output import moment, print_table
from gatehouse.cli.people import find_user
from gatehouse.personal_data.model import DataCall, DataRequest

LOOK_EVERY: Final = 1.0  # seconds
HEADINGS: Final = ("REQUEST", "KIND", "REQUESTED", "APPLICATION", "URL", "STATE", "ATTEMPTS", "NEXT", "ERROR")


class Call(msgspec.Struct, frozen=True, kw_only=True):
    application_id: int
    application: str
    url: str
    state: str
    tries: int
    next_try: str
    done: str
    trouble: str
    answer_kept: bool


class Request(msgspec.Struct, frozen=True, kw_only=True):
    request_id: str
    kind: str
    user_id: str
    asked: str
    kept_until: str
    settled: bool
    calls: Sequence[Call]


class Exported(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    requests: Sequence[Request]
    data: PersonalData | None = None


async def exported(house: House, user: User, origin: Origin, *, seconds: int) -> Exported:
    """Ask; with seconds to wait, make the calls from here too: a server need not be running."""
    request_id = await house.data_desk.ask(user.user_id, origin)
    if not seconds:
        return Exported(requests=await requests_of(house, request_id))
    try:
        async with asyncio.timeout(seconds):
            await settle(house, request_id)
    except TimeoutError:
        pass  # what is there is printed, and the status tells what is missing
    data = await export(house).of(user, origin)
    return Exported(requests=await requests_of(house, request_id), data=data)


async def settle(house: House, request_id: str) -> None:
    while not all(request.is_settled for request in await house.data_desk.requests(request_id)):
        await house.data_errands.run_once()
        await house.clock.sleep(LOOK_EVERY)


async def requests_named(house: House, name: str) -> list[Request]:
    """By the id of a request or a user, or by the login of somebody who is still there."""
    if "@" in name:
        name = (await find_user(house, name)).user_id
    return await requests_of(house, name)


async def requests_of(house: House, name: str) -> list[Request]:
    return [told(request) for request in await house.data_desk.requests(name)] if name else []


def told(request: DataRequest) -> Request:
    return Request(
        request_id=request.request_id,
        kind=request.errand.value,
        user_id=request.user_id,
        asked=moment(request.created_at),
        kept_until=moment(request.ends_at),
        settled=request.is_settled,
        calls=[told_call(call) for call in request.calls],
    )


def told_call(call: DataCall) -> Call:
    return Call(
        application_id=call.application_id,
        application=call.application,
        url=call.url,
        state=call.state.value,
        tries=call.tries,
        next_try="" if call.done_at else moment(call.next_try_at),
        done=moment(call.done_at),
        trouble=call.trouble,
        answer_kept=call.is_answer_kept,
    )


def print_requests(requests: Sequence[Request]) -> None:
    rows = [
        (
            *(request.request_id, request.kind, request.asked, call.application or call.application_id, call.url),
            *(call.state, call.tries, call.next_try, call.trouble),
        )
        for request in requests
        for call in request.calls
    ]
    if rows:
        print_table(HEADINGS, rows)
    else:
        print_table((), [("No applications were contacted.",)])
