"""`simulate`: who would gain and who would lose what by a change, before it is saved (R6).

The save itself is run and rolled back, so the same errors are raised, and its exact result is compared. People are
then evaluated before and after, away from the event loop.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import takewhile, zip_longest
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Unavailable
from gatehouse.permissions.evaluation.compiled import Verdicts, compile_change, compile_fully
from gatehouse.permissions.evaluation.contributions import Contribution, Tiers
from gatehouse.permissions.evaluation.effective import EffectivePermissions, evaluate
from gatehouse.permissions.evaluation.shapes import (
    DEFAULT_OPTIONS,
    PROJECT_ACCESS_PREFIX,
    RulePrefix,
    Shape,
    list_prefix,
    render_shape,
    sorted_unique,
    with_params,
)
from gatehouse.permissions.model.candidates import ApplicationSnapshot, CandidateFilter, DryRunResult
from gatehouse.permissions.model.facts import Facts, Structure
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import Rule, Scope
from gatehouse.permissions.questions.batches import judge_in_batches, person_weight
from gatehouse.permissions.questions.candidates import (
    candidates_in_project,
    candidates_touched_by_roles,
    no_candidates,
    union,
)
from gatehouse.permissions.questions.proposals import AnyProposal, DryRuns, ProposalReach, Proposer
from gatehouse.permissions.store import CandidateStore

MAX_CANDIDATES: Final = 10_000  # of one answer
MAX_WEIGHT: Final = 5_000_000  # of all candidates of one answer: a few seconds of the worker, in pieces
UNCHANGED_WEIGHT_DIVISOR: Final = 10  # unchanged verdicts cost a tenth of their weight
MAX_LENGTH: Final = 3 * 2**19  # characters of one answer: with four bytes each still less than an answer may have
JSON_MARKS: Final = 3  # two quotes and a comma
PAGE_SIZE: Final = 1_000
MAX_ATTEMPTS: Final = 20


class Effect(Struct, frozen=True, kw_only=True):
    """What the change does to one person in the application."""

    user_id: str
    gains: tuple[str, ...]  # as the shape `list` writes rules
    loses: tuple[str, ...]
    gains_roles: tuple[str, ...]
    loses_roles: tuple[str, ...]

    @property
    def length(self) -> int:
        """Length in a response, in characters."""
        parts = (self.gains, self.loses, self.gains_roles, self.loses_roles)
        return sum(len(part) * JSON_MARKS + sum(map(len, part)) for part in parts)

    @property
    def is_none(self) -> bool:
        return not (self.gains or self.loses or self.gains_roles or self.loses_roles)


class Forecast(Struct, kw_only=True):
    effects: list[Effect] = field(default_factory=list)
    examined: int = 0
    after: str | None = None  # there may be more people beyond this one
    weight: int = 0  # of the people examined
    length: int = 0  # characters of all effects

    def fits(self, effect: Effect, limit: int) -> bool:
        """Whether the effect still fits; the first one always does."""
        self.length += effect.length
        return not self.effects or (len(self.effects) < limit and self.length <= MAX_LENGTH)


class Simulation(Struct, kw_only=True, eq=False):
    dry_runs: DryRuns
    candidate_store: CandidateStore
    clock: Clock

    async def run(
        self, proposal: AnyProposal, by: Proposer, *, after: str, limit: int, prefix: RulePrefix | None = None
    ) -> Forecast:
        """Simulate a save. The caller has checked who may simulate; the save checks its own right.

        `limit` is the number of effects; there are fewer if many people or long effects exceed one response.
        `prefix`: limits the reported rules.
        """
        application_id = by.model.application.application_id
        for _ in range(MAX_ATTEMPTS):
            reach = await self.dry_runs.find_reach(proposal, by)
            before = await self.candidate_store.application_snapshot(application_id, reach.projects, known=by.model)
            dry_run_result = await self.dry_runs.run(proposal, by, reach)
            forecast = await self._forecast(before, dry_run_result, reach, after=after, limit=limit, prefix=prefix)
            if forecast is not None:
                return forecast
        raise Unavailable("the permission model changes too fast to be read")

    async def _forecast(
        self,
        before: ApplicationSnapshot,
        dry_run_result: DryRunResult,
        reach: ProposalReach,
        *,
        after: str,
        limit: int,
        prefix: RulePrefix | None,
    ) -> Forecast | None:
        """Compute the effects; None when something was saved in the meantime."""
        compared = await run_off_loop(OFF_LOOP_WEIGHT, ModelComparison, before, dry_run_result, prefix=prefix)
        among = await run_off_loop(OFF_LOOP_WEIGHT, compared.affected_candidates, reach)
        forecast = Forecast(after=after)
        while forecast.after is not None and forecast.examined < MAX_CANDIDATES and len(forecast.effects) < limit:
            page = await self.candidate_store.candidate_page(
                among, reach.projects, after=forecast.after, limit=PAGE_SIZE, known=before.model
            )
            if not before.is_part_of(page.snapshot):
                return None
            structure = page.snapshot.structure
            structures = structure, overlay_structure(structure, dry_run_result.snapshot.structure)
            judge = partial(compared.effect, structures, now=self.clock.now())
            async for facts, effect in judge_in_batches(page.people, judge, compared.weight):
                if not effect.is_none:
                    if not forecast.fits(effect, limit):
                        return forecast
                    forecast.effects.append(effect)
                forecast.after = facts.subject.user_id
                forecast.examined += 1
                forecast.weight += compared.weight(facts)
                if forecast.weight > MAX_WEIGHT:
                    return forecast
            forecast.after = page.last if page.more else None
        return forecast


def is_application_unchanged(before: ApplicationSnapshot, after: ApplicationSnapshot) -> bool:
    """Whether the application is unchanged: every save of its schema or of a role is a new version (R6)."""
    return before.versions == after.versions


def changed_roles(before: ApplicationSnapshot, after: ApplicationSnapshot) -> set[str]:
    old, new = before.model.roles, after.model.roles
    return {
        key
        for key in old.keys() | new.keys()
        if without_descriptive_fields(old.get(key)) != without_descriptive_fields(new.get(key))
    }


def without_descriptive_fields(role: Role | None) -> Role | None:
    return None if role is None else replace(role, version=0, description="", user_limit=0)


class ModelComparison:
    """An application before and after a change; compiling it may take long."""

    def __init__(
        self, before: ApplicationSnapshot, dry_run_result: DryRunResult, *, prefix: RulePrefix | None = None
    ) -> None:
        self._before = before
        self._old = compile_fully(before.model)
        self._dry_run_result = dry_run_result
        self._after = before if is_application_unchanged(before, dry_run_result.snapshot) else dry_run_result.snapshot
        self._new = self._old if self._after is before else compile_change(self._after.model, before.model)
        self._prefix = prefix

    def affected_candidates(self, reach: ProposalReach) -> CandidateFilter:
        """Everyone who may be affected."""
        before, after = self._before, self._dry_run_result.snapshot
        candidates = replace(no_candidates(before), user_ids=reach.user_ids)
        if reach.project_id:
            return union(
                candidates,
                union(
                    candidates_in_project(before, reach.project_id), candidates_in_project(after, reach.project_id)
                ),
            )
        if is_application_unchanged(before, after):
            return candidates
        keys = changed_roles(before, after)
        touched = union(
            candidates_touched_by_roles(before, self._old, keys), candidates_touched_by_roles(after, self._new, keys)
        )
        candidates = union(candidates, touched)
        return replace(candidates, everyone=candidates.everyone or self._old.schema.yes != self._new.schema.yes)

    def effect(self, structures: tuple[Structure, Structure], facts: Facts, *, now: int) -> Effect:
        """`structures`: before and after, with all projects of the person."""
        before = evaluate(self._before.model, facts, structures[0], now=now, address=None)
        after = evaluate(
            self._after.model,
            facts_after(facts, self._dry_run_result),
            structures[1],
            now=now,
            address=None,
            compiled=self._new,
        )
        return compare_evaluations(facts.subject.user_id, before, after, now=now, prefix=self._prefix)

    def weight(self, facts: Facts) -> int:
        """Estimated work of the effect: most verdicts of the person's roles are unchanged."""
        record = facts.records[self._before.model.application.application_id]
        role_keys = (role.role for holdings in record.scopes.values() for role in holdings.roles)
        roles_work = sum(self._old.roles[key].verdicts.work for key in role_keys if key in self._old.roles)
        return person_weight(facts) + (roles_work + self._old.unassigned_work) // UNCHANGED_WEIGHT_DIVISOR


def compare_evaluations(
    user_id: str,
    before: EffectivePermissions,
    after: EffectivePermissions,
    *,
    now: int,
    prefix: RulePrefix | None = None,
) -> Effect:
    gains, loses = changed_rules(before, after, prefix)
    old = set(render_shape(before, Shape.ROLES, DEFAULT_OPTIONS, now))
    new = set(render_shape(after, Shape.ROLES, DEFAULT_OPTIONS, now))
    return Effect(
        user_id=user_id,
        gains=gains,
        loses=loses,
        gains_roles=tuple(sorted(new - old)),
        loses_roles=tuple(sorted(old - new)),
    )


def changed_rules(
    before: EffectivePermissions, after: EffectivePermissions, prefix: RulePrefix | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is gained and lost, as the shape `list` writes it; other params are a loss and a gain."""
    gains: list[str] = []
    loses: list[str] = []
    for scope in {**dict.fromkeys(before.open_scopes), **dict.fromkeys(after.open_scopes)}:
        old, new = before.rules(scope).contributions.tiers, after.rules(scope).contributions.tiers
        concerned = rules_with_changed_verdicts(old, new)
        if prefix is not None:
            concerned = {rule for rule in concerned if prefix.covers(rule)}
        if concerned:
            was, becomes = held_rule_texts(old, concerned, scope), held_rule_texts(new, concerned, scope)
            gains += becomes - was
            loses += was - becomes
    return sorted_unique(gains), sorted_unique(loses)


def rules_with_changed_verdicts(old: Tiers, new: Tiers) -> set[Rule]:
    """The rules with verdicts in only one of the two, or in another order."""
    rules: set[Rule] = set()
    for old_tier, new_tier in zip_longest(old, new, fillvalue=()):
        first = verdicts_in(old_tier)
        second = verdicts_in(new_tier)
        while first and second and first[-1] == second[-1]:
            del first[-1], second[-1]
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
        for says in (*first[common:], *second[common:]):
            rules |= says.yes
            rules |= says.no
    return rules


def verdicts_in(tier: Iterable[Contribution]) -> list[Verdicts]:
    return [contribution.verdicts for contribution in tier]


def held_rule_texts(tiers: Tiers, rules: AbstractSet[Rule], scope: Scope) -> set[str]:
    """Those of the rules that are held, as the shape `list` writes them."""
    held_rules: set[Rule] = set()
    params: dict[Rule, dict[str, None]] = {}
    for tier in tiers:
        for contribution in tier:
            held_rules |= contribution.verdicts.yes & rules
            for rule in rules & contribution.verdicts.params.keys() if contribution.verdicts.params else ():
                params.setdefault(rule, {}).update(dict.fromkeys(contribution.verdicts.params[rule]))
        for contribution in tier:
            held_rules -= contribution.verdicts.no
    prefix = list_prefix(scope)
    return {with_params(f"{prefix}{rule}", params.get(rule)) for rule in held_rules}


def limit_to_project(forecast: Forecast, project_id: str) -> Forecast:
    """The same for callers who see only one project and its content."""
    effects = [effect_in_project(effect, project_id) for effect in forecast.effects]
    return replace(forecast, effects=[effect for effect in effects if not effect.is_none])


def effect_in_project(effect: Effect, project_id: str) -> Effect:
    """Scopes are written as in the shapes (evaluation/shapes.py)."""

    def rules(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text for text in texts if text.startswith(f"{PROJECT_ACCESS_PREFIX}.{project_id}."))

    def roles(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text for text in texts if text.rpartition("/")[0].partition(".")[0] == project_id)

    return Effect(
        user_id=effect.user_id,
        gains=rules(effect.gains),
        loses=rules(effect.loses),
        gains_roles=roles(effect.gains_roles),
        loses_roles=roles(effect.loses_roles),
    )


def overlay_structure(before: Structure, after: Structure) -> Structure:
    """All projects of these people; changed ones as they are after the change."""
    return Structure(projects={**before.projects, **after.projects}, connecting=after.connecting)


def facts_after(facts: Facts, dry_run_result: DryRunResult) -> Facts:
    """A removed role or group is still in the facts, but no longer in the models, so it does not count."""
    return dry_run_result.people.get(facts.subject.user_id, facts)
