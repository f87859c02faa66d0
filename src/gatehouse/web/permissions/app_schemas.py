"""POST /api/permissions/meta/schema and roles (interface §4.9, §4.10, R6)."""

from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.clock import Clock
from gatehouse.permissions.callers.credentials import ABOUT_APPLICATION
from gatehouse.permissions.commands.app_schemas import (
    AppSchemas,
    RoleDraft,
    role_document,
    schema_document,
)
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed, RoleNotFound
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.permissions.store import ApplicationStore
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.credentials import Asked
from gatehouse.web.permissions.envelope import Answer, answer, done, needed, post, tagged
from gatehouse.web.permissions.front_desk import FrontDesk, actor_of
from gatehouse.web.routes.table import SCHEMA_BODY, Endpoint

NO_ROLE = RoleDraft()


class SchemaRequest(Asked, frozen=True, kw_only=True):
    action: Literal["get", "save"]
    application_id: int | str | None = None
    data: dict[str, object] | None = None


class RolesRequest(Asked, frozen=True, kw_only=True):
    action: Literal["get", "save", "delete"]
    application_id: int | str | None = None
    data: RoleDraft = NO_ROLE


class SchemaDocument(msgspec.Struct, frozen=True, kw_only=True):
    application_id: int
    login: object
    private_data: object
    public_data: object
    roles: object
    secret_data: object
    version: int
    updated_at: int


class SchemaEndpoints:
    def __init__(self, *, schemas: AppSchemas, store: ApplicationStore, desk: FrontDesk, clock: Clock) -> None:
        self._schemas = schemas
        self._store = store
        self._desk = desk
        self._clock = clock

    async def schema(self, request: Request) -> Response:
        ask = await read_json(request, SchemaRequest)
        visit = await self._desk.visit(request, ask, ABOUT_APPLICATION, application_id=id_of(ask.application_id))
        match ask.action:
            case "get":
                model = visit.opened(Operation.SCHEMA_GET)
                return tagged(request, Answer(status="OK", data=whole(model)))
            case "save":
                model = visit.opened(Operation.SCHEMA_SAVE)
                saved = await self._schemas.save(actor_of(request, visit), model, needed(ask.data, "data"))
                return answer(whole(saved.model), warnings=saved.warnings)

    async def roles(self, request: Request) -> Response:
        ask = await read_json(request, RolesRequest)
        visit = await self._desk.visit(request, ask, ABOUT_APPLICATION, application_id=id_of(ask.application_id))
        actor = actor_of(request, visit)
        match ask.action:
            case "get":
                model = visit.opened(Operation.ROLE_NAMES)
                return answer(
                    await self._shown(
                        model, ask.data.name, whole=is_open(visit.rights, Operation.ROLES_GET, visit.about)
                    )
                )
            case "save":
                model = await self._schemas.save_role(actor, visit.opened(Operation.ROLES_SAVE), ask.data)
                counts = await self._counts(model)
                return answer(role_record(model.roles[str(ask.data.name).lower()], counts))
            case "delete":
                if ask.data.name is UNSET:
                    raise Malformed("data.name: which role?")
                await self._schemas.delete_role(actor, visit.opened(Operation.ROLES_SAVE), ask.data.name)
                return done()

    async def _shown(self, model: ApplicationModel, name: object, *, whole: bool) -> object:
        """One role, or all of them by name; without canReadSchema names and descriptions only."""
        counts = await self._counts(model) if whole else {}
        chosen = sorted(model.roles.values(), key=lambda role: role.key)
        if name is not UNSET:
            key = grammar.check_role_name(name, "data.name").lower()
            if key not in model.roles:
                raise RoleNotFound
            chosen = [model.roles[key]]
        shown = [role_record(role, counts) if whole else words_of(role) for role in chosen]
        return shown if name is UNSET else shown[0]

    async def _counts(self, model: ApplicationModel) -> Mapping[str, int]:
        return await self._store.role_holders(model.application.application_id, self._clock.now())

    def endpoints(self) -> list[Endpoint]:
        return [
            post(
                "roles",
                self.roles,
                name="roles",
                request=RolesRequest,
                section="interface §4.9",
                summary="Roles of an application: get (without name: all), save, delete",
                body_limit=SCHEMA_BODY,
            ),
            post(
                "meta/schema",
                self.schema,
                name="schema",
                request=SchemaRequest,
                section="interface §4.10",
                summary="The schema of an application: get, save",
                body_limit=SCHEMA_BODY,
            ),
        ]


def id_of(given: int | str | None) -> int | None:
    """None asks for the application of the service JWT (R6)."""
    return None if given is None else grammar.parse_application_id(given)


def whole(model: ApplicationModel) -> SchemaDocument:
    schema = model.schema
    return SchemaDocument(
        application_id=schema.application_id,
        **schema_document(schema),
        roles={role.name: role_document(role) for role in sorted(model.roles.values(), key=lambda role: role.key)},
        version=schema.version,
        updated_at=schema.updated_at,
    )


def role_record(role: Role, counts: Mapping[str, int]) -> dict[str, object]:
    return {**role_document(role), "users_count": counts.get(role.key, 0)}


def words_of(role: Role) -> dict[str, object]:
    return {"name": role.name, "description": role.description}
