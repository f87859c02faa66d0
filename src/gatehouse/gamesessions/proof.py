"""Who may ask about a session: by signature, by Location value, or from the same address, in that order (R4)."""

from collections.abc import Collection

from msgspec import Struct

from gatehouse.gamesessions.model import GameSession
from gatehouse.kernel.addresses import Address
from gatehouse.kernel.digests import constant_time_equal, sha256
from gatehouse.tokens.request_signatures import is_same_key, is_signed_request


class VouchedAddress(Struct, frozen=True, kw_only=True):
    """An application vouches for the address of its client, by a Signature with its access key."""

    application_id: int
    address: Address


class GameClientProof(Struct, frozen=True, kw_only=True):
    """The proof that a request contains."""

    address: Address
    source: str  # the address as throttles count it
    proven: bool  # False: the address proves nothing
    location: str | None = None
    signature: str = ""
    public_key: str = ""
    message: bytes = b""  # what the signature is over
    vouched: VouchedAddress | None = None

    def address_for(self, applications: Collection[int]) -> tuple[Address, bool]:
        """Return the address, and whether it is proven; an application vouches only for sessions that name it."""
        if self.vouched is not None and self.vouched.application_id in applications:
            return self.vouched.address, True
        return self.address, self.proven


def proof_fault(session: GameSession, presented: GameClientProof) -> str:
    """Return the fault of the proof, for the record; empty when it is valid."""
    if session.public_key:
        return signature_fault(session, presented)
    if presented.location is not None:
        return "" if has_location(session, presented) else "wrong location"
    address, proven = presented.address_for((session.app_id, session.gapp_id))
    if not (session.address_proven and proven):
        return "the IP address is not accepted as proof"
    return "" if str(address) == session.address else "different IP address"


def socket_proof_fault(session: GameSession, presented: GameClientProof) -> str:
    """Like `proof_fault`, but for sockets the Location is enough even if a key is registered (R4, WebSocket)."""
    return "" if has_location(session, presented) else proof_fault(session, presented)


def has_location(session: GameSession, presented: GameClientProof) -> bool:
    location = presented.location
    return location is not None and constant_time_equal(sha256(location).hex(), session.location.hex())


def signature_fault(session: GameSession, presented: GameClientProof) -> str:
    """Return the fault of a signature; the address does not matter.

    A key in the request must be the registered one.
    """
    if presented.public_key and not is_same_key(presented.public_key, session.public_key):
        return "different public key"
    signed = is_signed_request(presented.signature, presented.message, session.public_key)
    return "" if signed else "wrong signature"


def is_identified_by_address(session: GameSession, presented: GameClientProof) -> bool:
    """Whether the address was the only proof: clients behind one address then look alike."""
    return not session.public_key and presented.location is None
