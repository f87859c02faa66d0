"""Decides whether applications admit a user, and which permissions their JWT contains (R2, R5)."""

from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct

from gatehouse.accounts.bans.model import UserBan, find_ban, last_to_end
from gatehouse.accounts.model import CENTRAL_APPLICATION, User
from gatehouse.accounts.system_tags import GUEST_TAG
from gatehouse.kernel.background import run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.permissions.authentication.service_jwts import ServiceJwtVerifier
from gatehouse.permissions.documents.rules import protected_rules_in
from gatehouse.permissions.evaluation.effective import CAN_ADMINISTER
from gatehouse.permissions.evaluation.loader import EvaluationInput, PermissionLoader
from gatehouse.permissions.evaluation.shapes import DEFAULT_OPTIONS, Shape, render_shape, selected_scopes
from gatehouse.permissions.model.facts import ApplicationModel, Facts, Structure
from gatehouse.permissions.model.rules import ROOT
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.rights.ban_ranks import BanRanks
from gatehouse.permissions.rights.secret_data import unexpired_value
from gatehouse.permissions.store import PermissionStore
from gatehouse.tokens.claims import PermissionClaims

PERM_SECONDS: Final = 300  # after which a reader of the JWT asks again (R2)


GuestAdmission: TypeAlias = Callable[[tuple[int, ...]], bool]  # whether guests may sign in to these applications


class LoginRefusalReason(StrEnum):
    """Why a person may not sign in to an application; for administrators, never for that person."""

    ACCOUNT_BLOCKED = "account_blocked"  # by every application
    BANNED = "banned"  # from the application, its project or the installation
    GUESTS = "guests"  # the settings of guests do not name the application
    UNKNOWN = "unknown"  # there is no such application
    APPLICATION_REMOVED = "application_removed"
    LOGIN_CANNOT = "login_cannot"
    LOGIN_CAN = "login_can"
    RESTRICTED_DOMAINS = "restricted_domains"  # of the application
    PROJECT_REMOVED = "project_removed"
    ALLOWED_DOMAINS = "allowed_domains"  # of its project


class LoginRefusal(Struct, frozen=True, kw_only=True):
    application_id: int
    reason: LoginRefusalReason
    ban: UserBan | None = None  # if it is the reason


class LoginRules:
    """Implements ApplicationAccess of accounts/login_result.py for every kind of sign-in."""

    def __init__(
        self,
        *,
        store: PermissionStore,
        permission_loader: PermissionLoader,
        service_jwts: ServiceJwtVerifier,
        ban_ranks: BanRanks,
        admits_guests: GuestAdmission,
        clock: Clock,
    ) -> None:
        self._store = store
        self._permission_loader = permission_loader
        self._service_jwts = service_jwts
        self._ban_ranks = ban_ranks
        self._admits_guests = admits_guests
        self._clock = clock

    async def may_log_in(self, user: User, application_ids: Sequence[int]) -> bool:
        """Whether every application admits the user; a missing or removed one admits no one."""
        if is_excluded_guest(user.service_tags, application_ids, self._admits_guests):
            return False
        if not application_ids:
            return find_ban(user.bans, self._clock.now()) is None
        facts = await self._permission_loader.load_facts(user.user_id, application_ids)
        if facts is None:
            return False
        evaluation_input = await self._permission_loader.load_input(facts)
        now = self._clock.now()
        return all(
            number in evaluation_input.models
            and evaluation_input.facts.ban_from(number, now) is None
            and allows_login(evaluation_input.models[number], evaluation_input.facts, evaluation_input.structure, now)
            for number in application_ids
        )

    async def find_ban_from(
        self, user: User, application_ids: Sequence[int], device_bans: tuple[UserBan, ...] = ()
    ) -> UserBan | None:
        """Return the ban of the user or their device from any of these applications, or from the installation.

        A ban of the device counts for no one above its author (R14).
        """
        if device_bans:
            device_bans = await self._ban_ranks.covering(user.user_id, device_bans)
        if not user.bans and not device_bans:
            return None
        facts = await self._permission_loader.load_facts(user.user_id, application_ids)
        now = self._clock.now()
        if facts is None:
            return None
        bans = [find_ban((*facts.bans, *device_bans), now)]
        bans += [facts.ban_from(number, now, device_bans) for number in application_ids]
        return last_to_end(ban for ban in bans if ban is not None)

    async def find_refusal(self, user_id: str, application_ids: Sequence[int]) -> LoginRefusal | None:
        """The first application that refuses the user, and why; None when all let them in."""
        facts = await self._permission_loader.load_facts(user_id, application_ids)
        if facts is None:
            return None
        if application_ids and is_excluded_guest(facts.subject.tags, application_ids, self._admits_guests):
            return LoginRefusal(application_id=application_ids[0], reason=LoginRefusalReason.GUESTS)
        evaluation_input, now = await self._permission_loader.load_input(facts), self._clock.now()
        for number in application_ids:
            by = refusal_reason(evaluation_input, number, now)
            if by is not None:
                ban = facts.ban_from(number, now) if by is LoginRefusalReason.BANNED else None
                return LoginRefusal(application_id=number, reason=by, ban=ban)
        return None

    def application_refusal(
        self, evaluation_input: EvaluationInput, application_id: int
    ) -> tuple[LoginRefusalReason | None, UserBan | None]:
        """What the application alone refuses, and the ban if it is one: nothing of the account or installation."""
        facts, now = evaluation_input.facts, self._clock.now()
        model = evaluation_input.models[application_id]
        own_bans = [ban for ban in facts.bans if ban.application_id or ban.project_id]
        project_id = model.application.project_id or ""
        ban = find_ban(own_bans, now, application_id=application_id, project_id=project_id)
        if ban is not None:
            return LoginRefusalReason.BANNED, ban
        if is_excluded_guest(facts.subject.tags, (application_id,), self._admits_guests):
            return LoginRefusalReason.GUESTS, None
        return application_refusal_reason(model, facts, evaluation_input.structure, now), None

    async def is_administrator(self, user: User) -> bool:
        """Whether the user has can_administer."""
        facts = await self._permission_loader.load_facts(user.user_id, (CENTRAL_APPLICATION,))
        if facts is None:
            return False
        loaded = await self._permission_loader.load_input(facts)
        permissions = await self._permission_loader.evaluate(loaded, CENTRAL_APPLICATION, None)
        return permissions.allows(ROOT, CAN_ADMINISTER)

    async def has_protected_role(self, user: User) -> bool:
        """Whether the user holds a protected role or rule of application 1, from whatever source.

        An assigned role counts whatever its condition or end: it may count from another address.
        """
        facts = await self._permission_loader.load_facts(user.user_id, (CENTRAL_APPLICATION,))
        if facts is None:
            return False
        loaded = await self._permission_loader.load_input(facts)
        model, record = loaded.models[CENTRAL_APPLICATION], facts.records.get(CENTRAL_APPLICATION)
        scopes = () if record is None else record.scopes.values()
        assigned = (model.roles.get(assignment.role) for scope in scopes for assignment in scope.roles)
        if any(role is not None and role.protected for role in assigned):
            return True
        root_permissions = (await self._permission_loader.evaluate(loaded, CENTRAL_APPLICATION, None)).rules(ROOT)
        roles = (contribution.source.role for contribution in root_permissions.contributions)
        return any(role is not None and role.protected for role in roles) or bool(
            protected_rules_in(model.schema, root_permissions)
        )

    async def service_application(self, service_jwt: str) -> int:
        return await self._service_jwts.verify(service_jwt)

    async def permissions(self, user: User, application_id: int) -> PermissionClaims | None:
        """What the user holds in the application, for `perm` of their JWT; no address is known there (R5)."""
        facts = await self._permission_loader.load_facts(user.user_id, (application_id,))
        if facts is None:
            return None
        evaluation_input = await self._permission_loader.load_input(facts)
        if application_id not in evaluation_input.models:
            return None
        now = self._clock.now()
        effective = await self._permission_loader.evaluate(evaluation_input, application_id, None)
        ends = effective.first_end(now, selected_scopes(effective))
        return PermissionClaims(
            application_id=application_id,
            entries=await run_off_loop(
                effective.work, render_shape, effective, Shape.LIST_SHORT, DEFAULT_OPTIONS, now
            ),
            ends_at=min(now + PERM_SECONDS, ends or now + PERM_SECONDS),
        )

    async def shares_email(self, application_id: int, secret: str) -> bool:
        # The secret is found by its digest: the time of a comparison would reveal how much of a guess was right.
        return await self._store.has_email_secret(application_id, sha256(secret))


def is_excluded_guest(tags: Collection[str], application_ids: Sequence[int], admits: GuestAdmission) -> bool:
    """Whether a guest names an application that guests may not sign in to; the one decision of every sign-in."""
    return GUEST_TAG in tags and not admits(tuple(application_ids))


def refusal_reason(evaluation_input: EvaluationInput, application_id: int, now: int) -> LoginRefusalReason | None:
    """Return the reason of a refusal; a blocked account comes first, because it cannot sign in anywhere."""
    if evaluation_input.facts.blocked:
        return LoginRefusalReason.ACCOUNT_BLOCKED
    if evaluation_input.facts.ban_from(application_id, now):
        return LoginRefusalReason.BANNED
    model = evaluation_input.models.get(application_id)
    return (
        LoginRefusalReason.UNKNOWN
        if model is None
        else application_refusal_reason(model, evaluation_input.facts, evaluation_input.structure, now)
    )


def allows_login(model: ApplicationModel, facts: Facts, structure: Structure, now: int) -> bool:
    return application_refusal_reason(model, facts, structure, now) is None


def application_refusal_reason(
    model: ApplicationModel, facts: Facts, structure: Structure, now: int
) -> LoginRefusalReason | None:
    """The first reason to refuse the user. A value that is neither true nor false admits no one (S-22)."""
    application, login = model.application, model.schema.login
    own = facts.records[application.application_id].login
    if application.removed:
        return LoginRefusalReason.APPLICATION_REMOVED
    if login_rule_value("cannot", login, own, now) is not False:
        return LoginRefusalReason.LOGIN_CANNOT
    if login_rule_value("can", login, own, now) is not True:
        return LoginRefusalReason.LOGIN_CAN
    if not is_in_domains(application.settings.get("restricted_domains"), facts):
        return LoginRefusalReason.RESTRICTED_DOMAINS
    return project_refusal_reason(application.project_id, facts, structure, now)


def login_rule_value(rule: str, login: Tree, own: Tree, now: int) -> object:
    """Return the value of a login rule; the user's record overrides the application's schema."""
    own_value = unexpired_value(own.get(rule), now)
    return unexpired_value(login.get(rule), now) if own_value is None else own_value


def is_in_domains(domains: object, facts: Facts) -> bool:
    """Whether the address is in one of the domains; an empty list restricts no one."""
    return not domains or (isinstance(domains, list | tuple) and facts.subject.domain in domains)


def project_refusal_reason(
    project_id: str | None, facts: Facts, structure: Structure, now: int
) -> LoginRefusalReason | None:
    """Whether the application's project is live, and open to the person's domain or owned by them."""
    if project_id is None:
        return None
    model = structure.projects.get(project_id)
    if model is None or model.project.removed:
        return LoginRefusalReason.PROJECT_REMOVED
    ownership = facts.owns.get(project_id)
    owns = ownership is not None and not ownership.is_past(now)
    return (
        None
        if owns or is_in_domains(model.project.settings.allowed_domains, facts)
        else LoginRefusalReason.ALLOWED_DOMAINS
    )
