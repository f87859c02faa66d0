"""Questions before a person is signed in elsewhere: on a device, in a game."""

from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.addresses import parse_address, source_of
from gatehouse.sign_in_flow.model import SignInFlow


class NetworkNearness(StrEnum):
    """Whether the request came from the browser's network, as far as addresses tell."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"  # IPv4 and IPv6 cannot be compared (R4)


class ConsentRequest(Struct, frozen=True, kw_only=True):
    """What a person allows another client with their yes."""

    client: str  # its name
    scopes: tuple[str, ...]


class ConfirmationQuestion(Struct, frozen=True, kw_only=True):
    kind: str  # of the purpose: device, game
    application: str  # its name
    logo: str = ""  # path of its logo
    code: str = ""  # shown on the device, to compare; empty without one
    choices: tuple[str, ...] = ()  # the device shows one of them, and the person picks it
    scopes: tuple[str, ...] = ()  # that need consent
    ends_at: int = 0  # of the consent, as the person chose before; 0 for never
    consent: ConsentRequest | None = None  # for a client that is not the application itself
    asked_at: int
    address: str  # that the request came from
    nearness: NetworkNearness
    watched: str = ""  # what the page polls while it is open: whether the client still waits
    is_waited_for: bool = True  # whether the client waited until a moment ago
    guest: str = ""  # nick of the guest who gets the account; empty without one
    merges_guest: bool = False  # into an account that exists, and ends there


class ConfirmablePurpose(Protocol):
    """A purpose whose last step is CONFIRM; `finish` is the yes."""

    async def question(self, flow: SignInFlow, origin: AuditOrigin) -> ConfirmationQuestion:
        """Return what to ask the person. Raises SignInFlowGone when no client is waiting any more."""

    async def check_choice(self, flow: SignInFlow, picked: str, origin: AuditOrigin) -> str:
        """Check the picked choice before the yes counts; return "" when right, else where the browser goes."""

    async def refuse(self, flow: SignInFlow, origin: AuditOrigin) -> str:
        """Record the no and return the address the browser goes to."""


def compare_networks(asked_from: str, origin: AuditOrigin, *, proven: bool = True) -> NetworkNearness:
    """Compare the networks of request and browser; unproven addresses, as behind two proxies, tell nothing."""
    asked, near = parse_address(asked_from), parse_address(origin.address)
    if asked is None or near is None or asked.version != near.version or not (proven and origin.proven):
        return NetworkNearness.UNKNOWN
    return NetworkNearness.SAME if source_of(asked) == source_of(near) else NetworkNearness.DIFFERENT
