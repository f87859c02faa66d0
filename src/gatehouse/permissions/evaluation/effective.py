"""Evaluate what a person holds in an application, and where a rule counts (R5)."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

from msgspec import Struct

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.kernel.addresses import Address
from gatehouse.kernel.background import MAX_INLINE_WEIGHT
from gatehouse.kernel.cached_property import cached_property
from gatehouse.permissions.evaluation.compiled import CompiledModel
from gatehouse.permissions.evaluation.contributions import (
    EvaluationContext,
    GrantedRole,
    ScopeContributions,
    Tiers,
    evaluation_context,
    gather_below_root,
    gather_root,
    holds_nothing,
)
from gatehouse.permissions.model.facts import ApplicationModel, Facts, Structure
from gatehouse.permissions.model.rules import NO_END, ROOT, Rule, RuleSection, Scope, scope_order

CAN_ADMINISTER: Final = Rule(RuleSection.PRIVATE, "can_administer")


def lookup_scopes(application_id: int, scope: Scope, rule: Rule) -> Iterator[Scope]:
    """The scope itself, or its project. Rules at the root count nowhere below, except can_administer."""
    yield scope
    if scope.kind is not None:
        yield scope.project
    if application_id == CENTRAL_APPLICATION and not scope.is_root and rule == CAN_ADMINISTER:
        yield ROOT


def existing_lookup_scopes(structure: Structure, application_id: int, scope: Scope, rule: Rule) -> tuple[Scope, ...]:
    """The same for a scope of a request: below the root only if its project has that resource."""
    is_known = structure.has_scope(scope)
    return tuple(
        holding_scope
        for holding_scope in lookup_scopes(application_id, scope, rule)
        if is_known or holding_scope.is_root
    )


# What a person holds in an application at one time: the evaluation of R5. Pure.


VerdictEnds: TypeAlias = Mapping[tuple[int, bool], int]  # until when a tier allows or denies a rule

GrowthCallback: TypeAlias = Callable[[int], None]  # receives the bytes by which something grew

FOREVER: Final = sys.maxsize
SCOPE_WEIGHT: Final = 2_000  # bytes of a scope in which little is held
CONTRIBUTION_WEIGHT: Final = 400  # of each role, grant or direct entry in it
ENTRY_WEIGHT: Final = 300  # of each direct entry
PARAMS_WEIGHT: Final = 100  # of each rule with params


class HeldRule(Struct, frozen=True):
    """A rule that is true."""

    rule: Rule
    scope: "ScopePermissions"

    @property
    def params(self) -> tuple[str, ...]:
        return self.scope.params.get(self.rule, ())

    def seconds_left(self, now: int) -> int:
        """Seconds until it ends if nothing is changed, 0 for never."""
        return self.scope.seconds_left({self.rule}, now).get(self.rule, 0)


class ScopePermissions(Mapping[Rule, HeldRule]):
    """The rules that are true in one scope."""

    def __init__(self, gathered: ScopeContributions) -> None:
        self.contributions = gathered
        self.on_growth: GrowthCallback = _ignore_growth

    def __contains__(self, rule: object) -> bool:
        """Whether the rule is held.

        Does not build the set of held rules for a large scope that was not listed yet.
        """
        if self.is_built or self.work <= MAX_INLINE_WEIGHT:
            return rule in self.held
        return is_held(self.contributions.tiers, rule)

    def __getitem__(self, rule: Rule) -> HeldRule:
        if rule not in self:
            raise KeyError(rule)
        return HeldRule(rule, self)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.held)

    def __len__(self) -> int:
        return len(self.held)

    @property
    def weight(self) -> int:
        """Estimated bytes without lazy properties, which report their own to `on_growth`."""
        own = (
            (
                len(contribution.verdicts.yes) + len(contribution.verdicts.no)
                for contribution in self.contributions.tiers[-1]
            )
            if self.contributions.tiers
            else ()
        )
        return SCOPE_WEIGHT + CONTRIBUTION_WEIGHT * sum(1 for _ in self.contributions) + ENTRY_WEIGHT * sum(own)

    @property
    def is_built(self) -> bool:
        return "held" in self.__dict__

    @cached_property
    def work(self) -> int:
        """How much work it is to list all of it."""
        return sum(contribution.verdicts.work for contribution in self.contributions)

    @cached_property
    def held(self) -> AbstractSet[Rule]:
        rules = true_rules(self.contributions.tiers)
        self.on_growth(sys.getsizeof(rules))
        return rules

    @cached_property
    def params(self) -> Mapping[Rule, tuple[str, ...]]:
        """The params of every allowing contribution, also of those below a higher tier that allows the rule (R5)."""
        merged: dict[Rule, dict[str, None]] = {}
        for contribution in self.contributions:
            for rule, params in contribution.verdicts.params.items():
                merged.setdefault(rule, {}).update(dict.fromkeys(params))
        params_by_rule = {rule: tuple(params) for rule, params in merged.items()}
        if params_by_rule:
            self.on_growth(PARAMS_WEIGHT * len(params_by_rule) + sum(map(sys.getsizeof, params_by_rule.values())))
        return params_by_rule

    def rule_texts(self, rules: AbstractSet[Rule]) -> Iterable[str]:
        """These held rules as texts, nearly sorted, because each role's texts are: sorting them is fast."""
        allowing = [contribution.verdicts for contribution in self.contributions if contribution.verdicts.yes]
        texts: dict[str, None] = {}
        # A role at a time: no single call is long.
        for role_texts in sorted(verdicts.sorted_texts for verdicts in allowing):
            texts.update(dict.fromkeys(role_texts))
        if len(texts) != len(rules):  # a higher tier denies some of them
            for verdicts in allowing:
                for rule in verdicts.yes - rules:
                    texts.pop(str(rule), None)
        return texts

    def params_by_contribution(self, rule: Rule) -> list[tuple[str, ...]]:
        """The parameters of every true contribution by itself: a limit is read from each (interface §5.6)."""
        return [
            contribution.verdicts.params.get(rule, ())
            for contribution in self.contributions
            if rule in contribution.verdicts.yes
        ]

    def seconds_left(self, rules: AbstractSet[Rule], now: int) -> dict[Rule, int]:
        """Seconds until each of these held rules is no longer held; those that stay are left out.

        When an entry ends, a role below it may still allow the rule or deny it.
        """
        lost = {rule: lost_at(ends) for rule, ends in self._verdict_ends(self._ending_rules(rules), now).items()}
        closes = self.contributions.closes.ends_at(now)
        if closes:
            lost = {rule: min(lost.get(rule, FOREVER), closes) for rule in rules}
        return {rule: moment - now for rule, moment in lost.items() if moment != FOREVER}

    def _ending_rules(self, rules: AbstractSet[Rule]) -> set[Rule]:
        """Those of the rules with a contribution that ends."""
        ending_rules: set[Rule] = set()
        for contribution in self.contributions:
            if contribution.end != NO_END:
                ending_rules |= contribution.verdicts.yes & rules
                ending_rules |= contribution.verdicts.no & rules
        return ending_rules

    def _verdict_ends(self, rules: AbstractSet[Rule], now: int) -> Mapping[Rule, VerdictEnds]:
        ends: dict[Rule, dict[tuple[int, bool], int]] = {rule: {} for rule in rules}
        for tier, contributions in enumerate(self.contributions.tiers):
            for contribution in contributions if rules else ():
                until = contribution.end.ends_at(now) or FOREVER
                for value, concerned in ((True, contribution.verdicts.yes), (False, contribution.verdicts.no)):
                    for rule in concerned & rules:
                        known = ends[rule]
                        known[tier, value] = max(until, known.get((tier, value), 0))
        return ends


class EffectivePermissions:
    """What a person holds in one application; valid until `valid_until` while its sources are unchanged."""

    def __init__(
        self, application_id: int, by_scope: Mapping[Scope, ScopePermissions], *, ban_ends_at: int = 0
    ) -> None:
        """`ban_ends_at`: when the first of the person's bans ends, which may give them more; 0 for never."""
        self.application_id = application_id
        self._held = by_scope
        self._ban_ends_at = ban_ends_at

    def track_weight(self, grown: GrowthCallback) -> int:
        """Its estimated bytes now; later growth is reported to `grown`."""
        for permissions in self._held.values():
            permissions.on_growth = grown
        return sum(permissions.weight for permissions in self._held.values())

    @property
    def work(self) -> int:
        """How much work it is to list all of it."""
        return sum(permissions.work for permissions in self._held.values())

    @property
    def decision_work(self) -> int:
        """Estimated work of single checks: none once the sets of held rules are built."""
        return sum(permissions.work for permissions in self._held.values() if not permissions.is_built)

    @property
    def open_scopes(self) -> Iterable[Scope]:
        """All scopes in which something may be held, the root first."""
        return self._held.keys()

    @cached_property
    def nonempty_scopes(self) -> tuple[Scope, ...]:
        """Those in which a rule or a role is held."""
        return tuple(
            scope for scope, permissions in self._held.items() if permissions.contributions.roles or permissions.held
        )

    @cached_property
    def valid_until(self) -> int:
        """When time alone may change any of this, 0 for never. A ttl is not an end (R5)."""
        ends = (
            end
            for permissions in self._held.values()
            for end in (*permissions.contributions.ends, permissions.contributions.closes)
        )
        times = [end.expired for end in ends if end.expired and not end.ttl]
        return min([*times, self._ban_ends_at] if self._ban_ends_at else times, default=0)

    def rules(self, scope: Scope) -> ScopePermissions:
        """The rules that are true exactly in this scope."""
        return self._held.get(scope, NO_PERMISSIONS)

    def granted_roles(self, scope: Scope) -> Mapping[str, GrantedRole]:
        """Roles held there by assignment or group grant, by key."""
        return self.rules(scope).contributions.roles

    def allows(self, scope: Scope, rule: Rule) -> bool:
        return any(rule in self.rules(holding_scope) for holding_scope in self.lookup_scopes(scope, rule))

    def lookup_scopes(self, scope: Scope, rule: Rule) -> Iterator[Scope]:
        return lookup_scopes(self.application_id, scope, rule)

    def scopes_holding(self, structure: Structure, scope: Scope, rule: Rule) -> Iterator[Scope]:
        """The scopes where the person holds a rule that counts in this scope."""
        holding_scopes = existing_lookup_scopes(structure, self.application_id, scope, rule)
        return (holding_scope for holding_scope in holding_scopes if rule in self.rules(holding_scope))

    def first_end(self, now: int, scopes: Iterable[Scope]) -> int:
        """The earliest end of any role or entry in these scopes that a list made now shows, 0 for none.

        The end of a ban is one too: from then on the list shows more.
        """
        times = [end.ends_at(now) for scope in scopes for end in self.rules(scope).contributions.ends]
        return min([*times, self._ban_ends_at] if self._ban_ends_at else times, default=0)


def evaluate(
    model: ApplicationModel,
    facts: Facts,
    structure: Structure,
    *,
    now: int,
    address: Address | None,
    compiled: CompiledModel | None = None,
) -> EffectivePermissions:
    application_id = model.application.application_id
    ban_ends_at = min((ban.until for ban in facts.bans if ban.until > now), default=0)
    if holds_nothing(model, facts, structure, now):
        return EffectivePermissions(application_id, {}, ban_ends_at=ban_ends_at)
    this = evaluation_context(model, facts, structure, now=now, address=address, compiled=compiled)
    return EffectivePermissions(
        application_id,
        {ROOT: ScopePermissions(gather_root(this)), **dict(_below_root(this))},
        ban_ends_at=ban_ends_at,
    )


def _below_root(context: EvaluationContext) -> Iterator[tuple[Scope, ScopePermissions]]:
    scopes = {scope for scope in context.holdings if not scope.is_root}
    scopes |= {Scope(project_id) for project_id in context.reachable_projects()}
    gates = {project_id: context.gate(project_id) for project_id in {scope.project_id for scope in scopes}}
    for scope in sorted(scopes, key=scope_order):
        gate = gates[scope.project_id]
        if gate.is_open:
            yield scope, ScopePermissions(gather_below_root(context, scope, gate.closes))


def true_rules(tiers: Tiers) -> set[Rule]:
    """Return the rules that are true: a tier overrides lower tiers; within one tier false wins over true (R5)."""
    rules: set[Rule] = set()
    for tier in tiers:
        for contribution in tier:
            rules |= contribution.verdicts.yes
        for contribution in tier:
            rules -= contribution.verdicts.no
    return rules


def is_held(tiers: Tiers, rule: object) -> bool:
    """Whether one rule is true, from the highest tier down."""
    for tier in reversed(tiers):
        if any(rule in contribution.verdicts.no for contribution in tier):
            return False
        if any(rule in contribution.verdicts.yes for contribution in tier):
            return True
    return False


def lost_at(ends: VerdictEnds) -> int:
    """The first moment at which a rule with these verdicts is no longer true."""
    return next((moment for moment in sorted(ends.values()) if not is_true_at(ends, moment)), FOREVER)


def is_true_at(ends: VerdictEnds, moment: int) -> bool:
    """Whether the rule is true at that time: the highest tier with a verdict decides, false before true."""
    valid = [(tier, not value) for (tier, value), until in ends.items() if until > moment]
    return bool(valid) and not max(valid)[1]


def _ignore_growth(_more: int) -> None:
    """Do nothing; for evaluations that are not cached."""


NO_PERMISSIONS: Final = ScopePermissions(ScopeContributions(tiers=(), roles={}))
