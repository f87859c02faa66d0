"""Finding people and things by what was typed.

Administrators of the installation search among all people. Others find those who already have something in the
project; for all others they need the ID or, if they manage the whole project, the email address.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from gatehouse.accounts.model import login_key
from gatehouse.admin.names import NamedApplication, NamedPerson, NamedProjectGroup, NameStore
from gatehouse.admin.paging import SEARCH_LONGEST
from gatehouse.admin.search import SearchStore
from gatehouse.permissions.documents.grammar import USER_ID
from gatehouse.permissions.model.rules import ResourceKind
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.web.console.view import AdminRequest
from gatehouse.web.pages.contexts import PageContext


class PersonFinder:
    def __init__(self, names: NameStore) -> None:
        self._names = names

    async def find(
        self, admin: AdminRequest, text: str, *, known_ids: Collection[str], by_email: bool
    ) -> Sequence[NamedPerson]:
        """`known_ids`: people who are found by a part of their names. `by_email`: all others by the whole address."""
        wanted = text.strip()[:SEARCH_LONGEST]
        if not wanted:
            return ()
        if admin.visibility.everything:
            return await self._names.find_people(wanted)
        exact = await self._names.find_person_exactly(wanted, login_key(wanted) if by_email else "")
        near = await self._names.find_people(wanted, known_ids)
        return list({one.user_id: one for one in (*exact, *near)}.values())


# What a typed text refers to: an ID, or words that find a person or thing.


MAX_APPLICATIONS: Final = 500  # applications to choose from
MAX_SUGGESTIONS: Final = 8
MAX_GROUPS_EXAMINED: Final = 200  # groups, some of which they may not see
MIN_SEARCH_LENGTH: Final = 2  # characters, before people are suggested


class SuggestQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A suggestion request; the field itself is sent under its own name."""

    user_id: str = ""
    actor: str = ""
    subject: str = ""

    @property
    def text(self) -> str:
        return (self.user_id or self.actor or self.subject).strip()


class PlaceQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Of the form around: what is typed, and what narrows it."""

    project_id: str = ""
    group_id: str = ""
    kind: str = ""  # of a resource
    resource_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A value for a field, and its label."""

    value: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionsContext(PageContext):
    template = "console/suggestions.html"

    suggestions: Sequence[Suggestion]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonMatch:
    """The person a text refers to, or the candidates."""

    user_id: str = ""
    nick: str = ""
    candidates: Sequence[NamedPerson] = field(default_factory=tuple)


class Suggestions:
    def __init__(self, finding: SearchStore) -> None:
        self._finding = finding

    async def resolve_person(self, admin: AdminRequest, text: str) -> PersonMatch:
        """An empty text means oneself. Only administrators search people; others must know the ID."""
        typed = text.strip()
        if not typed or typed == admin.user.user_id:
            return PersonMatch(user_id=admin.user.user_id, nick=admin.user.nick)
        if not admin.rights.administers:
            return PersonMatch(user_id=typed)
        found = await self._finding.people(typed, MAX_SUGGESTIONS, with_logins=True)
        exact = [one for one in found if typed.lower() in (one.user_id, one.nick.lower(), one.login.lower())]
        if len(exact) == 1 or len(found) == 1:
            one = (exact or found)[0]
            return PersonMatch(user_id=one.user_id, nick=one.nick)
        return PersonMatch(user_id=typed if not found and USER_ID.fullmatch(typed) else "", candidates=found)

    async def suggest_people(self, admin: AdminRequest, text: str) -> Sequence[Suggestion]:
        if not admin.rights.administers or len(text) < MIN_SEARCH_LENGTH:
            return ()
        found = await self._finding.people(text, MAX_SUGGESTIONS, with_logins=True)
        return [Suggestion(value=one.user_id, label=" · ".join(filter(None, (one.nick, one.login)))) for one in found]

    async def suggest_projects(self, admin: AdminRequest, text: str) -> Sequence[Suggestion]:
        found = await self._finding.projects(admin.visibility, clean_search(text), MAX_SUGGESTIONS)
        return [Suggestion(value=one.project_id, label=one.title) for one in found]

    async def suggest_groups(self, admin: AdminRequest, text: str, project_id: str) -> Sequence[Suggestion]:
        """Groups whose members they may see."""
        found = await self._finding.groups(
            admin.visibility, clean_search(text), MAX_GROUPS_EXAMINED, project_id=project_id.strip()
        )
        open_to_him = [one for one in found if is_open(admin.rights, Operation.GROUP_GET, about_group(one))]
        return [
            Suggestion(value=one.group_id, label=f"{one.title} · {one.project_id}")
            for one in open_to_him[:MAX_SUGGESTIONS]
        ]

    async def suggest_resources(self, admin: AdminRequest, query: PlaceQuery) -> Sequence[Suggestion]:
        """What of a project a question may be about, by the kind of it."""
        if query.kind == ResourceKind.GROUP:
            return await self.suggest_groups(admin, query.resource_id, query.project_id)
        if query.kind not in (ResourceKind.APPLICATION, ResourceKind.SERVICE):
            return ()
        wanted = clean_search(query.resource_id).lower()
        suggestions = (
            Suggestion(value=str(one.application_id), label=one.name)
            for one in await self.visible_applications(admin)
        )
        return [
            suggestion
            for suggestion in suggestions
            if wanted in suggestion.value or wanted in suggestion.label.lower()
        ][:MAX_SUGGESTIONS]

    async def visible_applications(self, admin: AdminRequest) -> Sequence[NamedApplication]:
        return await self._finding.visible_applications(admin.visibility, MAX_APPLICATIONS)


def clean_search(text: str) -> str:
    return text.strip()[:SEARCH_LONGEST]


def about_group(one: NamedProjectGroup) -> GuardTarget:
    return GuardTarget(project_id=one.project_id, group_id=one.group_id)
