"""Why a rule is held or not: the deciding path and, for a denial, the nearest missing facts. Pure.

Made from the same voices as the decision, so that the two cannot disagree.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from gatehouse.kernel.addresses import Address
from gatehouse.permissions.evaluation.effective import EffectivePermissions, evaluate
from gatehouse.permissions.evaluation.gathering import (
    EvaluationContext,
    evaluation_context,
    is_account_ended,
    is_application_removed,
)
from gatehouse.permissions.explanation.contributions import ExplainedContribution, explain_contributions
from gatehouse.permissions.explanation.missing import MissingKind, MissingRequirement, MissingSearch
from gatehouse.permissions.model.facts import ApplicationModel, Facts, Structure
from gatehouse.permissions.model.rule import Rule
from gatehouse.permissions.model.scope import Scope

MAX_MISSING: Final = 50  # an application may have a thousand roles that would do
NO_HOLDER_COUNTS: Final[Mapping[str, int]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    application_id: int
    user_id: str
    scope: Scope
    rule: Rule
    allowed: bool
    in_schema: bool  # if not, it is marked so wherever it is shown (R5)
    seconds_left: int  # seconds until it is no longer allowed, 0 for ever
    contributions: tuple[ExplainedContribution, ...]  # those of the project around a resource first
    missing: tuple[MissingRequirement, ...]  # the nearest first; nothing when it is allowed


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
    over = _reason_nothing_is_held(model, facts, structure)
    places = () if over else tuple(effective.lookup_scopes(scope, rule))  # as if the project had the resource
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
        contributions=tuple(_visible_contributions(effective, this, places, rule, held_in)),
        missing=()
        if allowed
        else (*unfound, *_missing_requirements(effective, MissingSearch(this, rule, holders), places)),
    )


def _visible_contributions(
    effective: EffectivePermissions,
    context: EvaluationContext,
    scopes: Sequence[Scope],
    rule: Rule,
    held_in: AbstractSet[Scope],
) -> Iterator[ExplainedContribution]:
    """Held in the project it counts on the resource whatever is said there (R5), and on no other at all."""
    for place in reversed(scopes):
        is_moot = place not in held_in and (bool(held_in) or rule in effective.rules(place))
        for one in explain_contributions(context, place, rule):
            yield replace(one, decides=False) if is_moot else one


def _reason_nothing_is_held(model: ApplicationModel, facts: Facts, structure: Structure) -> MissingKind | None:
    """Why nothing at all is held, if so."""
    if is_application_removed(model, facts):
        return MissingKind.APPLICATION_REMOVED
    return MissingKind.ACCOUNT_ENDED if is_account_ended(facts, structure) else None


def _missing_target(structure: Structure, scope: Scope, over: MissingKind | None) -> Iterator[MissingRequirement]:
    """What is asked about and is not there."""
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
    """Held in two places it is allowed until the later end."""
    lefts = [effective.rules(place)[rule].seconds_left(now) for place in held_in]
    return 0 if 0 in lefts else max(lefts, default=0)
