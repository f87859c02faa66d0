"""Who we are to passkeys, and what the ceremonies of WebAuthn do for us.

The ceremonies themselves (ceremony.py) come with the first passkey: the library is 2 MB that many servers never need.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol

from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.model import Passkey
from gatehouse.kernel.addresses import parse_address

CEREMONY_MODULE: Final = "gatehouse.accounts.second_factors.ceremony"
CHALLENGE_LIFETIME: Final = 300  # seconds a challenge can be answered


@dataclass(frozen=True, slots=True, kw_only=True)
class RelyingParty:
    """We, as browsers know us: passkeys are bound to this host for ever."""

    name: str
    origin: str  # base_url
    host: str  # of that, without the port

    @property
    def supports_passkeys(self) -> bool:
        """Browsers give passkeys to names only, not to addresses."""
        return not self.host.startswith("[") and parse_address(self.host) is None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnverifiedResponse:
    """What a browser answered, not believed yet."""

    challenge: bytes  # the one it claims to answer
    credential_id: bytes
    user_handle: bytes | None
    answer: Any  # as the library read it


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCredential:
    credential_id: bytes
    public_key: bytes
    sign_count: int
    transports: tuple[str, ...]


class WebAuthnCeremony(Protocol):
    """The two ceremonies, as far as they need no store. What is malformed or untrue raises PasskeyRefused."""

    def registration_options(self, user: User, challenge: bytes, existing: Sequence[Passkey]) -> str: ...

    def parse_registration(self, text: str) -> UnverifiedResponse: ...

    def verify_registration(self, response: UnverifiedResponse) -> NewCredential: ...

    def sign_in_options(self, challenge: bytes, allowed: Sequence[Passkey]) -> str: ...

    def parse_sign_in(self, text: str) -> UnverifiedResponse: ...

    def verify_sign_in(self, response: UnverifiedResponse, public_key: bytes) -> int:
        """Return what the authenticator's counter says; it is compared where it is kept, atomically."""


async def load_ceremony(party: RelyingParty) -> WebAuthnCeremony:
    """Off the loop, because the first one loads the library."""
    module = await asyncio.to_thread(import_module, CEREMONY_MODULE)
    made: WebAuthnCeremony = module.WebAuthn(party)
    return made
