"""What contributes to a person's rules in a scope, and whether a project is open to them (R5)."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import IntEnum, StrEnum
from itertools import chain
from typing import Final, TypeAlias

from msgspec import Struct, field

from gatehouse.accounts.system_tags import GUEST_TAG
from gatehouse.kernel.addresses import Address
from gatehouse.permissions.documents.rules import section_entries
from gatehouse.permissions.evaluation.compiled import (
    CompiledGrants,
    CompiledModel,
    CompiledProject,
    CompiledRole,
    CompiledStructure,
    Verdicts,
    compiled_model,
    compiled_structure,
    verdicts_of,
)
from gatehouse.permissions.evaluation.condition_index import (
    ConditionIndex,
    is_member,
    meets_condition,
    person_index_keys,
)
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import NO_HOLDINGS, ApplicationModel, Facts, ScopeHoldings, Structure
from gatehouse.permissions.model.index_keys import IndexKey
from gatehouse.permissions.model.project import GrantAction, GroupGrant
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.model.rules import NO_END, ROOT, End, Rule, RuleEntry, RuleSection, Scope


class Barrier(StrEnum):
    PROJECT_UNKNOWN = "project_unknown"
    PROJECT_REMOVED = "project_removed"
    BANNED_FROM_PROJECT = "banned_from_project"
    IN_DISALLOWED_GROUP = "in_disallowed_group"
    IN_NO_ALLOWED_GROUP = "in_no_allowed_group"
    DOMAIN_NOT_ALLOWED = "domain_not_allowed"


class ProjectGate(Struct, frozen=True, kw_only=True):
    barrier: Barrier | None = None
    groups: tuple[str, ...] = ()  # groups that block the project, by id
    closes: End = NO_END  # when only ownership keeps the project open

    @property
    def is_open(self) -> bool:
        return self.barrier is None


OPEN_GATE = ProjectGate()


def project_gate(
    project: CompiledProject | None, facts: Facts, index_keys: Iterable[IndexKey], now: int
) -> ProjectGate:
    """Return whether the project is open to the person.

    Always to its owners who are not banned from it, to no one if it is removed.
    """
    if project is None:
        return ProjectGate(barrier=Barrier.PROJECT_UNKNOWN)
    if project.project.removed:
        return ProjectGate(barrier=Barrier.PROJECT_REMOVED)
    if facts.bans and facts.is_banned_from_project(project.project.project_id, now):
        return ProjectGate(barrier=Barrier.BANNED_FROM_PROJECT)
    gate = gate_by_lists(project, facts, index_keys)
    ownership = facts.owns.get(project.project.project_id)
    if gate.is_open or ownership is None or ownership.is_past(now):
        return gate
    return ProjectGate(closes=ownership)


def gate_by_lists(project: CompiledProject, facts: Facts, index_keys: Iterable[IndexKey]) -> ProjectGate:
    barred = member_groups(project, project.disallow, facts, index_keys)
    if barred:
        return ProjectGate(barrier=Barrier.IN_DISALLOWED_GROUP, groups=barred)
    if project.project.allow and not member_groups(project, project.allow, facts, index_keys):
        return ProjectGate(barrier=Barrier.IN_NO_ALLOWED_GROUP, groups=project.project.allow)
    if project.allowed_domains and facts.subject.domain not in project.allowed_domains:
        return ProjectGate(barrier=Barrier.DOMAIN_NOT_ALLOWED)
    return OPEN_GATE


def member_groups(
    project: CompiledProject, groups: ConditionIndex[str], facts: Facts, index_keys: Iterable[IndexKey]
) -> tuple[str, ...]:
    """Those of the groups that the person belongs to, by id."""
    known = project.groups
    return tuple(sorted(group_id for group_id in groups.candidates(index_keys) if is_member(known[group_id], facts)))


# Gather all contributions to a person's rules in one scope, in the order of R5.


class Tier(IntEnum):
    """A higher one overrides a lower one."""

    SCHEMA = 0
    DEFAULT_ROLES = 1
    ROLES = 2
    DIRECT = 3


class SourceKind(StrEnum):
    SCHEMA = "schema_default"
    DEFAULT_ROLE = "default_role"
    ASSIGNED_ROLE = "assigned_role"
    GROUP_GRANT = "group_grant"
    CONDITION = "condition_of_role"
    DIRECT = "direct_entry"


class ContributionSource(Struct, frozen=True):
    kind: SourceKind
    role: Role | None = None
    group_id: str = ""


class Contribution(Struct, frozen=True):
    source: ContributionSource
    verdicts: Verdicts
    end: End = NO_END


Tiers: TypeAlias = tuple[
    tuple[Contribution, ...], ...
]  # one for each Tier, contributions in the order in which params merge

SCHEMA_SOURCE: Final = ContributionSource(SourceKind.SCHEMA)
DIRECT_SOURCE: Final = ContributionSource(SourceKind.DIRECT)


class GrantedRole(Struct, frozen=True, kw_only=True):
    """A role that is assigned or granted, not one by default or by condition."""

    role: Role
    end: End = NO_END


class ScopeContributions(Struct, frozen=True, kw_only=True):
    tiers: Tiers
    roles: Mapping[str, GrantedRole]  # by key
    ends: AbstractSet[End] = frozenset()  # of every unexpired assignment and entry, whether it counts or not
    closes: End = NO_END  # nothing is held after it

    def __iter__(self) -> Iterator[Contribution]:
        return chain.from_iterable(self.tiers)


class EvaluationContext(Struct, frozen=True, kw_only=True):
    """The input of an evaluation: one person, one application, one time."""

    application: Application
    model: CompiledModel
    structure: CompiledStructure
    facts: Facts
    now: int
    address: Address | None
    index_keys: frozenset[IndexKey]
    holdings: Mapping[Scope, ScopeHoldings] = field(default_factory=dict)

    def gate(self, project_id: str) -> ProjectGate:
        return project_gate(self.structure.project(project_id), self.facts, self.index_keys, self.now)

    @property
    def application_id(self) -> int:
        return self.application.application_id

    def reachable_projects(self) -> set[str]:
        """Projects that may grant the person something through a group."""
        return self.structure.connecting_projects(self.application_id).candidates(self.index_keys)

    def connection(self, project_id: str) -> CompiledGrants | None:
        """The roles of the application that the project grants and revokes.

        Stored grants count only while they could be saved: for its own application, or a published one.
        """
        project = self.structure.project(project_id)
        if project is None or not self.application.is_connectable_to(project_id):
            return None
        return project.grants(self.application_id)

    def granting_groups(self, project_id: str) -> tuple[str, ...]:
        """The person's groups among those with granted or revoked roles, by id."""
        project, connection = self.structure.project(project_id), self.connection(project_id)
        if project is None or connection is None:
            return ()
        return member_groups(project, connection.groups, self.facts, self.index_keys)

    def group_grants(self, project_id: str) -> Iterator[GroupGrant]:
        """The project's grants to the person's groups, by group id."""
        connection = self.connection(project_id)
        if connection is not None:
            for group_id in self.granting_groups(project_id):
                yield from connection.by_group[group_id]

    def meets_condition(self, role: Role) -> bool:
        return meets_condition(role, self.facts, self.address)

    def may_hold(self, role: Role, scope: Scope) -> bool:
        """Whether an assignment counts: a protected role only at the root (R5), and not of a guest (R10)."""
        return not role.protected or (scope.is_root and GUEST_TAG not in self.facts.subject.tags)

    def usable_role(self, key: str, scope: Scope) -> CompiledRole | None:
        """The role, if it counts in this scope: protected ones as `may_hold` says, gated ones by condition (R5)."""
        role = self.model.roles.get(key)
        if role is None or not self.may_hold(role.role, scope):
            return None
        gated = role.role.condition_mode is ConditionMode.REQUIRE
        return None if gated and not self.meets_condition(role.role) else role


def evaluation_context(
    model: ApplicationModel,
    facts: Facts,
    structure: Structure,
    *,
    now: int,
    address: Address | None,
    compiled: CompiledModel | None = None,
) -> EvaluationContext:
    """`compiled`: the compiled form of a model that is not saved."""
    record = facts.records.get(model.application.application_id)
    return EvaluationContext(
        application=model.application,
        model=compiled or compiled_model(model),
        structure=compiled_structure(structure),
        facts=facts,
        now=now,
        address=address,
        index_keys=person_index_keys(facts),
        holdings={} if record is None else existing_scopes(record.scopes, structure),
    )


def existing_scopes(scopes: Mapping[Scope, ScopeHoldings], structure: Structure) -> Mapping[Scope, ScopeHoldings]:
    """Return the scopes without those on resources that the project does not have, which do not count (R5)."""
    return {scope: holdings for scope, holdings in scopes.items() if structure.has_scope(scope)}


def is_application_removed(model: ApplicationModel, facts: Facts) -> bool:
    """Whether the application is removed, by the facts, which are current; the model may be older."""
    state = facts.applications.get(model.application.application_id)
    return model.application.removed or (state is not None and state.removed)


def is_account_ended(facts: Facts, structure: Structure) -> bool:
    """Whether this is a service account that was revoked, or whose project is removed: it holds nothing (R5)."""
    account = facts.service_account
    if account is None:
        return False
    home = structure.projects.get(account.project_id)
    return account.revoked or (home is not None and home.project.removed)


def holds_nothing(model: ApplicationModel, facts: Facts, structure: Structure, now: int) -> bool:
    """Whether the person holds nothing at all in the application, whatever is assigned to them."""
    return (
        is_application_removed(model, facts)
        or is_account_ended(facts, structure)
        or facts.ban_from(model.application.application_id, now) is not None
    )


def gather_root(context: EvaluationContext) -> ScopeContributions:
    holdings = context.holdings.get(ROOT, NO_HOLDINGS)
    assigned, direct = (
        tuple(_assigned_contributions(context, ROOT, holdings)),
        _direct_contributions(holdings, context.now),
    )
    schema = Contribution(SCHEMA_SOURCE, context.model.schema)
    return ScopeContributions(
        tiers=((schema,), _default_contributions(context), (*assigned, *_conditional_contributions(context)), direct),
        roles=_granted_roles(assigned),
        ends=_ends(context, holdings, direct),
    )


def gather_below_root(context: EvaluationContext, scope: Scope, closes: End) -> ScopeContributions:
    """Gather contributions below the root, where the schema and default or conditional roles do not count (R5)."""
    holdings = context.holdings.get(scope, NO_HOLDINGS)
    grants = (
        list(context.group_grants(scope.project_id)) if scope.kind is None else []
    )  # grants apply to the project itself
    revoked = revoked_roles(grants)
    grant_contributions = tuple(
        contribution
        for contribution in (
            *_assigned_contributions(context, scope, holdings),
            *_group_contributions(context, scope, grants),
        )
        if contribution.source.role is not None and contribution.source.role.key not in revoked
    )
    direct = _direct_contributions(holdings, context.now)
    return ScopeContributions(
        tiers=((), (), grant_contributions, direct),
        roles=_granted_roles(grant_contributions),
        ends=_ends(context, holdings, direct),
        closes=closes,
    )


def revoked_roles(grants: Iterable[GroupGrant]) -> frozenset[str]:
    """Keys of the roles that the grants revoke, whatever their source (R5)."""
    return frozenset(key for grant in grants if grant.action is GrantAction.REVOKE for key in grant.roles)


def direct_entries(holdings: ScopeHoldings) -> dict[Rule, RuleEntry]:
    return section_entries(holdings.private_data, RuleSection.PRIVATE) | section_entries(
        holdings.public_data, RuleSection.PUBLIC
    )


def _default_contributions(context: EvaluationContext) -> tuple[Contribution, ...]:
    return tuple(
        Contribution(ContributionSource(SourceKind.DEFAULT_ROLE, default_role.role), default_role.verdicts)
        for default_role in context.model.default_roles
    )


def _assigned_contributions(
    context: EvaluationContext, scope: Scope, holdings: ScopeHoldings
) -> Iterator[Contribution]:
    for assignment in holdings.roles:
        role = context.usable_role(assignment.role, scope)
        if role is not None and not assignment.end.is_past(context.now):
            yield Contribution(ContributionSource(SourceKind.ASSIGNED_ROLE, role.role), role.verdicts, assignment.end)


def _group_contributions(
    context: EvaluationContext, scope: Scope, grants: Iterable[GroupGrant]
) -> Iterator[Contribution]:
    for grant in grants:
        for key in grant.roles if grant.action is GrantAction.GRANT else ():
            role = context.usable_role(key, scope)
            if role is not None:
                yield Contribution(
                    ContributionSource(SourceKind.GROUP_GRANT, role.role, grant.group_id), role.verdicts
                )


def _conditional_contributions(context: EvaluationContext) -> Iterator[Contribution]:
    for key in sorted(context.model.conditional_roles.candidates(context.index_keys)):
        role = context.model.roles[key]
        if context.meets_condition(role.role):
            yield Contribution(ContributionSource(SourceKind.CONDITION, role.role), role.verdicts)


def _direct_contributions(holdings: ScopeHoldings, now: int) -> tuple[Contribution, ...]:
    """One contribution for all entries with the same end."""
    by_end: dict[End, dict[Rule, RuleEntry]] = {}
    for rule, entry in direct_entries(holdings).items():
        if not entry.end.is_past(now):
            by_end.setdefault(entry.end, {})[rule] = entry
    return tuple(Contribution(DIRECT_SOURCE, verdicts_of(entries), end) for end, entries in by_end.items())


def _granted_roles(contributions: Iterable[Contribution]) -> dict[str, GrantedRole]:
    """Return granted roles by key; a grant has no end, so a role that is both assigned and granted has none."""
    return {
        contribution.source.role.key: GrantedRole(role=contribution.source.role, end=contribution.end)
        for contribution in contributions
        if contribution.source.role is not None
    }


def _ends(context: EvaluationContext, holdings: ScopeHoldings, direct: Iterable[Contribution]) -> frozenset[End]:
    assigned = (
        role.end for role in holdings.roles if role.role in context.model.roles and not role.end.is_past(context.now)
    )
    return frozenset((*assigned, *(contribution.end for contribution in direct))) - {NO_END}
