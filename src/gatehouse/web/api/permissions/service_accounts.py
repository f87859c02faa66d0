"""POST /api/permissions/serviceAccount (R1, R6)."""

from typing import Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.fields.derive import entry_members, entry_values, with_members
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.service_accounts import (
    HOLDINGS_MEMBERS,
    ListedServiceAccount,
    ServiceAccountCommands,
    ServiceAccountDraft,
)
from gatehouse.permissions.model.service_account import SERVICE_ACCOUNT_FIELDS
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, ok_response, permission_endpoint
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.routing import Endpoint


class ServiceAccountRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "save", "delete"]
    data: ServiceAccountDraft


@with_members(lambda: entry_members(SERVICE_ACCOUNT_FIELDS))
class ServiceAccountRecord(SecretRecord, frozen=True, kw_only=True):
    """A service account without what it holds."""


class ServiceAccountEntry(ServiceAccountRecord, frozen=True, kw_only=True, omit_defaults=True):
    roles: object = ()  # this and the next three: what it holds in its project
    applications: object = None
    services: object = None
    groups: object = None
    jwt: SecretText = ""  # this and the next in the answer to its creation only
    jwt_expired: int = 0


class ServiceAccountResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: tuple[ServiceAccountEntry, ...] | ServiceAccountEntry | None = None  # a list for get, the new one for save


class ServiceAccountEndpoint(Struct, kw_only=True, eq=False):
    accounts: ServiceAccountCommands
    authenticator: Authenticator

    async def handle(self, request: Request) -> Response:
        body = await read_json(request, ServiceAccountRequest)
        authenticated = await self.authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)
        actor = actor_of(request, authenticated)
        match body.action:
            case "get":
                listed = await self.accounts.list(actor, authenticated.central, body.data.project_id)
                return data_response(tuple(service_account_entry(account) for account in listed))
            case "save":
                made = await self.accounts.create(actor, authenticated.central, body.data)
                return data_response(service_account_entry(made.listed, jwt=made.jwt, ends_at=made.ends_at))
            case "delete":
                await self.accounts.revoke(actor, body.data.user_id, body.data.version)
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
    return ServiceAccountEntry(
        **entry_values(listed.account, SERVICE_ACCOUNT_FIELDS),
        **{name: listed.holds[name] for name in HOLDINGS_MEMBERS if name in listed.holds},
        jwt=jwt,
        jwt_expired=ends_at,
    )
