"""Search over everything in the console: people, applications, projects, roles, and its own pages and actions.

Every result is something the caller may open: it comes from the same queries as the lists, with the same visibility.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.paging import PageRequest
from gatehouse.admin.search import SearchStore
from gatehouse.admin.visibility import Visibility
from gatehouse.web.console.applications.lists import may_create
from gatehouse.web.console.frame import MENU_GROUPS, entries_for
from gatehouse.web.console.lookup import MAX_OPTIONS, MIN_SEARCH_LENGTH, clean_search
from gatehouse.web.console.paths import CONSOLE, ConsoleEntry
from gatehouse.web.console.roles import RoleScreens, role_path
from gatehouse.web.console.settings import SETTINGS_TABS
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.translations import Translator

SEARCH_PATH: Final = f"{CONSOLE}/search"


class GlobalSearchQuery(msgspec.Struct, frozen=True, kw_only=True):
    q: str = ""


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """A page to open. Without an `icon` it is shown with an avatar."""

    name: str
    path: str
    detail: str = ""
    icon: str = ""


class SearchContext(PageContext, frozen=True, kw_only=True):
    template = "console/search.html"

    text: str
    groups: Sequence[tuple[str, Sequence[SearchResult]]]  # the heading is `search.<name>`


class SearchableAction(msgspec.Struct, frozen=True, kw_only=True):
    """A page where something is made or changed; its text is `search.action_<name>`."""

    name: str
    path: str
    icon: str
    is_open: Callable[[AdminRequest], bool]


def administers(admin: AdminRequest) -> bool:
    return admin.visibility.everything


def may_publish(admin: AdminRequest) -> bool:
    return admin.visibility.may_publish


ACTIONS: Final = (
    SearchableAction(
        name="new_person", path=f"{ConsoleEntry.PEOPLE.path}/new", icon="user-plus", is_open=administers
    ),
    SearchableAction(
        name="import_people", path=f"{ConsoleEntry.PEOPLE.path}/import", icon="upload", is_open=administers
    ),
    SearchableAction(name="bans", path=f"{ConsoleEntry.PEOPLE.path}/bans", icon="ban", is_open=administers),
    SearchableAction(name="new_project", path=f"{ConsoleEntry.PROJECTS.path}/new", icon="plus", is_open=may_publish),
    SearchableAction(
        name="new_application", path=f"{ConsoleEntry.APPLICATIONS.path}/new", icon="plus", is_open=may_create
    ),
    SearchableAction(name="new_role", path=f"{ConsoleEntry.ROLES.path}/new", icon="plus", is_open=administers),
)


class GlobalSearchScreens:
    def __init__(self, *, finding: SearchStore, roles: RoleScreens, view: ConsoleView) -> None:
        self._finding = finding
        self._roles = roles
        self._view = view

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        text, t = clean_search(read_query(request, GlobalSearchQuery).q), self._view.words(request)
        groups = {
            "people": await self._people(admin, text),
            "applications": await self._applications(admin, text),
            "projects": await self._projects(admin, text),
            "roles": await self._role_results(admin, text),
            "pages": matching(text, pages_for(admin.visibility, t)),
            "actions": matching(text, actions_for(admin, t)),
        }
        context = SearchContext(text=text, groups=[(name, found) for name, found in groups.items() if found])
        return self._view.render(request, admin, ConsoleEntry.HOME, context)

    async def _people(self, admin: AdminRequest, text: str) -> Sequence[SearchResult]:
        """Only administrators search people (lookup.py)."""
        if not admin.rights.administers or len(text) < MIN_SEARCH_LENGTH:
            return ()
        found = await self._finding.people(text, MAX_OPTIONS, with_logins=True)
        return [
            SearchResult(name=one.nick, path=f"{ConsoleEntry.PEOPLE.path}/{one.user_id}", detail=one.login)
            for one in found
        ]

    async def _applications(self, admin: AdminRequest, text: str) -> Sequence[SearchResult]:
        if not text:
            return ()
        found = await self._finding.applications(admin.visibility, text, MAX_OPTIONS)
        return [
            SearchResult(
                name=one.name,
                path=f"{ConsoleEntry.APPLICATIONS.path}/{one.application_id}",
                detail=str(one.application_id),
            )
            for one in found
        ]

    async def _projects(self, admin: AdminRequest, text: str) -> Sequence[SearchResult]:
        if not text:
            return ()
        found = await self._finding.projects(admin.visibility, text, MAX_OPTIONS)
        return [
            SearchResult(name=one.title, path=f"{ConsoleEntry.PROJECTS.path}/{one.project_id}", detail=one.project_id)
            for one in found
        ]

    async def _role_results(self, admin: AdminRequest, text: str) -> Sequence[SearchResult]:
        if not text:
            return ()
        found = await self._roles.find(admin, PageRequest(search=text, size=MAX_OPTIONS))
        return [
            SearchResult(
                name=one.name,
                path=role_path(one.application_id, one.name),
                detail=one.application,
                icon="shield-check",
            )
            for one in found
            if one.readable
        ]

    def routes(self) -> Sequence[ConsoleRoute]:
        return [self._view.page("/search", self.show)]


def pages_for(visibility: Visibility, t: Translator) -> Iterable[SearchResult]:
    entries = entries_for(visibility)
    for group in MENU_GROUPS.values():
        for item in group:
            if item.entry in entries:
                yield SearchResult(name=t(f"nav.{item.name}"), path=item.path, icon=item.icon)
    if visibility.everything:
        for tab, path in SETTINGS_TABS:
            yield SearchResult(name=t(f"settings.tab_{tab}"), path=path, detail=t("nav.settings"), icon="settings")


def actions_for(admin: AdminRequest, t: Translator) -> Iterable[SearchResult]:
    return (
        SearchResult(name=t(f"search.action_{action.name}"), path=action.path, icon=action.icon)
        for action in ACTIONS
        if action.is_open(admin)
    )


def matching(text: str, results: Iterable[SearchResult]) -> Sequence[SearchResult]:
    """The results whose name or detail contains the text; what begins with it first."""
    wanted = text.casefold()
    found = [one for one in results if wanted in one.name.casefold() or wanted in one.detail.casefold()]
    return sorted(found, key=lambda one: not one.name.casefold().startswith(wanted))[: MAX_OPTIONS if text else None]
