"""POST /api/permissions/activity: a record of the audit log, or of what was refused (interface §4.14)."""

from collections.abc import Mapping
from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.audit.model import Record, Refusal
from gatehouse.audit.store import AuditStore
from gatehouse.gamesessions.model import short_gsid
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.callers.credentials import ORDINARY
from gatehouse.permissions.rights.guard import Operation, require
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.credentials import Asked
from gatehouse.web.permissions.envelope import answer, post
from gatehouse.web.permissions.front_desk import FrontDesk
from gatehouse.web.permissions.moments import moment
from gatehouse.web.routes.table import Endpoint


class RecordNotFound(NotFound):
    public = "There is no such record, or it is no longer kept."


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
    address: str = ""  # until it is erased


class ActivityAnswer(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: ActivityEntry


class ActivityEndpoint:
    def __init__(self, *, log: AuditStore, desk: FrontDesk) -> None:
        self._log = log
        self._desk = desk

    async def act(self, request: Request) -> Response:
        ask = await read_json(request, ActivityRequest)
        actor = await self._desk.actor(request, ask, ORDINARY)
        require(actor.rights, Operation.ADMINISTER)
        found = await self._log.find(ask.data.record_id)
        if found is None:
            raise RecordNotFound
        return answer(entry(found))

    def endpoint(self) -> Endpoint:
        return post(
            "activity",
            self.act,
            name="activity",
            request=ActivityRequest,
            section="interface §4.14",
            summary="A record of the audit log, or what stands behind the id that a refused caller was told",
            answers=ActivityAnswer,
        )


def entry(found: Record | Refusal) -> ActivityEntry:
    """No whole gsid: whoever knows one could go on with it (R4)."""
    details = {name: short_gsid(one) if isinstance(one, str) else one for name, one in found.details.items()}
    common = ActivityEntry(
        record_id=found.record_id,
        at=moment(found.at),
        event=found.event,
        subject=short_gsid(found.subject),
        request_id=found.request_id,
        details=details,
        refused=isinstance(found, Refusal),
        address=(found.personal or {}).get("address", ""),
    )
    if isinstance(found, Refusal):
        return msgspec.structs.replace(common, reason=found.reason)
    return msgspec.structs.replace(common, actor=found.actor, place=found.place)
