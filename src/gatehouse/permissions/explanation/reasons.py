"""What is missing before a person holds a rule, the nearest first."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from heapq import nsmallest
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.kernel.addresses import Address
from gatehouse.permissions.evaluation.compiled import CompiledRole
from gatehouse.permissions.evaluation.condition_index import NO_ADDRESS
from gatehouse.permissions.evaluation.contributions import (
    Barrier,
    EvaluationContext,
    Tier,
    direct_entries,
    evaluation_context,
    is_account_ended,
    is_application_removed,
)
from gatehouse.permissions.evaluation.effective import EffectivePermissions, evaluate
from gatehouse.permissions.explanation.contributions import (
    ExplainedContribution,
    GroupReference,
    explain_contributions,
    find_group,
    group_reference,
)
from gatehouse.permissions.explanation.failed_tests import FailedTest, failed_tests
from gatehouse.permissions.explanation.remedies import Remedy
from gatehouse.permissions.model.facts import NO_HOLDINGS, ApplicationModel, Assignment, Facts, Structure
from gatehouse.permissions.model.project import GrantAction
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.model.rules import Rule, Scope

MAX_FAILED_TESTS: Final = 20  # parts of a condition that are reported


class MissingKind(StrEnum):
    """The kinds of missing facts, the nearest first."""

    APPLICATION_REMOVED = "application_removed"
    ACCOUNT_ENDED = "account_ended"  # a service account that was revoked, or whose project is removed
    BANNED = "banned"  # from the application, its project or the installation
    PROJECT_UNKNOWN = Barrier.PROJECT_UNKNOWN.value
    PROJECT_REMOVED = Barrier.PROJECT_REMOVED.value
    BANNED_FROM_PROJECT = Barrier.BANNED_FROM_PROJECT.value
    RESOURCE_UNKNOWN = "resource_unknown"  # the project has no such application, service or group
    IN_DISALLOWED_GROUP = Barrier.IN_DISALLOWED_GROUP.value
    IN_NO_ALLOWED_GROUP = Barrier.IN_NO_ALLOWED_GROUP.value
    DOMAIN_NOT_ALLOWED = Barrier.DOMAIN_NOT_ALLOWED.value
    PROJECT_CLOSED = "project_closed"  # any of the three, for callers who may not see the project
    SAID_NO = "said_no"
    ENTRY_EXPIRED = "entry_expired"
    ROLE_EXPIRED = "role_expired"
    CONDITION_FAILED = "condition_failed"
    REVOKED_BY_GROUP = "revoked_by_group"
    ROLE_PROTECTED = "role_protected"  # assigned where only public roles count
    NOT_A_MEMBER = "not_a_member"
    ROLE_NOT_ASSIGNED = "role_not_assigned"
    ROLE_FULL = "role_full"
    NOT_GIVEN = "not_given"  # by roles that the caller may not see
    HELD_ELSEWHERE = "held_elsewhere"  # held where it does not count for this rule


MISSING_ORDER: Final = {kind: position for position, kind in enumerate(MissingKind)}


class MissingRequirement(Struct, frozen=True, kw_only=True):
    kind: MissingKind
    scope: Scope
    role: str = ""  # its name
    groups: tuple[GroupReference, ...] = ()
    since: int = 0  # when it expired
    limit: int = 0  # how many users the role may have
    failed: tuple[FailedTest, ...] = ()


class RoleGrants(Struct, frozen=True, kw_only=True):
    """The roles of the application that a project grants or revokes through its groups.

    Groups by id, roles by key.
    """

    granting_groups: Mapping[str, list[str]]
    revoking_groups: Mapping[str, list[str]]
    own_groups: frozenset[str]  # the person's groups


class MissingSearch(Struct, frozen=True):
    context: EvaluationContext
    rule: Rule
    holders: Mapping[str, int]  # users of each role by key, if counted

    def nearest(self, scopes: Iterable[Scope], most: int) -> list[MissingRequirement]:
        """Return the nearest missing facts, each once: a resource and its project share the project's barrier.

        Failed conditions are analyzed only for these, because there may be a thousand roles.
        """
        requirements = {
            requirement: None for holding_scope in scopes for requirement in self._missing_in(holding_scope)
        }
        return [
            self._with_failed_tests(requirement)
            for requirement in nsmallest(most, requirements, key=lambda requirement: MISSING_ORDER[requirement.kind])
        ]

    def _missing_in(self, scope: Scope) -> Iterator[MissingRequirement]:
        deciding = [
            contribution
            for contribution in explain_contributions(self.context, scope, self.rule)
            if contribution.decides
        ]
        yield from self._missing_by_barrier(scope)
        for contribution in deciding:
            if not contribution.value and contribution.tier > Tier.SCHEMA:
                groups = (contribution.membership.group,) if contribution.membership else ()
                yield MissingRequirement(kind=MissingKind.SAID_NO, scope=scope, role=contribution.role, groups=groups)
        yield from self._expired_entry(scope)
        # Otherwise no role would help.
        if all(not contribution.value and contribution.tier < Tier.ROLES for contribution in deciding):
            grants = self._role_grants(scope)
            for role in self.context.model.roles.values():
                if self.rule in role.verdicts.yes:
                    yield from self._missing_by_role(role, scope, grants)

    def _missing_by_barrier(self, scope: Scope) -> Iterator[MissingRequirement]:
        barrier = None if scope.is_root else self.context.gate(scope.project_id)
        if barrier is None or barrier.barrier is None:
            return
        yield MissingRequirement(
            kind=MissingKind(barrier.barrier.value),
            scope=scope.project,
            groups=self._group_references(scope, barrier.groups),
        )

    def _expired_entry(self, scope: Scope) -> Iterator[MissingRequirement]:
        entry = direct_entries(self.context.holdings.get(scope, NO_HOLDINGS)).get(self.rule)
        if entry is not None and entry.value and entry.end.is_past(self.context.now):
            yield MissingRequirement(kind=MissingKind.ENTRY_EXPIRED, scope=scope, since=entry.end.expired)

    def _missing_by_role(
        self, compiled_role: CompiledRole, scope: Scope, grants: RoleGrants
    ) -> Iterator[MissingRequirement]:
        """Why a role that would give the rule does not."""
        role = compiled_role.role
        assignment = self._assignment(role, scope)
        granting = grants.granting_groups.get(role.key, [])
        revoking = [
            group_id for group_id in grants.revoking_groups.get(role.key, ()) if group_id in grants.own_groups
        ]
        if not self.context.may_hold(role, scope):
            if assignment is not None or granting:
                yield MissingRequirement(kind=MissingKind.ROLE_PROTECTED, scope=scope, role=role.name)
        elif revoking:
            groups = self._group_references(scope, revoking)
            yield MissingRequirement(kind=MissingKind.REVOKED_BY_GROUP, scope=scope, role=role.name, groups=groups)
        else:
            is_granted = not grants.own_groups.isdisjoint(granting)
            yield from self._failed_condition(role, scope, assignment, is_granted=is_granted)
            for group_id in granting:
                if group_id not in grants.own_groups:
                    groups = self._group_references(scope, [group_id])
                    yield MissingRequirement(
                        kind=MissingKind.NOT_A_MEMBER, scope=scope, role=role.name, groups=groups
                    )
            yield from self._missing_assignment(role, scope, assignment)

    def _failed_condition(
        self, role: Role, scope: Scope, assignment: Assignment | None, *, is_granted: bool
    ) -> Iterator[MissingRequirement]:
        """A condition that failed and alone would have granted the role."""
        if role.condition_mode is ConditionMode.GRANT:
            would_do = scope.is_root
        else:
            would_do = is_granted or (assignment is not None and not assignment.end.is_past(self.context.now))
        if would_do and not self.context.meets_condition(role):
            yield MissingRequirement(kind=MissingKind.CONDITION_FAILED, scope=scope, role=role.name)

    def _missing_assignment(
        self, role: Role, scope: Scope, assignment: Assignment | None
    ) -> Iterator[MissingRequirement]:
        if assignment is None:
            full = 0 < role.user_limit <= self.holders.get(role.key, 0)
            kind = MissingKind.ROLE_FULL if full else MissingKind.ROLE_NOT_ASSIGNED
            yield MissingRequirement(kind=kind, scope=scope, role=role.name, limit=role.user_limit)
        elif assignment.end.is_past(self.context.now):
            yield MissingRequirement(
                kind=MissingKind.ROLE_EXPIRED, scope=scope, role=role.name, since=assignment.end.expired
            )

    def _assignment(self, role: Role, scope: Scope) -> Assignment | None:
        return next(
            (
                assignment
                for assignment in self.context.holdings.get(scope, NO_HOLDINGS).roles
                if assignment.role == role.key
            ),
            None,
        )

    def _role_grants(self, scope: Scope) -> RoleGrants:
        by_role: dict[GrantAction, defaultdict[str, list[str]]] = {
            action: defaultdict(list) for action in GrantAction
        }
        connection = None if scope.kind is not None else self.context.connection(scope.project_id)
        for group_id, grants in sorted(connection.by_group.items()) if connection else ():
            for grant in grants:
                for key in grant.roles:
                    by_role[grant.action][key].append(group_id)
        mine = self.context.granting_groups(scope.project_id) if connection else ()
        return RoleGrants(
            granting_groups=by_role[GrantAction.GRANT],
            revoking_groups=by_role[GrantAction.REVOKE],
            own_groups=frozenset(mine),
        )

    def _group_references(self, scope: Scope, group_ids: Iterable[str]) -> tuple[GroupReference, ...]:
        return tuple(group_reference(self.context, scope, group_id) for group_id in group_ids)

    def _with_failed_tests(self, requirement: MissingRequirement) -> MissingRequirement:
        """Return the missing fact with the failed tests, if a condition is the reason."""
        match requirement.kind:
            case MissingKind.CONDITION_FAILED:
                return replace(requirement, failed=self._failed_tests(self._role_by_name(requirement.role)))
            case MissingKind.ROLE_NOT_ASSIGNED | MissingKind.ROLE_FULL:
                role = self._role_by_name(requirement.role)
                return replace(
                    requirement,
                    failed=self._failed_tests(role) if role.condition_mode is ConditionMode.REQUIRE else (),
                )
            case MissingKind.NOT_A_MEMBER:
                return replace(requirement, failed=self._failed_group_tests(requirement.scope, requirement.groups[0]))
            case MissingKind.DOMAIN_NOT_ALLOWED:
                return replace(requirement, failed=self._failed_domain_tests(requirement.scope))
            case _:
                return requirement

    def _role_by_name(self, name: str) -> Role:
        return self.context.model.roles[name.lower()].role

    def _failed_tests(self, role: Role) -> tuple[FailedTest, ...]:
        if role.condition is None:
            return ()
        return tuple(
            islice(
                failed_tests(role.condition.test, self.context.facts.subject, self.context.address), MAX_FAILED_TESTS
            )
        )

    def _failed_group_tests(self, scope: Scope, named_group: GroupReference) -> tuple[FailedTest, ...]:
        group = find_group(self.context, scope, named_group.group_id)
        tests = (condition.condition.test for condition in group.conditions) if group else ()
        failed = (
            failed_test
            for test in tests
            for failed_test in failed_tests(test, self.context.facts.subject, NO_ADDRESS)
        )
        return tuple(islice(failed, MAX_FAILED_TESTS))

    def _failed_domain_tests(self, scope: Scope) -> tuple[FailedTest, ...]:
        project = self.context.structure.project(scope.project_id)
        wanted = ", ".join(sorted(project.allowed_domains)) if project else ""
        return (FailedTest("domain", wanted, self.context.facts.subject.domain or ""),)


# Why a rule is held or not: the deciding path and, for a denial, the nearest missing facts. Pure.
#
# Made from the same contributions as the decision, so that the two cannot disagree.


MAX_MISSING: Final = 50  # an application may have a thousand roles that allow the rule
NO_HOLDER_COUNTS: Final[Mapping[str, int]] = {}


class Explanation(Struct, frozen=True, kw_only=True):
    application_id: int
    user_id: str
    scope: Scope
    rule: Rule
    allowed: bool
    in_schema: bool  # if not, it is marked so wherever it is shown (R5)
    seconds_left: int  # seconds until it is no longer allowed, 0 for ever
    contributions: tuple[ExplainedContribution, ...]  # those of the project around a resource first
    missing: tuple[MissingRequirement, ...]  # the nearest first; nothing when it is allowed
    remedies: tuple[Remedy, ...] = ()  # the smallest first; each reverses the answer


def explain_rule(
    model: ApplicationModel,
    facts: Facts,
    structure: Structure,
    scope: Scope,
    rule: Rule,
    *,
    now: int,
    address: Address | None,
    holders: Mapping[str, int] = NO_HOLDER_COUNTS,
) -> Explanation:
    """`holders`: how many users each role has, by key, for telling whether it is full."""
    effective = evaluate(model, facts, structure, now=now, address=address)
    this = evaluation_context(model, facts, structure, now=now, address=address)
    over = _reason_nothing_is_held(model, facts, structure, now)
    holding_scopes = () if over else tuple(effective.lookup_scopes(scope, rule))  # as if the project had the resource
    unfound = _missing_target(structure, scope, over)
    held_in = frozenset(effective.scopes_holding(structure, scope, rule))
    allowed = bool(held_in)
    return Explanation(
        application_id=effective.application_id,
        user_id=facts.subject.user_id,
        scope=scope,
        rule=rule,
        allowed=allowed,
        in_schema=rule in this.model.schema_rules,
        seconds_left=_seconds_left(effective, held_in, rule, now),
        contributions=tuple(_visible_contributions(effective, this, holding_scopes, rule, held_in)),
        missing=()
        if allowed
        else (*unfound, *_missing_requirements(effective, MissingSearch(this, rule, holders), holding_scopes)),
    )


def _visible_contributions(
    effective: EffectivePermissions,
    context: EvaluationContext,
    scopes: Sequence[Scope],
    rule: Rule,
    held_in: AbstractSet[Scope],
) -> Iterator[ExplainedContribution]:
    """A rule held in the project counts on each of its resources (R5), and nowhere else."""
    for holding_scope in reversed(scopes):
        is_moot = holding_scope not in held_in and (bool(held_in) or rule in effective.rules(holding_scope))
        for contribution in explain_contributions(context, holding_scope, rule):
            yield replace(contribution, decides=False) if is_moot else contribution


def _reason_nothing_is_held(
    model: ApplicationModel, facts: Facts, structure: Structure, now: int
) -> MissingKind | None:
    """Why nothing at all is held, if so."""
    if is_application_removed(model, facts):
        return MissingKind.APPLICATION_REMOVED
    if is_account_ended(facts, structure):
        return MissingKind.ACCOUNT_ENDED
    return MissingKind.BANNED if facts.ban_from(model.application.application_id, now) else None


def _missing_target(structure: Structure, scope: Scope, over: MissingKind | None) -> Iterator[MissingRequirement]:
    """Requested objects that do not exist."""
    if over is not None:
        yield MissingRequirement(kind=over, scope=scope)
    elif not structure.has_scope(scope):
        yield MissingRequirement(kind=MissingKind.RESOURCE_UNKNOWN, scope=scope)


def _missing_requirements(
    effective: EffectivePermissions, search: MissingSearch, scopes: Sequence[Scope]
) -> Iterator[MissingRequirement]:
    yield from search.nearest(scopes, MAX_MISSING)
    for other in effective.nonempty_scopes:
        if search.rule in effective.rules(other):
            yield MissingRequirement(kind=MissingKind.HELD_ELSEWHERE, scope=other)


def _seconds_left(effective: EffectivePermissions, held_in: Iterable[Scope], rule: Rule, now: int) -> int:
    """Return the seconds left; a rule held in two places is allowed until the later end."""
    lefts = [effective.rules(holding_scope)[rule].seconds_left(now) for holding_scope in held_in]
    return 0 if 0 in lefts else max(lefts, default=0)
