"""What the terms need from the database."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gatehouse.accounts.terms.model import AcceptedVersion
from gatehouse.audit.model import AuditRecord


class TermsStore(Protocol):
    async def terms_of_user(self, user_id: str) -> tuple[str, Sequence[AcceptedVersion]]:
        """Return the country of the account, and all that the person accepted. Raises UserNotFound."""

    async def accept_terms(
        self, user_id: str, versions: Mapping[str, str], record: AuditRecord, *, age_band: int
    ) -> None:
        """Store the versions by document, and the band unless it is 0. A version accepted before stays as it is."""
