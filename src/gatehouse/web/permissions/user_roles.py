"""POST /api/permissions/user/roles: what is written about somebody, in every application (interface §4.14)."""

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.people import DirectEntries, DirectPermissions, DirectRole
from gatehouse.permissions.callers.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.users import UserLabelCommands
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.credentials import CredentialFields
from gatehouse.web.permissions.envelope import data_response, permission_endpoint
from gatehouse.web.permissions.front_desk import RequestAuthenticator
from gatehouse.web.permissions.question_records import GroupName, ScopeName
from gatehouse.web.routes.table import Endpoint

FindDirectPermissions: TypeAlias = Callable[[str], Awaitable[DirectPermissions]]


class UserRolesData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str


class UserRolesRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get"]
    data: UserRolesData


class DirectRoleEntry(msgspec.Struct, frozen=True, kw_only=True):
    application_id: int
    role: str
    scope: ScopeName
    expired: int  # Unix seconds, 0 for no end
    ttl: int  # days, 0 for none


class DirectEntryScope(msgspec.Struct, frozen=True, kw_only=True):
    application_id: int
    scope: ScopeName


class DirectGroupEntry(GroupName, frozen=True, kw_only=True):
    project_id: str


class UserRolesEntry(msgspec.Struct, frozen=True, kw_only=True):
    roles: tuple[DirectRoleEntry, ...]
    entries: tuple[DirectEntryScope, ...]  # where rules are written for him
    groups: tuple[DirectGroupEntry, ...]  # that list him


class UserRolesResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: UserRolesEntry


class UserRolesEndpoint:
    def __init__(
        self,
        *,
        people: UserLabelCommands,
        find_direct_permissions: FindDirectPermissions,
        authenticator: RequestAuthenticator,
    ) -> None:
        self._people = people
        self._find_direct_permissions = find_direct_permissions
        self._authenticator = authenticator

    async def get(self, request: Request) -> Response:
        ask = await read_json(request, UserRolesRequest)
        user = await self._people.get(
            await self._authenticator.authenticate_actor(request, ask, DEFAULT_POLICY), ask.data.user_id
        )
        return data_response(user_roles_entry(await self._find_direct_permissions(user.user_id)))

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "user/roles",
            self.get,
            name="user_roles",
            request=UserRolesRequest,
            section="interface §4.14",
            summary="Direct roles and entries of an account in every application: get",
            answers=UserRolesResponse,
        )


def user_roles_entry(written: DirectPermissions) -> UserRolesEntry:
    return UserRolesEntry(
        roles=tuple(
            DirectRoleEntry(
                application_id=one.application_id,
                role=one.role,
                scope=direct_scope(one),
                expired=one.ends_at,
                ttl=one.ttl,
            )
            for one in written.roles
        ),
        entries=tuple(
            DirectEntryScope(application_id=one.application_id, scope=direct_scope(one)) for one in written.entries
        ),
        groups=tuple(
            DirectGroupEntry(id=one.group_id, title=one.group, project_id=one.project_id) for one in written.groups
        ),
    )


def direct_scope(one: DirectRole | DirectEntries) -> ScopeName:
    return ScopeName(project_id=one.project_id, kind=one.resource_kind, id=one.resource_id)
