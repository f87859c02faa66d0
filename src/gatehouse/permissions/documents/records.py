"""Parse and write a user's record (interface §2.7, §2.9, R5). Pure.

`private_data.projectAccess` contains what is held in projects and on their resources; each of these is a Scope.
"""

from collections.abc import Callable, Mapping
from typing import Final

from gatehouse.permissions.documents.ends import end_members, parse_end
from gatehouse.permissions.documents.fields import member_or, printable, read_list, read_members
from gatehouse.permissions.documents.grammar import (
    check_group_id,
    check_project_id,
    check_role_name,
    parse_application_id,
)
from gatehouse.permissions.documents.rules import parse_entries, refuse_duplicate_paths, section_entries
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ApplicationModel, Assignment, ScopeHoldings, UserRecord
from gatehouse.permissions.model.rules import NO_END, PROJECT_ACCESS, ResourceKind, RuleSection, Scope
from gatehouse.permissions.model.schema import Tree

MAX_ROLES_PER_SCOPE: Final = 1_000  # in one scope
ASSIGNMENT: Final = ("name", "expired", "ttl")
HOLDINGS: Final = ("roles", "private_data", "public_data")
IN_PROJECT: Final = (*HOLDINGS, *(kind.value for kind in ResourceKind))

Scopes = Mapping[Scope, ScopeHoldings]


def parse_assignments(document: object, *, place: str, expired: int = 0) -> tuple[Assignment, ...]:
    """Roles assigned to a user, in order; `expired` is the end of those without their own."""
    items = read_list(document, place, MAX_ROLES_PER_SCOPE)
    assignments: dict[str, Assignment] = {}
    for index, item in enumerate(items):
        assignment = _assignment(item, f"{place}[{index}]", expired)
        if assignment.role in assignments:
            raise Malformed(f"{place}[{index}]: the role {assignment.role} is listed twice")
        assignments[assignment.role] = assignment
    return tuple(assignments.values())


def parse_private_data(document: object, *, place: str, expired: int = 0) -> tuple[Tree, Scopes]:
    """Parse what is held at the root, and what is held in projects."""
    members = read_members(document, place)
    root = {name: node for name, node in members.items() if name != PROJECT_ACCESS}
    tree = parse_entries(root, RuleSection.PRIVATE, place=place, expired=expired)
    access = member_or(members, PROJECT_ACCESS, {})
    return tree, parse_project_access(access, place=f"{place}.{PROJECT_ACCESS}", expired=expired)


def parse_project_access(document: object, *, place: str, expired: int = 0) -> Scopes:
    """All that is held in projects; scopes in which nothing is held are left out."""
    scopes: dict[Scope, ScopeHoldings] = {}
    for project_id, access in read_members(document, place).items():
        where = f"{place}.{printable(project_id)}"
        scopes.update(parse_project(access, check_project_id(project_id, where), place=where, expired=expired))
    return scopes


def parse_project(document: object, project_id: str, *, place: str, expired: int = 0) -> Scopes:
    """What is held in one project and on its resources; also one user of a membership."""
    members = read_members(document, place, IN_PROJECT)
    own = {name: members[name] for name in HOLDINGS if name in members}
    scopes = {Scope(project_id): parse_holdings(own, place=place, expired=expired)}
    for kind in ResourceKind:
        where = f"{place}.{kind}"
        for resource_id, document_there in read_members(member_or(members, kind.value, {}), where).items():
            here = f"{where}.{printable(resource_id)}"
            scope = Scope(project_id, kind, RESOURCE_IDS[kind](resource_id, here))
            scopes[scope] = parse_holdings(document_there, place=here, expired=expired)
    return {scope: holdings for scope, holdings in scopes.items() if not holdings.is_empty}


def parse_holdings(document: object, *, place: str, expired: int = 0) -> ScopeHoldings:
    """`{roles, private_data, public_data}` of one scope."""
    members = read_members(document, place, HOLDINGS)
    sections = {
        section: parse_entries(member_or(members, section, {}), section, place=f"{place}.{section}", expired=expired)
        for section in RuleSection
    }
    refuse_duplicate_paths(sections[RuleSection.PRIVATE], sections[RuleSection.PUBLIC], place=place)
    return ScopeHoldings(
        roles=parse_assignments(member_or(members, "roles", ()), place=f"{place}.roles", expired=expired),
        private_data=sections[RuleSection.PRIVATE],
        public_data=sections[RuleSection.PUBLIC],
    )


def record_document(record: UserRecord, role_names: Mapping[str, str]) -> dict[str, object]:
    """Return the shape `tree`: the record as stored, with expired entries, nothing merged (R5)."""
    root = holdings_document(record.root, role_names)
    private = dict(record.root.private_data)
    access = project_access_document(record.scopes, role_names)
    return {
        "login": record.login,
        "private_data": {**private, PROJECT_ACCESS: access} if access else private,
        "public_data": root.get("public_data", {}),
        "roles": root.get("roles", []),
        "secret_data": record.secret_data,
    }


def first_end(record: UserRecord, now: int) -> int:
    """The earliest end of any unexpired role or entry of the record, 0 for none (interface §2.7)."""
    ends = [role.end for holdings in record.scopes.values() for role in holdings.roles]
    for holdings in record.scopes.values():
        ends += [entry.end for entry in section_entries(holdings.private_data, RuleSection.PRIVATE).values()]
        ends += [entry.end for entry in section_entries(holdings.public_data, RuleSection.PUBLIC).values()]
    return min((end.ends_at(now) for end in ends if end != NO_END and not end.is_past(now)), default=0)


def project_document(record: UserRecord, project_id: str, model: ApplicationModel) -> Mapping[str, object]:
    """What the record holds in one project and on its resources, as `parse_project` reads it."""
    scopes = {scope: holdings for scope, holdings in record.scopes.items() if scope.project_id == project_id}
    names = {key: role.name for key, role in model.roles.items()}
    return project_access_document(scopes, names).get(project_id, {})


def project_access_document(scopes: Scopes, role_names: Mapping[str, str]) -> dict[str, dict[str, object]]:
    projects: dict[str, dict[str, object]] = {}
    resources: dict[tuple[str, ResourceKind], dict[str, object]] = {}
    for scope in sorted((scope for scope in scopes if not scope.is_root), key=_document_order):
        project = projects.setdefault(scope.project_id, {})
        holdings = holdings_document(scopes[scope], role_names)
        if scope.kind is None:
            project.update(holdings)
            continue
        of_kind = resources.setdefault((scope.project_id, scope.kind), {})
        of_kind[scope.resource_id] = holdings
        project[scope.kind.value] = of_kind
    return projects


def holdings_document(holdings: ScopeHoldings, role_names: Mapping[str, str]) -> dict[str, object]:
    """The non-empty parts of one scope."""
    members = {
        "roles": [_assignment_document(assignment, role_names) for assignment in holdings.roles],
        "private_data": holdings.private_data,
        "public_data": holdings.public_data,
    }
    return {name: value for name, value in members.items() if value}


def _assignment(item: object, place: str, expired: int) -> Assignment:
    members = {"name": item} if isinstance(item, str) else read_members(item, place, ASSIGNMENT)
    name = check_role_name(members.get("name"), f"{place}.name")
    return Assignment(role=name.lower(), end=parse_end(members, place, expired))


def _assignment_document(assignment: Assignment, role_names: Mapping[str, str]) -> str | dict[str, object]:
    name = role_names.get(assignment.role, assignment.role)
    return name if assignment.end == NO_END else {"name": name, **end_members(assignment.end)}


def _document_order(scope: Scope) -> tuple[str, str, int, str]:
    """Resources by number where they have one: 9 before 10."""
    return scope.project_id, scope.kind or "", len(scope.resource_id), scope.resource_id


def _application_id(value: object, place: str) -> str:
    return str(parse_application_id(value, place))


RESOURCE_IDS: Final[Mapping[ResourceKind, Callable[[object, str], str]]] = {
    ResourceKind.APPLICATION: _application_id,
    ResourceKind.SERVICE: _application_id,
    ResourceKind.GROUP: check_group_id,
}
