"""Every contribution to one rule in one scope, with its source, and which of them decide."""

from collections.abc import Iterator
from heapq import nsmallest
from typing import Final, assert_never

from msgspec import Struct

from gatehouse.kernel.addresses import Address
from gatehouse.permissions.evaluation.conditions import NO_ADDRESS, condition_holds
from gatehouse.permissions.evaluation.contributions import (
    Contribution,
    EvaluationContext,
    SourceKind,
    Tier,
    gather_below_root,
    gather_root,
)
from gatehouse.permissions.model.condition import (
    AllOf,
    AnyOf,
    ConditionSubject,
    ConditionTest,
    Domain,
    Everyone,
    FromNetwork,
    HasPurchase,
    HasTag,
    OneOfUsers,
    SimpleTest,
)
from gatehouse.permissions.model.project import Group
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


# Which part of a condition does not hold, and the actual value.


MAX_USERS_SHOWN: Final = 10


class FailedTest(Struct, frozen=True):
    member: str  # of the condition, as it is written
    wanted: str
    actual: str  # "" when there is nothing of the kind


def failed_tests(test: ConditionTest, who: ConditionSubject, address: Address | None) -> Iterator[FailedTest]:
    """Return the failed tests of a condition; none if it holds."""
    if not condition_holds(test, who, address):
        yield from _failed_parts(test, who, address)


def _failed_parts(test: ConditionTest, who: ConditionSubject, address: Address | None) -> Iterator[FailedTest]:
    """Yield the failed parts of a test that does not hold."""
    match test:
        case AllOf(parts):
            for part in parts:
                yield from failed_tests(part, who, address)
        case AnyOf(parts):
            for part in parts:
                yield from _failed_parts(part, who, address)
        case _:
            yield _failed_test(test, who, address)


def _failed_test(test: SimpleTest, who: ConditionSubject, address: Address | None) -> FailedTest:
    match test:
        case Domain(name):
            return FailedTest("domain", name, who.domain or "")
        case OneOfUsers(user_ids):
            return FailedTest("uid", _shorten_user_ids(user_ids), who.user_id)
        case HasTag(tag):
            return FailedTest("tag", tag, ", ".join(sorted(who.tags)))
        case FromNetwork(network):
            return FailedTest("ip", str(network), "" if address is None else str(address))
        case HasPurchase(purchase):
            return FailedTest("purchase", purchase, ", ".join(sorted(who.purchases)))
        case Everyone():
            return FailedTest("everyone", "no one", who.user_id)
        case _:
            assert_never(test)


def _shorten_user_ids(user_ids: frozenset[str]) -> str:
    """The first few of them."""
    shown = ", ".join(nsmallest(MAX_USERS_SHOWN, user_ids))
    more = len(user_ids) - MAX_USERS_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
