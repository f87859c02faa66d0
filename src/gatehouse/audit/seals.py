"""Tells genuine seals from others."""

from typing import Protocol

from gatehouse.audit.chain import seal_message, unlinked_seal_message
from gatehouse.audit.head import ChainHead
from gatehouse.audit.model import Seal


class SealSigner(Protocol):
    """The audit key of the keys package, handed in: this package knows no keys."""

    def sign(self, message: bytes) -> tuple[str, bytes]:
        """The key's id and its signature."""

    async def is_valid_signature(self, kid: str, message: bytes, signature: bytes) -> bool:
        """Whether a signature was made by an audit key of this installation."""


async def verified_predecessor(key: SealSigner, seal: Seal, previous: int, head: ChainHead | None) -> int | None:
    """The place of the seal before this one, as it was signed; None for a seal that is not genuine.

    `previous` is the place of the seal that the log has before it. Where the log was broken the signed one is gone,
    and the head names it. Seals made before there was a head name none, and follow whichever is there.
    """
    gone = [] if head is None else [found.place for found in head.breaks if previous < found.place < seal.place]
    for place in (previous, *gone):
        if await key.is_valid_signature(seal.kid, seal_message(seal, place), seal.signature):
            return place
    is_unlinked = head is not None and seal.place <= head.unlinked
    if is_unlinked and await key.is_valid_signature(seal.kid, unlinked_seal_message(seal), seal.signature):
        return previous
    return None
