"""POST /api/permissions/user/roles: the direct entries of a user in every application (interface §4.14)."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.people import DirectEntries, DirectPermissions, DirectRole
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.users import UserLabelCommands
from gatehouse.web.api.permissions.authentication import actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, permission_endpoint
from gatehouse.web.api.permissions.explanation_records import GroupName, ScopeName
from gatehouse.web.api.permissions.users import UserRequest
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.routing import Endpoint

FindDirectPermissions: TypeAlias = Callable[[str], Awaitable[DirectPermissions]]


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
    entries: tuple[DirectEntryScope, ...]  # where the user has permissions set directly
    groups: tuple[DirectGroupEntry, ...]  # that list the user


class UserRolesResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: UserRolesEntry


class UserRolesEndpoint(Struct, kw_only=True, eq=False):
    people: UserLabelCommands
    find_direct_permissions: FindDirectPermissions
    authenticator: Authenticator

    async def get(self, request: Request) -> Response:
        body = await read_json(request, UserRequest)
        user = await self.people.get(
            actor_of(request, await self.authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)),
            body.data.user_id,
        )
        return data_response(user_roles_entry(await self.find_direct_permissions(user.user_id)))

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "user/roles",
            self.get,
            name="user_roles",
            request=UserRequest,
            section="interface §4.14",
            summary="Direct roles and entries of an account in every application: get",
            answers=UserRolesResponse,
        )


def user_roles_entry(written: DirectPermissions) -> UserRolesEntry:
    return UserRolesEntry(
        roles=tuple(
            DirectRoleEntry(
                application_id=role.application_id,
                role=role.role,
                scope=direct_scope(role),
                expired=role.ends_at,
                ttl=role.ttl,
            )
            for role in written.roles
        ),
        entries=tuple(
            DirectEntryScope(application_id=entry.application_id, scope=direct_scope(entry))
            for entry in written.entries
        ),
        groups=tuple(
            DirectGroupEntry(id=group.group_id, title=group.group, project_id=group.project_id)
            for group in written.groups
        ),
    )


def direct_scope(holding: DirectRole | DirectEntries) -> ScopeName:
    return ScopeName(project_id=holding.project_id, kind=holding.resource_kind, id=holding.resource_id)
