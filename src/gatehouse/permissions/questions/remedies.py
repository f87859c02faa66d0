"""Find the smallest changes that reverse an answer, by making each in memory and evaluating again. Pure.

Candidates come from what the explanation misses; only the evaluation decides whether one is a remedy. So a remedy
takes into account everything that the answer does: bans, conditions, groups, project lists, denials, limits.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_network
from itertools import islice, product
from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.bans.model import find_ban
from gatehouse.kernel.addresses import Address
from gatehouse.permissions.commands.app_schemas import CENTRAL_ROLES
from gatehouse.permissions.commands.user_schemas import is_related
from gatehouse.permissions.documents.rules import meta_entries, schema_rules
from gatehouse.permissions.documents.trees import with_leaf, without_leaf
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.compiled import CompiledModel, compile_change
from gatehouse.permissions.evaluation.conditions import condition_holds
from gatehouse.permissions.evaluation.contributions import SourceKind
from gatehouse.permissions.evaluation.effective import EffectivePermissions, evaluate
from gatehouse.permissions.explanation.contributions import GroupReference
from gatehouse.permissions.explanation.failed_tests import failed_test
from gatehouse.permissions.explanation.reasons import Explanation, MissingKind, MissingRequirement, explain_rule
from gatehouse.permissions.explanation.remedies import Remedy, RemedyStep, StepKind
from gatehouse.permissions.model.condition import (
    AllOf,
    AnyOf,
    ConditionSubject,
    ConditionTest,
    Domain,
    Everyone,
    OneOfUsers,
    SimpleTest,
)
from gatehouse.permissions.model.facts import (
    NO_HOLDINGS,
    ApplicationModel,
    Assignment,
    Facts,
    ScopeHoldings,
    Structure,
)
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import Rule, Scope
from gatehouse.permissions.questions.simulate import compare_evaluations

MAX_REMEDIES: Final = 6
MAX_STEPS: Final = 4  # of one remedy: such as a ban, a limit, a role and its condition
MAX_TRIED: Final = 60  # candidates of one answer
MAX_WEIGHT: Final = 60_000  # of all evaluations: less than a tenth of a second
CANDIDATE_ROLES: Final = 6  # of one explanation: those that give the least
CANDIDATE_GROUPS: Final = 4
CANDIDATE_WAYS: Final = 4  # to meet one condition
HELD_AS_ROLE: Final = frozenset({SourceKind.ASSIGNED_ROLE, SourceKind.GROUP_GRANT, SourceKind.CONDITION})
NOTHING_TO_ALLOW: Final = frozenset(  # whatever a role allows
    {
        MissingKind.APPLICATION_REMOVED,
        MissingKind.ACCOUNT_ENDED,
        MissingKind.BANNED,
        MissingKind.PROJECT_UNKNOWN,
        MissingKind.PROJECT_REMOVED,
        MissingKind.BANNED_FROM_PROJECT,
        MissingKind.RESOURCE_UNKNOWN,
        MissingKind.IN_DISALLOWED_GROUP,
        MissingKind.IN_NO_ALLOWED_GROUP,
        MissingKind.DOMAIN_NOT_ALLOWED,
    }
)

Candidate = tuple[RemedyStep, ...]  # steps that only make sense together


class Situation(Struct, frozen=True, kw_only=True):
    """What an answer is made from, after some steps."""

    model: ApplicationModel
    facts: Facts
    address: Address | None
    steps: tuple[RemedyStep, ...] = ()
    compiled: CompiledModel | None = None  # of a changed model

    @property
    def holdings(self) -> Mapping[Scope, ScopeHoldings]:
        record = self.facts.records.get(self.model.application.application_id)
        return {} if record is None else record.scopes

    def has_assigned(self, scope: Scope, role: Role) -> bool:
        return any(assignment.role == role.key for assignment in self.holdings.get(scope, NO_HOLDINGS).roles)

    def with_holdings(self, scope: Scope, holdings: ScopeHoldings) -> "Situation":
        application_id = self.model.application.application_id
        record = self.facts.records[application_id].with_holdings(scope, holdings)
        return replace(self, facts=replace(self.facts, records={**self.facts.records, application_id: record}))

    def with_role(self, role: Role) -> "Situation":
        model = replace(self.model, roles={**self.model.roles, role.key: role})
        return replace(self, model=model, compiled=compile_change(model, self.model))


class RemedySearch(Struct, frozen=True, kw_only=True):
    """One question about one person. `weight`: estimated work of one evaluation."""

    situation: Situation
    structure: Structure
    scope: Scope
    rule: Rule
    now: int
    holders: Mapping[str, int]
    weight: int = 0

    def find(self, explanation: Explanation) -> tuple[Remedy, ...]:
        """The smallest remedies first. `explanation`: the whole one, not limited to what a caller may see."""
        before = self._evaluate(self.situation)
        solutions = self._find_denying() if explanation.allowed else self._find_allowing()
        return tuple(self._describe(before, solution) for solution in islice(solutions, MAX_REMEDIES))

    def _find_denying(self) -> Iterator[Situation]:
        """Remove what gives the rule, until nothing does."""
        situation = self.situation
        while self.allows(situation):
            added = list(self._removals(situation))
            if not added or len(situation.steps) + len(added) > MAX_TRIED:
                return
            for step in added:
                situation = self._after(situation, step)
        yield self._without_needless(situation, allowed=False)

    def _without_needless(self, situation: Situation, *, allowed: bool) -> Situation:
        """Leave out steps that later ones make needless, such as removing a role that no longer allows it."""
        for step in situation.steps:
            if step.kind is StepKind.RAISE_LIMIT:  # it belongs to an assignment, and decides nothing
                continue
            dropped = {step}
            if step.kind is StepKind.ASSIGN_ROLE:
                dropped |= {
                    other
                    for other in situation.steps
                    if other.kind is StepKind.RAISE_LIMIT and other.role == step.role
                }
            fewer = self.after(self.situation, [other for other in situation.steps if other not in dropped])
            if fewer is not None and self.allows(fewer) is allowed:
                situation = fewer
        return situation

    def _find_allowing(self) -> Iterator[Situation]:
        """Breadth first, so that smaller ones come first and none contains another."""
        tries = min(MAX_TRIED, max(CANDIDATE_ROLES, MAX_WEIGHT // max(1, self.weight)))
        solutions: list[frozenset[RemedyStep]] = []
        seen: set[frozenset[RemedyStep]] = set()
        level = [self.situation]
        while level:
            deeper: list[Situation] = []
            for situation in level:
                for candidate in self._candidates(situation):
                    steps = frozenset((*situation.steps, *candidate))
                    is_needless = steps in seen or any(solution <= steps for solution in solutions)
                    if is_needless or len(steps) > MAX_STEPS or tries <= 0:
                        continue
                    seen.add(steps)
                    tries -= 1
                    after = self.after(situation, candidate)
                    if after is None:
                        continue
                    if self.allows(after):
                        after = self._without_needless(after, allowed=True)
                        steps = frozenset(after.steps)
                        if not any(solution <= steps for solution in solutions):
                            solutions.append(steps)
                            yield after
                    elif after.compiled is None:
                        deeper.append(after)
            level = deeper

    def _evaluate(self, situation: Situation) -> EffectivePermissions:
        return evaluate(
            situation.model,
            situation.facts,
            self.structure,
            now=self.now,
            address=situation.address,
            compiled=situation.compiled,
        )

    def allows(self, situation: Situation) -> bool:
        effective = self._evaluate(situation)
        return any(effective.scopes_holding(self.structure, self.scope, self.rule))

    def _explain(self, situation: Situation) -> Explanation:
        return explain_rule(
            situation.model,
            situation.facts,
            self.structure,
            self.scope,
            self.rule,
            now=self.now,
            address=situation.address,
            holders=self.holders,
        )

    def _describe(self, before: EffectivePermissions, after: Situation) -> Remedy:
        effect = compare_evaluations("", before, self._evaluate(after), now=self.now)
        return Remedy(steps=after.steps, gains=len(effect.gains), loses=len(effect.loses))

    # -- candidates of a denial ---------------------------------------------------------------------------

    def _candidates(self, situation: Situation) -> Iterator[Candidate]:
        """What may help, what changes the least first."""
        explanation = self._explain(situation)
        assigning: list[tuple[int, Candidate]] = []
        for requirement in explanation.missing:
            if requirement.kind in ASSIGNABLE:
                assigning += self._assignments(situation, requirement)
            else:
                yield from self._candidates_for(situation, requirement)
        for _, candidate in sorted(assigning, key=lambda pair: pair[0])[:CANDIDATE_ROLES]:
            yield candidate
        if (
            NOTHING_TO_ALLOW.isdisjoint(requirement.kind for requirement in explanation.missing)
            and explanation.in_schema
        ):
            yield from self._roles_to_allow_in(situation)

    def _candidates_for(self, situation: Situation, requirement: MissingRequirement) -> Iterator[Candidate]:
        listed = [group for group in requirement.groups if group.group_id in situation.facts.groups]
        match requirement.kind:
            case MissingKind.BANNED | MissingKind.BANNED_FROM_PROJECT:
                yield from self._bans(situation, requirement)
            case MissingKind.IN_DISALLOWED_GROUP | MissingKind.REVOKED_BY_GROUP:
                yield from ((group_step(StepKind.REMOVE_FROM_GROUP, requirement.scope, group),) for group in listed)
            case MissingKind.IN_NO_ALLOWED_GROUP | MissingKind.NOT_A_MEMBER:
                for group in requirement.groups[:CANDIDATE_GROUPS]:
                    yield (group_step(StepKind.ADD_TO_GROUP, requirement.scope, group),)
            case MissingKind.DOMAIN_NOT_ALLOWED:
                project = self.structure.projects[requirement.scope.project_id].project
                for name in sorted(project.settings.allowed_domains)[:CANDIDATE_WAYS]:
                    yield self._meeting(situation, requirement.scope, "", (Domain(name.lower()),))
            case MissingKind.CONDITION_FAILED:
                role = situation.model.roles[requirement.role.lower()]
                test = role.condition.test if role.condition else Everyone(holds=True)
                for way in ways_to_meet(test, situation.facts.subject, situation.address):
                    yield self._meeting(situation, requirement.scope, requirement.role, way)
            case MissingKind.SAID_NO:
                yield from self._denials(situation, requirement, listed)
            case _:
                return

    def _bans(self, situation: Situation, requirement: MissingRequirement) -> Iterator[Candidate]:
        facts, application_id = situation.facts, situation.model.application.application_id
        ban = (
            facts.ban_from(application_id, self.now)
            if requirement.kind is MissingKind.BANNED
            else find_ban(facts.bans, self.now, project_id=requirement.scope.project_id)
        )
        if ban is not None:
            yield (
                RemedyStep(
                    kind=StepKind.LIFT_BAN,
                    scope=Scope(ban.project_id),
                    application_id=ban.application_id,
                    project_id=ban.project_id,
                    until=ban.until,
                ),
            )

    def _assignments(self, situation: Situation, requirement: MissingRequirement) -> Iterator[tuple[int, Candidate]]:
        """With the number of permissions that the role gives."""
        role = situation.model.roles[requirement.role.lower()]
        is_second = any(step.kind is StepKind.ASSIGN_ROLE for step in situation.steps)
        if is_second or (
            requirement.scope.project_id and not is_related(situation.model, requirement.scope.project_id)
        ):
            return
        step = RemedyStep(kind=StepKind.ASSIGN_ROLE, scope=requirement.scope, role=role.name)
        entry_count = len(meta_entries(role.meta))
        if requirement.kind is MissingKind.ROLE_FULL:
            limit = self.holders.get(role.key, role.user_limit) + 1
            raising = RemedyStep(kind=StepKind.RAISE_LIMIT, scope=requirement.scope, role=role.name, limit=limit)
            yield entry_count, (raising, step)
        else:
            yield entry_count, (step,)

    def _denials(
        self, situation: Situation, requirement: MissingRequirement, listed: Iterable[GroupReference]
    ) -> Iterator[Candidate]:
        if not requirement.role:
            yield (RemedyStep(kind=StepKind.REMOVE_ENTRY, scope=requirement.scope),)
            return
        role = situation.model.roles[requirement.role.lower()]
        if requirement.groups:
            yield from ((group_step(StepKind.REMOVE_FROM_GROUP, requirement.scope, group),) for group in listed)
        elif situation.has_assigned(requirement.scope, role):
            yield (RemedyStep(kind=StepKind.REMOVE_ROLE, scope=requirement.scope, role=role.name),)
        if self._may_say(situation, role):
            yield (RemedyStep(kind=StepKind.ALLOW_IN_ROLE, scope=requirement.scope, role=role.name),)

    def _roles_to_allow_in(self, situation: Situation) -> Iterator[Candidate]:
        """Roles that the person has there and that do not mention the rule."""
        effective = self._evaluate(situation)
        candidates: dict[str, Candidate] = {}
        for scope in effective.lookup_scopes(self.scope, self.rule):
            for contribution in effective.rules(scope).contributions:
                role = contribution.source.role
                says = contribution.verdicts
                if (
                    role is None
                    or contribution.source.kind not in HELD_AS_ROLE
                    or self.rule in says.yes
                    or self.rule in says.no
                ):
                    continue
                step = RemedyStep(kind=StepKind.ALLOW_IN_ROLE, scope=scope, role=role.name)
                has_step = any(step.role == role.name for step in situation.steps)
                if not has_step and self._may_say(situation, role):
                    candidates.setdefault(role.key, (step,))
        yield from islice(candidates.values(), CANDIDATE_ROLES)

    def _may_say(self, situation: Situation, role: Role) -> bool:
        """Whether the role may name the rule: protected ones need a protected role; built-in roles are fixed."""
        model = situation.model
        if situation.compiled is not None or (model.application.is_central and role.key in CENTRAL_ROLES):
            return False
        leaf = schema_rules(model.schema.private_data, model.schema.public_data).get(self.rule)
        return leaf is None or role.protected or not leaf.protected

    def _meeting(self, situation: Situation, scope: Scope, role: str, way: Sequence[SimpleTest]) -> Candidate:
        subject, address = situation.facts.subject, situation.address
        needs = tuple(failed_test(test, subject, address) for test in way)
        return (RemedyStep(kind=StepKind.MEET_CONDITION, scope=scope, role=role, needs=needs),)

    # -- what gives an allowed rule -----------------------------------------------------------------------

    def _removals(self, situation: Situation) -> Iterator[RemedyStep]:
        """A step for each contribution that decides; nothing if one of them cannot be removed."""
        steps: dict[RemedyStep, None] = {}
        for contribution in self._explain(situation).contributions:
            if not (contribution.decides and contribution.value):
                continue
            scope, role = contribution.scope, contribution.role
            group = contribution.membership.group if contribution.membership else None
            match contribution.kind:
                case SourceKind.ASSIGNED_ROLE:
                    steps[RemedyStep(kind=StepKind.REMOVE_ROLE, scope=scope, role=role)] = None
                case SourceKind.GROUP_GRANT if group and group.group_id in situation.facts.groups:
                    steps[group_step(StepKind.REMOVE_FROM_GROUP, scope, group)] = None
                case SourceKind.DIRECT:
                    steps[RemedyStep(kind=StepKind.REMOVE_ENTRY, scope=scope)] = None
                case SourceKind.DEFAULT_ROLE | SourceKind.CONDITION | SourceKind.GROUP_GRANT if self._may_say(
                    situation, situation.model.roles[role.lower()]
                ):
                    steps[RemedyStep(kind=StepKind.UNSET_IN_ROLE, scope=scope, role=role)] = None
                case _:
                    return
        yield from steps

    # -- making a step ------------------------------------------------------------------------------------

    def after(self, situation: Situation, steps: Iterable[RemedyStep]) -> Situation | None:
        """The situation after the steps; None if the rule's path makes one impossible."""
        try:
            for step in steps:
                situation = self._after(situation, step)
        except Malformed:
            return None
        return situation

    def _after(self, situation: Situation, step: RemedyStep) -> Situation:
        made = replace(situation, steps=(*situation.steps, step))
        facts = situation.facts
        match step.kind:
            case StepKind.LIFT_BAN:
                remaining = tuple(
                    ban
                    for ban in facts.bans
                    if (ban.application_id, ban.project_id) != (step.application_id, step.project_id)
                )
                return replace(made, facts=replace(facts, bans=remaining))
            case StepKind.ADD_TO_GROUP | StepKind.REMOVE_FROM_GROUP:
                named = {step.group.group_id} if step.group else set()
                is_added = step.kind is StepKind.ADD_TO_GROUP
                groups = facts.groups | named if is_added else facts.groups - named
                return replace(made, facts=replace(facts, groups=groups))
            case StepKind.ASSIGN_ROLE | StepKind.REMOVE_ROLE | StepKind.REMOVE_ENTRY:
                holdings = holdings_after(step, made.holdings.get(step.scope, NO_HOLDINGS), self.rule)
                return made.with_holdings(step.scope, holdings)
            case StepKind.MEET_CONDITION:
                return with_needs(made, step)
            case StepKind.ALLOW_IN_ROLE | StepKind.UNSET_IN_ROLE:
                return made.with_role(self._changed_role(made, step))
            case StepKind.RAISE_LIMIT:
                return made  # limits do not decide
            case _:
                assert_never(step.kind)

    def _changed_role(self, situation: Situation, step: RemedyStep) -> Role:
        role = situation.model.roles[step.role.lower()]
        section, path = self.rule.section.value, self.rule.path
        tree = role.meta.get(section, {})
        said = without_leaf(tree, path) if isinstance(tree, Mapping) else {}
        if step.kind is StepKind.ALLOW_IN_ROLE:
            said = with_leaf(said, path, {"value": True})
        return replace(role, meta={**role.meta, section: said})


ASSIGNABLE: Final = frozenset({MissingKind.ROLE_NOT_ASSIGNED, MissingKind.ROLE_FULL, MissingKind.ROLE_EXPIRED})


def with_connecting(structure: Structure, application_id: int, project_id: str) -> Structure:
    """The structure in which the project may grant roles to people who are in none of its groups yet."""
    if project_id not in structure.projects:
        return structure
    connecting = frozenset((*structure.connecting.get(application_id, ()), project_id))
    return Structure(projects=structure.projects, connecting={**structure.connecting, application_id: connecting})


def changed_role_keys(remedy: Remedy) -> frozenset[str]:
    """Roles whose permissions it changes, for everyone who has them."""
    kinds = (StepKind.ALLOW_IN_ROLE, StepKind.UNSET_IN_ROLE)
    return frozenset(step.role.lower() for step in remedy.steps if step.kind in kinds)


def group_step(kind: StepKind, scope: Scope, group: GroupReference) -> RemedyStep:
    return RemedyStep(kind=kind, scope=scope.project, group=group)


def holdings_after(step: RemedyStep, holdings: ScopeHoldings, rule: Rule) -> ScopeHoldings:
    """What is held in the step's scope after it."""
    if step.kind is StepKind.REMOVE_ENTRY:
        section = rule.section.value
        return replace(holdings, **{section: without_leaf(getattr(holdings, section), rule.path)})
    key = step.role.lower()
    remaining = tuple(assignment for assignment in holdings.roles if assignment.role != key)
    return replace(
        holdings, roles=(*remaining, Assignment(role=key)) if step.kind is StepKind.ASSIGN_ROLE else remaining
    )


def ways_to_meet(
    test: ConditionTest, who: ConditionSubject, address: Address | None
) -> Sequence[tuple[SimpleTest, ...]]:
    """What has to become true so that the condition holds, the least first; who a person is cannot change."""
    if condition_holds(test, who, address):
        return [()]
    match test:
        case AllOf(parts):
            each = [ways_to_meet(part, who, address) for part in parts]
            ways = [
                tuple(dict.fromkeys(part_test for part in way for part_test in part))
                for way in islice(product(*each), 16)
            ]
        case AnyOf(parts):
            ways = [way for part in parts for way in ways_to_meet(part, who, address)]
        case OneOfUsers() | Everyone():
            ways = []
        case _:
            ways = [(test,)]
    return sorted(ways, key=len)[:CANDIDATE_WAYS]


def with_needs(situation: Situation, step: RemedyStep) -> Situation:
    """The person as the step wants them."""
    subject, address = situation.facts.subject, situation.address
    for need in step.needs:
        if need.member == "ip":
            address = ip_network(need.wanted).network_address
        else:
            subject = NEEDS[need.member](subject, need.wanted)
    return replace(situation, facts=replace(situation.facts, subject=subject), address=address)


NEEDS: Final[Mapping[str, Callable[[ConditionSubject, str], ConditionSubject]]] = {
    "domain": lambda who, wanted: replace(who, domain=wanted),
    "tag": lambda who, wanted: replace(who, tags=who.tags | {wanted}),
    "purchase": lambda who, wanted: replace(who, purchases=who.purchases | {wanted}),
}
