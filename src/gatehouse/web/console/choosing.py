"""Whom and what somebody means: ids, or words that find them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from gatehouse.admin.model.finding import FindingStore
from gatehouse.admin.model.names import NamedApplication, NamedGroup, NamedPerson
from gatehouse.admin.model.paging import SEARCH_LONGEST
from gatehouse.permissions.documents.grammar import USER_ID
from gatehouse.permissions.model.scope import ResourceKind
from gatehouse.permissions.rights.guard import About, Operation, is_open
from gatehouse.web.console.desk import Guest
from gatehouse.web.pages.contexts import PageContext

OFFERED_MOST: Final = 500  # applications to choose from
SUGGESTED: Final = 8
LOOKED_AT: Final = 200  # groups, of which some may not be for him
SHORTEST: Final = 2  # letters that people are suggested for


class SuggestQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The field itself is sent, whatever it is called."""

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
class Offer:
    """What may be put into a field, and the words it is known by."""

    value: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionsContext(PageContext):
    template = "console/suggestions.html"

    offers: Sequence[Offer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """The person who is meant, or those who may be."""

    user_id: str = ""
    nick: str = ""
    among: Sequence[NamedPerson] = field(default_factory=tuple)


class Choosing:
    def __init__(self, finding: FindingStore) -> None:
        self._finding = finding

    async def person(self, guest: Guest, text: str) -> Meant:
        """Nobody named is oneself. Only who administers looks people up; others know whom they ask about."""
        typed = text.strip()
        if not typed or typed == guest.user.user_id:
            return Meant(user_id=guest.user.user_id, nick=guest.user.nick)
        if not guest.rights.administers:
            return Meant(user_id=typed)
        found = await self._finding.people(typed, SUGGESTED, with_logins=True)
        exact = [one for one in found if typed.lower() in (one.user_id, one.nick.lower(), one.login.lower())]
        if len(exact) == 1 or len(found) == 1:
            one = (exact or found)[0]
            return Meant(user_id=one.user_id, nick=one.nick)
        return Meant(user_id=typed if not found and USER_ID.fullmatch(typed) else "", among=found)

    async def people(self, guest: Guest, text: str) -> Sequence[Offer]:
        if not guest.rights.administers or len(text) < SHORTEST:
            return ()
        found = await self._finding.people(text, SUGGESTED, with_logins=True)
        return [Offer(value=one.user_id, words=" · ".join(filter(None, (one.nick, one.login)))) for one in found]

    async def projects(self, guest: Guest, text: str) -> Sequence[Offer]:
        found = await self._finding.projects(guest.sight, searched(text), SUGGESTED)
        return [Offer(value=one.project_id, words=one.title) for one in found]

    async def groups(self, guest: Guest, text: str, project_id: str) -> Sequence[Offer]:
        """Those whose members he may know, as where they are asked about."""
        found = await self._finding.groups(guest.sight, searched(text), LOOKED_AT, project_id=project_id.strip())
        open_to_him = [one for one in found if is_open(guest.rights, Operation.GROUP_GET, about_group(one))]
        return [Offer(value=one.group_id, words=f"{one.title} · {one.project_id}") for one in open_to_him[:SUGGESTED]]

    async def resources(self, guest: Guest, query: PlaceQuery) -> Sequence[Offer]:
        """What of a project a question may be about, by the kind of it."""
        if query.kind == ResourceKind.GROUP:
            return await self.groups(guest, query.resource_id, query.project_id)
        if query.kind not in (ResourceKind.APPLICATION, ResourceKind.SERVICE):
            return ()
        wanted = searched(query.resource_id).lower()
        offers = (Offer(value=str(one.application_id), words=one.name) for one in await self.applications(guest))
        return [one for one in offers if wanted in one.value or wanted in one.words.lower()][:SUGGESTED]

    async def applications(self, guest: Guest) -> Sequence[NamedApplication]:
        return await self._finding.seen(guest.sight, OFFERED_MOST)


def searched(text: str) -> str:
    return text.strip()[:SEARCH_LONGEST]


def about_group(one: NamedGroup) -> About:
    return About(project_id=one.project_id, group_id=one.group_id)
