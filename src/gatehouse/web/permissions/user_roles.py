"""POST /api/permissions/user/roles: what is written about somebody, in every application (interface §4.14)."""

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.people import Written, WrittenEntries, WrittenRole
from gatehouse.permissions.callers.credentials import ORDINARY
from gatehouse.permissions.commands.users import People
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.credentials import Asked
from gatehouse.web.permissions.envelope import answer, post
from gatehouse.web.permissions.front_desk import FrontDesk
from gatehouse.web.permissions.question_records import GroupName, ScopeName
from gatehouse.web.routes.table import Endpoint

FindWritten: TypeAlias = Callable[[str], Awaitable[Written]]


class UserRolesData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str


class UserRolesRequest(Asked, frozen=True, kw_only=True):
    action: Literal["get"]
    data: UserRolesData


class WrittenRoleEntry(msgspec.Struct, frozen=True, kw_only=True):
    application_id: int
    role: str
    scope: ScopeName
    expired: int  # Unix seconds, 0 for no end
    ttl: int  # days, 0 for none


class WrittenPlace(msgspec.Struct, frozen=True, kw_only=True):
    application_id: int
    scope: ScopeName


class WrittenGroup(GroupName, frozen=True, kw_only=True):
    project_id: str


class UserRolesEntry(msgspec.Struct, frozen=True, kw_only=True):
    roles: tuple[WrittenRoleEntry, ...]
    entries: tuple[WrittenPlace, ...]  # where rules are written for him
    groups: tuple[WrittenGroup, ...]  # that list him


class UserRolesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: UserRolesEntry


class UserRolesEndpoint:
    def __init__(self, *, people: People, written: FindWritten, desk: FrontDesk) -> None:
        self._people = people
        self._written = written
        self._desk = desk

    async def get(self, request: Request) -> Response:
        ask = await read_json(request, UserRolesRequest)
        user = await self._people.get(await self._desk.actor(request, ask, ORDINARY), ask.data.user_id)
        return answer(written_entry(await self._written(user.user_id)))

    def endpoint(self) -> Endpoint:
        return post(
            "user/roles",
            self.get,
            name="user_roles",
            request=UserRolesRequest,
            section="interface §4.14",
            summary="Direct roles and entries of an account in every application: get",
            answers=UserRolesAnswer,
        )


def written_entry(written: Written) -> UserRolesEntry:
    return UserRolesEntry(
        roles=tuple(
            WrittenRoleEntry(
                application_id=one.application_id, role=one.role, scope=place(one), expired=one.ends_at, ttl=one.ttl
            )
            for one in written.roles
        ),
        entries=tuple(WrittenPlace(application_id=one.application_id, scope=place(one)) for one in written.entries),
        groups=tuple(
            WrittenGroup(id=one.group_id, title=one.group, project_id=one.project_id) for one in written.groups
        ),
    )


def place(one: WrittenRole | WrittenEntries) -> ScopeName:
    return ScopeName(project_id=one.project_id, kind=one.resource_kind, id=one.resource_id)
