"""What a person is asked before he is signed in somewhere else: on a device, in a game."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gatehouse.audit.model import AuditOrigin
from gatehouse.interaction.model import SignInFlow
from gatehouse.kernel.addresses import parse_address, source_of


class NetworkNearness(StrEnum):
    """Whether it was asked for from the network the browser is in, as far as addresses tell."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"  # IPv4 beside IPv6 says nothing (R4)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationQuestion:
    kind: str  # whose occasion it is: device, game
    application: str  # its name
    code: str = ""  # what is shown there, to compare; empty when nothing is
    choices: tuple[str, ...] = ()  # one of them is shown there, and has to be picked
    scopes: tuple[str, ...] = ()  # what it gets to know, where that needs consent
    asked_at: int
    address: str  # where it was asked for from
    nearness: NetworkNearness
    watched: str = ""  # what the page asks about while it is open: whether anybody still waits
    is_waited_for: bool = True  # whether somebody did a moment ago


class ConfirmablePurpose(Protocol):
    """An occasion whose last step is CONFIRM; `finish` is the yes."""

    async def question(self, flow: SignInFlow, origin: AuditOrigin) -> ConfirmationQuestion:
        """What to tell the person. Raises InteractionGone when nobody is waiting any more."""

    async def check_choice(self, flow: SignInFlow, picked: str, origin: AuditOrigin) -> str:
        """Look at what he picked before his yes counts: "" when right, else it is over and the browser goes there."""

    async def refuse(self, flow: SignInFlow, origin: AuditOrigin) -> str:
        """He said no; returns the address the browser goes to."""


def compare_networks(asked_from: str, origin: AuditOrigin, *, proven: bool = True) -> NetworkNearness:
    """`proven`: whether the address it was asked for from proves anything. Two proxies alike are no closeness."""
    asked, near = parse_address(asked_from), parse_address(origin.address)
    if asked is None or near is None or asked.version != near.version or not (proven and origin.proven):
        return NetworkNearness.UNKNOWN
    return NetworkNearness.SAME if source_of(asked) == source_of(near) else NetworkNearness.DIFFERENT
