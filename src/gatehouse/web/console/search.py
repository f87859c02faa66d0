"""Search over everything in the console: people, applications, projects, roles, and its own pages and actions.

Every result is something the caller may open: it comes from the same queries as the lists, with the same visibility.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.paging import PageRequest
from gatehouse.admin.search import SearchStore
from gatehouse.admin.visibility import Visibility
from gatehouse.web.console.applications.lists import may_create
from gatehouse.web.console.combobox import ComboboxKind
from gatehouse.web.console.frame import MENU_GROUPS, entries_for
from gatehouse.web.console.lookup import MAX_OPTIONS, MIN_SEARCH_LENGTH, Lookup, OptionsQuery, clean_search
from gatehouse.web.console.paths import CONSOLE, ConsoleEntry
from gatehouse.web.console.roles import RoleScreens, role_path
from gatehouse.web.console.search_words import longest_word, parse_assignment, with_words, words_of
from gatehouse.web.console.settings import SETTINGS_TABS
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.translations import Translator

SEARCH_PATH: Final = f"{CONSOLE}/search"


class GlobalSearchQuery(msgspec.Struct, frozen=True, kw_only=True):
    q: str = ""
    here: str = ""  # the page that it was opened on


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """A page to open. Without an `icon` it is shown with an avatar."""

    name: str
    path: str
    detail: str = ""
    icon: str = ""
    synonyms: str = ""  # other words that find it


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


# What can be done with what a page is about: the part of its path after the ID, and the text.
ACTIONS_HERE: Final[Mapping[ConsoleEntry, Sequence[tuple[str, str, str]]]] = {
    ConsoleEntry.PEOPLE: (
        ("access", "people.assign_role", "shield-check"),
        ("bans", "people.page_bans", "ban"),
        ("act/sign_out", "person_act.sign_out", "log-out"),
        ("act/link", "person_act.link", "mail"),
        ("act/block", "person_act.block", "lock"),
        ("activity", "people.tab_activity", "activity"),
    ),
    ConsoleEntry.APPLICATIONS: (
        ("new_client", "applications.client_new", "plus"),
        ("rules/new", "applications.rule_new", "plus"),
        ("matrix", "applications.section_matrix", "layout-grid"),
        ("connect", "applications.section_connect", "code"),
        ("clients", "applications.section_clients", "key-round"),
        ("bans", "applications.section_bans", "ban"),
        ("settings", "applications.section_settings", "settings"),
    ),
}
OPEN_PAGE: Final = re.compile(r"/console/(people|applications)/([0-9]{1,18})(?:[/?].*)?", re.ASCII)
MAX_EXAMINED: Final = 100  # names that have the longest word, in which the other words are looked for
MAX_ASSIGNMENTS: Final = 3  # people and roles that a sentence may mean
MAX_APPLICATIONS: Final = 10  # whose permissions are searched


class GlobalSearchScreens:
    def __init__(self, *, finding: SearchStore, roles: RoleScreens, lookup: Lookup, view: ConsoleView) -> None:
        self._finding = finding
        self._lookup = lookup
        self._roles = roles
        self._view = view

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        query, t = read_query(request, GlobalSearchQuery), self._view.words(request)
        text = clean_search(query.q)
        groups = {
            "assign": await self._assignments(admin, text, t),
            "here": matching(text, actions_here(admin, query.here, t)),
            "people": await self._people(admin, text),
            "applications": await self._applications(admin, text),
            "projects": await self._projects(admin, text),
            "roles": await self._role_results(admin, text),
            "clients": await self._clients(admin, text),
            "groups": await self._groups(admin, text),
            "pages": matching(text, pages_for(admin.visibility, t)),
            "actions": matching(text, actions_for(admin, t)),
        }
        if not any(groups.values()) or "." in text:
            groups["permissions"] = await self._permissions(admin, text, query.here)
        context = SearchContext(text=text, groups=[(name, found) for name, found in groups.items() if found])
        return self._view.render(request, admin, ConsoleEntry.HOME, context)

    async def _people(self, admin: AdminRequest, text: str) -> Sequence[SearchResult]:
        """Only administrators search people (lookup.py)."""
        if not admin.rights.administers or len(text) < MIN_SEARCH_LENGTH:
            return ()
        found = await self._finding.people(text, MAX_OPTIONS, with_logins=True)
        words = words_of(text)
        for word in () if found or len(words) == 1 else words:
            near = await self._finding.people(word, MAX_EXAMINED, with_logins=True)
            found = [*found, *with_words(near, words, lambda one: f"{one.nick} {one.login}", MAX_OPTIONS)]
        found = list({one.user_id: one for one in found}.values())[:MAX_OPTIONS]
        return [
            SearchResult(name=one.nick, path=f"{ConsoleEntry.PEOPLE.path}/{one.user_id}", detail=one.login)
            for one in found
        ]

    async def _applications(self, admin: AdminRequest, text: str) -> Sequence[SearchResult]:
        if not text:
            return ()
        words = words_of(text)
        near = await self._finding.applications(admin.visibility, longest_word(words), MAX_EXAMINED)
        found = with_words(near, words, lambda one: f"{one.name} {one.application_id}", MAX_OPTIONS)
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
        words = words_of(text)
        near = await self._finding.projects(admin.visibility, longest_word(words), MAX_EXAMINED)
        found = with_words(near, words, lambda one: f"{one.title} {one.project_id} {one.alias}", MAX_OPTIONS)
        return [
            SearchResult(name=one.title, path=f"{ConsoleEntry.PROJECTS.path}/{one.project_id}", detail=one.project_id)
            for one in found
        ]

    async def _role_results(self, admin: AdminRequest, text: str) -> Sequence[SearchResult]:
        if not text:
            return ()
        words = words_of(text)
        near = await self._roles.find(admin, PageRequest(search=longest_word(words), size=MAX_EXAMINED))
        found = with_words(near, words, lambda one: f"{one.name} {one.application}", MAX_OPTIONS)
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

    async def _clients(self, admin: AdminRequest, text: str) -> Sequence[SearchResult]:
        if not admin.rights.administers or len(text) < MIN_SEARCH_LENGTH:
            return ()
        words = words_of(text)
        near = await self._finding.clients(longest_word(words), MAX_EXAMINED)
        found = with_words(near, words, lambda one: f"{one.name} {one.client_id}", MAX_OPTIONS)
        applications = ConsoleEntry.APPLICATIONS.path
        return [
            SearchResult(
                name=one.name,
                path=f"{applications}/{one.application_id}/clients/{one.client_id}",
                detail=one.client_id,
                icon="key-round",
            )
            for one in found
        ]

    async def _groups(self, admin: AdminRequest, text: str) -> Sequence[SearchResult]:
        """Groups whose members they may see."""
        if not text:
            return ()
        options = await self._lookup.options(admin, OptionsQuery(kind=ComboboxKind.GROUP, q=text))
        return [
            SearchResult(
                name=one.label,
                path=f"{ConsoleEntry.PROJECTS.path}/{one.detail}/groups/{one.value}",
                detail=one.detail,
                icon="users",
            )
            for one in options.options
        ]

    async def _permissions(self, admin: AdminRequest, text: str, here: str) -> Sequence[SearchResult]:
        """Permissions of the application that is open, else of the first ones by name."""
        opened = OPEN_PAGE.fullmatch(here)
        if len(text) < MIN_SEARCH_LENGTH:
            return ()
        if opened is not None and opened[1] == ConsoleEntry.APPLICATIONS:
            numbers = {int(opened[2]): ""}
        else:
            visible = await self._finding.applications(admin.visibility, "", MAX_APPLICATIONS)
            numbers = {one.application_id: one.name for one in visible}
        found: list[SearchResult] = []
        for number, name in numbers.items():
            query = OptionsQuery(kind=ComboboxKind.PERMISSION, q=text, application_id=str(number))
            found += [
                SearchResult(
                    name=one.label,
                    path=f"{ConsoleEntry.APPLICATIONS.path}/{number}/rules?{urlencode({'q': one.label})}",
                    detail=name or one.detail,
                    icon="shield",
                )
                for one in (await self._lookup.options(admin, query)).options
            ]
        return found[:MAX_OPTIONS]

    async def _assignments(self, admin: AdminRequest, text: str, t: Translator) -> Sequence[SearchResult]:
        """A sentence that assigns a role leads to its review."""
        sentence = parse_assignment(text) if admin.rights.administers else None
        if sentence is None:
            return ()
        words = words_of(sentence.role)
        options = await self._lookup.search_roles(admin, longest_word(words), MAX_EXAMINED)
        roles = with_words(options, words, lambda one: one.label, MAX_ASSIGNMENTS)
        people = await self._people(admin, sentence.name)
        return [
            SearchResult(
                name=t("search.assign_line", role=role.label, name=person.name),
                path=f"{person.path}/access/role?{urlencode({'role': role.value, **sentence.query})}",
                detail=person.detail,
                icon="shield-check",
            )
            for person in people[:MAX_ASSIGNMENTS]
            for role in roles
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
        SearchResult(
            name=t(f"search.action_{action.name}"),
            path=action.path,
            icon=action.icon,
            synonyms=t(f"search.words_{action.name}"),
        )
        for action in ACTIONS
        if action.is_open(admin)
    )


def actions_here(admin: AdminRequest, here: str, t: Translator) -> Iterable[SearchResult]:
    """What an administrator can do with what the page is about."""
    opened = OPEN_PAGE.fullmatch(here)
    if opened is None or not admin.rights.administers:
        return ()
    entry = ConsoleEntry(opened[1])
    return (
        SearchResult(name=t(key), path=f"{entry.path}/{opened[2]}/{path}", icon=icon)
        for path, key, icon in ACTIONS_HERE[entry]
    )


def matching(text: str, results: Iterable[SearchResult]) -> Sequence[SearchResult]:
    """The results that have all words of the text, in any order; what begins with it first."""
    wanted, words = text.casefold(), words_of(text)
    found = with_words(results, words, lambda one: f"{one.name} {one.detail} {one.synonyms}", MAX_EXAMINED)
    return sorted(found, key=lambda one: not one.name.casefold().startswith(wanted))[: MAX_OPTIONS if text else None]
