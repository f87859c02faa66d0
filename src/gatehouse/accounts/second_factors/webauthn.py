"""WebAuthn without storage: this service as browsers know it, and what its ceremonies take and return."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.model import Passkey
from gatehouse.kernel.addresses import parse_address

RELATED_ORIGINS_PATH: Final = "/.well-known/webauthn"
CHALLENGE_LIFETIME: Final = 300  # seconds a challenge can be answered


class RelyingParty(Struct, frozen=True, kw_only=True):
    """This service as browsers know it. Passkeys are bound to `rp_id` permanently; only `origin` may ask for them."""

    name: str
    origin: str  # base_url
    host: str  # of that, without the port
    former_host: str = ""  # after a move: what the passkeys belong to
    listed: tuple[str, ...] = ()  # other origins that browsers let use the passkeys

    @property
    def supports_passkeys(self) -> bool:
        """False for an IP address: browsers offer passkeys for host names only."""
        return not self.host.startswith("[") and parse_address(self.host) is None

    @property
    def rp_id(self) -> str:
        return self.former_host or self.host

    @property
    def is_within_host(self) -> bool:
        """Whether browsers let pages of this service use its passkeys without asking `rp_id`."""
        return self.host == self.rp_id or self.host.endswith(f".{self.rp_id}")

    @property
    def related_origins(self) -> tuple[str, ...]:
        """What /.well-known/webauthn says: after a move, also this service (WebAuthn §5.11)."""
        return self.listed if self.is_within_host else tuple(dict.fromkeys((self.origin, *self.listed)))


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
