"""Someone's data in applications: what is asked of them, and what became of it (R6, interface §2.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from gatehouse.audit.model import AuditRecord

DAY: Final = 86_400
MAX_ANSWER_BYTES: Final = 16 * 1_048_576  # bytes kept for one request, all its answers together


class DataJobKind(StrEnum):
    EXPORT = "export"
    REMOVAL = "removal"


# Seconds: how long a call is tried again, and how long its outcome can be seen. Whoever asks for his data waits days;
# a removal has the month of Article 12(3) of the regulation.
RETRY_SECONDS: Final = {DataJobKind.EXPORT: 3 * DAY, DataJobKind.REMOVAL: 30 * DAY}
RETENTION_SECONDS: Final = {DataJobKind.EXPORT: 7 * DAY, DataJobKind.REMOVAL: 90 * DAY}


class CallState(StrEnum):
    WAITING = "waiting"  # not tried yet, or to be tried again
    DONE = "done"
    FAILED = "failed"  # given up


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCall:
    """One address of one application, and how far it has got."""

    application_id: int
    application: str  # its name; "" when it is gone
    url: str
    state: CallState
    tries: int
    next_try_at: int
    trouble: str  # what the last try ended with; for operators only, it may name addresses inside
    done_at: int
    is_answer_kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRequest:
    request_id: str
    kind: DataJobKind
    user_id: str
    created_at: int
    ends_at: int
    calls: Sequence[DataCall] = ()

    @property
    def is_open(self) -> bool:
        """Something of it is still to come, or to be collected."""
        return any(call.state is CallState.WAITING or call.is_answer_kept for call in self.calls)

    @property
    def is_settled(self) -> bool:
        return all(call.state is not CallState.WAITING for call in self.calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedCall:
    """A call that one node makes for the length of a lease."""

    request_id: str
    position: int
    kind: DataJobKind
    user_id: str
    application_id: int
    url: str
    created_at: int  # when it was asked for
    tries: int  # this one included


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    request_id: str
    position: int
    application_id: int
    application: str
    done_at: int
    sealed: bytes = field(repr=False)


def answer_sealing_purpose(request_id: str, position: int) -> str:
    """What a sealed answer is bound to."""
    return f"gdpr:{request_id}:{position}"


def job_urls(kind: DataJobKind, settings: Mapping[str, object]) -> list[str]:
    """The addresses of an application's `settings.gdpr` that the errand goes to; char_sources are fetch only."""
    sources = settings.get("gdpr")
    if not isinstance(sources, dict):
        return []
    data = [source for source in sources.get("data_sources", ()) if isinstance(source, dict)]
    if kind is DataJobKind.REMOVAL:
        urls = [source.get("remove") for source in data]
    else:
        urls = [*sources.get("char_sources", ()), *(source.get("fetch") for source in data)]
    return list(dict.fromkeys(url for url in urls if isinstance(url, str)))


# What asking applications about people needs kept.


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
