"""Every contribution to one rule in one scope, with its source, and which of them decide."""

from msgspec import Struct

from gatehouse.permissions.evaluation.condition_index import NO_ADDRESS
from gatehouse.permissions.evaluation.conditions import condition_holds
from gatehouse.permissions.evaluation.contributions import (
    Contribution,
    EvaluationContext,
    SourceKind,
    Tier,
    gather_below_root,
    gather_root,
)
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.rules import NO_END, End, Rule, Scope


class GroupReference(Struct, frozen=True, kw_only=True):
    group_id: str
    title: str = ""


class Membership(Struct, frozen=True, kw_only=True):
    """How a person belongs to a group."""

    group: GroupReference
    condition: str = ""  # title of the condition they meet; "" when they are listed


class ExplainedContribution(Struct, frozen=True, kw_only=True):
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
    """Return the contributions, lower tiers first, as if the project were open: a barrier is reported as missing."""
    gathered = gather_root(context) if scope.is_root else gather_below_root(context, scope, NO_END)
    concerned = [
        (Tier(tier), contribution)
        for tier, contributions in enumerate(gathered.tiers)
        for contribution in contributions
        if rule in contribution.verdicts.yes or rule in contribution.verdicts.no
    ]
    top = max((tier for tier, _ in concerned), default=Tier.SCHEMA)
    verdict = all(rule in contribution.verdicts.yes for tier, contribution in concerned if tier is top)
    return [
        _explain_contribution(
            context,
            scope,
            rule,
            tier,
            contribution,
            decides=tier is top and (rule in contribution.verdicts.yes) is verdict,
        )
        for tier, contribution in concerned
    ]


def _explain_contribution(
    context: EvaluationContext, scope: Scope, rule: Rule, tier: Tier, contribution: Contribution, *, decides: bool
) -> ExplainedContribution:
    source = contribution.source
    return ExplainedContribution(
        scope=scope,
        tier=tier,
        kind=source.kind,
        value=rule in contribution.verdicts.yes,
        decides=decides,
        role=source.role.name if source.role else "",
        membership=membership_of(context, scope, source.group_id) if source.group_id else None,
        params=contribution.verdicts.params.get(rule, ()),
        end=contribution.end,
    )


def membership_of(context: EvaluationContext, scope: Scope, group_id: str) -> Membership:
    group = find_group(context, scope, group_id)
    if group is None or group_id in context.facts.groups:
        return Membership(group=group_reference(context, scope, group_id))
    met = (
        condition.title
        for condition in group.conditions
        if condition_holds(condition.condition.test, context.facts.subject, NO_ADDRESS)
    )
    return Membership(group=group_reference(context, scope, group_id), condition=next(met, ""))


def group_reference(context: EvaluationContext, scope: Scope, group_id: str) -> GroupReference:
    group = find_group(context, scope, group_id)
    return GroupReference(group_id=group_id, title=group.title if group else "")


def find_group(context: EvaluationContext, scope: Scope, group_id: str) -> Group | None:
    project = context.structure.project(scope.project_id)
    return None if project is None else project.groups.get(group_id)
