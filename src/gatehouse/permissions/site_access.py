"""Decides whether a person may open a protected site, and which roles the site learns (R9)."""

from msgspec import Struct

from gatehouse.kernel.addresses import Address
from gatehouse.kernel.background import run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.evaluation.effective import EffectivePermissions
from gatehouse.permissions.evaluation.loader import EvaluationInput, PermissionLoader
from gatehouse.permissions.evaluation.shapes import DEFAULT_OPTIONS, Shape, render_shape
from gatehouse.permissions.login_rules import GuestAdmission, LoginRefusalReason, is_excluded_guest, refusal_reason
from gatehouse.permissions.model.protected_site import ProtectedSite
from gatehouse.permissions.model.rules import ROOT, Rule, Scope
from gatehouse.permissions.questions.parsing import RuleReference, read_rule


class SiteDecision(Struct, frozen=True, kw_only=True):
    is_allowed: bool
    refusal: LoginRefusalReason | None = None  # of the application; None for a missing permission
    roles: tuple[str, ...] = ()  # those in a project contain its name
    keys_version: int = 0  # of the signing keys, read with the facts


DENIED = SiteDecision(is_allowed=False)


class SiteAccess:
    def __init__(self, *, permission_loader: PermissionLoader, admits_guests: GuestAdmission, clock: Clock) -> None:
        self._permission_loader = permission_loader
        self._admits_guests = admits_guests
        self._clock = clock

    async def decide(
        self, user_id: str, site: ProtectedSite, more_rule: RuleReference | None, address: Address | None
    ) -> SiteDecision:
        """Allow a person who may sign in to the application and holds the rule of the site.

        `more_rule`: another rule that the request needs. `address`: None where it is not proven.
        """
        number = site.application_id
        facts = await self._permission_loader.load_facts(user_id, (number,))
        if facts is None:
            return DENIED
        if is_excluded_guest(facts.subject.tags, (number,), self._admits_guests):
            return SiteDecision(is_allowed=False, refusal=LoginRefusalReason.GUESTS)
        loaded, now = await self._permission_loader.load_input(facts), self._clock.now()
        refusal = refusal_reason(loaded, number, now)
        if refusal is not None:
            return SiteDecision(is_allowed=False, refusal=refusal)
        effective = await self._permission_loader.evaluate(loaded, number, address)
        needed = [read_rule(site.rule, "rule"), *([more_rule] if more_rule else [])]
        if not await run_off_loop(effective.decision_work, holds_each, loaded, effective, needed):
            return DENIED
        roles = await run_off_loop(effective.work, render_shape, effective, Shape.ROLES, DEFAULT_OPTIONS, now)
        return SiteDecision(is_allowed=True, roles=roles, keys_version=loaded.facts.keys_version)


def holds_each(loaded: EvaluationInput, effective: EffectivePermissions, needed: list[RuleReference]) -> bool:
    return all(any(holds_rule(loaded, effective, rule) for rule in reference.rules) for reference in needed)


def holds_rule(loaded: EvaluationInput, effective: EffectivePermissions, rule: Rule) -> bool:
    """Whether the rule is held at the root, or in the project of the application."""
    home = loaded.models[effective.application_id].application.project_id
    scopes = (ROOT, Scope(home)) if home else (ROOT,)
    return any(any(effective.scopes_holding(loaded.structure, scope, rule)) for scope in scopes)
