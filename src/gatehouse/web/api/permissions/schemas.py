"""POST /api/permissions/meta/schema and roles (interface §4.9, §4.10, R6)."""

from collections.abc import Awaitable, Callable
from typing import Final, Literal

import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest, Authenticator
from gatehouse.permissions.authentication.credentials import ABOUT_APPLICATION
from gatehouse.permissions.commands.app_schemas import (
    RoleDraft,
    SavedSchema,
    SchemaCommands,
    role_document,
    schema_document,
)
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.grammar import ApplicationId
from gatehouse.permissions.errors import AnswerTooLarge, Malformed
from gatehouse.permissions.evaluation.work import model_work
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.questions.roles import RoleList, VisibleRole
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import (
    DataResponse,
    data_response,
    data_response_off_loop,
    etag_response_off_loop,
    ok_response,
    permission_endpoint,
    require_field,
)
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.routing import SCHEMA_BODY_LIMIT, Endpoint

NO_ROLE: Final = RoleDraft()
ONE_ROLE_HINT: Final = "ask for one role at a time with roles, data.name"
ONE_SECTION_HINT: Final = f"ask for one section with options.section, or {ONE_ROLE_HINT}"


SchemaSection = Literal["login", "objects", "private_data", "public_data", "roles", "secret_data"]

# Returns an application's schema at a version; raises NotFound.
LoadPastModel = Callable[[ApplicationModel, int], Awaitable[ApplicationModel]]


class SchemaOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: int | None = None  # get: the version to return
    section: SchemaSection | None = None  # get: only this one


class SchemaRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "save"]
    application_id: ApplicationId | None = None
    data: dict[str, object] | None = None
    options: SchemaOptions = SchemaOptions()


class RolesRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "save", "delete"]
    application_id: ApplicationId | None = None
    data: RoleDraft = NO_ROLE


class SchemaDocument(msgspec.Struct, frozen=True, kw_only=True):
    application_id: int
    login: object
    private_data: object
    public_data: object
    roles: object
    secret_data: object
    objects: object
    version: int
    updated_at: int


class SchemaEndpoints:
    def __init__(
        self,
        *,
        schemas: SchemaCommands,
        load_past_model: LoadPastModel,
        roles: RoleList,
        authenticator: Authenticator,
    ) -> None:
        self._schemas = schemas
        self._load_past_model = load_past_model
        self._roles = roles
        self._authenticator = authenticator

    async def schema(self, request: Request) -> Response:
        body = await read_json(request, SchemaRequest)
        authenticated = await self._authenticator.authenticate(
            credentials_of(request, body),
            ABOUT_APPLICATION,
            application_id=parse_optional_application_id(body.application_id),
        )
        match body.action:
            case "get":
                model, version = authenticated.require_application(Operation.SCHEMA_GET), body.options.version
                if version is not None:
                    model = await self._load_past_model(model, version)
                shown = (
                    whole_schema(model)
                    if body.options.section is None
                    else schema_section(model, body.options.section)
                )
                value = DataResponse(status="OK", data=shown)
                return await etag_response_off_loop(
                    request, await model_work(model), value, narrower=ONE_SECTION_HINT
                )
            case "save":
                model = authenticated.require_application(Operation.SCHEMA_SAVE)
                saved = await self._schemas.save(
                    actor_of(request, authenticated), model, require_field(body.data, "data")
                )
                return await self._saved_response(saved)

    async def roles(self, request: Request) -> Response:
        body = await read_json(request, RolesRequest)
        authenticated = await self._authenticator.authenticate(
            credentials_of(request, body),
            ABOUT_APPLICATION,
            application_id=parse_optional_application_id(body.application_id),
        )
        actor = actor_of(request, authenticated)
        match body.action:
            case "get":
                if body.data.name is UNSET:
                    return await self._all_roles_response(authenticated)
                return data_response(role_record(await self._roles.get_role(authenticated, body.data.name)))
            case "save":
                model = await self._schemas.save_role(
                    actor, authenticated.require_application(Operation.ROLES_SAVE), body.data
                )
                return data_response(role_record(await self._roles.get_saved_role(model, str(body.data.name))))
            case "delete":
                if body.data.name is UNSET:
                    raise Malformed("data.name: required")
                model = authenticated.require_application(Operation.ROLES_SAVE)
                await self._schemas.delete_role(actor, model, body.data.name, body.data.version)
                return ok_response()

    async def _all_roles_response(self, authenticated: AuthenticatedRequest) -> Response:
        seen = await self._roles.list_roles(authenticated)
        weight = await model_work(authenticated.require_application(Operation.ROLE_NAMES))
        return await data_response_off_loop(weight, [role_record(role) for role in seen], narrower=ONE_ROLE_HINT)

    async def _saved_response(self, saved: SavedSchema) -> Response:
        """Return the saved schema.

        Roles that are too large are left out with a warning, because the save cannot be refused any more.
        """
        weight = await model_work(saved.model)
        try:
            return await data_response_off_loop(weight, whole_schema(saved.model), warnings=saved.warnings)
        except AnswerTooLarge:
            left = msgspec.structs.asdict(whole_schema(saved.model))
            del left["roles"]
            return await data_response_off_loop(
                weight, left, warnings=(*saved.warnings, f"roles: left out, {ONE_ROLE_HINT}")
            )

    def endpoints(self) -> list[Endpoint]:
        return [
            permission_endpoint(
                "roles",
                self.roles,
                name="roles",
                request=RolesRequest,
                section="interface §4.9",
                summary="Roles of an application: get (all without name), save, delete",
                body_limit=SCHEMA_BODY_LIMIT,
            ),
            permission_endpoint(
                "meta/schema",
                self.schema,
                name="schema",
                request=SchemaRequest,
                section="interface §4.10",
                summary="Schema of an application: get, save",
                has_tag=True,
                body_limit=SCHEMA_BODY_LIMIT,
            ),
        ]


def parse_optional_application_id(application_id: int | str | None) -> int | None:
    """Return the application id; None means the application of the service JWT (R6)."""
    return None if application_id is None else grammar.parse_application_id(application_id)


def whole_schema(model: ApplicationModel) -> SchemaDocument:
    schema = model.schema
    return SchemaDocument(
        application_id=schema.application_id,
        **schema_document(schema),
        roles={role.name: role_document(role) for role in sorted(model.roles.values(), key=lambda role: role.key)},
        version=schema.version,
        updated_at=schema.updated_at,
    )


def schema_section(model: ApplicationModel, section: SchemaSection) -> dict[str, object]:
    schema = whole_schema(model)
    names = ("application_id", section, "version", "updated_at")
    return {name: getattr(schema, name) for name in names}


def role_record(seen: VisibleRole) -> dict[str, object]:
    if seen.users_count is None:
        return {"name": seen.role.name, "description": seen.role.description}
    return {**role_document(seen.role), "users_count": seen.users_count}
