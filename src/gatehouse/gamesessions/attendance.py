"""Who is there for a session at this node: the sockets of its owner, and those of whoever else knows its gsid."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from gatehouse.audit.model import AuditOrigin
from gatehouse.gamesessions.errors import Violation
from gatehouse.gamesessions.model import SignInStage
from gatehouse.kernel.clock import Timer


class SocketCloseReason(Enum):
    """Why we end a socket."""

    UNKNOWN = auto()  # no such session, or nobody to be told of it
    OVER = auto()  # its time, or it came to nothing
    FAULT = auto()  # ours


class SessionFailed(Violation):
    """It came to nothing; the record tells why."""


class ClientSocket(Protocol):
    """A socket."""

    @property
    def origin(self) -> AuditOrigin:
        """Whose it is."""

    def is_open(self) -> bool:
        """False while its handshake is not finished: it is told nothing yet."""

    def send_stage(self, stage: SignInStage) -> None:
        """The person in the browser has come this far."""

    def close_with_reason(self, reason: SocketCloseReason, record_id: str) -> None:
        """Say why, and close; it leaves by that."""


@dataclass(slots=True, kw_only=True, eq=False)
class SessionSockets:
    gsid: str
    ends_at: int  # of the session when it was last looked at; it may have moved on since
    on_change: Callable[[], object]  # what hears of it
    owners: dict[ClientSocket, SignInStage] = field(default_factory=dict)  # with the stage each knows of
    others: list[ClientSocket] = field(
        default_factory=list
    )  # without proof: with a key registered they are only seen
    leave_timer: Timer | None = None  # running since the last of the owners left
    is_stored: bool = False  # stored, for other nodes to know
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
