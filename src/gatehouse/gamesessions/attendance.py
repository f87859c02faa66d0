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

    def tell(self, stage: SignInStage) -> None:
        """The person in the browser has come this far."""

    def end(self, ending: SocketCloseReason, record_id: str) -> None:
        """Say why, and close; it leaves by that."""


@dataclass(slots=True, kw_only=True, eq=False)
class SessionSockets:
    gsid: str
    ends_at: int  # of the session when it was last looked at; it may have moved on since
    changed: Callable[[], object]  # what hears of it
    owners: dict[ClientSocket, SignInStage] = field(default_factory=dict)  # with the stage each knows of
    others: list[ClientSocket] = field(
        default_factory=list
    )  # without proof: with a key registered they are only seen
    leaving: Timer | None = None  # running since the last of the owners left
    watched: bool = False  # stored, for other nodes to know
    storing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_empty(self) -> bool:
        return not (self.owners or self.others or self.leaving)

    def seats(self) -> tuple[ClientSocket, ...]:
        return (*self.owners, *self.others)

    def stay(self) -> None:
        if self.leaving is not None:
            self.leaving.cancel()
            self.leaving = None
