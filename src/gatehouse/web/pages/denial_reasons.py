"""Why an application denies a person access, for administrators."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct

from gatehouse.accounts.bans.model import UserBan
from gatehouse.accounts.model import User
from gatehouse.accounts.session_model import UserSession
from gatehouse.permissions.login_rules import LoginRefusalReason, LoginRules
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.http.browser import is_full_session
from gatehouse.web.pages.application_owners import ApplicationOwners

MISSING_RIGHTS: Final[Mapping[LoginRefusalReason, str]] = {
    LoginRefusalReason.LOGIN_CAN: "login.can"
}  # the others do not depend on a permission


class DenialReason(Struct, frozen=True, kw_only=True):
    """What only administrators see."""

    by: str  # the texts are `denied.why_<by>`
    missing: str = ""  # the permission that is missing, if any
    check: str  # the page of the console that explains it
    person: str = ""  # who is banned
    place: str = ""  # from what; empty for the installation


class DenialReasons(Struct, eq=False):
    rules: LoginRules
    owners: ApplicationOwners

    async def find_refusing_application(self, user: User, application_ids: Sequence[int]) -> int | None:
        """Return the first application that denies the user access; None when all of them admit the user now."""
        refused = await self.rules.find_refusal(user.user_id, application_ids)
        return None if refused is None else refused.application_id

    async def explain(self, signed_in: UserSession | None, application_ids: Sequence[int]) -> DenialReason | None:
        """Return the reason for an administrator; None for other people, and when access is not denied any more."""
        if not is_full_session(signed_in) or not await self.rules.is_administrator(signed_in.user):
            return None
        user, user_id = signed_in.user, signed_in.user.user_id
        refused = await self.rules.find_refusal(user_id, application_ids)
        if refused is None:
            return None
        asked = urlencode({"user_id": user_id, "application_id": refused.application_id})
        return DenialReason(
            by=refused.reason.value,
            missing=MISSING_RIGHTS.get(refused.reason, ""),
            check=f"{ConsoleEntry.ACCESS.path}/check?{asked}",
            person="" if refused.ban is None else user.nick,
            place="" if refused.ban is None else await self._place(refused.ban),
        )

    async def _place(self, ban: UserBan) -> str:
        if ban.application_id:
            return await self.owners.application_name(ban.application_id)
        return await self.owners.project_title(ban.project_id) if ban.project_id else ""
