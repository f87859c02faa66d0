"""Requests for personal data in applications, and their outcome (R6, interface §2.3)."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from gatehouse.audit.model import AuditRecord
from gatehouse.fields.secrets import SecretBytes, SecretRecord
from gatehouse.kernel.times import DAY

MAX_ANSWER_BYTES: Final = 16 * 1_048_576  # per request, all its answers together


class DataJobKind(StrEnum):
    EXPORT = "export"
    REMOVAL = "removal"


# Seconds for retries of a call, and for which its outcome is shown. An export may take days; a removal has the
# month of GDPR article 12(3).
RETRY_SECONDS: Final = {DataJobKind.EXPORT: 3 * DAY, DataJobKind.REMOVAL: 30 * DAY}
RETENTION_SECONDS: Final = {DataJobKind.EXPORT: 7 * DAY, DataJobKind.REMOVAL: 90 * DAY}


class CallState(StrEnum):
    WAITING = "waiting"  # not tried yet, or to be retried
    DONE = "done"
    FAILED = "failed"  # no more retries


class DataCall(Struct, frozen=True, kw_only=True):
    """One address of one application, and the state of its call."""

    application_id: int
    application: str  # name; "" when the application is gone
    url: str
    state: CallState
    tries: int
    next_try_at: int
    trouble: str  # the last error; for operators only, it may name internal addresses
    done_at: int
    is_answer_kept: bool


class DataRequest(Struct, frozen=True, kw_only=True):
    request_id: str
    kind: DataJobKind
    user_id: str
    created_at: int
    ends_at: int
    calls: Sequence[DataCall] = ()

    @property
    def is_open(self) -> bool:
        """True while calls are pending or answers are not collected."""
        return any(call.state is CallState.WAITING or call.is_answer_kept for call in self.calls)

    @property
    def is_settled(self) -> bool:
        return all(call.state is not CallState.WAITING for call in self.calls)


class ClaimedCall(Struct, frozen=True, kw_only=True):
    """A call that one node holds until its lease ends."""

    request_id: str
    position: int
    kind: DataJobKind
    user_id: str
    application_id: int
    url: str
    created_at: int  # of the request
    tries: int  # this one included


class StoredAnswer(SecretRecord, frozen=True, kw_only=True):
    request_id: str
    position: int
    application_id: int
    application: str
    done_at: int
    sealed: SecretBytes


def answer_sealing_purpose(request_id: str, position: int) -> str:
    """Return what a sealed answer is bound to."""
    return f"gdpr:{request_id}:{position}"


def job_urls(kind: DataJobKind, settings: Mapping[str, object]) -> list[str]:
    """Return the addresses of an application's `settings.gdpr` for this kind; char_sources are for exports only."""
    sources = settings.get("gdpr")
    if not isinstance(sources, dict):
        return []
    data = [source for source in sources.get("data_sources", ()) if isinstance(source, dict)]
    if kind is DataJobKind.REMOVAL:
        urls = [source.get("remove") for source in data]
    else:
        urls = [*sources.get("char_sources", ()), *(source.get("fetch") for source in data)]
    return list(dict.fromkeys(url for url in urls if isinstance(url, str)))


class PersonalDataStore(Protocol):
    """Requests to applications about people. Erasing an account adds the removal request in the same transaction."""

    async def request_export(self, user_id: str, entry: AuditRecord, now: int) -> str:
        """Store calls to every live application that has addresses; return the request's ID, "" without any.

        Returns an earlier request while it is pending or has uncollected answers. Raises UserNotFound.
        """

    async def has_export_sources(self) -> bool:
        """Return whether a live application has an address for exports."""

    async def claim_due_calls(self, now: int, lease: int, most: int) -> Sequence[ClaimedCall]:
        """Claim due calls, the longest due first, until `now + lease`.

        Of any number of nodes one gets a call, and no address is called twice at once. Calls of applications
        removed in the meantime are failed.
        """

    async def complete_call(self, call: ClaimedCall, sealed: bytes | None, entry: AuditRecord, now: int) -> bool:
        """Store success and the answer; False, with nothing stored, when the answers grow too large.

        This and the next two have no effect once the lease has ended and another node holds the call.
        """

    async def reschedule_call(self, call: ClaimedCall, trouble: str, next_try_at: int) -> None:
        """Store the error and when the call is due again."""

    async def fail_call(self, call: ClaimedCall, trouble: str, entry: AuditRecord, now: int) -> None:
        """Store the last error; the call is not due again."""

    async def find_requests(self, name: str) -> Sequence[DataRequest]:
        """Return the request with that ID, or all requests about that user, the newest first."""

    async def uncollected_answers(self, user_id: str, now: int) -> Sequence[StoredAnswer]:
        """Return answers that were not collected yet."""

    async def delete_answer(self, answer: StoredAnswer) -> None:
        """Delete the answer, which its owner has received."""
