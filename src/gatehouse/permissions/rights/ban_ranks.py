"""Ranks of people in a project or the installation: no one is banned by someone below (R10)."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.bans.model import BanRank, UserBan
from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.evaluation.effective import CAN_ADMINISTER, EffectivePermissions
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.model.facts import Facts
from gatehouse.permissions.model.rules import ROOT, Scope
from gatehouse.permissions.rights.rights import CAN_MANAGE_PROJECT


class BanRanks(Struct, kw_only=True, eq=False):
    permission_loader: PermissionLoader
    clock: Clock

    async def rank(self, facts: Facts, project_id: str) -> BanRank:
        """Return the rank of a person in the project, as if they had no ban: it may end."""
        loaded = await self.permission_loader.load_input(facts, projects=(project_id,) if project_id else ())
        unbanned = replace(loaded, facts=without_bans(loaded.facts))
        effective = await self.permission_loader.evaluate(unbanned, CENTRAL_APPLICATION, None)
        return rank_of(effective, facts, project_id, self.clock.now())

    async def covering(self, user_id: str, bans: Sequence[UserBan]) -> tuple[UserBan, ...]:
        """Return those of the bans of a device whose authors could ban the person."""
        if all(ban.author_rank == BanRank.ADMINISTRATOR for ban in bans):
            return tuple(bans)
        applications = {CENTRAL_APPLICATION} | {ban.application_id for ban in bans if ban.application_id}
        facts = await self.permission_loader.load_facts(user_id, applications)
        if facts is None:
            return ()
        return tuple([ban for ban in bans if await self._covers(ban, facts)])

    async def _covers(self, ban: UserBan, facts: Facts) -> bool:
        state = facts.applications.get(ban.application_id)
        project_id = (state.project_id or "") if state else ban.project_id
        return await self.rank(facts, project_id) <= ban.author_rank


def without_bans(facts: Facts) -> Facts:
    return replace(facts, bans=())


def rank_of(effective: EffectivePermissions, facts: Facts, project_id: str, now: int) -> BanRank:
    """Return the rank of a person with these permissions of application 1."""
    if effective.allows(ROOT, CAN_ADMINISTER):
        return BanRank.ADMINISTRATOR
    owned = facts.owns.get(project_id)
    if owned is not None and not owned.is_past(now):
        return BanRank.OWNER
    manages = bool(project_id) and effective.allows(Scope(project_id), CAN_MANAGE_PROJECT)
    return BanRank.MANAGER if manages else BanRank.MODERATOR
