"""Bans: save, lift, list (R10)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.accounts.bans.model import (
    INSTALLATION,
    MAX_PUBLIC_TEXT,
    MAX_REASON,
    MAX_SILENT_ACCOUNTS,
    Ban,
    BanRank,
    BanScope,
    BanState,
    DeviceShared,
    earliest_device_use,
    find_ban,
)
from gatehouse.accounts.bans.store import BanFilter, BanStore
from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.accounts.own_account.model import LastAdministrator
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord, Details
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.ids import new_record_id
from gatehouse.permissions.commands.applications import find_application
from gatehouse.permissions.commands.projects import find_project
from gatehouse.permissions.documents.fields import read_line, read_lines, read_number
from gatehouse.permissions.errors import Malformed, NoAdministratorLeft, NoRight, PersonNotFound
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.model.facts import Facts
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.ban_ranks import BanRanks
from gatehouse.permissions.rights.guard import GuardTarget, Operation, require_operation
from gatehouse.permissions.store import ApplicationStore, ProjectStore

DRAFT_FIELDS: Final = ("reason", "public_text", "until")
LATEST_END: Final = 253_402_300_799  # the last second of the year 9999


class NotAboveTarget(NoRight):
    """An owner or administrator is never banned by someone below (R10)."""

    public = "You cannot ban an owner or administrator above you."


class NotYourself(NoRight):
    public = "You cannot ban yourself or lift a ban of your own."


class BannedModerator(NoRight):
    """The API refuses every request about an application that its caller is banned from; the console asks here."""

    public = "You cannot manage bans where you are banned yourself."


class BanDraft(msgspec.Struct, frozen=True, kw_only=True):
    """`data` of a save: an absent field keeps what the active ban of the scope says, null clears (R6)."""

    reason: str | UnsetType | None = UNSET  # for those who manage bans
    public_text: str | UnsetType | None = UNSET  # for the banned person
    until: int | UnsetType | None = UNSET  # Unix seconds; 0 or null for no end
    device: bool | UnsetType | None = UNSET  # whether it covers the devices of the last 30 days, with any account
    confirm: bool = False  # even if more than three accounts used one of them


class BanTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A scope with the project that rights on it come from."""

    scope: BanScope
    project_id: str = ""


class CheckedBan(msgspec.Struct, frozen=True, kw_only=True):
    """A ban that may be saved."""

    target: BanTarget
    rank: BanRank  # of the author
    fields: Mapping[str, Any]  # of the draft
    others: frozenset[str]  # other accounts on the devices that it covers


class BanCommands(Struct, kw_only=True, eq=False):
    store: BanStore
    applications: ApplicationStore
    projects: ProjectStore
    permission_loader: PermissionLoader
    ranks: BanRanks
    recorder: Recorder
    clock: Clock

    async def check(self, actor: Actor, user_id: str, scope: BanScope, draft: BanDraft) -> CheckedBan:
        """Return what would be banned. Raises what a save would raise."""
        target = await self._allowed_target(actor, scope)
        fields = draft_fields(draft, self.clock.now())
        if user_id == actor.user_id:
            raise NotYourself
        rank = await self._author_rank(actor, target)
        await self._refuse_above(rank, await self._person(actor, user_id, target), target)
        others: frozenset[str] = frozenset()
        if draft.device is True:
            others = await self._refuse_shared_devices(actor, rank, user_id, target, confirmed=draft.confirm)
        return CheckedBan(target=target, rank=rank, fields=fields, others=others)

    async def save(self, actor: Actor, user_id: str, scope: BanScope, draft: BanDraft) -> Ban:
        """Ban a person, or replace their ban of the same scope."""
        checked = await self.check(actor, user_id, scope, draft)
        target, fields = checked.target, checked.fields
        now, by = self.clock.now(), author_of(actor)
        new = Ban(
            ban_id=new_record_id(now),
            user_id=user_id,
            application_id=target.scope.application_id,
            project_id=target.scope.project_id,
            author=by,
            author_rank=checked.rank,
            created_at=now,
        )

        def make(active: Ban | None) -> tuple[Ban, AuditRecord]:
            former_values = (
                {} if active is None else {name: getattr(active, name) for name in (*DRAFT_FIELDS, "devices")}
            )
            ban = replace(new, **{**former_values, **fields})
            if draft.device is not UNSET:
                ban = replace(ban, devices=0)  # counted anew by the store
            return ban, self._record(AuditEvent.USER_BANNED, actor, ban)

        try:
            since = earliest_device_use(now) if draft.device is True else None
            return await self.store.save_ban(user_id, target.scope, make, by=by, now=now, devices_since=since)
        except UserNotFound:
            raise PersonNotFound from None
        except LastAdministrator:
            raise NoAdministratorLeft from None

    async def lift(self, actor: Actor, user_id: str, scope: BanScope) -> Ban:
        """Lift the active ban of that scope. Raises BanNotFound, and NotYourself for one's own."""
        target = await self._allowed_target(actor, scope)
        if user_id == actor.user_id:
            raise NotYourself
        return await self.store.lift_ban(
            user_id,
            target.scope,
            by=author_of(actor),
            now=self.clock.now(),
            record=lambda ban: self._record(AuditEvent.USER_BAN_LIFTED, actor, ban),
        )

    async def list(
        self,
        actor: Actor,
        *,
        user_id: str = "",
        scope: BanScope | None,
        state: BanState | None = None,
        before: str = "",
        limit: int,
    ) -> Sequence[Ban]:
        """Return bans of a scope, the newest first; those of all scopes, for administrators, without one."""
        target = await self._allowed_target(actor, scope or INSTALLATION)
        wanted = BanFilter(user_id=user_id, scope=None if scope is None else target.scope, state=state, before=before)
        return await self.store.list_bans(wanted, self.clock.now(), limit)

    async def _allowed_target(self, actor: Actor, scope: BanScope) -> BanTarget:
        """Return the scope, if the caller may ban there; NoRight is checked before NotFound (R6)."""
        target = await self._find_target(actor, scope)
        await self._refuse_banned_author(actor, target)
        return target

    async def _refuse_banned_author(self, actor: Actor, target: BanTarget) -> None:
        """Refuse a caller whom a ban covers in the scope: they could lift the bans of others, and others theirs."""
        facts = (
            await self.permission_loader.load_facts(actor.user_id, (CENTRAL_APPLICATION,)) if actor.user_id else None
        )
        if facts is None:
            return
        application_id, project_id = target.scope.application_id, target.project_id
        if find_ban(facts.bans, self.clock.now(), application_id=application_id, project_id=project_id) is not None:
            raise BannedModerator

    async def _find_target(self, actor: Actor, scope: BanScope) -> BanTarget:
        rights = actor.rights
        if scope.application_id:
            return await self._application_target(actor, scope.application_id)
        if scope.project_id:
            project_id = (await find_project(self.projects, rights, scope.project_id)).project.project_id
            require_operation(rights, Operation.BAN_FROM_PROJECT, GuardTarget(project_id=project_id))
            return BanTarget(scope=BanScope(project_id=project_id), project_id=project_id)
        require_operation(rights, Operation.ADMINISTER)
        return BanTarget(scope=INSTALLATION)

    async def _application_target(self, actor: Actor, application_id: int) -> BanTarget:
        operation = Operation.BAN_FROM_APPLICATION
        application = await find_application(self.applications, actor, operation, application_id)
        if application_id == CENTRAL_APPLICATION:
            raise Malformed("application_id: ban from the installation instead").on_screen("ban_installation")
        return BanTarget(scope=BanScope(application_id=application_id), project_id=application.project_id or "")

    async def _person(self, actor: Actor, user_id: str, target: BanTarget) -> Facts:
        """Return the person's facts; only callers who may learn who exists are told that no one has this ID (R6)."""
        facts = await self.permission_loader.load_facts(user_id, (CENTRAL_APPLICATION,))
        if facts is not None and facts.service_account is None:
            return facts
        if facts is not None:
            raise Malformed("user_id: is a service account; revoke it instead").on_screen("is_service_account")
        rights = actor.rights
        if rights.administers or rights.knows_who_exists or not target.scope.application_id:
            raise PersonNotFound
        raise NoRight(f"no user {user_id}")

    async def _refuse_above(self, rank: BanRank, facts: Facts, target: BanTarget) -> None:
        """Refuse to ban a person who holds more in the scope than the author (R10)."""
        if rank is BanRank.ADMINISTRATOR:
            return
        target_rank = await self.ranks.rank(facts, target.project_id)
        if target_rank > rank:
            raise NotAboveTarget(f"{facts.subject.user_id} is {target_rank.name} in project {target.project_id}")

    async def _refuse_shared_devices(
        self, actor: Actor, rank: BanRank, user_id: str, target: BanTarget, *, confirmed: bool
    ) -> frozenset[str]:
        """Return the other accounts on the person's devices.

        Refuse devices that many accounts use, unless it is confirmed, and those of people above the caller.
        """
        device_accounts = await self.store.accounts_on_devices(user_id, earliest_device_use(self.clock.now()))
        if any(actor.user_id in accounts for accounts in device_accounts):
            raise NotYourself
        if any(len(accounts) > MAX_SILENT_ACCOUNTS for accounts in device_accounts) and not confirmed:
            raise DeviceShared
        others = frozenset(account_id for accounts in device_accounts for account_id in accounts) - {user_id}
        for other in sorted(others):
            facts = await self.permission_loader.load_facts(other, (CENTRAL_APPLICATION,))
            if facts is not None:
                await self._refuse_above(rank, facts, target)
        return others

    async def _author_rank(self, actor: Actor, target: BanTarget) -> BanRank:
        if actor.rights.administers:
            return BanRank.ADMINISTRATOR
        facts = await self.permission_loader.load_facts(actor.user_id, (CENTRAL_APPLICATION,))
        own_rank = BanRank.MODERATOR if facts is None else await self.ranks.rank(facts, target.project_id)
        return min(own_rank, BanRank.OWNER)  # through a service even an administrator bans no administrator (R6)

    def _record(self, event: AuditEvent, actor: Actor, ban: Ban) -> AuditRecord:
        return self.recorder.record(event, actor.origin, subject=ban.user_id, details=ban_details(ban))


def author_of(actor: Actor) -> str:
    return actor.user_id or actor.origin.actor


def draft_fields(draft: BanDraft, now: int) -> dict[str, Any]:
    """Return the given fields, checked. Raises Malformed."""
    values = {name: getattr(draft, name) for name in DRAFT_FIELDS}
    fields: dict[str, Any] = {name: value for name, value in values.items() if value is not UNSET}
    if "reason" in fields:
        fields["reason"] = read_lines(fields["reason"] or "", "data.reason", MAX_REASON)
    if "public_text" in fields:
        fields["public_text"] = read_line(fields["public_text"] or "", "data.public_text", MAX_PUBLIC_TEXT)
    if "until" in fields:
        fields["until"] = read_number(fields["until"] or 0, "data.until", LATEST_END)
        if 0 < fields["until"] <= now:
            raise Malformed("data.until: must be in the future").on_screen("future")
    return fields


def ban_details(ban: Ban) -> Details:
    """Return what the audit log says of a ban: no text that people wrote."""
    place: Details = {}
    if ban.application_id:
        place = {"application_id": ban.application_id}
    elif ban.project_id:
        place = {"project_id": ban.project_id}
    source: Details = {"source": ban.source} if ban.source else {}
    return {"ban_id": ban.ban_id, **place, "until": ban.until, **source}
