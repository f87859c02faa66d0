"""Who has a role: by what path, until when."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec.structs import replace
from starlette.requests import Request

from gatehouse.admin.names import NamedPerson, NameStore
from gatehouse.admin.paging import EXPORT_MOST, PAGE_SIZE
from gatehouse.admin.role_cells import WithoutEffect, without_effect
from gatehouse.admin.roles import RoleListStore
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.questions.check import refuse_about_everyone
from gatehouse.permissions.questions.members import (
    MAX_LIMIT,
    FoundMember,
    GrantSource,
    MemberQuery,
    MemberResults,
    MembersDraft,
    MemberSearch,
)
from gatehouse.web.api.permissions.explanation_records import MembersPage, member_record
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.role_editor import LoadedRole, RoleHead, load_role, role_head
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.pages.contexts import PageContext


class RoleMembersQuery(ListQuery, frozen=True, kw_only=True):
    project: str = ""  # "" at the root of the application
    after: str = ""


class RoleHolder(msgspec.Struct, frozen=True, kw_only=True):
    nick: str
    person: NamedPerson | None  # None of a deleted account
    member: FoundMember
    without_effect: WithoutEffect | None = None  # why the assignment gives nothing


class RoleMembersContext(PageContext, frozen=True, kw_only=True):
    template = "console/roles/members.html"

    head: RoleHead
    holders: Sequence[RoleHolder]
    after: str  # where to go on; "" when these were all
    places: Sequence[tuple[str, str]]  # id and title of the projects it may be held in
    call: ApiCall


class RoleMemberScreens:
    def __init__(
        self, *, search: MemberSearch, lists: RoleListStore, names: NameStore, view: ConsoleView, clock: Clock
    ) -> None:
        self._clock = clock
        self._search = search
        self._lists = lists
        self._names = names
        self._view = view

    async def _list(
        self, request: Request, admin: AdminRequest, query: RoleMembersQuery
    ) -> RoleMembersContext | CsvFile[RoleHolder]:
        loaded = load_role(request, admin)
        refuse_about_everyone(admin.authenticated)
        if query.is_file:
            rows = await self._load_all(admin, loaded, query)
            return CsvFile(name=f"{loaded.role.key}-members", columns=COLUMNS, rows=rows)
        found, after = await self._load_page(admin, loaded, query, query.after)
        members = tuple(member_record(one.member) for one in found if not one.member.is_idle)
        page = MembersPage(members=members, after=after)
        return RoleMembersContext(
            head=role_head(admin, loaded.model, loaded.role, "members"),
            holders=found,
            after=after or "",
            places=await self._visible_projects(admin, loaded),
            call=ApiCall(
                path="members",
                body={"application_id": loaded.application_id, "data": members_request(loaded, query)},
                record=page,
            ),
        )

    async def _load_page(
        self, admin: AdminRequest, loaded: LoadedRole, query: RoleMembersQuery, after: str, *, limit: int = PAGE_SIZE
    ) -> tuple[Sequence[RoleHolder], str | None]:
        draft = MembersDraft(role=loaded.role.name, project_id=query.project or None, after=after, limit=limit)
        wanted = await self._search.read_query(draft, may_see_missing=admin.rights.administers)
        wanted = replace(wanted, with_idle=True)
        members = await self._search.find_page(loaded.application_id, wanted, known=loaded.model)
        names = await self._names.people_by_id([one.user_id for one in members.members])
        found = [
            RoleHolder(
                nick=names[member.user_id].nick if member.user_id in names else member.user_id,
                person=names.get(member.user_id),
                member=member,
                without_effect=self._without_effect(loaded, wanted, members, member),
            )
            for member in members.members
        ]
        return found, members.after

    def _without_effect(
        self, loaded: LoadedRole, wanted: MemberQuery, found: MemberResults, member: FoundMember
    ) -> WithoutEffect | None:
        facts = found.idle.get(member.user_id)
        if facts is None or found.structure is None:
            return None
        now = self._clock.now()
        return without_effect(loaded.model, facts, found.structure, wanted.scope, loaded.role, now=now)

    async def _load_all(
        self, admin: AdminRequest, loaded: LoadedRole, query: RoleMembersQuery
    ) -> Sequence[RoleHolder]:
        found: list[RoleHolder] = []
        after: str | None = ""
        while after is not None and len(found) < EXPORT_MOST:
            page, after = await self._load_page(admin, loaded, query, after, limit=MAX_LIMIT)
            found += page
        return found

    async def _visible_projects(self, admin: AdminRequest, loaded: LoadedRole) -> Sequence[tuple[str, str]]:
        """The application's own project and those that connect it, as far as they may see them."""
        found = await self._lists.projects_of_application(
            loaded.application_id, loaded.model.application.project_id or ""
        )
        return [
            (one, title)
            for one, title in found.items()
            if admin.visibility.everything or one in admin.visibility.projects
        ]

    def routes(self) -> Sequence[ConsoleRoute]:
        path = "/roles/{application_id:int}/{role}/members"
        return ListScreen(view=self._view, path=path, query=RoleMembersQuery, page=self._list).routes()


def members_request(loaded: LoadedRole, query: RoleMembersQuery) -> Mapping[str, object]:
    place = {"project_id": query.project} if query.project else {}
    after = {"after": query.after} if query.after else {}
    return {"role": loaded.role.name, **place, **after, "limit": PAGE_SIZE}


def path_text(way: GrantSource) -> str:
    through = way.membership
    if through is None:
        return way.kind.value
    return f"{way.kind.value} {through.group.title}{f' ({through.condition})' if through.condition else ''}"


def holder_end_text(holder: RoleHolder) -> str:
    end = holder.member.until
    return f"{datetime.fromtimestamp(end, UTC):%Y-%m-%dT%H:%M:%SZ}" if end else ""


COLUMNS: Final[Mapping[str, Callable[[RoleHolder], object]]] = {
    "user_id": lambda holder: holder.member.user_id,
    "nick": lambda holder: holder.nick,
    "until": holder_end_text,
    "path": lambda holder: [path_text(way) for way in holder.member.path],
    "without_effect": lambda holder: holder.without_effect.reason if holder.without_effect else "",
}
