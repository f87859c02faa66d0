"""An explanation as a tree of reasons, with the actual values: rule, place, role, how it is held, its condition.

The deciding part is unfolded. It shows what the explanation says (permissions/questions/explain.py decides what that
is), and the conditions of roles and groups to those who may read these anyway. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from markupsafe import Markup
from msgspec import Struct, field

from gatehouse.accounts.bans.model import UserBan
from gatehouse.kernel.addresses import Address
from gatehouse.permissions.evaluation.conditions import condition_holds
from gatehouse.permissions.evaluation.contributions import SourceKind
from gatehouse.permissions.explanation.contributions import ExplainedContribution, Membership
from gatehouse.permissions.explanation.failed_tests import FailedTest
from gatehouse.permissions.explanation.reasons import Explanation, MissingKind, MissingRequirement
from gatehouse.permissions.model.condition import (
    AllOf,
    AnyOf,
    Condition,
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
from gatehouse.permissions.model.role import ConditionMode
from gatehouse.permissions.model.rules import Scope
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.web.console.remedies import Nouns

ROLE_SOURCES: Final = frozenset({SourceKind.ASSIGNED_ROLE, SourceKind.GROUP_GRANT, SourceKind.CONDITION})
MAX_USERS_SHOWN: Final = 5


class DecisionNode(Struct, frozen=True, kw_only=True):
    """The text is `access.<key>`, filled with `values`."""

    key: str
    tone: str = "plain"  # yes, no, missing or plain
    values: Mapping[str, object] = field(default_factory=dict)
    decides: bool = False
    scope: Scope | None = None
    until: int = 0
    ttl: int = 0
    since: int = 0
    parts: tuple["DecisionNode", ...] = ()

    @property
    def plain_values(self) -> Mapping[str, object]:
        """The values without links, which a heading that folds cannot have."""
        return {
            name: value.striptags() if isinstance(value, Markup) else value for name, value in self.values.items()
        }

    @property
    def links(self) -> Sequence[Markup]:
        return [value for value in self.values.values() if isinstance(value, Markup) and "<a " in value]


class DecisionVisibility(Nouns, frozen=True, kw_only=True):
    """Which conditions may be shown, and for which people."""

    address: Address | None
    now: int

    @property
    def subject(self) -> ConditionSubject:
        return self.evaluation_input.facts.subject

    def role_condition(self, name: str) -> Condition | None:
        if not is_open(self.authenticated.rights, Operation.ROLES_GET, self.authenticated.target):
            return None
        role = self.evaluation_input.models[self.application_id].roles.get(name.lower())
        return None if role is None else role.condition

    def is_gated(self, name: str) -> bool:
        role = self.evaluation_input.models[self.application_id].roles.get(name.lower())
        return role is not None and role.condition_mode is ConditionMode.REQUIRE

    def group_condition(self, scope: Scope, membership: Membership) -> Condition | None:
        about = GuardTarget(project_id=scope.project_id, group_id=membership.group.group_id)
        project = self.evaluation_input.structure.projects.get(scope.project_id)
        if project is None or not is_open(self.authenticated.rights, Operation.GROUP_GET, about):
            return None
        group = project.groups.get(membership.group.group_id)
        conditions = group.conditions if group else ()
        return next(
            (condition.condition for condition in conditions if condition.title == membership.condition), None
        )


def decision_tree(explanation: Explanation, visibility: DecisionVisibility) -> DecisionNode:
    places = groupby(explanation.contributions, key=lambda one: one.scope)
    return DecisionNode(
        key="rule_allowed" if explanation.allowed else "rule_denied",
        tone="yes" if explanation.allowed else "no",
        values={"rule": explanation.rule.path},
        decides=True,
        scope=explanation.scope,
        parts=(
            *(scope_node(scope, tuple(voices), visibility) for scope, voices in places),
            *missing_nodes(explanation.missing, visibility),
        ),
    )


def scope_node(
    scope: Scope, contributions: Sequence[ExplainedContribution], visibility: DecisionVisibility
) -> DecisionNode:
    """The strongest verdict first."""
    ordered = sorted(contributions, key=lambda one: (not one.decides, -one.tier))
    return DecisionNode(
        key="place_root" if scope.is_root else "place_project" if scope.kind is None else f"place_{scope.kind}",
        values={"project": visibility.project(scope.project_id), "id": scope.resource_id},
        tone="yes" if any(one.decides and one.value for one in contributions) else "no",
        decides=any(contribution.decides for contribution in contributions),
        parts=tuple(contribution_node(one, visibility) for one in ordered),
    )


def contribution_node(one: ExplainedContribution, visibility: DecisionVisibility) -> DecisionNode:
    return DecisionNode(
        key=f"says_{one.kind}_{'yes' if one.value else 'no'}",
        tone="yes" if one.value else "no",
        values={"role": visibility.role(one.role), "params": ", ".join(one.params)},
        decides=one.decides,
        until=0 if one.kind in ROLE_SOURCES else one.end.expired,
        ttl=0 if one.kind in ROLE_SOURCES else one.end.ttl,
        parts=tuple(holding_nodes(one, visibility)),
    )


def holding_nodes(one: ExplainedContribution, visibility: DecisionVisibility) -> Iterator[DecisionNode]:
    """How the role is held."""
    if one.kind is SourceKind.ASSIGNED_ROLE:
        yield DecisionNode(
            key="assigned", decides=one.decides, scope=one.scope, until=one.end.expired, ttl=one.end.ttl
        )
    if one.kind is SourceKind.GROUP_GRANT:
        yield group_node(one, visibility)
    if one.kind is SourceKind.CONDITION or (one.kind in ROLE_SOURCES and visibility.is_gated(one.role)):
        condition = visibility.role_condition(one.role)
        tests = () if condition is None else (condition_node(condition.test, visibility.subject, visibility.address),)
        yield DecisionNode(key="condition_met", tone="yes", decides=one.decides, parts=tests)


def group_node(one: ExplainedContribution, visibility: DecisionVisibility) -> DecisionNode:
    membership = one.membership
    if membership is None:
        return DecisionNode(key="through_a_group", decides=one.decides)
    parts: tuple[DecisionNode, ...] = (DecisionNode(key="listed", tone="yes", decides=one.decides),)
    if membership.condition:
        condition = visibility.group_condition(one.scope, membership)
        tests = () if condition is None else (condition_node(condition.test, visibility.subject, None),)
        title = {"title": membership.condition}
        parts = (DecisionNode(key="meets", tone="yes", values=title, decides=one.decides, parts=tests),)
    return DecisionNode(
        key="through_group",
        decides=one.decides,
        values={"group": visibility.group(one.scope, membership.group)},
        parts=parts,
    )


def missing_nodes(missing: Iterable[MissingRequirement], visibility: DecisionVisibility) -> Iterator[DecisionNode]:
    """The nearest first, and marked."""
    for place, one in enumerate(missing):
        if one.kind is MissingKind.BANNED and (ban := visible_ban(visibility)):
            yield ban_node(ban, visibility, decides=place == 0)
            continue
        yield DecisionNode(
            key=f"lack_{one.kind}",
            tone="missing",
            values={
                "role": visibility.role(one.role),
                "groups": visibility.groups(one.scope, one.groups),
                "count": one.limit,
                "project": visibility.project(one.scope.project_id),
            },
            decides=place == 0,
            scope=None if one.scope.is_root else one.scope,
            since=one.since,
            parts=tuple(map(failed_test_node, one.failed)),
        )


def failed_test_node(one: FailedTest) -> DecisionNode:
    return DecisionNode(key=f"test_{one.member}", tone="no", values={"wanted": one.wanted, "actual": one.actual})


def visible_ban(visibility: DecisionVisibility) -> UserBan | None:
    """The ban that counts, for the person themselves and for those who may lift it."""
    rights, facts = visibility.authenticated.rights, visibility.evaluation_input.facts
    ban = facts.ban_from(visibility.application_id, visibility.now)
    if ban is None or rights.administers or rights.user_id == facts.subject.user_id:
        return ban
    may = ban.application_id and is_open(rights, Operation.BAN_FROM_APPLICATION, visibility.authenticated.target)
    return ban if may else None


def ban_node(ban: UserBan, visibility: DecisionVisibility, *, decides: bool) -> DecisionNode:
    kind = "application" if ban.application_id else "project" if ban.project_id else "everything"
    place = visibility.application() if ban.application_id else visibility.project(ban.project_id)
    return DecisionNode(
        key=f"lack_banned_from_{kind}", tone="missing", values={"project": place}, decides=decides, until=ban.until
    )


def condition_node(test: ConditionTest, subject: ConditionSubject, address: Address | None) -> DecisionNode:
    tone = "yes" if condition_holds(test, subject, address) else "no"
    if isinstance(test, AllOf | AnyOf):
        key = "all_of" if isinstance(test, AllOf) else "any_of"
        parts = tuple(condition_node(part, subject, address) for part in test.parts)
        return DecisionNode(key=key, tone=tone, decides=tone == "yes", parts=parts)
    member, wanted, actual = compare_test(test, subject, address)
    values = {"wanted": wanted, "actual": actual}
    return DecisionNode(key=f"test_{member}", tone=tone, decides=tone == "yes", values=values)


def compare_test(test: SimpleTest, subject: ConditionSubject, address: Address | None) -> tuple[str, str, str]:
    """The member of a condition, what it asks for, and what is the case."""
    match test:
        case Domain(name):
            return "domain", name, subject.domain or ""
        case OneOfUsers(user_ids):
            return "uid", ", ".join(sorted(user_ids)[:MAX_USERS_SHOWN]), subject.user_id
        case HasTag(tag):
            return "tag", tag, ", ".join(sorted(subject.tags))
        case FromNetwork(network):
            return "ip", str(network), "" if address is None else str(address)
        case HasPurchase(purchase):
            return "purchase", purchase, ", ".join(sorted(subject.purchases))
        case Everyone():
            return "everyone", "", subject.user_id
