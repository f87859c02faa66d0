"""Every voice about one rule in one scope, with where it comes from, and which of them decide."""

from dataclasses import dataclass

from gatehouse.permissions.evaluation.conditions import condition_holds
from gatehouse.permissions.evaluation.gathering import (
    Contribution,
    EvaluationContext,
    SourceKind,
    Tier,
    gather_below_root,
    gather_root,
)
from gatehouse.permissions.evaluation.matching import NO_ADDRESS
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.rule import NO_END, End, Rule
from gatehouse.permissions.model.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReference:
    group_id: str
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """How somebody belongs to a group."""

    group: GroupReference
    condition: str = ""  # title of the one he meets; "" when he is listed


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedContribution:
    scope: Scope
    tier: Tier
    kind: SourceKind
    value: bool
    decides: bool
    role: str = ""  # its name
    membership: Membership | None = None
    params: tuple[str, ...] = ()
    end: End = NO_END


def explain_contributions(context: EvaluationContext, scope: Scope, rule: Rule) -> list[ExplainedContribution]:
    """Lower tiers first. As they would count if the project let him in: a barrier is told as missing."""
    gathered = gather_root(context) if scope.is_root else gather_below_root(context, scope, NO_END)
    speaking = [
        (Tier(tier), voice)
        for tier, voices in enumerate(gathered.tiers)
        for voice in voices
        if rule in voice.verdicts.yes or rule in voice.verdicts.no
    ]
    top = max((tier for tier, _ in speaking), default=Tier.SCHEMA)
    verdict = all(rule in voice.verdicts.yes for tier, voice in speaking if tier is top)
    return [
        _explain_contribution(
            context, scope, rule, tier, voice, decides=tier is top and (rule in voice.verdicts.yes) is verdict
        )
        for tier, voice in speaking
    ]


def _explain_contribution(
    context: EvaluationContext, scope: Scope, rule: Rule, tier: Tier, voice: Contribution, *, decides: bool
) -> ExplainedContribution:
    source = voice.source
    return ExplainedContribution(
        scope=scope,
        tier=tier,
        kind=source.kind,
        value=rule in voice.verdicts.yes,
        decides=decides,
        role=source.role.name if source.role else "",
        membership=membership_of(context, scope, source.group_id) if source.group_id else None,
        params=voice.verdicts.params.get(rule, ()),
        end=voice.end,
    )


def membership_of(context: EvaluationContext, scope: Scope, group_id: str) -> Membership:
    group = find_group(context, scope, group_id)
    if group is None or group_id in context.facts.groups:
        return Membership(group=group_reference(context, scope, group_id))
    met = (
        one.title
        for one in group.conditions
        if condition_holds(one.condition.test, context.facts.subject, NO_ADDRESS)
    )
    return Membership(group=group_reference(context, scope, group_id), condition=next(met, ""))


def group_reference(context: EvaluationContext, scope: Scope, group_id: str) -> GroupReference:
    group = find_group(context, scope, group_id)
    return GroupReference(group_id=group_id, title=group.title if group else "")


def find_group(context: EvaluationContext, scope: Scope, group_id: str) -> Group | None:
    project = context.structure.project(scope.project_id)
    return None if project is None else project.groups.get(group_id)
