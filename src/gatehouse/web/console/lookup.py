"""What a combobox offers, and what was typed into one: a name, an email address, an ID or an alias.

Administrators of the installation search among all people. Others find those who already have something in the
project; for all others they need the ID or, if they manage the whole project, the email address.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import User, search_key
from gatehouse.admin.names import MAX_FOUND, NamedPerson, NamedProjectGroup, NamedRole, NameStore
from gatehouse.admin.paging import SEARCH_LONGEST
from gatehouse.admin.people_search import PeopleQuestion, PeopleSearchStore
from gatehouse.admin.search import APPLICATION_NUMBER, SearchStore
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.permissions.documents.grammar import GROUP_ID, PROJECT_ID
from gatehouse.permissions.documents.rules import schema_rules
from gatehouse.permissions.model.rules import ResourceKind, Rule, RuleDefinition
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption, LookupFailed
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext

MAX_OPTIONS: Final = 8
MAX_EXAMINED: Final = 200  # names that contain the text, one of which may be exactly it
MIN_SEARCH_LENGTH: Final = 2  # characters, before people are searched
MAX_RULES_OFFERED: Final = 1_000


class FoundNames(msgspec.Struct, frozen=True, kw_only=True):
    people: Sequence[NamedPerson] = ()
    searched: int = 0  # the newest accounts, if only these were searched


class PersonFinder:
    def __init__(self, *, names: NameStore, finding: SearchStore, people: PeopleSearchStore) -> None:
        self._names = names
        self._finding = finding
        self._people = people

    async def find(self, admin: AdminRequest, text: str, *, known_ids: Collection[str], by_email: bool) -> FoundNames:
        """`known_ids`: people who are found by a part of their names. `by_email`: all others by the whole address."""
        wanted = clean_search(text)
        if not wanted:
            return FoundNames()
        if admin.visibility.everything:
            exact = await self._finding.people_exactly(wanted, MAX_FOUND, with_service_accounts=False)
            found = await self._people.search(PeopleQuestion(text=wanted), None, MAX_FOUND)
            return FoundNames(people=merge_people(exact, map(named_person, found.users)), searched=found.searched)
        exact = await self._names.find_person_exactly(wanted, wanted if by_email else "")
        return FoundNames(people=merge_people(exact, await self._names.find_people_among(wanted, known_ids)))


# IDs that are passed on unchecked for those who do not see everything: the guard of the screen decides about them,
# and the answer is the same whether they exist or not (checklist PA-13).
ID_PATTERNS: Final = {
    ComboboxKind.APPLICATION: APPLICATION_NUMBER,
    ComboboxKind.PROJECT: PROJECT_ID,
    ComboboxKind.GROUP: GROUP_ID,
}
RESOURCE_KINDS: Final[Mapping[str, ComboboxKind]] = {
    ResourceKind.APPLICATION: ComboboxKind.APPLICATION,
    ResourceKind.SERVICE: ComboboxKind.APPLICATION,
    ResourceKind.GROUP: ComboboxKind.GROUP,
}


class OptionsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is typed, and what the rest of the form narrows it to."""

    kind: str = ""
    q: str = ""
    application_id: str = ""
    project_id: str = ""
    resource: str = ""  # kind of a resource


class OptionsContext(PageContext, frozen=True, kw_only=True):
    template = "console/options.html"

    options: Sequence[ComboboxOption] = ()
    searched: int = 0


Fields = Mapping[str, ComboboxKind]  # kinds by the name of the field; what narrows another field comes before it
Form = TypeVar("Form", bound=msgspec.Struct)


class Lookup:
    def __init__(self, *, finding: SearchStore, people: PeopleSearchStore, view: ConsoleView) -> None:
        self._finding = finding
        self._people = people
        self._view = view

    async def resolve(
        self, admin: AdminRequest, form: Form, fields: Fields, *, application_id: int = 0, project_id: str = ""
    ) -> Form:
        """The form with values in place of what was typed; empty fields stay empty. Raises LookupFailed."""
        query = OptionsQuery(application_id=str(application_id or ""), project_id=project_id)
        for field, kind in fields.items():
            text = getattr(form, field).strip()
            if not text:
                continue
            one = await self._find_one(admin, kind, field, text, narrow_query(query, form))
            form = msgspec.structs.replace(form, **{field: one.value})
        return form

    async def describe(
        self, admin: AdminRequest, form: msgspec.Struct, fields: Fields, *, application_id: int = 0
    ) -> Mapping[str, ComboboxOption]:
        """What the fields have chosen, to show its name; without those that name nothing."""
        query, found = OptionsQuery(application_id=str(application_id or "")), {}
        for field, kind in fields.items():
            text = getattr(form, field).strip()
            try:
                if text:
                    found[field] = await self._find_one(admin, kind, field, text, narrow_query(query, form))
                    form = msgspec.structs.replace(form, **{field: found[field].value})
            except LookupFailed:
                continue
        return found

    async def _find_one(
        self, admin: AdminRequest, kind: ComboboxKind, field: str, text: str, query: OptionsQuery
    ) -> ComboboxOption:
        typed = clean_search(text)
        passed = ComboboxOption(kind=kind, value=typed, label=typed)
        if kind is ComboboxKind.PERSON:
            if not admin.rights.administers:
                return passed  # they must know the ID
            exact = await self._people_exactly(typed)
        elif kind in (ComboboxKind.ROLE, ComboboxKind.PERMISSION):
            known = await self._options_of_application(admin, kind, query.application_id)
            if not known or len(known) >= MAX_RULES_OFFERED:
                return passed  # they may not read them, or there are more
            exact = [one for one in known if one.is_named(typed)]
        else:
            found = await self._search(admin, kind, typed, query, MAX_EXAMINED)
            exact = [one for one in found if one.value == typed] or [one for one in found if one.is_named(typed)]
        if len(exact) == 1:
            is_rule = kind is ComboboxKind.PERMISSION  # it may be named with its section
            return replace(exact[0], value=typed) if is_rule else exact[0]
        pattern = ID_PATTERNS.get(RESOURCE_KINDS.get(query.resource, kind))
        if not exact and not admin.visibility.everything and pattern is not None and pattern.fullmatch(typed):
            return passed
        candidates = exact or await self._search(admin, kind, typed, query, MAX_OPTIONS)
        raise LookupFailed(kind, field, text, candidates[:MAX_OPTIONS], is_ambiguous=bool(exact))

    async def _people_exactly(self, typed: str) -> Sequence[ComboboxOption]:
        found = [person_option(one) for one in await self._finding.people_exactly(typed, MAX_OPTIONS)]
        by_id = [one for one in found if one.value == typed]
        if found or len(typed) < MIN_SEARCH_LENGTH:
            return by_id or found
        near = await self._people.search(PeopleQuestion(text=typed), None, MAX_EXAMINED)
        if len(near.users) == 1 and not near.searched:  # of all people, this is the only one
            return [person_option(named_person(near.users[0]))]
        return [
            person_option(named_person(user)) for user in near.users if search_key(user.name) == search_key(typed)
        ]

    async def options(self, admin: AdminRequest, query: OptionsQuery) -> OptionsContext:
        """What contains the text, as far as the viewer may see it."""
        text = clean_search(query.q)
        if query.kind == ComboboxKind.PERSON:
            found = await self._search_people(admin, text, MAX_OPTIONS)
            return OptionsContext(options=list(map(person_option, found.people)), searched=found.searched)
        if query.kind not in list(ComboboxKind):
            return OptionsContext()
        return OptionsContext(options=await self._search(admin, ComboboxKind(query.kind), text, query, MAX_OPTIONS))

    async def _search(
        self, admin: AdminRequest, kind: ComboboxKind, text: str, query: OptionsQuery, limit: int
    ) -> Sequence[ComboboxOption]:
        if kind is ComboboxKind.RESOURCE:
            kind = RESOURCE_KINDS.get(query.resource, kind)
        if kind is ComboboxKind.PERSON:
            return list(map(person_option, (await self._search_people(admin, text, limit)).people))
        if kind is ComboboxKind.APPLICATION:
            return await self._search_applications(admin, text, limit)
        if kind is ComboboxKind.PROJECT:
            return await self._search_projects(admin, text, limit)
        if kind is ComboboxKind.GROUP:
            return await self._search_groups(admin, text, query.project_id, limit)
        if kind is ComboboxKind.APPLICATION_ROLE:
            return await self.search_roles(admin, text, limit)
        found = await self._options_of_application(admin, kind, query.application_id)
        return [one for one in found if text.lower() in one.label.lower()][:limit]

    async def _search_people(self, admin: AdminRequest, text: str, limit: int) -> FoundNames:
        """Those whose name, address or ID begins so come first, then those that have it anywhere."""
        if not admin.rights.administers or len(text) < MIN_SEARCH_LENGTH:
            return FoundNames()
        first = await self._finding.people(text, limit, with_logins=True)
        if len(first) == limit:
            return FoundNames(people=first)
        found = await self._people.search(PeopleQuestion(text=text), None, limit)
        people = merge_people(first, map(named_person, found.users))
        return FoundNames(people=people[:limit], searched=found.searched)

    async def _search_applications(self, admin: AdminRequest, text: str, limit: int) -> Sequence[ComboboxOption]:
        return [
            ComboboxOption(kind=ComboboxKind.APPLICATION, value=str(one.application_id), label=one.name)
            for one in await self._finding.applications(admin.visibility, text, limit)
        ]

    async def _search_projects(self, admin: AdminRequest, text: str, limit: int) -> Sequence[ComboboxOption]:
        return [
            ComboboxOption(
                kind=ComboboxKind.PROJECT,
                value=one.project_id,
                label=one.title,
                names=(one.alias,) if one.alias else (),
            )
            for one in await self._finding.projects(admin.visibility, text, limit)
        ]

    async def _search_groups(
        self, admin: AdminRequest, text: str, project_id: str, limit: int
    ) -> Sequence[ComboboxOption]:
        """Groups whose members they may see."""
        found = await self._finding.groups(admin.visibility, text, MAX_EXAMINED, project_id=project_id)
        visible = [one for one in found if is_open(admin.rights, Operation.GROUP_GET, about_group(one))]
        return [
            ComboboxOption(kind=ComboboxKind.GROUP, value=one.group_id, label=one.title, detail=one.project_id)
            for one in visible[:limit]
        ]

    async def search_roles(
        self, admin: AdminRequest, text: str, limit: int, *, user_id: str = ""
    ) -> Sequence[ComboboxOption]:
        """Roles of all applications, for administrators; first those where the person already has a role."""
        if not admin.rights.administers:
            return ()
        return list(map(application_role_option, await self._finding.roles(text, limit, user_id=user_id)))

    async def _options_of_application(
        self, admin: AdminRequest, kind: ComboboxKind, application: str
    ) -> Sequence[ComboboxOption]:
        """The roles or permissions of an application, for those who may read them."""
        if kind is ComboboxKind.RESOURCE or not APPLICATION_NUMBER.fullmatch(application):
            return ()
        admin = await self._view.for_application(admin, int(application))
        return await run_off_loop(OFF_LOOP_WEIGHT, role_options if kind is ComboboxKind.ROLE else rule_options, admin)

    async def show_options(self, request: Request, admin: AdminRequest) -> Response:
        options = await self.options(admin, read_query(request, OptionsQuery))
        return self._view.render(request, admin, ConsoleEntry.HOME, options)

    def routes(self) -> Sequence[ConsoleRoute]:
        return [self._view.page("/options", self.show_options)]


def narrow_query(query: OptionsQuery, form: msgspec.Struct) -> OptionsQuery:
    """The query with what the form has already chosen."""
    return msgspec.structs.replace(
        query,
        application_id=getattr(form, "application_id", "") or query.application_id,
        project_id=getattr(form, "project_id", "") or query.project_id,
        resource=getattr(form, "kind", ""),
    )


def clean_search(text: str) -> str:
    return text.strip()[:SEARCH_LONGEST]


def named_person(user: User) -> NamedPerson:
    return NamedPerson(user_id=user.user_id, nick=user.nick, login=user.login or "")


def merge_people(*found: Iterable[NamedPerson]) -> Sequence[NamedPerson]:
    """Each person once."""
    return list({one.user_id: one for people in found for one in people}.values())


def person_option(one: NamedPerson) -> ComboboxOption:
    return ComboboxOption(kind=ComboboxKind.PERSON, value=one.user_id, label=one.nick, detail=one.login)


def application_role_option(one: NamedRole) -> ComboboxOption:
    return ComboboxOption(
        kind=ComboboxKind.APPLICATION_ROLE,
        value=f"{one.application_id}/{one.role_key}",
        label=f"{one.name} · {one.application}",
        names=(one.name, f"{one.name} {one.application}"),
    )


def rule_options(admin: AdminRequest) -> Sequence[ComboboxOption]:
    found: dict[str, ComboboxOption] = {}  # a path may be in both sections
    for rule, leaf in readable_rules(admin):
        names = (*(found[rule.path].names if rule.path in found else ()), str(rule))
        found[rule.path] = ComboboxOption(
            kind=ComboboxKind.PERMISSION, value=rule.path, label=rule.path, detail=leaf.description, names=names
        )
    return list(found.values())


def role_options(admin: AdminRequest) -> Sequence[ComboboxOption]:
    model = admin.authenticated.model
    if model is None or not is_open(admin.rights, Operation.ROLE_NAMES, admin.authenticated.target):
        return ()
    return [
        ComboboxOption(kind=ComboboxKind.ROLE, value=role.name, label=role.name, detail=role.description)
        for _, role in sorted(model.roles.items())
    ]


def about_group(one: NamedProjectGroup) -> GuardTarget:
    return GuardTarget(project_id=one.project_id, group_id=one.group_id)


def readable_rules(admin: AdminRequest) -> Sequence[tuple[Rule, RuleDefinition]]:
    """The rules of the schema, for those who may read it."""
    authenticated = admin.authenticated
    if authenticated.model is None or not is_open(authenticated.rights, Operation.SCHEMA_GET, authenticated.target):
        return ()
    schema = authenticated.model.schema
    known = schema_rules(schema.private_data, schema.public_data).items()
    return sorted(known, key=lambda item: (item[0].section, item[0].path))[:MAX_RULES_OFFERED]
