"""What somebody holds in a project, as rows of a form: a place, a role, and until when.

Places are the project itself, its applications, the services it connects and its groups. Entries that stand in a
record without a role are kept as they are; they are written through the API.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from gatehouse.admin.assignments import past_the_epoch
from gatehouse.admin.model.projects import ProjectListStore
from gatehouse.permissions.documents.records import parse_project, project_access_document
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rule import ENDLESS, End
from gatehouse.permissions.model.scope import ResourceKind, Scope, application_scope, group_scope, service_scope
from gatehouse.permissions.model.user_record import NOTHING, Assignment, Holdings
from gatehouse.web.pages.desk import Guarded

ROWS_MOST = 200
MINUTE_LONG = len("2026-11-15T16:00")


class HoldingsForm(Guarded, frozen=True, kw_only=True):
    """Three lists of the same length; `do` as in the condition builder."""

    place: tuple[str, ...] = ()
    role: tuple[str, ...] = ()
    until: tuple[str, ...] = ()
    do: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRow:
    place: str
    role: str
    until: str = ""
    fresh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """`kind` is `project` or a kind of resource; the words are `place.<kind>`."""

    scope: Scope
    kind: str
    title: str

    @property
    def value(self) -> str:
        return value_of(self.scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One role at one place, as it is shown."""

    place: Place
    role: str  # its name
    end: End


class Places:
    """All places of a project, by scope; one that is gone is told by its id."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.all = places
        self._by_scope = {one.scope: one for one in places}

    def of(self, scope: Scope) -> Place:
        kind = "project" if scope.kind is None else scope.kind.value
        return self._by_scope.get(scope) or Place(scope=scope, kind=kind, title=scope.resource_id or scope.project_id)


async def places_of(lists: ProjectListStore, model: ProjectModel) -> Places:
    project = model.project
    own = await lists.applications(project.project_id)
    connected = await lists.applications_by_id(project.settings.services.keys())
    return Places(
        [
            Place(scope=Scope(project.project_id), kind="project", title=project.title),
            *(
                Place(
                    scope=application_scope(project.project_id, one.application_id),
                    kind=ResourceKind.APPLICATION.value,
                    title=one.name,
                )
                for one in own
            ),
            *(
                Place(
                    scope=service_scope(project.project_id, number), kind=ResourceKind.SERVICE.value, title=one.name
                )
                for number, one in sorted(connected.items())
            ),
            *(
                Place(
                    scope=group_scope(project.project_id, one.group_id),
                    kind=ResourceKind.GROUP.value,
                    title=one.title,
                )
                for one in sorted(model.groups.values(), key=lambda group: group.title_key)
            ),
        ]
    )


def givable(central: ApplicationModel) -> Sequence[Role]:
    """Roles of application 1 that count in a project: protected ones count at the root only."""
    return [role for _, role in sorted(central.roles.items()) if not role.protected]


def value_of(scope: Scope) -> str:
    return "project" if scope.kind is None else f"{scope.kind.value}:{scope.resource_id}"


def scopes_in(document: object, project_id: str) -> Mapping[Scope, Holdings]:
    """What a membership says of one person."""
    return parse_project(document, project_id, place="member")


def held_in(scopes: Mapping[Scope, Holdings], places: Places, central: ApplicationModel) -> Sequence[Held]:
    return [
        Held(place=places.of(scope), role=role_name(central, one.role), end=one.end)
        for scope, holdings in scopes.items()
        for one in holdings.roles
    ]


def role_name(central: ApplicationModel, key: str) -> str:
    return central.roles[key].name if key in central.roles else key


def rows_of(scopes: Mapping[Scope, Holdings]) -> Sequence[HeldRow]:
    return [
        HeldRow(place=value_of(scope), role=one.role, until=written(one.end))
        for scope, holdings in scopes.items()
        for one in holdings.roles
    ]


def typed_rows(form: HoldingsForm) -> list[HeldRow]:
    if not len(form.place) == len(form.role) == len(form.until) <= ROWS_MOST:
        raise Malformed("The form is incomplete. Reload the page and try again.")
    return [
        HeldRow(place=place, role=role, until=until.strip())
        for place, role, until in zip(form.place, form.role, form.until, strict=True)
    ]


def changed_rows(rows: Sequence[HeldRow], do: str, *, role: str) -> list[HeldRow]:
    """What the buttons `add` and `remove:<n>` make of the rows."""
    act, _, number = do.partition(":")
    if act == "add":
        return [*rows, HeldRow(place="project", role=role, fresh=True)]
    at = (
        int(number)
        if act == "remove" and number.isascii() and number.isdecimal() and len(number) < len("1000")
        else -1
    )
    return [row for index, row in enumerate(rows) if index != at]


def is_about_rows(do: str) -> bool:
    return do.partition(":")[0] in ("add", "remove")


def scopes_of(rows: Sequence[HeldRow], stored: Mapping[Scope, Holdings], places: Places) -> Mapping[Scope, Holdings]:
    """What the rows say, with the direct entries that are stored; raises Malformed."""
    known = {place.value: place.scope for place in (*places.all, *map(places.of, stored))}
    roles: dict[Scope, list[Assignment]] = {}
    for row in rows:
        scope = known.get(row.place)
        if scope is None:
            raise Malformed("place: choose one in this project")
        roles.setdefault(scope, []).append(assignment(row, stored.get(scope, NOTHING)))
    return {
        scope: replace(stored.get(scope, NOTHING), roles=tuple(roles.get(scope, ())))
        for scope in dict.fromkeys((*stored, *roles))
    }


def assignment(row: HeldRow, stored: Holdings) -> Assignment:
    """An end that the form shows as it is stays to the second, and one that only programs write as well."""
    before = next((one for one in stored.roles if one.role == row.role), None)
    if before is not None and written(before.end) == row.until:
        return before
    return Assignment(role=row.role, end=read_end(row.until))


def document_of(
    scopes: Mapping[Scope, Holdings], project_id: str, central: ApplicationModel
) -> dict[str, object] | None:
    """As a membership says it; None when nothing is held."""
    names = {key: role.name for key, role in central.roles.items()}
    kept = {scope: held for scope, held in scopes.items() if not held.is_empty}
    return project_access_document(kept, names).get(project_id)


def written(end: End) -> str:
    """As a field for date and time has it, in UTC."""
    if end.ttl or not end.expired:
        return ""
    return f"{datetime.fromtimestamp(end.expired, UTC):%Y-%m-%dT%H:%M}"


def read_end(text: str) -> End:
    if not text:
        return ENDLESS
    try:
        when = datetime.strptime(text[:MINUTE_LONG], "%Y-%m-%dT%H:%M").replace(tzinfo=UTC)
        return End(expired=past_the_epoch(int(when.timestamp())))
    except ValueError:
        raise Malformed("Until: enter a date and time such as 2027-01-31T12:00") from None
