"""What a person holds in an application at one moment: the evaluation of R5. Pure."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

from gatehouse.kernel.addresses import Address
from gatehouse.kernel.background import MAX_INLINE_WEIGHT
from gatehouse.kernel.cached import cached_property
from gatehouse.permissions.evaluation.compiled import CompiledModel
from gatehouse.permissions.evaluation.gathering import (
    EvaluationContext,
    GrantedRole,
    ScopeContributions,
    Tiers,
    evaluation_context,
    gather_below_root,
    gather_root,
    is_account_ended,
    is_application_removed,
)
from gatehouse.permissions.evaluation.places import existing_lookup_scopes, lookup_scopes
from gatehouse.permissions.model.facts import ApplicationModel, Facts, Structure
from gatehouse.permissions.model.rule import NO_END, Rule
from gatehouse.permissions.model.scope import ROOT, Scope

VerdictEnds: TypeAlias = Mapping[tuple[int, bool], int]  # until when a tier says true or false of a rule

GrowthCallback: TypeAlias = Callable[[int], None]  # told of the bytes that something came to need

FOREVER: Final = sys.maxsize
SCOPE_WEIGHT: Final = 2_000  # bytes of a scope in which little is held
CONTRIBUTION_WEIGHT: Final = 400  # of each role, grant or direct entry that has a say in it
ENTRY_WEIGHT: Final = 300  # of each direct entry
PARAMS_WEIGHT: Final = 100  # of each rule with params


@dataclass(frozen=True, slots=True)
class HeldRule:
    """A rule that is true."""

    rule: Rule
    scope: "ScopePermissions"

    @property
    def params(self) -> tuple[str, ...]:
        return self.scope.params.get(self.rule, ())

    def left(self, now: int) -> int:
        """Seconds until it is no longer held if nobody changes anything, 0 for ever."""
        return self.scope.lefts({self.rule}, now).get(self.rule, 0)


class ScopePermissions(Mapping[Rule, HeldRule]):
    """The rules that are true in one scope."""

    def __init__(self, gathered: ScopeContributions) -> None:
        self.gathered = gathered
        self.grown: GrowthCallback = _ignore_growth

    def __contains__(self, rule: object) -> bool:
        """Of a large scope that nobody listed so far, without building the set of everything held."""
        if self.is_built or self.work <= MAX_INLINE_WEIGHT:
            return rule in self.held
        return is_held(self.gathered.tiers, rule)

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
        """Estimated bytes, without what is made when it is first asked for: `grown` is told of that."""
        voices = chain.from_iterable(self.gathered.tiers)
        own = (len(one.says.yes) + len(one.says.no) for one in self.gathered.tiers[-1]) if self.gathered.tiers else ()
        return SCOPE_WEIGHT + CONTRIBUTION_WEIGHT * sum(1 for _ in voices) + ENTRY_WEIGHT * sum(own)

    @property
    def is_built(self) -> bool:
        return "held" in self.__dict__

    @cached_property
    def work(self) -> int:
        """How much work it is to list all of it."""
        return sum(voice.says.work for voice in chain.from_iterable(self.gathered.tiers))

    @cached_property
    def held(self) -> AbstractSet[Rule]:
        held = true_rules(self.gathered.tiers)
        self.grown(sys.getsizeof(held))
        return held

    @cached_property
    def params(self) -> Mapping[Rule, tuple[str, ...]]:
        """Of every true contribution, also of one that a higher tier would not have needed (R5)."""
        merged: dict[Rule, dict[str, None]] = {}
        for voice in chain.from_iterable(self.gathered.tiers):
            for rule, params in voice.says.params.items():
                merged.setdefault(rule, {}).update(dict.fromkeys(params))
        found = {rule: tuple(params) for rule, params in merged.items()}
        if found:
            self.grown(PARAMS_WEIGHT * len(found) + sum(map(sys.getsizeof, found.values())))
        return found

    def texts(self, rules: AbstractSet[Rule]) -> Iterable[str]:
        """These of the held rules in words. They are nearly in order, as what each role says is: sorting is quick."""
        said = [voice.says for voice in chain.from_iterable(self.gathered.tiers) if voice.says.yes]
        texts: dict[str, None] = {}
        for written in sorted(one.texts for one in said):  # a role at a time: no single call is long
            texts.update(dict.fromkeys(written))
        if len(texts) != len(rules):  # somebody else has the last word on some of them
            for one in said:
                for rule in one.yes - rules:
                    texts.pop(str(rule), None)
        return texts

    def each(self, rule: Rule) -> list[tuple[str, ...]]:
        """The parameters of every true contribution by itself: a limit is read from each (interface §5.6)."""
        voices = chain.from_iterable(self.gathered.tiers)
        return [voice.says.params.get(rule, ()) for voice in voices if rule in voice.says.yes]

    def lefts(self, rules: AbstractSet[Rule], now: int) -> dict[Rule, int]:
        """Seconds until each of these held rules is no longer held; those that stay are left out.

        An entry that ends may uncover a role that still gives the rule, or a false below it.
        """
        lost = {rule: lost_at(spoken) for rule, spoken in self._spoken(self._ending(rules), now).items()}
        closes = self.gathered.closes.shown(now)
        if closes:
            lost = {rule: min(lost.get(rule, FOREVER), closes) for rule in rules}
        return {rule: moment - now for rule, moment in lost.items() if moment != FOREVER}

    def _ending(self, rules: AbstractSet[Rule]) -> set[Rule]:
        """Those of the rules about which something stops being said one day."""
        found: set[Rule] = set()
        for voice in chain.from_iterable(self.gathered.tiers):
            if voice.end != NO_END:
                found |= voice.says.yes & rules
                found |= voice.says.no & rules
        return found

    def _spoken(self, rules: AbstractSet[Rule], now: int) -> Mapping[Rule, VerdictEnds]:
        spoken: dict[Rule, dict[tuple[int, bool], int]] = {rule: {} for rule in rules}
        for tier, voices in enumerate(self.gathered.tiers):
            for voice in voices if rules else ():
                until = voice.end.shown(now) or FOREVER
                for value, said in ((True, voice.says.yes), (False, voice.says.no)):
                    for rule in said & rules:
                        mine = spoken[rule]
                        mine[tier, value] = max(until, mine.get((tier, value), 0))
        return spoken


class EffectivePermissions:
    """What a person holds in one application. True until `until`, as long as what it was made from is."""

    def __init__(self, application_id: int, held: Mapping[Scope, ScopePermissions]) -> None:
        self.application_id = application_id
        self._held = held

    def count(self, grown: GrowthCallback) -> int:
        """Its estimated bytes now; `grown` is told of those that it comes to need later."""
        for one in self._held.values():
            one.grown = grown
        return sum(one.weight for one in self._held.values())

    @property
    def work(self) -> int:
        """How much work it is to list all of it."""
        return sum(one.work for one in self._held.values())

    @property
    def decision_work(self) -> int:
        """How much work single questions to it are: nothing much once the sets of what is held are built."""
        return sum(one.work for one in self._held.values() if not one.is_built)

    @property
    def open_scopes(self) -> Iterable[Scope]:
        """All in which something may be held, the root first."""
        return self._held.keys()

    @cached_property
    def scopes(self) -> tuple[Scope, ...]:
        """Those in which a rule or a role is held."""
        return tuple(scope for scope, one in self._held.items() if one.gathered.roles or one.held)

    @cached_property
    def until(self) -> int:
        """When time alone may change any of this, 0 for never. What has a ttl never ends by it (R5)."""
        ends = (end for one in self._held.values() for end in (*one.gathered.ends, one.gathered.closes))
        return min((end.expired for end in ends if end.expired and not end.ttl), default=0)

    def rules(self, scope: Scope) -> ScopePermissions:
        """Those that are true exactly there."""
        return self._held.get(scope, NO_PERMISSIONS)

    def assigned(self, scope: Scope) -> Mapping[str, GrantedRole]:
        """Roles given there, by assignment or to a group, by key."""
        return self.rules(scope).gathered.roles

    def allows(self, scope: Scope, rule: Rule) -> bool:
        return any(rule in self.rules(place) for place in self.counting(scope, rule))

    def counting(self, scope: Scope, rule: Rule) -> Iterator[Scope]:
        return lookup_scopes(self.application_id, scope, rule)

    def holding(self, structure: Structure, scope: Scope, rule: Rule) -> Iterator[Scope]:
        """Where he holds a rule that is asked about in a scope."""
        places = existing_lookup_scopes(structure, self.application_id, scope, rule)
        return (place for place in places if rule in self.rules(place))

    def first_end(self, now: int, scopes: Iterable[Scope]) -> int:
        """The earliest end that a list made now tells of, of any role or entry in these scopes, 0 for none."""
        ends = (end for scope in scopes for end in self.rules(scope).gathered.ends)
        return min((end.shown(now) for end in ends), default=0)


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
    if is_application_removed(model, facts) or is_account_ended(facts, structure):
        return EffectivePermissions(application_id, {})
    this = evaluation_context(model, facts, structure, now=now, address=address, compiled=compiled)
    return EffectivePermissions(
        application_id, {ROOT: ScopePermissions(gather_root(this)), **dict(_below_root(this))}
    )


def _below_root(this: EvaluationContext) -> Iterator[tuple[Scope, ScopePermissions]]:
    scopes = {scope for scope in this.holdings if not scope.is_root}
    scopes |= {Scope(project_id) for project_id in this.projects_reached()}
    gates = {project_id: this.gate(project_id) for project_id in {scope.project_id for scope in scopes}}
    for scope in sorted(scopes, key=scope_order):
        gate = gates[scope.project_id]
        if gate.is_open:
            yield scope, ScopePermissions(gather_below_root(this, scope, gate.closes))


def true_rules(tiers: Tiers) -> set[Rule]:
    """A tier overrides those below it; within one tier false beats true (R5)."""
    held: set[Rule] = set()
    for tier in tiers:
        for voice in tier:
            held |= voice.says.yes
        for voice in tier:
            held -= voice.says.no
    return held


def is_held(tiers: Tiers, rule: object) -> bool:
    """The same for one rule, from the highest tier down."""
    for tier in reversed(tiers):
        if any(rule in voice.says.no for voice in tier):
            return False
        if any(rule in voice.says.yes for voice in tier):
            return True
    return False


def lost_at(spoken: VerdictEnds) -> int:
    """The first moment at which a rule of which this is said is no longer true."""
    return next((moment for moment in sorted(spoken.values()) if not is_true_at(spoken, moment)), FOREVER)


def is_true_at(spoken: VerdictEnds, moment: int) -> bool:
    """What the highest tier that will still speak says, false before true."""
    speaking = [(tier, not value) for (tier, value), until in spoken.items() if until > moment]
    return bool(speaking) and not max(speaking)[1]


def scope_order(scope: Scope) -> tuple[str, str, str]:
    return scope.project_id, scope.kind or "", scope.resource_id


def _ignore_growth(_more: int) -> None:
    """For what no cache keeps."""


NO_PERMISSIONS: Final = ScopePermissions(ScopeContributions(tiers=(), roles={}))
