"""Why an application does not let somebody in, for whoever can mend it; others hear whom to ask."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol
from urllib.parse import urlencode

from gatehouse.accounts.model import User, UserSession
from gatehouse.permissions.login import LoginRefusal, LoginRefusalReason
from gatehouse.web.browser import is_full_session
from gatehouse.web.console.places import ConsoleEntry
from gatehouse.web.pages.contexts import DenialReason

MISSING_RIGHTS: Final[Mapping[LoginRefusalReason, str]] = {
    LoginRefusalReason.LOGIN_CAN: "login.can"
}  # the others are not for want of a right


class AdministratorLookup(Protocol):
    """The permission room's word about who runs the service."""

    async def is_administrator(self, user: User) -> bool:
        """Whether he holds can_administer."""


class LoginRefusals(Protocol):
    async def find_refusal(self, user_id: str, application_ids: Sequence[int]) -> LoginRefusal | None:
        """What keeps him out of the first of them that does."""


class DenialReasons:
    def __init__(self, *, administrators: AdministratorLookup, refusals: LoginRefusals) -> None:
        self._administrators = administrators
        self._refusals = refusals

    async def is_refused(self, user: User, application_id: int) -> bool:
        return await self.find_refusing_application(user, (application_id,)) is not None

    async def find_refusing_application(self, user: User, application_ids: Sequence[int]) -> int | None:
        """The first of them that does not let him in; None when they all do by now."""
        refused = await self._refusals.find_refusal(user.user_id, application_ids)
        return None if refused is None else refused.application_id

    async def explain(self, signed_in: UserSession | None, application_ids: Sequence[int]) -> DenialReason | None:
        """None for everybody who does not administer, and when nothing keeps him out any more."""
        if not is_full_session(signed_in) or not await self._administrators.is_administrator(signed_in.user):
            return None
        user_id = signed_in.user.user_id
        refused = await self._refusals.find_refusal(user_id, application_ids)
        if refused is None:
            return None
        asked = urlencode({"user_id": user_id, "application_id": refused.application_id})
        return DenialReason(
            by=refused.reason.value,
            missing=MISSING_RIGHTS.get(refused.reason, ""),
            check=f"{ConsoleEntry.ACCESS.path}/check?{asked}",
        )
