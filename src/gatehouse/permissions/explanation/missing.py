"""What stands between a person and a rule he does not hold, the nearest first."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gatehouse.permissions.evaluation.compiled import CompiledRole
from gatehouse.permissions.evaluation.gates import Barrier
from gatehouse.permissions.evaluation.gathering import Situation, Tier, direct_entries
from gatehouse.permissions.evaluation.matching import UNKNOWN_PLACE, is_member
from gatehouse.permissions.explanation.contributions import NamedGroup, contributions, group_of, named
from gatehouse.permissions.explanation.failures import FailedTest, failures
from gatehouse.permissions.model.project import GrantAction
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.model.rule import Rule
from gatehouse.permissions.model.scope import Scope
from gatehouse.permissions.model.user_record import NOTHING, Assignment


class Lack(StrEnum):
    """In the order of nearness."""

    APPLICATION_REMOVED = "application_removed"
    PROJECT_UNKNOWN = Barrier.PROJECT_UNKNOWN.value
    PROJECT_REMOVED = Barrier.PROJECT_REMOVED.value
    IN_DISALLOWED_GROUP = Barrier.IN_DISALLOWED_GROUP.value
    IN_NO_ALLOWED_GROUP = Barrier.IN_NO_ALLOWED_GROUP.value
    DOMAIN_NOT_ALLOWED = Barrier.DOMAIN_NOT_ALLOWED.value
    SAID_NO = "said_no"
    ENTRY_EXPIRED = "entry_expired"
    ROLE_EXPIRED = "role_expired"
    CONDITION_FAILED = "condition_failed"
    REVOKED_BY_GROUP = "revoked_by_group"
    ROLE_PROTECTED = "role_protected"  # given where only public roles count
    NOT_A_MEMBER = "not_a_member"
    ROLE_NOT_ASSIGNED = "role_not_assigned"
    ROLE_FULL = "role_full"
    HELD_ELSEWHERE = "held_elsewhere"  # where it does not count for this


NEARNESS: Final = {lack: place for place, lack in enumerate(Lack)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    kind: Lack
    scope: Scope
    role: str = ""  # its name
    groups: tuple[NamedGroup, ...] = ()
    since: int = 0  # when it expired
    limit: int = 0  # how many users the role may have
    failed: tuple[FailedTest, ...] = ()


@dataclass(frozen=True, slots=True)
class Search:
    this: Situation
    rule: Rule
    holders: Mapping[str, int]  # users of each role by key, where somebody counted them

    def missing(self, places: Iterable[Scope]) -> list[Missing]:
        """Each once: a resource and its project share the project's barrier."""
        found = {one: None for place in places for one in self._in(place)}
        return sorted(found, key=lambda one: NEARNESS[one.kind])

    def _in(self, place: Scope) -> Iterator[Missing]:
        deciding = [one for one in contributions(self.this, place, self.rule) if one.decides]
        yield from self._barrier(place)
        for one in deciding:
            if not one.value and one.tier > Tier.SCHEMA:
                groups = (one.membership.group,) if one.membership else ()
                yield Missing(kind=Lack.SAID_NO, scope=place, role=one.role, groups=groups)
        yield from self._entry(place)
        if all(not one.value and one.tier < Tier.ROLES for one in deciding):  # otherwise no role would help
            for role in self.this.model.roles.values():
                if self.rule in role.says.yes:
                    yield from self._role(role, place)

    def _barrier(self, place: Scope) -> Iterator[Missing]:
        barrier = None if place.is_root else self.this.gate(place.project_id)
        if barrier is None or barrier.barrier is None:
            return
        yield Missing(
            kind=Lack(barrier.barrier.value),
            scope=place.project,
            groups=tuple(named(self.this, place, one) for one in barrier.groups),
            failed=self._domain(place) if barrier.barrier is Barrier.DOMAIN_NOT_ALLOWED else (),
        )

    def _domain(self, place: Scope) -> tuple[FailedTest, ...]:
        project = self.this.structure.project(place.project_id)
        wanted = ", ".join(sorted(project.allowed_domains)) if project else ""
        return (FailedTest("domain", wanted, self.this.facts.subject.domain or ""),)

    def _entry(self, place: Scope) -> Iterator[Missing]:
        entry = direct_entries(self.this.holdings.get(place, NOTHING)).get(self.rule)
        if entry is not None and entry.value and entry.end.is_past(self.this.now):
            yield Missing(kind=Lack.ENTRY_EXPIRED, scope=place, since=entry.end.expired)

    def _role(self, found: CompiledRole, place: Scope) -> Iterator[Missing]:
        """Why a role that would give the rule does not."""
        role = found.role
        assignment = self._assignment(role, place)
        granting = self._groups(role, place, GrantAction.GRANT)
        revoking = tuple(one for one in self._groups(role, place, GrantAction.REVOKE) if self._belongs(place, one))
        if role.protected and not place.is_root:
            if assignment is not None or granting:
                yield Missing(kind=Lack.ROLE_PROTECTED, scope=place, role=role.name)
        elif revoking:
            yield Missing(kind=Lack.REVOKED_BY_GROUP, scope=place, role=role.name, groups=revoking)
        else:
            yield from self._condition(role, place, assignment, granting)
            yield from self._outside(role, place, granting)
            yield from self._assigned(role, place, assignment)

    def _condition(
        self, role: Role, place: Scope, assignment: Assignment | None, granting: Iterable[NamedGroup]
    ) -> Iterator[Missing]:
        """One that failed where it alone would have given the role."""
        if role.condition_mode is ConditionMode.GRANT:
            would_do = place.is_root
        else:
            assigned = assignment is not None and not assignment.end.is_past(self.this.now)
            would_do = assigned or any(self._belongs(place, one) for one in granting)
        if would_do and (failed := self._failed(role)):
            yield Missing(kind=Lack.CONDITION_FAILED, scope=place, role=role.name, failed=failed)

    def _outside(self, role: Role, place: Scope, granting: Iterable[NamedGroup]) -> Iterator[Missing]:
        for one in granting:
            if not self._belongs(place, one):
                failed = self._unmet(place, one)
                yield Missing(kind=Lack.NOT_A_MEMBER, scope=place, role=role.name, groups=(one,), failed=failed)

    def _assigned(self, role: Role, place: Scope, assignment: Assignment | None) -> Iterator[Missing]:
        if assignment is None:
            full = 0 < role.user_limit <= self.holders.get(role.key, 0)
            kind = Lack.ROLE_FULL if full else Lack.ROLE_NOT_ASSIGNED
            failed = self._failed(role) if role.condition_mode is ConditionMode.REQUIRE else ()
            yield Missing(kind=kind, scope=place, role=role.name, limit=role.user_limit, failed=failed)
        elif assignment.end.is_past(self.this.now):
            yield Missing(kind=Lack.ROLE_EXPIRED, scope=place, role=role.name, since=assignment.end.expired)

    def _assignment(self, role: Role, place: Scope) -> Assignment | None:
        return next((one for one in self.this.holdings.get(place, NOTHING).roles if one.role == role.key), None)

    def _groups(self, role: Role, place: Scope, action: GrantAction) -> tuple[NamedGroup, ...]:
        """Groups of the project whose members are given the role, or have it taken away."""
        project = self.this.structure.project(place.project_id)
        if project is None or place.kind is not None:
            return ()
        grants = project.grants(self.this.application_id).by_group
        return tuple(
            named(self.this, place, group_id)
            for group_id in sorted(grants)
            if any(role.key in one.roles and one.action is action for one in grants[group_id])
        )

    def _belongs(self, place: Scope, named_group: NamedGroup) -> bool:
        group = group_of(self.this, place, named_group.group_id)
        return group is not None and is_member(group, self.this.facts)

    def _failed(self, role: Role) -> tuple[FailedTest, ...]:
        if role.condition is None or self.this.meets(role):
            return ()
        return tuple(failures(role.condition.test, self.this.facts.subject, self.this.address))

    def _unmet(self, place: Scope, named_group: NamedGroup) -> tuple[FailedTest, ...]:
        group = group_of(self.this, place, named_group.group_id)
        tests = (one.condition.test for one in group.conditions) if group else ()
        return tuple(one for test in tests for one in failures(test, self.this.facts.subject, UNKNOWN_PLACE))
