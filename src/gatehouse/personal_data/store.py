"""What asking applications about people needs kept."""

from collections.abc import Sequence
from typing import Protocol

from gatehouse.audit.model import AuditRecord
from gatehouse.personal_data.model import ClaimedCall, DataRequest, StoredAnswer


class PersonalDataStore(Protocol):
    """What applications are asked about people. Ending an account asks for the removal, with the same commit."""

    async def request_export(self, user_id: str, entry: AuditRecord, now: int) -> str:
        """Ask every live application that has addresses for it; return the request's id, "" without any.

        While an earlier one still waits, or has answers nobody has collected, it is that one. Raises UserNotFound.
        """

    async def has_export_sources(self) -> bool:
        """Whether a live application has an address that tells what it keeps about someone."""

    async def claim_due_calls(self, now: int, lease: int, most: int) -> Sequence[ClaimedCall]:
        """Take calls that are due, the longest due first, and hold them until `now + lease`.

        Of any number of nodes one gets a call, and no address is in two hands at once. Calls of applications that
        were removed meanwhile are given up.
        """

    async def complete_call(self, call: ClaimedCall, sealed: bytes | None, entry: AuditRecord, now: int) -> bool:
        """Keep that it was done, and the answer; False, and nothing kept, when the answers grow too large.

        This and the next two are without effect once the lease has ended and somebody else holds the call.
        """

    async def reschedule_call(self, call: ClaimedCall, trouble: str, next_try_at: int) -> None:
        """Keep what the try ended with, and when the call is due again."""

    async def fail_call(self, call: ClaimedCall, trouble: str, entry: AuditRecord, now: int) -> None:
        """Keep what the last try ended with; it is not due again."""

    async def find_requests(self, name: str) -> Sequence[DataRequest]:
        """The request of that id, or all of that user, the newest first."""

    async def uncollected_answers(self, user_id: str, now: int) -> Sequence[StoredAnswer]:
        """What applications answered and nobody has collected."""

    async def delete_answer(self, answer: StoredAnswer) -> None:
        """Forget the answer: its owner has it."""
