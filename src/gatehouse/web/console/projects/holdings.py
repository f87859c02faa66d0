"""What a person holds in a project, as rows of a form: a place, a role, and an end.

Places are the project itself, its applications, the services it connects and its groups. Direct entries
without a role are kept as they are; they are written through the API.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.admin.projects import ProjectListStore
from gatehouse.admin.role_cells import WithoutEffect, require_after_epoch, without_effect
from gatehouse.kernel.times import zone_of
from gatehouse.permissions.documents.records import parse_project, project_access_document
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.candidates import ApplicationSnapshot
from gatehouse.permissions.model.facts import (
    NO_HOLDINGS,
    ApplicationModel,
    Assignment,
    Facts,
    ProjectModel,
    ScopeHoldings,
)
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import (
    NO_END,
    End,
    ResourceKind,
    Scope,
    application_scope,
    group_scope,
    service_scope,
)
from gatehouse.web.console.forms import ReviewedForm

T = TypeVar("T")

OWNER = "project_owner"
MAX_ROWS = 200
MINUTE_TEXT_LENGTH = len("2026-11-15T16:00")


class HoldingsForm(ReviewedForm, frozen=True, kw_only=True):
    """Three lists of the same length."""

    place: tuple[str, ...] = ()
    role: tuple[str, ...] = ()
    until: tuple[str, ...] = ()


class HoldingRow(Struct, frozen=True, kw_only=True):
    place: str
    role: str
    until: str = ""
    is_new: bool = False


class HoldingPlace(Struct, frozen=True, kw_only=True):
    """`kind` is `project` or a kind of resource; the text is `place.<kind>`."""

    scope: Scope
    kind: str
    title: str

    @property
    def value(self) -> str:
        return scope_value(self.scope)


class PlacedRole(Struct, frozen=True, kw_only=True):
    """One role at one place, as it is shown."""

    place: HoldingPlace
    role: str  # its name
    end: End
    without_effect: WithoutEffect | None = None  # why the assignment gives nothing


class ProjectPlaces:
    """All places of a project, by scope; a removed one is shown by its ID."""

    def __init__(self, places: Sequence[HoldingPlace]) -> None:
        self.all = places
        self._by_scope = {place.scope: place for place in places}

    def place_at(self, scope: Scope) -> HoldingPlace:
        kind = "project" if scope.kind is None else scope.kind.value
        return self._by_scope.get(scope) or HoldingPlace(
            scope=scope, kind=kind, title=scope.resource_id or scope.project_id
        )


async def load_places(lists: ProjectListStore, model: ProjectModel) -> ProjectPlaces:
    project = model.project
    own = await lists.applications(project.project_id)
    connected = await lists.applications_by_id(project.settings.services.keys())
    return ProjectPlaces(
        [
            HoldingPlace(scope=Scope(project.project_id), kind="project", title=project.title),
            *(
                HoldingPlace(
                    scope=application_scope(project.project_id, one.application_id),
                    kind=ResourceKind.APPLICATION.value,
                    title=one.name,
                )
                for one in own
            ),
            *(
                HoldingPlace(
                    scope=service_scope(project.project_id, number), kind=ResourceKind.SERVICE.value, title=one.name
                )
                for number, one in sorted(connected.items())
            ),
            *(
                HoldingPlace(
                    scope=group_scope(project.project_id, one.group_id),
                    kind=ResourceKind.GROUP.value,
                    title=one.title,
                )
                for one in sorted(model.groups.values(), key=lambda group: group.title_key)
            ),
        ]
    )


def assignable_roles(central: ApplicationModel) -> Sequence[Role]:
    """Roles of application 1 that count in a project: protected ones count at the root only."""
    return [role for _, role in sorted(central.roles.items()) if not role.protected]


def scope_value(scope: Scope) -> str:
    return "project" if scope.kind is None else f"{scope.kind.value}:{scope.resource_id}"


def parse_scopes(document: object, project_id: str) -> Mapping[Scope, ScopeHoldings]:
    """The part of a membership about one person."""
    return parse_project(document, project_id, place="member")


def placed_roles(
    scopes: Mapping[Scope, ScopeHoldings], places: ProjectPlaces, central: ApplicationModel
) -> Sequence[PlacedRole]:
    return [
        PlacedRole(place=places.place_at(scope), role=role_name(central, role.role), end=role.end)
        for scope, holdings in scopes.items()
        for role in holdings.roles
    ]


def mark_idle_roles(
    held: Sequence[PlacedRole], facts: Facts, found: ApplicationSnapshot, now: int
) -> list[PlacedRole]:
    """The same roles, with why one of them gives the person nothing."""
    roles = {role.name: role for role in found.model.roles.values()}
    return [
        replace(
            one,
            without_effect=without_effect(
                found.model, facts, found.structure, one.place.scope, roles[one.role], now=now
            ),
        )
        if one.role in roles
        else one
        for one in held
    ]


def role_name(central: ApplicationModel, key: str) -> str:
    return central.roles[key].name if key in central.roles else key


def rows_of_holdings(scopes: Mapping[Scope, ScopeHoldings], zone: str) -> Sequence[HoldingRow]:
    return [
        HoldingRow(place=scope_value(scope), role=role.role, until=format_end_field(role.end, zone))
        for scope, holdings in scopes.items()
        for role in holdings.roles
    ]


def rows_from_form(form: HoldingsForm) -> list[HoldingRow]:
    if not len(form.place) == len(form.role) == len(form.until) <= MAX_ROWS:
        raise Malformed("The form is incomplete. Reload the page and try again.").on_screen("form_incomplete")
    return [
        HoldingRow(place=place, role=role, until=until.strip())
        for place, role, until in zip(form.place, form.role, form.until, strict=True)
    ]


def shown_rows(form: HoldingsForm, *, role: str) -> list[HoldingRow]:
    """The rows that were sent, after the button `add` or `remove:<n>`; a new row starts with the role."""
    rows = rows_from_form(form)
    if form.do == "add":
        return [*rows, HoldingRow(place="project", role=role, is_new=True)]
    return remove_row(rows, form.do)


def fields_of_rows(rows: Sequence[HoldingRow]) -> Mapping[str, Any]:
    """The fields of a form with these rows."""
    return {
        "place": tuple(row.place for row in rows),
        "role": tuple(row.role for row in rows),
        "until": tuple(row.until for row in rows),
    }


def remove_row(rows: Sequence[T], do: str) -> list[T]:
    """The rows without row `<n>` of `remove:<n>`; an unknown row changes nothing."""
    act, _, number = do.partition(":")
    is_number = number.isascii() and number.isdecimal() and len(number) < len("1000")
    at = int(number) if act == "remove" and is_number else -1
    return [row for index, row in enumerate(rows) if index != at]


def scopes_from_rows(
    rows: Sequence[HoldingRow], stored: Mapping[Scope, ScopeHoldings], places: ProjectPlaces, zone: str
) -> Mapping[Scope, ScopeHoldings]:
    """The holdings of the rows, with the stored direct entries. Raises Malformed."""
    known = {place.value: place.scope for place in (*places.all, *map(places.place_at, stored))}
    roles: dict[Scope, list[Assignment]] = {}
    for row in rows:
        scope = known.get(row.place)
        if scope is None:
            raise Malformed("place: choose one in this project").on_screen("choose_in_project")
        roles.setdefault(scope, []).append(assignment_from_row(row, stored.get(scope, NO_HOLDINGS), zone))
    return {
        scope: replace(stored.get(scope, NO_HOLDINGS), roles=tuple(roles.get(scope, ())))
        for scope in dict.fromkeys((*stored, *roles))
    }


def assignment_from_row(row: HoldingRow, stored: ScopeHoldings, zone: str) -> Assignment:
    """An unchanged end keeps its seconds, and one that only programs write."""
    before = next((role for role in stored.roles if role.role == row.role), None)
    if before is not None and format_end_field(before.end, zone) == row.until:
        return before
    return Assignment(role=row.role, end=parse_end_field(row.until, zone))


def membership_document(
    scopes: Mapping[Scope, ScopeHoldings], project_id: str, central: ApplicationModel
) -> dict[str, object] | None:
    """The part of a membership document; None when nothing is held."""
    names = {key: role.name for key, role in central.roles.items()}
    kept = {scope: held for scope, held in scopes.items() if not held.is_empty}
    return project_access_document(kept, names).get(project_id)


def format_end_field(end: End, zone: str = "") -> str:
    """The value of a date and time field, in the reader's time zone."""
    if end.ttl or not end.expired:
        return ""
    return f"{datetime.fromtimestamp(end.expired, zone_of(zone)):%Y-%m-%dT%H:%M}"


def parse_end_field(text: str, zone: str = "") -> End:
    if not text:
        return NO_END
    try:
        when = datetime.strptime(text[:MINUTE_TEXT_LENGTH], "%Y-%m-%dT%H:%M").replace(tzinfo=zone_of(zone))
        return End(expired=require_after_epoch(int(when.timestamp())))
    except ValueError:
        raise Malformed("Until: enter a date and time such as 2027-01-31T12:00").on_screen("until") from None
