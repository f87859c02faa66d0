"""The impact of a change on people, and the review page that shows it before the change is saved."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.admin.names import NameStore
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest
from gatehouse.permissions.errors import NoRight
from gatehouse.permissions.evaluation.shapes import PROJECT_ACCESS_PREFIX
from gatehouse.permissions.model.rules import RuleSection
from gatehouse.permissions.model.schema_version import Difference
from gatehouse.permissions.questions.check import refuse_about_everyone
from gatehouse.permissions.questions.proposals import AnyProposal, MembershipProposal, Proposer, SchemaProposal
from gatehouse.permissions.questions.simulate import Effect, Forecast, Simulation, limit_to_project
from gatehouse.permissions.questions.user_record_views import readable_parts
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.permissions.rights.secret_data import PERMISSION_PARTS
from gatehouse.web.console.applications.head import ApplicationHead
from gatehouse.web.console.forms import hidden_fields
from gatehouse.web.console.view import AdminRequest, ConsoleView
from gatehouse.web.pages.contexts import PageContext


class AccessItem(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A rule or role somewhere."""

    is_role: bool
    name: str
    where: str  # the project, and the resource in it; "" at the root


class PersonEffect(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str
    nick: str  # "" of a deleted account
    gains_roles: tuple[AccessItem, ...]
    gains: tuple[AccessItem, ...]
    loses_roles: tuple[AccessItem, ...]
    loses: tuple[AccessItem, ...]

    @property
    def gained(self) -> tuple[AccessItem, ...]:
        return self.gains_roles + self.gains

    @property
    def lost(self) -> tuple[AccessItem, ...]:
        return self.loses_roles + self.loses


def person_effect(effect: Effect, nick: str) -> PersonEffect:
    return PersonEffect(
        user_id=effect.user_id,
        nick=nick,
        gains_roles=tuple(map(role_item, effect.gains_roles)),
        gains=tuple(map(rule_item, effect.gains)),
        loses_roles=tuple(map(role_item, effect.loses_roles)),
        loses=tuple(map(rule_item, effect.loses)),
    )


def role_item(text: str) -> AccessItem:
    """`<project>.<kind>.<id>/<role>` as the shape `roles` writes it."""
    place, _, name = text.rpartition("/")
    return AccessItem(is_role=True, name=name, where=" / ".join(place.split(".")) if place else "")


def rule_item(text: str) -> AccessItem:
    """A rule as the shape `list` writes it: its section, or the place it is held in and its section."""
    where = ""
    if text.startswith(f"{PROJECT_ACCESS_PREFIX}."):
        segments = text.removeprefix(f"{PROJECT_ACCESS_PREFIX}.").split(".")
        section = next(index for index, one in enumerate(segments) if one in set(RuleSection))
        where, text = " / ".join(segments[:section]), ".".join(segments[section:])
    path = text.partition(".")[2]
    return AccessItem(is_role=False, name=path.replace("|", ": "), where=where)


# The impact of a change: who gains and who loses what, shown before the change is made (`console/forecast.html`).


MAX_PEOPLE: Final = 500  # listed, most of them folded
PEOPLE_UNFOLDED: Final = 12
MAX_APPLICATIONS: Final = 20
MAX_COUNTS_SHOWN: Final = 12


class ImpactCount(msgspec.Struct, frozen=True, kw_only=True):
    thing: AccessItem
    gain: int
    lose: int


class Impact(msgspec.Struct, frozen=True, kw_only=True):
    """A change's effect in one application."""

    application_id: int
    application: str
    hidden: bool = False  # the viewer may not see what people hold there
    may_see_names: bool = True  # if not, only `gaining` and `losing` are known
    people: Sequence[PersonEffect] = ()
    counts: Sequence[ImpactCount] = ()
    gaining: int = 0
    losing: int = 0
    more: bool = False  # not everyone was checked
    forecast: Forecast | None = None  # as the API returns it

    @property
    def is_nothing(self) -> bool:
        return not (self.hidden or self.gaining or self.losing or self.more)

    @property
    def first(self) -> Sequence[PersonEffect]:
        return self.people[:PEOPLE_UNFOLDED]

    @property
    def others(self) -> Sequence[PersonEffect]:
        return self.people[PEOPLE_UNFOLDED:]

    @property
    def main_counts(self) -> Sequence[ImpactCount]:
        return self.counts[:MAX_COUNTS_SHOWN]

    @property
    def other_counts(self) -> int:
        return len(self.counts[MAX_COUNTS_SHOWN:])


class ImpactForecaster:
    def __init__(self, *, simulation: Simulation, names: NameStore, view: ConsoleView) -> None:
        self._simulation = simulation
        self._names = names
        self._view = view

    async def impact_in(self, admin: AdminRequest, application_id: int, proposal: AnyProposal) -> Impact:
        """The effect in an application. Raises what the save would raise, unless the effect is hidden."""
        if admin.authenticated.application_id != application_id:
            admin = await self._view.for_application(admin, application_id)
        application = admin.authenticated.named_application().application
        if not may_see_everyone(admin.authenticated):
            return Impact(application_id=application_id, application=application.name, hidden=True)
        return await self._describe(await self._simulate(admin, proposal), application_id, application.name)

    async def impact_of_schema(self, admin: AdminRequest, data: dict[str, object]) -> Impact:
        """The effect of a schema save: counts for everyone who may save it, names for those who may read records.

        Raises what the save would raise.
        """
        application = admin.authenticated.named_application().application
        forecast = await self._simulate(admin, SchemaProposal(data=data))
        names_shown = may_see_names(admin.authenticated)
        return await self._describe(forecast, application.application_id, application.name, names_shown=names_shown)

    async def impact_of_membership(
        self, admin: AdminRequest, project_id: str, proposal: MembershipProposal
    ) -> Impact:
        """What people gain and lose of application 1; inside the project alone for those who do not see all of it."""
        admin = await self._view.for_application(admin, CENTRAL_APPLICATION)
        if may_see_everyone(admin.authenticated):
            return await self.impact_in(admin, CENTRAL_APPLICATION, proposal)
        name = admin.authenticated.central.application.name
        if not is_open(admin.rights, Operation.MEMBERSHIP_GET, GuardTarget(project_id=project_id)):
            return Impact(application_id=CENTRAL_APPLICATION, application=name, hidden=True)
        forecast = limit_to_project(await self._simulate(admin, proposal), project_id)
        return await self._describe(forecast, CENTRAL_APPLICATION, name)

    async def impact_in_each(
        self, admin: AdminRequest, application_ids: Iterable[int], proposal: AnyProposal
    ) -> Sequence[Impact]:
        """The effect in each of the applications, at most MAX_APPLICATIONS of them."""
        among = sorted(set(application_ids))[:MAX_APPLICATIONS]
        return [await self.impact_in(admin, one, proposal) for one in among]

    async def _simulate(self, admin: AdminRequest, proposal: AnyProposal) -> Forecast:
        authenticated = admin.authenticated
        by = Proposer(actor=admin.actor, model=authenticated.named_application(), central=authenticated.central)
        return await self._simulation.run(proposal, by, after="", limit=MAX_PEOPLE)

    async def _describe(
        self, forecast: Forecast, application_id: int, application: str, *, names_shown: bool = True
    ) -> Impact:
        people = (
            await self._names.people_by_id([effect.user_id for effect in forecast.effects]) if names_shown else {}
        )
        nicks = {user_id: person.nick for user_id, person in people.items()}
        described = describe_impact(forecast, nicks, application_id=application_id, application=application)
        return described if names_shown else without_names(described)


def may_see_everyone(authenticated: AuthenticatedRequest) -> bool:
    """The right that `simulate` and `members` of the API require."""
    try:
        refuse_about_everyone(authenticated)
    except NoRight:
        return False
    return True


def may_see_names(authenticated: AuthenticatedRequest) -> bool:
    return readable_parts(authenticated, "") >= PERMISSION_PARTS


def describe_impact(forecast: Forecast, nicks: Mapping[str, str], *, application_id: int, application: str) -> Impact:
    people = [person_effect(effect, nicks.get(effect.user_id, "")) for effect in forecast.effects]
    return Impact(
        application_id=application_id,
        application=application,
        people=people,
        counts=count_items(people),
        gaining=sum(bool(person.gained) for person in people),
        losing=sum(bool(one.lost) for one in people),
        more=forecast.after is not None,
        forecast=forecast,
    )


def without_names(impact: Impact) -> Impact:
    return replace(impact, may_see_names=False, people=(), counts=(), forecast=None)


def count_items(people: Iterable[PersonEffect]) -> Sequence[ImpactCount]:
    """What most people gain or lose comes first."""
    gain, lose = Counter[AccessItem](), Counter[AccessItem]()
    for one in people:
        gain.update(one.gained)
        lose.update(one.lost)
    counts = [ImpactCount(thing=thing, gain=gain[thing], lose=lose[thing]) for thing in gain.keys() | lose.keys()]
    return sorted(counts, key=lambda one: (-(one.gain + one.lose), one.thing))


# The review page: what a form would change and whom it affects, between the form and its save.


class ReviewContext(PageContext, frozen=True, kw_only=True):
    template = "console/review.html"

    name: str  # of what is changed
    back: str  # its page
    action: str  # where the form is sent
    fields: Sequence[tuple[str, str]]
    impacts: Sequence[Impact]
    trail: Sequence[tuple[str, str]] = ()  # from the entry to the page of what is changed
    consequences: Sequence[str] = ()  # other than permissions
    question: str = "form"  # the texts are `review.title_<question>` and `review.apply_<question>`
    is_danger: bool = False
    may_edit: bool = True  # the form goes back with `do` as `edit`; if not, a link leads back
    changes: Sequence[Difference] | None = None
    head: ApplicationHead | None = None  # of the application whose page this is

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to review."""
        return bool(self.consequences) or not has_no_impact(self.impacts)


def review_context(
    form: msgspec.Struct,
    impacts: Sequence[Impact],
    *,
    name: str,
    back: str,
    action: str = "",
    trail: Sequence[tuple[str, str]] = (),
) -> ReviewContext:
    """The same form once more, with `do` as `apply` or `edit`; `action` defaults to the page it came from."""
    return ReviewContext(
        name=name, back=back, trail=trail, action=action or back, fields=hidden_fields(form), impacts=impacts
    )


def has_no_impact(impacts: Sequence[Impact]) -> bool:
    return all(impact.is_nothing for impact in impacts)
