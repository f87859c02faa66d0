"""POST /api/permissions/activity: a record of the audit log or of a refused request (interface §4.14)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.fields.derive import copy_as
from gatehouse.kernel.times import iso8601
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest, Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.web.api.permissions.authentication import CredentialFields, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, permission_endpoint
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.routing import Endpoint

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
    actor: str = ""  # this and the next: of an audit record
    place: int | None = None  # in the chain, once it is sealed
    address: str = ""  # for administrators, until it is erased


class ActivityResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: ActivityEntry


class ActivityEndpoint(Struct, kw_only=True, eq=False):
    """`find`: the record of an id, reduced to what this caller may see (admin/visible_audit_log.py)."""

    find: FindRecord
    authenticator: Authenticator

    async def handle(self, request: Request) -> Response:
        body = await read_json(request, ActivityRequest)
        authenticated = await self.authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)
        return data_response(activity_entry(await self.find(authenticated, body.data.record_id)))

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


def activity_entry(record: AuditRecord | Refusal) -> ActivityEntry:
    """Return the entry of a record as reduced for its reader."""
    return copy_as(
        ActivityEntry,
        record,
        at=iso8601(record.at),
        refused=isinstance(record, Refusal),
        address=(record.personal or {}).get("address", ""),
    )
