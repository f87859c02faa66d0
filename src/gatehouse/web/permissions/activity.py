"""POST /api/permissions/activity: a record of the audit log, or of what was refused (interface §4.14)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.audit.model import Record, Refusal
from gatehouse.permissions.callers.credentials import ORDINARY
from gatehouse.permissions.callers.desk import Visit
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.credentials import Asked
from gatehouse.web.permissions.envelope import answer, post
from gatehouse.web.permissions.front_desk import FrontDesk
from gatehouse.web.permissions.moments import moment
from gatehouse.web.routes.table import Endpoint

Find: TypeAlias = Callable[[Visit, str], Awaitable[Record | Refusal]]


class ActivityData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    record_id: str


class ActivityRequest(Asked, frozen=True, kw_only=True):
    action: Literal["get"]
    data: ActivityData


class ActivityEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    record_id: str
    at: str
    event: str
    subject: str
    request_id: str
    details: Mapping[str, str | int | bool | None]
    refused: bool
    reason: str = ""  # of a refusal
    actor: str = ""  # this and the next: of what happened
    place: int | None = None  # in the chain, once it is sealed
    address: str = ""  # to who administers, until it is erased


class ActivityAnswer(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: ActivityEntry


class ActivityEndpoint:
    def __init__(self, *, find: Find, desk: FrontDesk) -> None:
        """`find`: what the log has of this id for this caller, cut to what he may see (admin/seen_log.py)."""
        self._find = find
        self._desk = desk

    async def act(self, request: Request) -> Response:
        ask = await read_json(request, ActivityRequest)
        visit = await self._desk.visit(request, ask, ORDINARY)
        return answer(entry(await self._find(visit, ask.data.record_id)))

    def endpoint(self) -> Endpoint:
        return post(
            "activity",
            self.act,
            name="activity",
            request=ActivityRequest,
            section="interface §4.14",
            summary="Audit record or refused request by ID",
            answers=ActivityAnswer,
        )


def entry(found: Record | Refusal) -> ActivityEntry:
    """Of what `shown` left of it."""
    common = ActivityEntry(
        record_id=found.record_id,
        at=moment(found.at),
        event=found.event,
        subject=found.subject,
        request_id=found.request_id,
        details=found.details,
        refused=isinstance(found, Refusal),
        address=(found.personal or {}).get("address", ""),
    )
    if isinstance(found, Refusal):
        return msgspec.structs.replace(common, reason=found.reason)
    return msgspec.structs.replace(common, actor=found.actor, place=found.place)
