"""Who gains and who loses what by a change, as it is shown before the change is made.

`console/forecast.html` shows a Foreseen: counts first, then people with what each gains and loses.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gatehouse.admin.model.names import NamedPerson, NameStore
from gatehouse.permissions.callers.desk import Visit
from gatehouse.permissions.errors import NoRight
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.questions.proposals import AnyProposal, MembershipProposal, Proposer
from gatehouse.permissions.questions.sight import refuse_about_everybody
from gatehouse.permissions.questions.simulate import Forecast, Simulation, inside
from gatehouse.permissions.rights.guard import About, Operation, is_open
from gatehouse.web.console.desk import ConsoleDesk, Guest
from gatehouse.web.console.effects import PersonEffect, Thing, person_effect

PEOPLE_MOST: Final = 500  # shown, most of them folded
PEOPLE_FIRST: Final = 12  # shown unfolded
APPLICATIONS_MOST: Final = 20
KINDS_FIRST: Final = 12  # of counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    thing: Thing
    gain: int
    lose: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """A change's effect in one application."""

    application_id: int
    application: str
    hidden: bool = False  # whoever asks may not see what people hold there
    people: Sequence[PersonEffect] = ()
    counts: Sequence[Count] = ()
    gaining: int = 0
    losing: int = 0
    more: bool = False  # there may be more people than were looked at
    forecast: Forecast | None = None  # as the API tells it

    @property
    def is_nothing(self) -> bool:
        return not (self.hidden or self.people or self.more)

    @property
    def first(self) -> Sequence[PersonEffect]:
        return self.people[:PEOPLE_FIRST]

    @property
    def others(self) -> Sequence[PersonEffect]:
        return self.people[PEOPLE_FIRST:]

    @property
    def main_counts(self) -> Sequence[Count]:
        return self.counts[:KINDS_FIRST]

    @property
    def other_counts(self) -> int:
        return len(self.counts[KINDS_FIRST:])


class Foresight:
    def __init__(self, *, simulation: Simulation, names: NameStore, desk: ConsoleDesk) -> None:
        self._simulation = simulation
        self._names = names
        self._desk = desk

    async def of(self, guest: Guest, application_id: int, proposal: AnyProposal) -> Foreseen:
        """The effect in an application. Raises whatever the save would raise, unless the effect is hidden."""
        if guest.standing.application_id != application_id:
            guest = await self._desk.about(guest, application_id)
        standing = guest.standing
        model = standing.application()
        if not sees_everybody(standing):
            return Foreseen(application_id=application_id, application=model.application.name, hidden=True)
        return await self._told(await self._run(guest, proposal), application_id, model.application.name)

    async def of_members(self, guest: Guest, project_id: str, proposal: MembershipProposal) -> Foreseen:
        """What people gain and lose of application 1: to whoever does not see all of it, inside the project alone."""
        guest = await self._desk.about(guest, CENTRAL_ID)
        if sees_everybody(guest.standing):
            return await self.of(guest, CENTRAL_ID, proposal)
        name = guest.standing.central.application.name
        if not is_open(guest.rights, Operation.MEMBERSHIP_GET, About(project_id=project_id)):
            return Foreseen(application_id=CENTRAL_ID, application=name, hidden=True)
        forecast = inside(await self._run(guest, proposal), project_id)
        return await self._told(forecast, CENTRAL_ID, name)

    async def in_each(
        self, guest: Guest, application_ids: Iterable[int], proposal: AnyProposal
    ) -> Sequence[Foreseen]:
        """The same in several applications, of many the first ones."""
        among = sorted(set(application_ids))[:APPLICATIONS_MOST]
        return [await self.of(guest, one, proposal) for one in among]

    async def _run(self, guest: Guest, proposal: AnyProposal) -> Forecast:
        standing = guest.standing
        by = Proposer(actor=guest.actor, model=standing.application(), central=standing.central)
        return await self._simulation.run(proposal, by, after="", limit=PEOPLE_MOST)

    async def _told(self, forecast: Forecast, application_id: int, application: str) -> Foreseen:
        names = await self._names.people([one.user_id for one in forecast.effects])
        return foreseen(forecast, names, application_id=application_id, application=application)


def sees_everybody(standing: Visit) -> bool:
    """The right that `simulate` and `members` of the API ask for."""
    try:
        refuse_about_everybody(standing)
    except NoRight:
        return False
    return True


def foreseen(
    forecast: Forecast, names: Mapping[str, NamedPerson], *, application_id: int, application: str
) -> Foreseen:
    people = [person_effect(one, names[one.user_id].nick if one.user_id in names else "") for one in forecast.effects]
    return Foreseen(
        application_id=application_id,
        application=application,
        people=people,
        counts=counted(people),
        gaining=sum(bool(one.gained) for one in people),
        losing=sum(bool(one.lost) for one in people),
        more=forecast.after is not None,
        forecast=forecast,
    )


def counted(people: Iterable[PersonEffect]) -> Sequence[Count]:
    """What most people gain or lose comes first."""
    gain, lose = Counter[Thing](), Counter[Thing]()
    for one in people:
        gain.update(one.gained)
        lose.update(one.lost)
    counts = [Count(thing=thing, gain=gain[thing], lose=lose[thing]) for thing in gain.keys() | lose.keys()]
    return sorted(counts, key=lambda one: (-(one.gain + one.lose), one.thing))
