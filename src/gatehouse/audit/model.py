"""The records of the audit log."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

Detail: TypeAlias = str | int | bool | None
Details: TypeAlias = Mapping[str, Detail]

GENESIS: Final = bytes(32)  # what the first record is chained to


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOrigin:
    """By whose hand: a user id, an application, `cli`, `setup` or `service`, and from where."""

    actor: str
    address: str = ""
    request_id: str = ""
    proven: bool = True  # False: the address is what somebody says, and proves nothing (R4)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """The signed head of the chain after a batch: nothing before it can change unseen."""

    place: int
    at: int
    link: bytes
    kid: str
    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainEnd:
    """What the database holds about the end of the chain, read by one statement."""

    head: str | None  # the sealed head
    seal: Seal | None  # the newest
    previous: int  # the place of the seal before that, 0 for none
    first_place: int  # of the oldest and the newest sealed record, 0 for none
    last_place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSwap:
    """Replaces one sealed head by another, provided that it is still the one that was read."""

    before: str | None
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
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
    """What is counted by the hour (audit/tally.py)."""

    SIGNED_IN = "signed_in"
    REFUSED = "refused"  # wrong, unknown and blocked alike
    GAME = "game"  # signed in to a game


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyTally:
    hour: int  # its beginning, in Unix seconds
    what: TallyKind
    times: int
