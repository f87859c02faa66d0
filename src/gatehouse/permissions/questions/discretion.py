"""What of an explanation whoever asked for it may hear: no more than the rights he has would show him anyway.

Names of roles go with canSeeRoleList, what conditions ask for and limits with canReadSchema, groups and domains of a
project with can_view_project, conditions of a group with managing it. What stands in the person's own record is his.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from gatehouse.permissions.callers.desk import AuthenticatedRequest
from gatehouse.permissions.evaluation.gathering import SourceKind
from gatehouse.permissions.explanation.contributions import ExplainedContribution
from gatehouse.permissions.explanation.missing import MISSING_ORDER, MissingKind, MissingRequirement
from gatehouse.permissions.explanation.reasons import Explanation
from gatehouse.permissions.model.scope import Scope
from gatehouse.permissions.model.user_record import UserRecord
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open

BARRIERS: Final = frozenset(
    {MissingKind.IN_DISALLOWED_GROUP, MissingKind.IN_NO_ALLOWED_GROUP, MissingKind.DOMAIN_NOT_ALLOWED}
)
THROUGH_GROUPS: Final = frozenset(
    {MissingKind.NOT_A_MEMBER, MissingKind.REVOKED_BY_GROUP, MissingKind.ROLE_PROTECTED}
)
ABOUT_ROLES: Final = THROUGH_GROUPS | {
    MissingKind.CONDITION_FAILED,
    MissingKind.ROLE_EXPIRED,
    MissingKind.ROLE_NOT_ASSIGNED,
    MissingKind.ROLE_FULL,
}
CONCLUSIVE: Final = frozenset(  # then nobody asks for roles
    {
        MissingKind.APPLICATION_REMOVED,
        MissingKind.ACCOUNT_ENDED,
        MissingKind.PROJECT_UNKNOWN,
        MissingKind.PROJECT_REMOVED,
        MissingKind.RESOURCE_UNKNOWN,
        MissingKind.SAID_NO,
    }
)

SHOWN_WITH_UNKNOWN_PROJECT: Final = frozenset(
    {MissingKind.APPLICATION_REMOVED, MissingKind.ACCOUNT_ENDED, MissingKind.HELD_ELSEWHERE}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationFilter:
    request: AuthenticatedRequest
    assigned: frozenset[str]  # keys of the roles that the person's record names

    @property
    def sees_roles(self) -> bool:
        return self._may(Operation.ROLE_NAMES, self.request.target)

    @property
    def sees_schema(self) -> bool:
        return self._may(Operation.ROLES_GET, self.request.target)

    def visible_part(self, explanation: Explanation) -> Explanation:
        return replace(
            explanation,
            contributions=tuple(self._visible_contributions(explanation)),
            missing=() if explanation.allowed else tuple(self._visible_missing(explanation)),
        )

    def _visible_contributions(self, explanation: Explanation) -> Iterator[ExplainedContribution]:
        lacks = {one.kind for one in explanation.missing}
        shut, unfound = not lacks.isdisjoint(BARRIERS), MissingKind.RESOURCE_UNKNOWN in lacks
        for one in explanation.contributions:
            if self._sees_project(one.scope):
                if one.scope.is_root or not unfound:
                    yield one
            elif not (shut and one.kind is SourceKind.GROUP_GRANT):  # what it would give him if it let him in
                yield replace(one, membership=None)

    def _visible_missing(self, explanation: Explanation) -> list[MissingRequirement]:
        told = [self._visible_requirement(one) for one in explanation.missing]
        kept = without_irrelevant(one for one in told if one is not None)
        emptied = bool(explanation.missing) and not kept
        if emptied or not (self.sees_roles or any(one.kind in CONCLUSIVE for one in kept)):
            kept[MissingRequirement(kind=MissingKind.NOT_GIVEN, scope=explanation.scope)] = None
        return sorted(kept, key=lambda one: MISSING_ORDER[one.kind])

    def _visible_requirement(self, one: MissingRequirement) -> MissingRequirement | None:
        sees_project = self._sees_project(one.scope)
        if one.kind in BARRIERS:
            return one if sees_project else MissingRequirement(kind=MissingKind.PROJECT_CLOSED, scope=one.scope)
        if one.kind is MissingKind.RESOURCE_UNKNOWN and not sees_project:  # he might try out what it has
            return None
        shown = one if sees_project else replace(one, groups=())
        return self._visible_role_requirement(shown, sees_project=sees_project) if one.kind in ABOUT_ROLES else shown

    def _visible_role_requirement(self, one: MissingRequirement, *, sees_project: bool) -> MissingRequirement | None:
        is_own = one.role.lower() in self.assigned
        hidden = not sees_project and one.kind in THROUGH_GROUPS
        if not (is_own or self.sees_roles) or (hidden and (not is_own or one.kind is MissingKind.NOT_A_MEMBER)):
            return None
        if one.kind is MissingKind.NOT_A_MEMBER:
            return one if self._sees_members(one) else replace(one, failed=())
        return one if self.sees_schema else without_schema(one)

    def _sees_project(self, scope: Scope) -> bool:
        return scope.is_root or self._may(Operation.PROJECT_GET, GuardTarget(project_id=scope.project_id))

    def _sees_members(self, one: MissingRequirement) -> bool:
        project_id = one.scope.project_id
        return all(
            self._may(Operation.GROUP_GET, GuardTarget(project_id=project_id, group_id=group.group_id))
            for group in one.groups
        )

    def _may(self, operation: Operation, about: GuardTarget) -> bool:
        return is_open(self.request.rights, operation, about)


def explanation_filter(request: AuthenticatedRequest, record: UserRecord) -> ExplanationFilter:
    """`record`: of whom the explanation is about; whoever asks may read it."""
    return ExplanationFilter(
        request=request, assigned=frozenset(one.role for held in record.scopes.values() for one in held.roles)
    )


def without_irrelevant(missing: Iterable[MissingRequirement]) -> dict[MissingRequirement, None]:
    """Each once. What would give something on a resource that is not there is left out where that is told."""
    kept = dict.fromkeys(missing)
    if not any(one.kind is MissingKind.RESOURCE_UNKNOWN for one in kept):
        return kept
    return dict.fromkeys(one for one in kept if one.kind in CONCLUSIVE | BARRIERS | {MissingKind.HELD_ELSEWHERE})


def without_schema(one: MissingRequirement) -> MissingRequirement:
    """A role as the list of roles shows it: without its condition and its limit."""
    kind = MissingKind.ROLE_NOT_ASSIGNED if one.kind is MissingKind.ROLE_FULL else one.kind
    return replace(one, kind=kind, limit=0, failed=())


def as_unknown_project(explanation: Explanation, asked: Scope) -> Explanation:
    """About a project that is not there, or that may not be seen: the two are told apart by nothing (R6).

    `asked`: the scope as it was named, for an alias would be told from a word by its id.
    """
    unknown = MissingRequirement(kind=MissingKind.PROJECT_UNKNOWN, scope=asked.project)
    beside = (one for one in explanation.missing if one.kind in SHOWN_WITH_UNKNOWN_PROJECT)
    return replace(
        explanation,
        scope=asked,
        contributions=tuple(one for one in explanation.contributions if one.scope.is_root),
        missing=()
        if explanation.allowed
        else tuple(sorted((unknown, *beside), key=lambda one: MISSING_ORDER[one.kind])),
    )
