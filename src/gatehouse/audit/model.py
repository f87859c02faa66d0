"""The records of the audit log."""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from msgspec import Struct, field

from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.errors import Conflict
from gatehouse.kernel.sketches import SKETCH_SIZE, merge_sketches

Detail: TypeAlias = str | int | bool | None
Details: TypeAlias = Mapping[str, Detail]

SIGN_IN_EVENTS: Final = (AuditEvent.SIGNED_IN.value, AuditEvent.LOGGED_IN.value)  # a person's sign-in history
GENESIS: Final = bytes(32)  # what the first record is chained to
# Actors that are neither a person nor a client; no OAuth client may have such an ID.
BUILT_IN_ACTORS: Final = frozenset(
    {
        *("apply", "cli", "client", "demo", "game", "guest", "passkey", "platform", "provider", "serve", "service"),
        *("setup", "stoken", "system", "visitor"),
    }
)


class AuditOrigin(Struct, frozen=True, kw_only=True):
    """The actor (a user id, `client:<client id>`, `application <id>` or a built-in one) and their address."""

    actor: str
    address: str = ""
    request_id: str = ""
    proven: bool = True  # False: the address is only claimed (R4)


class AuditRecord(Struct, frozen=True, kw_only=True):
    """One event. The chain covers everything but `personal` and `salt`, which an erasure deletes."""

    record_id: str
    at: int
    event: str
    actor: str
    subject: str
    request_id: str
    details: Details
    personal: Mapping[str, str] | None
    salt: bytes | None
    commitment: bytes  # salted digest of the personal part
    mac: bytes
    place: int | None = None  # its number in the chain; None until sealed


class Seal(Struct, frozen=True, kw_only=True):
    """The signed head of the chain after a batch: any change before it is detected."""

    place: int
    at: int
    link: bytes
    kid: str
    signature: bytes


class ChainEnd(Struct, frozen=True, kw_only=True):
    """What the database holds about the end of the chain, read by one statement."""

    head: str | None  # the sealed head
    master_keys: str  # the ids of the master keys in use, the one that seals first; empty when none are named
    seal: Seal | None  # the newest
    previous: int  # the place of the seal before that, 0 for none
    first_place: int  # of the oldest and the newest sealed record, 0 for none
    last_place: int


class HeadSwap(Struct, frozen=True, kw_only=True):
    """Replaces one sealed head by another, provided that it is still the one that was read."""

    before: str | None
    after: str


class Refusal(Struct, frozen=True, kw_only=True):
    """Something that was not allowed; the caller got `record_id` and no reason."""

    record_id: str
    at: int
    event: str
    reason: str
    subject: str
    request_id: str
    details: Details
    personal: Mapping[str, str]


class TallyKind(StrEnum):
    """What is counted by the hour (audit/sign_in_tally.py)."""

    SIGNED_IN = "signed_in"
    REFUSED = "refused"  # wrong, unknown and blocked alike
    GAME = "game"  # signed in to a game


class HourlyTally(Struct, frozen=True, kw_only=True):
    hour: int  # its beginning, in Unix seconds
    what: TallyKind
    times: int


MAX_DIGESTS: Final = 4 * SKETCH_SIZE  # before they are cut to a sketch, which takes a sort


class SignInCounts(Struct, kw_only=True):
    """What was counted since the last write, by the beginning of its hour."""

    kinds: Counter[tuple[int, TallyKind]] = field(default_factory=Counter)
    targets: Counter[tuple[int, str]] = field(default_factory=Counter)
    people: dict[int, set[int]] = field(default_factory=dict)  # digests, of which the smallest matter

    @property
    def is_empty(self) -> bool:
        return not (self.kinds or self.targets or self.people)

    def add_person(self, hour: int, digest: int) -> None:
        digests = self.people.setdefault(hour, set())
        digests.add(digest)
        if len(digests) > MAX_DIGESTS:
            self.people[hour] = set(merge_sketches([digests]))

    def update(self, other: "SignInCounts") -> None:
        self.kinds.update(other.kinds)
        self.targets.update(other.targets)
        for hour, digests in other.people.items():
            self.people[hour] = set(merge_sketches([self.people.get(hour, ()), digests]))


# The errors of the audit log.


class SealedMeanwhile(Conflict):
    """Another process sealed first; nothing was changed here."""

    public = "These records were already sealed by another process."


# The stores of the audit log. Records themselves are inserted by the verb that makes the change.


class AuditStore(Protocol):
    async def unsealed_records(self, limit: int, after: AuditRecord | None = None) -> Sequence[AuditRecord]:
        """The oldest records that have no place in the chain yet, or those behind `after`."""

    async def chain_end(self) -> ChainEnd:
        """The head, and where seals and records end."""

    async def append_to_chain(
        self, record_ids: Sequence[str], seal: Seal, head: HeadSwap, break_record: AuditRecord | None = None
    ) -> bool:
        """Give the records the places that end at the seal's, keep the seal and move the head, all or nothing.

        `break_record` is inserted with the place it has, before the others. Returns False, and changes nothing, while
        another process does this. Raises SealedMeanwhile, and changes nothing, when the head was moved meanwhile, one
        of the records has a place by now or a place is taken.
        """

    async def verified_position(self) -> str | None:
        """How far the log is verified, as `swap_verified_position` stored it."""

    async def swap_verified_position(self, before: str | None, after: str) -> bool:
        """Return whether it was still the one that was read; of two processes one is first."""

    async def swap_head(self, head: HeadSwap) -> None:
        """Raises SealedMeanwhile when the head was moved meanwhile."""

    async def clear_breaks(self, head: HeadSwap, entry: AuditRecord) -> None:
        """Move to a head without breaks, and record it. Raises SealedMeanwhile when the head was moved meanwhile."""

    async def add_refusal(self, refusal: Refusal, max_refusals: int) -> None:
        """Store the refusal, and delete all but the newest `max_refusals`."""

    async def find_record(self, record_id: str) -> AuditRecord | Refusal | None:
        """Look up a record by the id its caller was shown."""

    async def records_from(self, place: int, limit: int) -> Sequence[AuditRecord]:
        """Sealed records in chain order, from that place on."""

    async def seals_from(self, place: int, limit: int) -> Sequence[Seal]:
        """Seals in chain order, from that place on."""

    async def newest_records(self, limit: int, subject: str, event: str) -> Sequence[AuditRecord]:
        """The newest records first; an empty subject or event matches any."""

    async def erase_personal(self, subject: str, record: AuditRecord) -> int:
        """Delete the personal part of every record about the subject, and keep `record`; returns how many."""

    async def seal_to_delete(self, begins: int, at: int) -> tuple[Seal, int] | None:
        """A seal made before that time, from `begins` on, and the place of the seal before it; not far apart."""

    async def delete_up_to(self, place: int, head: HeadSwap) -> int:
        """Delete the records up to that place and move the head; seals stay, so the rest still verifies.

        Raises SealedMeanwhile when the head was moved meanwhile.
        """


class TallyStore(Protocol):
    async def add_counts(self, counts: SignInCounts) -> None:
        """Add to the counts by hour and kind and by hour and target, and merge the sketches of people."""

    async def record_seen(self, user_ids: Sequence[str], at: int) -> None:
        """Store that these people were seen then; accounts with a time from a minute before on keep it."""

    async def counts_since(self, hour: int) -> Sequence[HourlyTally]:
        """What was counted from that hour on, oldest first."""
