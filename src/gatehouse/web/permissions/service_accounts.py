"""POST /api/permissions/serviceAccount (R1, R6)."""

from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.callers.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.service_accounts import (
    HOLDINGS_MEMBERS,
    ListedServiceAccount,
    ServiceAccountCommands,
    ServiceAccountDraft,
)
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.credentials import CredentialFields
from gatehouse.web.permissions.envelope import data_response, ok_response, permission_endpoint
from gatehouse.web.permissions.front_desk import RequestAuthenticator, actor_of
from gatehouse.web.permissions.moments import iso8601
from gatehouse.web.routes.table import Endpoint


class ServiceAccountRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "save", "delete"]
    data: ServiceAccountDraft


class ServiceAccountEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    user_id: str
    project_id: str
    name: str
    comment: str
    ip_ranges: tuple[str, ...]
    public_key: str
    created_by: str
    created: str
    revoked: bool
    version: int
    roles: object = ()  # this and the next three: what it holds in its project
    applications: object = None
    services: object = None
    groups: object = None
    jwt: str = ""  # this and the next in the answer to its creation only
    jwt_expired: int = 0


class ServiceAccountResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: tuple[ServiceAccountEntry, ...] | ServiceAccountEntry | None = None  # a list for get, the new one for save


class ServiceAccountEndpoint:
    def __init__(self, *, accounts: ServiceAccountCommands, authenticator: RequestAuthenticator) -> None:
        self._accounts = accounts
        self._authenticator = authenticator

    async def handle(self, request: Request) -> Response:
        ask = await read_json(request, ServiceAccountRequest)
        visit = await self._authenticator.authenticate(request, ask, DEFAULT_POLICY)
        actor = actor_of(request, visit)
        match ask.action:
            case "get":
                listed = await self._accounts.list(actor, visit.central, ask.data.project_id)
                return data_response(tuple(service_account_entry(one) for one in listed))
            case "save":
                made = await self._accounts.create(actor, visit.central, ask.data)
                return data_response(service_account_entry(made.listed, jwt=made.jwt, ends_at=made.ends_at))
            case "delete":
                await self._accounts.revoke(actor, ask.data.user_id, ask.data.version)
                return ok_response()

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "serviceAccount",
            self.handle,
            name="service_account",
            request=ServiceAccountRequest,
            section="interface §4.14",
            summary="Service accounts of a project: get, save (creates; returns the JWT once), delete (revokes)",
            answers=ServiceAccountResponse,
        )


def service_account_entry(listed: ListedServiceAccount, *, jwt: str = "", ends_at: int = 0) -> ServiceAccountEntry:
    account = listed.account
    return ServiceAccountEntry(
        user_id=account.user_id,
        project_id=account.project_id,
        name=account.name,
        comment=account.comment,
        ip_ranges=account.ip_ranges,
        public_key=account.public_key,
        created_by=account.created_by,
        created=iso8601(account.created_at),
        revoked=account.revoked,
        version=account.version,
        **{name: listed.holds[name] for name in HOLDINGS_MEMBERS if name in listed.holds},
        jwt=jwt,
        jwt_expired=ends_at,
    )
