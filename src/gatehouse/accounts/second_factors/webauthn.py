"""WebAuthn without storage: this service as browsers know it, and what its ceremonies take and return."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.model import Passkey
from gatehouse.kernel.addresses import parse_address

CHALLENGE_LIFETIME: Final = 300  # seconds a challenge can be answered


class RelyingParty(Struct, frozen=True, kw_only=True):
    """This service as browsers know it; passkeys are bound to this host permanently."""

    name: str
    origin: str  # base_url
    host: str  # of that, without the port

    @property
    def supports_passkeys(self) -> bool:
        """False for an IP address: browsers offer passkeys for host names only."""
        return not self.host.startswith("[") and parse_address(self.host) is None


class UnverifiedResponse(Struct, frozen=True, kw_only=True):
    """A browser's response before verification."""

    challenge: bytes  # the challenge it claims to answer
    credential_id: bytes
    user_handle: bytes | None
    answer: Any  # as parsed by the library


class NewCredential(Struct, frozen=True, kw_only=True):
    credential_id: bytes
    public_key: bytes
    sign_count: int
    transports: tuple[str, ...]


class WebAuthnCeremony(Protocol):
    """The two ceremonies without storage. A malformed or invalid response raises PasskeyRefused."""

    def registration_options(self, user: User, challenge: bytes, existing: Sequence[Passkey]) -> str: ...

    def parse_registration(self, text: str) -> UnverifiedResponse: ...

    def verify_registration(self, response: UnverifiedResponse) -> NewCredential: ...

    def sign_in_options(self, challenge: bytes, allowed: Sequence[Passkey]) -> str: ...

    def parse_sign_in(self, text: str) -> UnverifiedResponse: ...

    def verify_sign_in(self, response: UnverifiedResponse, public_key: bytes) -> int:
        """Return the authenticator's counter; the store compares it atomically."""
