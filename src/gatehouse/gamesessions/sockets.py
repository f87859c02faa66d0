"""The sockets of a session at this node: its owner's, and those of other clients that know its gsid."""

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from msgspec import Struct, field

from gatehouse.accounts.bans.model import UserBan
from gatehouse.audit.model import AuditOrigin
from gatehouse.gamesessions.errors import Violation
from gatehouse.gamesessions.model import SignInStage
from gatehouse.kernel.clock import Timer


class SocketCloseReason(Enum):
    """Why the service closes a socket."""

    UNKNOWN = auto()  # no such session, or no right to know of it
    OVER = auto()  # it expired or failed
    FAULT = auto()  # ours


class SessionFailed(Violation):
    """The session failed; the record says why. `ban`: set if a ban is the reason, which the game is told."""

    def __init__(self, record_id: str, detail: str, *, ban: UserBan | None = None) -> None:
        super().__init__(record_id, detail)
        self.ban = ban


class ClientSocket(Protocol):
    """A socket."""

    @property
    def origin(self) -> AuditOrigin:
        """The origin of the socket's client."""

    def is_open(self) -> bool:
        """False until its handshake is finished: nothing can be sent yet."""

    def send_stage(self, stage: SignInStage) -> None:
        """Send the stage that the person in the browser has reached."""

    def close_with_reason(self, reason: SocketCloseReason, record_id: str, ban: UserBan | None = None) -> None:
        """Send the reason and close; closing removes the socket."""


class SessionSockets(Struct, kw_only=True, eq=False):
    gsid: str
    ends_at: int  # of the session when it was last read; it may have changed since
    on_change: Callable[[], object]  # called after each change
    owners: dict[ClientSocket, SignInStage] = field(default_factory=dict)  # with the last stage sent to each
    others: list[ClientSocket] = field(
        default_factory=list
    )  # sockets without proof; with a registered key they do not count as the owner's
    leave_timer: Timer | None = None  # runs since the owner's last socket closed
    is_stored: bool = False  # whether it is stored, for other nodes
    store_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_empty(self) -> bool:
        return not (self.owners or self.others or self.leave_timer)

    def all_sockets(self) -> tuple[ClientSocket, ...]:
        return (*self.owners, *self.others)

    def cancel_leave_timer(self) -> None:
        if self.leave_timer is not None:
            self.leave_timer.cancel()
            self.leave_timer = None
