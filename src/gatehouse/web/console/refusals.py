"""Refused requests with the names of the person and of what refused them: "Chloé Martin is banned from Sky Raiders".

The log keeps IDs, so that an erasure leaves no name; who may see a refusal is told the names of now.
"""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup
from msgspec import Struct

from gatehouse.accounts.bans.model import EVERYTHING
from gatehouse.admin.activity import ActivityStore, NamedIds, RecordNames
from gatehouse.audit.model import Details, Refusal
from gatehouse.gamesessions.refusals import BANNED_FROM, GUEST
from gatehouse.web.console.activity_sentences import bold_name, reference_of
from gatehouse.web.console.activity_text import AuditReference, parse_application_subject
from gatehouse.web.pages.translations import Translator

APPLICATION: Final = "app_id"
NOT_ADMITTED: Final = "the account is not allowed to use the application"
PROJECT: Final = "project "


class RefusalView(Struct, frozen=True, kw_only=True):
    refusal: Refusal
    why: Markup | None  # with names; None: its reason says all there is
    person: AuditReference | None = None
    application: AuditReference | None = None


class RefusalDescriber:
    def __init__(self, store: ActivityStore) -> None:
        self._store = store

    async def describe(self, refusals: Sequence[Refusal], t: Translator) -> Sequence[RefusalView]:
        names = await self._store.record_names(_ids_in(refusals))
        return [_describe_one(refusal, names, t) for refusal in refusals]


def _ids_in(refusals: Sequence[Refusal]) -> NamedIds:
    people = {_person_of(refusal) for refusal in refusals} - {""}
    places = [str(refusal.details.get(BANNED_FROM, "")) for refusal in refusals]
    applications = {number for refusal in refusals if (number := _application_of(refusal.details))}
    return NamedIds(
        people=people,
        applications=applications | {number for place in places if (number := parse_application_subject(place))},
        projects={place.removeprefix(PROJECT) for place in places if place.startswith(PROJECT)},
    )


def _describe_one(refusal: Refusal, names: RecordNames, t: Translator) -> RefusalView:
    person_id, number = _person_of(refusal), _application_of(refusal.details)
    person = reference_of(person_id, names) if person_id else None
    application = reference_of(f"application {number}", names) if number else None
    place = str(refusal.details.get(BANNED_FROM, ""))
    why: Markup | None = None
    if person is not None and place == EVERYTHING:
        why = t("sentence.banned_from_everything", subject=bold_name(t, person))
    elif person is not None and place:
        why = t("sentence.banned_from", subject=bold_name(t, person), target=bold_name(t, reference_of(place, names)))
    elif person is not None and application is not None and refusal.reason == NOT_ADMITTED:
        why = t("sentence.not_admitted", subject=bold_name(t, person), target=bold_name(t, application))
    return RefusalView(refusal=refusal, why=why, person=person, application=application)


def _person_of(refusal: Refusal) -> str:
    """The person it is about; empty for none that is known."""
    found = str(refusal.details.get(GUEST, "")) or refusal.personal.get("actor", "")
    return found if found.isascii() and found.isdigit() else ""


def _application_of(details: Details) -> int:
    value = details.get(APPLICATION)
    return value if isinstance(value, int) else 0
