"""What a user holds in applications, for claims: implements PermissionSource of oauth/mapped_claims.py."""

from collections.abc import Collection, Mapping

from msgspec import Struct

from gatehouse.kernel.background import MAX_INLINE_WEIGHT, run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.evaluation.condition_index import is_member
from gatehouse.permissions.evaluation.effective import EffectivePermissions
from gatehouse.permissions.evaluation.loader import EvaluationInput, PermissionLoader
from gatehouse.permissions.evaluation.shapes import DEFAULT_OPTIONS, Shape, render_shape


class EffectiveHoldings(Struct, frozen=True, kw_only=True):
    """In one application, rendered like the permission endpoints do."""

    effective: EffectivePermissions
    groups: tuple[str, ...]  # titles of the person's groups in its project
    now: int
    rendered_rules: tuple[str, ...] | None = None  # the rules, where they are many: made off the loop

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles; those in a project contain its name, so that they differ from roles at the root."""
        return render_shape(self.effective, Shape.ROLES, DEFAULT_OPTIONS, self.now)

    @property
    def rules(self) -> tuple[str, ...]:
        return render_rules(self.effective, self.now) if self.rendered_rules is None else self.rendered_rules


class HoldingsReader:
    def __init__(self, *, permission_loader: PermissionLoader, clock: Clock) -> None:
        self._permission_loader = permission_loader
        self._clock = clock

    async def holdings_by_application(
        self, user_id: str, application_ids: Collection[int]
    ) -> Mapping[int, EffectiveHoldings]:
        """Return holdings by application, without unknown ones.

        No address is known here, so `ip` conditions fail (R5).
        """
        facts = await self._permission_loader.load_facts(user_id, application_ids)
        if facts is None:
            return {}
        evaluation_input = await self._permission_loader.load_input(facts)
        return {
            number: await self._holdings_in(evaluation_input, number)
            for number in application_ids
            if number in evaluation_input.models
        }

    async def _holdings_in(self, evaluation_input: EvaluationInput, application_id: int) -> EffectiveHoldings:
        effective = await self._permission_loader.evaluate(evaluation_input, application_id, None)
        now = self._clock.now()
        listed = None
        if effective.work > MAX_INLINE_WEIGHT:
            listed = await run_off_loop(effective.work, render_rules, effective, now)
        return EffectiveHoldings(
            effective=effective,
            groups=member_group_titles(evaluation_input, application_id),
            now=now,
            rendered_rules=listed,
        )


def render_rules(effective: EffectivePermissions, now: int) -> tuple[str, ...]:
    return render_shape(effective, Shape.LIST_SHORT, DEFAULT_OPTIONS, now)


def member_group_titles(evaluation_input: EvaluationInput, application_id: int) -> tuple[str, ...]:
    application = evaluation_input.models[application_id].application
    project = evaluation_input.structure.projects.get(application.project_id or "")
    if project is None or project.project.removed or application.removed:
        return ()
    return tuple(sorted(group.title for group in project.groups.values() if is_member(group, evaluation_input.facts)))
