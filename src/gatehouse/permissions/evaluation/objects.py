"""Decide about objects: the nearest scope that speaks decides, from the object up to the project or the root (R12).

Pure. The project and the root are evaluated as for every other question (effective.py).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from gatehouse.permissions.evaluation.compiled import CompiledRole, Verdicts
from gatehouse.permissions.evaluation.condition_index import is_member, meets_condition
from gatehouse.permissions.evaluation.contributions import (
    DIRECT_SOURCE,
    Contribution,
    ContributionSource,
    EvaluationContext,
    ProjectGate,
    SourceKind,
)
from gatehouse.permissions.evaluation.effective import EffectivePermissions
from gatehouse.permissions.model.objects import (
    HeldItem,
    HolderKind,
    ItemKind,
    ObjectFacts,
    ObjectHolding,
    place_of,
    scope_paths,
)
from gatehouse.permissions.model.role import ConditionMode
from gatehouse.permissions.model.rules import ROOT, Rule, RuleSection, Scope
from gatehouse.permissions.model.schema import ApplicationSchema, UnknownObject

UNGATED: Final = ProjectGate()


class ObjectStep(Struct, frozen=True, kw_only=True):
    """One scope on the way from the object to its project or the root."""

    path: str  # of an object, "" for the project or the root
    value: bool | None  # None: the scope does not speak
    contributions: tuple[Contribution, ...] = ()  # those that name the rule


class ObjectDecision(Struct, frozen=True, kw_only=True):
    allowed: bool
    known: bool
    steps: tuple[ObjectStep, ...] = ()  # the nearest first; the last one decides
    place: str = ""
    gate: ProjectGate = UNGATED  # of the project of the object


class ObjectEvaluator:
    """Decides about objects for one person in one application, from facts of one state."""

    def __init__(
        self,
        *,
        context: EvaluationContext,
        effective: EffectivePermissions,
        schema: ApplicationSchema,
        object_facts: ObjectFacts,
    ) -> None:
        self._context = context
        self._effective = effective
        self._schema = schema
        self._facts = object_facts
        self._contributions: dict[str, Sequence[Contribution]] = {}
        self._gates: dict[str, ProjectGate] = {"": UNGATED}

    @property
    def context(self) -> EvaluationContext:
        return self._context

    def decide(self, key: str, rule: Rule, *, place: str | None = None) -> ObjectDecision:
        """`place`: the project that the question names, None for none."""
        object_type = self._schema.objects.get(key.partition(":")[0])
        path = self._facts.paths.get(key)
        is_asked = object_type is not None and is_rule_of(object_type.rules, rule)
        if path is None or (place is not None and place_of(path) != place):
            from_root = is_asked and object_type is not None and object_type.unknown is UnknownObject.ROOT
            return ObjectDecision(allowed=from_root and self._is_held_in(ROOT, rule), known=False)
        gate = self.gate(place_of(path))
        if not is_asked or not self._effective.open_scopes or not gate.is_open:
            return ObjectDecision(allowed=False, known=True, place=place_of(path), gate=gate)
        return self._walk(path, rule, gate)

    def ends(self, key: str) -> Iterator[int]:
        """When something that is held on the object, above it or in its place ends."""
        path = self._facts.paths.get(key)
        if path is None:
            return
        place = place_of(path)
        yield self._effective.first_end(self._context.now, [Scope(place)])
        for scope in scope_paths(path):
            for holding in self._facts.holdings.get(scope, ()):
                if holding.end.expired and counts(self._context, place, holding):
                    yield holding.end.expired

    def gate(self, place: str) -> ProjectGate:
        if place not in self._gates:
            self._gates[place] = self._context.gate(place)
        return self._gates[place]

    def contributions(self, path: str) -> Sequence[Contribution]:
        """Everything that counts for the person in the scope of one object."""
        if path not in self._contributions:
            held = self._facts.holdings.get(path, ())
            self._contributions[path] = tuple(object_contributions(self._context, place_of(path), held))
        return self._contributions[path]

    def _walk(self, path: str, rule: Rule, gate: ProjectGate) -> ObjectDecision:
        steps: list[ObjectStep] = []
        for scope in scope_paths(path):
            naming = tuple(each for each in self.contributions(scope) if names(each.verdicts, rule))
            steps.append(ObjectStep(path=scope, value=scope_value(naming, rule), contributions=naming))
            if steps[-1].value is not None:
                break
        else:
            steps.append(ObjectStep(path="", value=self._is_held_in(Scope(place_of(path)), rule)))
        return ObjectDecision(
            allowed=steps[-1].value is True, known=True, steps=tuple(steps), place=place_of(path), gate=gate
        )

    def _is_held_in(self, scope: Scope, rule: Rule) -> bool:
        return rule in self._effective.rules(scope)


def is_rule_of(rules: Collection[str], rule: Rule) -> bool:
    return rule.section is RuleSection.PRIVATE and rule.path in rules


def names(verdicts: Verdicts, rule: Rule) -> bool:
    return rule in verdicts.yes or rule in verdicts.no


def scope_value(contributions: Iterable[Contribution], rule: Rule) -> bool | None:
    """A direct entry counts before roles; within a tier false before true (R5). None: nothing names the rule."""
    by_role: bool | None = None
    by_entry: bool | None = None
    for contribution in contributions:
        value = rule not in contribution.verdicts.no
        if contribution.source is DIRECT_SOURCE:
            by_entry = value if by_entry is None else by_entry and value
        else:
            by_role = value if by_role is None else by_role and value
    return by_role if by_entry is None else by_entry


def object_contributions(
    context: EvaluationContext, place: str, holdings: Iterable[ObjectHolding]
) -> Iterator[Contribution]:
    """What counts of these holdings for the person: unexpired, of their groups, without the revoked roles."""
    counting = [holding for holding in holdings if counts(context, place, holding)]
    revoked = {holding.item for holding in counting if holding.item.kind is ItemKind.ROLE and not holding.value}
    for holding in counting:
        if holding.item.kind is ItemKind.RULE:
            yield Contribution(DIRECT_SOURCE, entry_verdicts(holding.item, value=holding.value), holding.end)
        elif holding.item not in revoked:
            role = usable_role(context, holding)
            if role is not None:
                yield Contribution(role_source(holding, role), role.verdicts, holding.end)


def counts(context: EvaluationContext, place: str, holding: ObjectHolding) -> bool:
    if holding.end.is_past(context.now):
        return False
    if holding.item.kind is ItemKind.ROLE and not is_current(context, holding):
        return False
    if holding.holder.kind is HolderKind.USER:
        return True
    project = context.structure.project(place)
    group = None if project is None else project.groups.get(holding.holder.id)
    return group is not None and is_member(group, context.facts)


def is_current(context: EvaluationContext, holding: ObjectHolding) -> bool:
    """Whether the role is the one that was assigned: not deleted since, nor protected."""
    role = context.model.roles.get(holding.item.name)
    return role is not None and not role.role.protected and role.role.generation == holding.generation


def usable_role(context: EvaluationContext, holding: ObjectHolding) -> CompiledRole | None:
    role = context.model.roles[holding.item.name]
    gated = role.role.condition_mode is ConditionMode.REQUIRE
    return None if gated and not meets_condition(role.role, context.facts, context.address) else role


def role_source(holding: ObjectHolding, role: CompiledRole) -> ContributionSource:
    if holding.holder.kind is HolderKind.GROUP:
        return ContributionSource(SourceKind.GROUP_GRANT, role.role, holding.holder.id)
    return ContributionSource(SourceKind.ASSIGNED_ROLE, role.role)


def entry_verdicts(item: HeldItem, *, value: bool) -> Verdicts:
    rules = frozenset({Rule(RuleSection.PRIVATE, item.name)})
    return Verdicts(yes=rules) if value else Verdicts(no=rules)
