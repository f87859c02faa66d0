"""POST /api/permissions/serviceAccount (R1, R6)."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.fields.derive import entry_members, entry_values, with_members
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.times import iso8601
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.application_credentials import EmailSecretCommands, ServiceTokenCommands
from gatehouse.permissions.commands.service_accounts import (
    HOLDINGS_MEMBERS,
    ListedServiceAccount,
    ServiceAccountCommands,
    ServiceAccountDraft,
)
from gatehouse.permissions.documents.grammar import ApplicationId
from gatehouse.permissions.model.application import EmailSecret, ServiceToken
from gatehouse.permissions.model.project import SERVICE_ACCOUNT_FIELDS
from gatehouse.web.api.permissions.authentication import CredentialFields, RequestAuthenticator, actor_of
from gatehouse.web.api.permissions.envelope import data_response, ok_response, permission_endpoint, require_field
from gatehouse.web.api.permissions.schemas import parse_optional_application_id
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
    authenticator: RequestAuthenticator

    async def handle(self, request: Request) -> Response:
        ask = await read_json(request, ServiceAccountRequest)
        visit = await self.authenticator.authenticate(request, ask, DEFAULT_POLICY)
        actor = actor_of(request, visit)
        match ask.action:
            case "get":
                listed = await self.accounts.list(actor, visit.central, ask.data.project_id)
                return data_response(tuple(service_account_entry(one) for one in listed))
            case "save":
                made = await self.accounts.create(actor, visit.central, ask.data)
                return data_response(service_account_entry(made.listed, jwt=made.jwt, ends_at=made.ends_at))
            case "delete":
                await self.accounts.revoke(actor, ask.data.user_id, ask.data.version)
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


# POST /api/permissions/serviceToken: the static service JWTs of an application (interface §4.14, R2).


class ServiceTokenData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    comment: Annotated[str, Meta(max_length=200)] = ""  # this and the next: of create
    days: Annotated[int, Meta(ge=1, le=365)] | None = None
    jti: str = ""  # of delete


class ServiceTokenRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "create", "delete"]
    application_id: ApplicationId | None = None
    data: ServiceTokenData = ServiceTokenData()


class ServiceTokenEntry(SecretRecord, frozen=True, kw_only=True):
    jti: str
    application_id: int
    comment: str
    created: str
    ends: str
    revoked: bool


class NewServiceTokenEntry(ServiceTokenEntry, frozen=True, kw_only=True):
    jwt: SecretText  # never shown again


class ServiceTokenResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: tuple[ServiceTokenEntry, ...] | NewServiceTokenEntry | None = None  # none for delete


class ServiceTokenEndpoint(Struct, kw_only=True, eq=False):
    tokens: ServiceTokenCommands
    authenticator: RequestAuthenticator

    async def handle(self, request: Request) -> Response:
        ask = await read_json(request, ServiceTokenRequest)
        visit = await self.authenticator.authenticate(
            request, ask, DEFAULT_POLICY, application_id=parse_optional_application_id(ask.application_id)
        )
        actor, application_id = actor_of(request, visit), require_field(visit.application_id, "application_id")
        match ask.action:
            case "get":
                return data_response(tuple(map(service_token_entry, await self.tokens.list(actor, application_id))))
            case "create":
                issued = await self.tokens.issue(
                    actor, application_id, days=ask.data.days, comment=ask.data.comment.strip()
                )
                entry = msgspec.structs.asdict(service_token_entry(issued.token))
                return data_response(NewServiceTokenEntry(**entry, jwt=issued.jwt))
            case "delete":
                await self.tokens.revoke(actor, application_id, ask.data.jti)
                return ok_response()

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "serviceToken",
            self.handle,
            name="service_token",
            request=ServiceTokenRequest,
            section="interface §4.14",
            summary="Static service JWTs of an application: get, create, delete",
            answers=ServiceTokenResponse,
        )


def service_token_entry(token: ServiceToken) -> ServiceTokenEntry:
    return ServiceTokenEntry(
        jti=token.jti,
        application_id=token.application_id,
        comment=token.comment,
        created=iso8601(token.created_at),
        ends=iso8601(token.ends_at),
        revoked=token.revoked,
    )


# POST /api/permissions/emailSecret: the `with_email` secrets of an application (interface §4.14, R1).


class EmailSecretData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    ref: str = ""  # of delete


class EmailSecretRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "create", "delete"]
    application_id: ApplicationId | None = None
    data: EmailSecretData = EmailSecretData()


class EmailSecretEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Identifier and age of a secret, without its value."""

    ref: str
    created: str


class NewEmailSecretEntry(msgspec.Struct, frozen=True, kw_only=True):
    secret: str  # never shown again


class EmailSecretResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: tuple[EmailSecretEntry, ...] | NewEmailSecretEntry | None = None  # none for delete


class EmailSecretEndpoint:
    def __init__(self, *, secrets: EmailSecretCommands, authenticator: RequestAuthenticator) -> None:
        self._secrets = secrets
        self._authenticator = authenticator

    async def handle(self, request: Request) -> Response:
        ask = await read_json(request, EmailSecretRequest)
        visit = await self._authenticator.authenticate(
            request, ask, DEFAULT_POLICY, application_id=parse_optional_application_id(ask.application_id)
        )
        actor, application_id = actor_of(request, visit), require_field(visit.application_id, "application_id")
        match ask.action:
            case "get":
                return data_response(tuple(map(email_secret_entry, await self._secrets.list(actor, application_id))))
            case "create":
                return data_response(NewEmailSecretEntry(secret=await self._secrets.create(actor, application_id)))
            case "delete":
                await self._secrets.revoke(actor, application_id, ask.data.ref)
                return ok_response()

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "emailSecret",
            self.handle,
            name="email_secret",
            request=EmailSecretRequest,
            section="interface §4.14",
            summary="The `with_email` secrets of an application: get, create, delete",
            answers=EmailSecretResponse,
        )


def email_secret_entry(secret: EmailSecret) -> EmailSecretEntry:
    return EmailSecretEntry(ref=secret.ref, created=iso8601(secret.created_at))
