"""Whom and what somebody means: ids, or words that find them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from gatehouse.admin.model.finding import FindingStore
from gatehouse.admin.model.names import NamedApplication, NamedPerson
from gatehouse.permissions.documents.grammar import USER_ID
from gatehouse.web.console.desk import Guest
from gatehouse.web.pages.contexts import PageContext

OFFERED_MOST: Final = 500  # applications to choose from
SUGGESTED: Final = 8  # people
SHORTEST: Final = 2  # letters that people are suggested for


class SuggestQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The field itself is sent, whatever it is called."""

    user_id: str = ""
    actor: str = ""
    subject: str = ""

    @property
    def text(self) -> str:
        return (self.user_id or self.actor or self.subject).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionsContext(PageContext):
    template = "console/suggestions.html"

    people: Sequence[NamedPerson]


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

    async def suggested(self, guest: Guest, text: str) -> Sequence[NamedPerson]:
        if not guest.rights.administers or len(text) < SHORTEST:
            return ()
        return await self._finding.people(text, SUGGESTED, with_logins=True)

    async def applications(self, guest: Guest) -> Sequence[NamedApplication]:
        return await self._finding.seen(guest.sight, OFFERED_MOST)
