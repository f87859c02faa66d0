"""What of an explanation whoever asked for it may hear: no more than the rights he has would show him anyway.

Names of roles go with canSeeRoleList, what conditions ask for and limits with canReadSchema, groups and domains of a
project with can_view_project, conditions of a group with managing it. What stands in the person's own record is his.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from gatehouse.permissions.callers.desk import Visit
from gatehouse.permissions.evaluation.gathering import SourceKind
from gatehouse.permissions.explanation.contributions import Contribution
from gatehouse.permissions.explanation.missing import NEARNESS, Lack, Missing
from gatehouse.permissions.explanation.reasons import Explanation
from gatehouse.permissions.model.scope import Scope
from gatehouse.permissions.model.user_record import UserRecord
from gatehouse.permissions.rights.guard import About, Operation, is_open

BARRIERS: Final = frozenset({Lack.IN_DISALLOWED_GROUP, Lack.IN_NO_ALLOWED_GROUP, Lack.DOMAIN_NOT_ALLOWED})
THROUGH_GROUPS: Final = frozenset({Lack.NOT_A_MEMBER, Lack.REVOKED_BY_GROUP, Lack.ROLE_PROTECTED})
ABOUT_ROLES: Final = THROUGH_GROUPS | {
    Lack.CONDITION_FAILED,
    Lack.ROLE_EXPIRED,
    Lack.ROLE_NOT_ASSIGNED,
    Lack.ROLE_FULL,
}
ENOUGH: Final = frozenset(  # then nobody asks for roles
    {
        Lack.APPLICATION_REMOVED,
        Lack.ACCOUNT_ENDED,
        Lack.PROJECT_UNKNOWN,
        Lack.PROJECT_REMOVED,
        Lack.RESOURCE_UNKNOWN,
        Lack.SAID_NO,
    }
)

BESIDE_UNKNOWN: Final = frozenset({Lack.APPLICATION_REMOVED, Lack.ACCOUNT_ENDED, Lack.HELD_ELSEWHERE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Discretion:
    visit: Visit
    assigned: frozenset[str]  # keys of the roles that the person's record names

    @property
    def sees_roles(self) -> bool:
        return self._may(Operation.ROLE_NAMES, self.visit.about)

    @property
    def sees_schema(self) -> bool:
        return self._may(Operation.ROLES_GET, self.visit.about)

    def told(self, explanation: Explanation) -> Explanation:
        return replace(
            explanation,
            contributions=tuple(self._contributions(explanation)),
            missing=() if explanation.allowed else tuple(self._missing(explanation)),
        )

    def _contributions(self, explanation: Explanation) -> Iterator[Contribution]:
        lacks = {one.kind for one in explanation.missing}
        shut, unfound = not lacks.isdisjoint(BARRIERS), Lack.RESOURCE_UNKNOWN in lacks
        for one in explanation.contributions:
            if self._sees_project(one.scope):
                if one.scope.is_root or not unfound:
                    yield one
            elif not (shut and one.kind is SourceKind.GROUP_GRANT):  # what it would give him if it let him in
                yield replace(one, membership=None)

    def _missing(self, explanation: Explanation) -> list[Missing]:
        told = [self._told(one) for one in explanation.missing]
        kept = without_moot(one for one in told if one is not None)
        emptied = bool(explanation.missing) and not kept
        if emptied or not (self.sees_roles or any(one.kind in ENOUGH for one in kept)):
            kept[Missing(kind=Lack.NOT_GIVEN, scope=explanation.scope)] = None
        return sorted(kept, key=lambda one: NEARNESS[one.kind])

    def _told(self, one: Missing) -> Missing | None:
        sees_project = self._sees_project(one.scope)
        if one.kind in BARRIERS:
            return one if sees_project else Missing(kind=Lack.PROJECT_CLOSED, scope=one.scope)
        if one.kind is Lack.RESOURCE_UNKNOWN and not sees_project:  # he might try out what it has
            return None
        shown = one if sees_project else replace(one, groups=())
        return self._about_role(shown, sees_project=sees_project) if one.kind in ABOUT_ROLES else shown

    def _about_role(self, one: Missing, *, sees_project: bool) -> Missing | None:
        is_own = one.role.lower() in self.assigned
        hidden = not sees_project and one.kind in THROUGH_GROUPS
        if not (is_own or self.sees_roles) or (hidden and (not is_own or one.kind is Lack.NOT_A_MEMBER)):
            return None
        if one.kind is Lack.NOT_A_MEMBER:
            return one if self._sees_members(one) else replace(one, failed=())
        return one if self.sees_schema else without_schema(one)

    def _sees_project(self, scope: Scope) -> bool:
        return scope.is_root or self._may(Operation.PROJECT_GET, About(project_id=scope.project_id))

    def _sees_members(self, one: Missing) -> bool:
        project_id = one.scope.project_id
        return all(
            self._may(Operation.GROUP_GET, About(project_id=project_id, group_id=group.group_id))
            for group in one.groups
        )

    def _may(self, operation: Operation, about: About) -> bool:
        return is_open(self.visit.rights, operation, about)


def discretion(visit: Visit, record: UserRecord) -> Discretion:
    """`record`: of whom the explanation is about; whoever asks may read it."""
    return Discretion(
        visit=visit, assigned=frozenset(one.role for held in record.scopes.values() for one in held.roles)
    )


def without_moot(missing: Iterable[Missing]) -> dict[Missing, None]:
    """Each once. What would give something on a resource that is not there is left out where that is told."""
    kept = dict.fromkeys(missing)
    if not any(one.kind is Lack.RESOURCE_UNKNOWN for one in kept):
        return kept
    return dict.fromkeys(one for one in kept if one.kind in ENOUGH | BARRIERS | {Lack.HELD_ELSEWHERE})


def without_schema(one: Missing) -> Missing:
    """A role as the list of roles shows it: without its condition and its limit."""
    kind = Lack.ROLE_NOT_ASSIGNED if one.kind is Lack.ROLE_FULL else one.kind
    return replace(one, kind=kind, limit=0, failed=())


def as_if_unknown(explanation: Explanation, asked: Scope) -> Explanation:
    """About a project that is not there, or that may not be seen: the two are told apart by nothing (R6).

    `asked`: the scope as it was named, for an alias would be told from a word by its id.
    """
    unknown = Missing(kind=Lack.PROJECT_UNKNOWN, scope=asked.project)
    beside = (one for one in explanation.missing if one.kind in BESIDE_UNKNOWN)
    return replace(
        explanation,
        scope=asked,
        contributions=tuple(one for one in explanation.contributions if one.scope.is_root),
        missing=() if explanation.allowed else tuple(sorted((unknown, *beside), key=lambda one: NEARNESS[one.kind])),
    )
