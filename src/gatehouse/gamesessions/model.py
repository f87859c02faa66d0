"""A game session, and what the interface says about its time (§2.2, §8, R4)."""

import re
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from gatehouse.audit.model import Details
from gatehouse.fields.secrets import SecretBytes, SecretRecord
from gatehouse.kernel.digests import sha256

GSID_PATTERN: Final = re.compile(
    r"[0-9a-f-]{36}", re.ASCII
)  # the form of a gsid; anything else is unknown without a query
LIFETIME: Final = 120  # seconds from the registration, and from each accepted poll
MAX_LIFETIME: Final = 1_200  # seconds in all
POLL_HOLD_SECONDS: Final = 30.0  # seconds a poll is held
SHORT_GSID_LENGTH: Final = 8  # letters
SEAL_PURPOSE_LENGTH: Final = 32
SILENCE_SECONDS: Final = 40  # seconds without a poll or heartbeat after which the game seems to be gone


def short_gsid(text: str) -> str:
    """Shorten a gsid for display: with a whole one, anyone could open its page or poll from the same address."""
    return f"{text[:SHORT_GSID_LENGTH]}…" if GSID_PATTERN.fullmatch(text) else text


def short_gsids(details: Details) -> Details:
    return {name: short_gsid(value) if isinstance(value, str) else value for name, value in details.items()}


class GameSessionState(StrEnum):
    """The state of a session; it never goes back."""

    PENDING = "pending"
    CONFIRMED = "confirmed"  # by a person; the answer is waiting to be taken
    DELIVERED = "delivered"
    FAILED = "failed"  # canceled, refused or closed before the delivery; `failure` is the ID of its record


class SignInStage(StrEnum):
    """The progress of the person, which is reported to the waiting game."""

    WAITING = "waiting"
    OPENED = "opened"
    SIGNING_IN = "signing_in"
    CONFIRMED = "confirmed"
    CANCELLED = "cancelled"


class CloseStatus(StrEnum):
    """Result reported by the game (interface §4.3, closeGsid)."""

    SUCCESS = "Success"
    ERROR = "Error"


class SessionSnapshot(NamedTuple):
    """The part of a session that polls and sockets react to; equal while there is nothing new for them."""

    state: GameSessionState
    opened_at: int
    signing_in_at: int
    cancels: int
    holder: str


class SessionConfirmation(Struct, frozen=True, kw_only=True):
    """A game session and the person who confirms it, as they signed in."""

    gsid: str
    user_id: str
    rev: int  # of the account at the sign-in
    auth: str
    second_factor: str = ""
    auth_time: int = 0


class GameSession(SecretRecord, frozen=True, kw_only=True):
    gsid: str
    location: bytes  # digest of the Location value
    address: str  # of the client that registered it
    address_proven: bool  # False: it came through untrusted proxies and proves nothing (R4)
    public_key: str = ""  # a registered one makes Request-Sign the only proof
    code: str = ""  # two digits that the game shows
    code_shown: bool = False  # the game asked for it, so it shows it
    distr: str = ""
    app_id: int = 0
    gapp_id: int = 0
    options: SecretBytes  # sealed: what shapes the answer, the factor among it
    state: GameSessionState = GameSessionState.PENDING
    failure: str = ""  # the record id every later poll is answered with
    closed: str = ""  # a Closing, or "" until closed
    user_id: str = ""
    rev: int = 0  # the account's when it was confirmed
    auth: str = ""
    guest_id: str = ""  # the guest who gets an account with this sign-in (R10)
    second_factor: str = ""
    auth_time: int = 0  # when the person signed in
    polls: int = 0  # the number of the newest stored poll: about how many there were
    holder: str = ""  # the node of the newest poll; only this node may number polls without a query
    cancels: int = 0  # how often the owner's last socket was closed
    created_at: int
    ends_at: int
    polled_at: int = 0
    last_seen: int = 0
    opened_at: int = 0
    signing_in_at: int = 0
    confirmed_at: int = 0
    delivered_at: int = 0
    closed_at: int = 0

    @property
    def stage(self) -> SignInStage:
        if self.state is GameSessionState.FAILED:
            return SignInStage.CANCELLED
        if self.state is not GameSessionState.PENDING:
            return SignInStage.CONFIRMED
        if self.signing_in_at:
            return SignInStage.SIGNING_IN
        return SignInStage.OPENED if self.opened_at else SignInStage.WAITING

    @property
    def snapshot(self) -> SessionSnapshot:
        return SessionSnapshot(self.state, self.opened_at, self.signing_in_at, self.cancels, self.holder)

    @property
    def latest_end(self) -> int:
        return self.created_at + MAX_LIFETIME

    def is_waited_for(self, now: int) -> bool:
        """Whether the game has polled, connected or registered recently."""
        return now - max(self.created_at, self.polled_at, self.last_seen) < SILENCE_SECONDS

    def may_be_held(self, now: int) -> bool:
        """Whether a stored poll, or one right after the registration, may still be waiting."""
        return now - max(self.created_at, self.polled_at) <= POLL_HOLD_SECONDS

    def is_live(self, now: int) -> bool:
        return now < self.ends_at

    def end_after_poll(self, now: int) -> int:
        return min(now + LIFETIME, self.latest_end)


class PollMark(Struct, frozen=True, kw_only=True):
    """The stored part of a poll: only its time and number, so it is written in batches (R4)."""

    gsid: str
    number: int
    polled_at: int
    ends_at: int


def game_options_purpose(gsid: str) -> str:
    """Return the sealing purpose of a session's options.

    Alarms contain it, and no log may contain a gsid (checklist GS-32).
    """
    return f"game-session:{sha256(gsid).hex()[:SEAL_PURPOSE_LENGTH]}"


class PollId(Struct, frozen=True, kw_only=True):
    """Identifies a poll; its number counts while its node is the holder."""

    number: int
    node: str

    def is_newest(self, session: GameSession) -> bool:
        return session.holder == self.node and session.polls <= self.number
