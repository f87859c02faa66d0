"""What stands between a person and a rule he does not hold, the nearest first."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from heapq import nsmallest
from itertools import islice
from typing import Final

from gatehouse.permissions.evaluation.compiled import CompiledRole
from gatehouse.permissions.evaluation.gates import Barrier
from gatehouse.permissions.evaluation.gathering import EvaluationContext, Tier, direct_entries
from gatehouse.permissions.evaluation.matching import NO_ADDRESS
from gatehouse.permissions.explanation.contributions import (
    GroupReference,
    explain_contributions,
    find_group,
    group_reference,
)
from gatehouse.permissions.explanation.failures import FailedTest, failed_tests
from gatehouse.permissions.model.project import GrantAction
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.model.rule import Rule
from gatehouse.permissions.model.scope import Scope
from gatehouse.permissions.model.user_record import NO_HOLDINGS, Assignment

MAX_FAILED_TESTS: Final = 20  # parts of a condition that are told


class MissingKind(StrEnum):
    """In the order of nearness."""

    APPLICATION_REMOVED = "application_removed"
    ACCOUNT_ENDED = "account_ended"  # a service account that was revoked, or whose project is removed
    PROJECT_UNKNOWN = Barrier.PROJECT_UNKNOWN.value
    PROJECT_REMOVED = Barrier.PROJECT_REMOVED.value
    RESOURCE_UNKNOWN = "resource_unknown"  # the project has no such application, service or group
    IN_DISALLOWED_GROUP = Barrier.IN_DISALLOWED_GROUP.value
    IN_NO_ALLOWED_GROUP = Barrier.IN_NO_ALLOWED_GROUP.value
    DOMAIN_NOT_ALLOWED = Barrier.DOMAIN_NOT_ALLOWED.value
    PROJECT_CLOSED = "project_closed"  # any of the three, to whoever may not see the project
    SAID_NO = "said_no"
    ENTRY_EXPIRED = "entry_expired"
    ROLE_EXPIRED = "role_expired"
    CONDITION_FAILED = "condition_failed"
    REVOKED_BY_GROUP = "revoked_by_group"
    ROLE_PROTECTED = "role_protected"  # given where only public roles count
    NOT_A_MEMBER = "not_a_member"
    ROLE_NOT_ASSIGNED = "role_not_assigned"
    ROLE_FULL = "role_full"
    NOT_GIVEN = "not_given"  # by roles that whoever asks may not see
    HELD_ELSEWHERE = "held_elsewhere"  # where it does not count for this


MISSING_ORDER: Final = {lack: place for place, lack in enumerate(MissingKind)}


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRequirement:
    kind: MissingKind
    scope: Scope
    role: str = ""  # its name
    groups: tuple[GroupReference, ...] = ()
    since: int = 0  # when it expired
    limit: int = 0  # how many users the role may have
    failed: tuple[FailedTest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleGrants:
    """What a project does with the application's roles through its groups; these by id, roles by key."""

    given: Mapping[str, list[str]]
    taken: Mapping[str, list[str]]
    mine: frozenset[str]  # groups that he is a member of


@dataclass(frozen=True, slots=True)
class MissingSearch:
    this: EvaluationContext
    rule: Rule
    holders: Mapping[str, int]  # users of each role by key, where somebody counted them

    def missing(self, places: Iterable[Scope], most: int) -> list[MissingRequirement]:
        """The nearest, each once: a resource and its project share the project's barrier.

        Why conditions failed is looked up for these alone: a thousand roles may have to be passed over.
        """
        found = {one: None for place in places for one in self._in(place)}
        return [self._told(one) for one in nsmallest(most, found, key=lambda one: MISSING_ORDER[one.kind])]

    def _in(self, place: Scope) -> Iterator[MissingRequirement]:
        deciding = [one for one in explain_contributions(self.this, place, self.rule) if one.decides]
        yield from self._barrier(place)
        for one in deciding:
            if not one.value and one.tier > Tier.SCHEMA:
                groups = (one.membership.group,) if one.membership else ()
                yield MissingRequirement(kind=MissingKind.SAID_NO, scope=place, role=one.role, groups=groups)
        yield from self._entry(place)
        if all(not one.value and one.tier < Tier.ROLES for one in deciding):  # otherwise no role would help
            grants = self._grants(place)
            for role in self.this.model.roles.values():
                if self.rule in role.says.yes:
                    yield from self._role(role, place, grants)

    def _barrier(self, place: Scope) -> Iterator[MissingRequirement]:
        barrier = None if place.is_root else self.this.gate(place.project_id)
        if barrier is None or barrier.barrier is None:
            return
        yield MissingRequirement(
            kind=MissingKind(barrier.barrier.value), scope=place.project, groups=self._named(place, barrier.groups)
        )

    def _entry(self, place: Scope) -> Iterator[MissingRequirement]:
        entry = direct_entries(self.this.holdings.get(place, NO_HOLDINGS)).get(self.rule)
        if entry is not None and entry.value and entry.end.is_past(self.this.now):
            yield MissingRequirement(kind=MissingKind.ENTRY_EXPIRED, scope=place, since=entry.end.expired)

    def _role(self, found: CompiledRole, place: Scope, grants: RoleGrants) -> Iterator[MissingRequirement]:
        """Why a role that would give the rule does not."""
        role = found.role
        assignment = self._assignment(role, place)
        granting = grants.given.get(role.key, [])
        revoking = [one for one in grants.taken.get(role.key, ()) if one in grants.mine]
        if role.protected and not place.is_root:
            if assignment is not None or granting:
                yield MissingRequirement(kind=MissingKind.ROLE_PROTECTED, scope=place, role=role.name)
        elif revoking:
            groups = self._named(place, revoking)
            yield MissingRequirement(kind=MissingKind.REVOKED_BY_GROUP, scope=place, role=role.name, groups=groups)
        else:
            is_granted = not grants.mine.isdisjoint(granting)
            yield from self._condition(role, place, assignment, is_granted=is_granted)
            for one in granting:
                if one not in grants.mine:
                    groups = self._named(place, [one])
                    yield MissingRequirement(
                        kind=MissingKind.NOT_A_MEMBER, scope=place, role=role.name, groups=groups
                    )
            yield from self._assigned(role, place, assignment)

    def _condition(
        self, role: Role, place: Scope, assignment: Assignment | None, *, is_granted: bool
    ) -> Iterator[MissingRequirement]:
        """One that failed where it alone would have given the role."""
        if role.condition_mode is ConditionMode.GRANT:
            would_do = place.is_root
        else:
            would_do = is_granted or (assignment is not None and not assignment.end.is_past(self.this.now))
        if would_do and not self.this.meets(role):
            yield MissingRequirement(kind=MissingKind.CONDITION_FAILED, scope=place, role=role.name)

    def _assigned(self, role: Role, place: Scope, assignment: Assignment | None) -> Iterator[MissingRequirement]:
        if assignment is None:
            full = 0 < role.user_limit <= self.holders.get(role.key, 0)
            kind = MissingKind.ROLE_FULL if full else MissingKind.ROLE_NOT_ASSIGNED
            yield MissingRequirement(kind=kind, scope=place, role=role.name, limit=role.user_limit)
        elif assignment.end.is_past(self.this.now):
            yield MissingRequirement(
                kind=MissingKind.ROLE_EXPIRED, scope=place, role=role.name, since=assignment.end.expired
            )

    def _assignment(self, role: Role, place: Scope) -> Assignment | None:
        return next((one for one in self.this.holdings.get(place, NO_HOLDINGS).roles if one.role == role.key), None)

    def _grants(self, place: Scope) -> RoleGrants:
        by_role: dict[GrantAction, defaultdict[str, list[str]]] = {one: defaultdict(list) for one in GrantAction}
        found = None if place.kind is not None else self.this.connection(place.project_id)
        for group_id, grants in sorted(found.by_group.items()) if found else ():
            for grant in grants:
                for key in grant.roles:
                    by_role[grant.action][key].append(group_id)
        mine = self.this.groups(place.project_id) if found else ()
        return RoleGrants(given=by_role[GrantAction.GRANT], taken=by_role[GrantAction.REVOKE], mine=frozenset(mine))

    def _named(self, place: Scope, group_ids: Iterable[str]) -> tuple[GroupReference, ...]:
        return tuple(group_reference(self.this, place, one) for one in group_ids)

    def _told(self, one: MissingRequirement) -> MissingRequirement:
        """With why it is so, where a condition is the reason."""
        match one.kind:
            case MissingKind.CONDITION_FAILED:
                return replace(one, failed=self._failed(self._called(one.role)))
            case MissingKind.ROLE_NOT_ASSIGNED | MissingKind.ROLE_FULL:
                role = self._called(one.role)
                return replace(one, failed=self._failed(role) if role.condition_mode is ConditionMode.REQUIRE else ())
            case MissingKind.NOT_A_MEMBER:
                return replace(one, failed=self._unmet(one.scope, one.groups[0]))
            case MissingKind.DOMAIN_NOT_ALLOWED:
                return replace(one, failed=self._domain(one.scope))
            case _:
                return one

    def _called(self, name: str) -> Role:
        return self.this.model.roles[name.lower()].role

    def _failed(self, role: Role) -> tuple[FailedTest, ...]:
        if role.condition is None:
            return ()
        return tuple(
            islice(failed_tests(role.condition.test, self.this.facts.subject, self.this.address), MAX_FAILED_TESTS)
        )

    def _unmet(self, place: Scope, named_group: GroupReference) -> tuple[FailedTest, ...]:
        group = find_group(self.this, place, named_group.group_id)
        tests = (one.condition.test for one in group.conditions) if group else ()
        failed = (one for test in tests for one in failed_tests(test, self.this.facts.subject, NO_ADDRESS))
        return tuple(islice(failed, MAX_FAILED_TESTS))

    def _domain(self, place: Scope) -> tuple[FailedTest, ...]:
        project = self.this.structure.project(place.project_id)
        wanted = ", ".join(sorted(project.allowed_domains)) if project else ""
        return (FailedTest("domain", wanted, self.this.facts.subject.domain or ""),)
