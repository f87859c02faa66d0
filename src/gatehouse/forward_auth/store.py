"""What forward auth stores."""

from collections.abc import Callable
from typing import Protocol

from gatehouse.accounts.session_model import Session
from gatehouse.audit.model import AuditRecord
from gatehouse.forward_auth.model import HandOver, SiteSession, SiteVisit
from gatehouse.permissions.model.protected_site import ProtectedSite


class SiteStore(Protocol):
    async def find_site(self, origin: str) -> ProtectedSite | None:
        """Return the site with exactly this origin."""

    async def has_other_applications(self, application_id: int) -> bool:
        """Whether another application has a site."""

    async def create_hand_over(self, hand_over: HandOver) -> None:
        """Store the hand-over until it is taken or expires."""

    async def take_hand_over(
        self,
        code: bytes,
        origin: str,
        challenge: str,
        now: int,
        new: Callable[[HandOver, Session], tuple[SiteSession, AuditRecord]],
    ) -> HandOver | None:
        """Use the code and store the session that `new` makes, with its record.

        The code is used up whatever the result: of any number of callers one gets it. None when it was used or has
        expired, when origin or challenge differ, and when the person's session has ended or was revoked meanwhile.
        """

    async def find_visit(self, digest: bytes, origin: str, now: int) -> SiteVisit | None:
        """Return the session of this cookie on this site, read with the site and the person's session.

        None unless the person's session is live, the account is not blocked, and its rev is the one the session on
        the site began with.
        """
