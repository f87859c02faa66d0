"""POST /api/permissions/activity: a record of the audit log, or of what was refused (interface §4.14)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.permissions.callers.credentials import DEFAULT_POLICY
from gatehouse.permissions.callers.desk import AuthenticatedRequest
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.credentials import CredentialFields
from gatehouse.web.permissions.envelope import data_response, permission_endpoint
from gatehouse.web.permissions.front_desk import RequestAuthenticator
from gatehouse.web.permissions.moments import iso8601
from gatehouse.web.routes.table import Endpoint

FindRecord: TypeAlias = Callable[[AuthenticatedRequest, str], Awaitable[AuditRecord | Refusal]]


class ActivityData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    record_id: str


class ActivityRequest(CredentialFields, frozen=True, kw_only=True):
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


class ActivityResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: ActivityEntry


class ActivityEndpoint:
    def __init__(self, *, find: FindRecord, authenticator: RequestAuthenticator) -> None:
        """`find`: what the log has of this id for this caller, cut to what he may see (admin/seen_log.py)."""
        self._find = find
        self._authenticator = authenticator

    async def handle(self, request: Request) -> Response:
        ask = await read_json(request, ActivityRequest)
        visit = await self._authenticator.authenticate(request, ask, DEFAULT_POLICY)
        return data_response(activity_entry(await self._find(visit, ask.data.record_id)))

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "activity",
            self.handle,
            name="activity",
            request=ActivityRequest,
            section="interface §4.14",
            summary="Audit record or refused request by ID",
            answers=ActivityResponse,
        )


def activity_entry(found: AuditRecord | Refusal) -> ActivityEntry:
    """Of what `shown` left of it."""
    common = ActivityEntry(
        record_id=found.record_id,
        at=iso8601(found.at),
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
