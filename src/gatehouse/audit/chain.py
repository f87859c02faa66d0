"""Binds records together: commitments, authentication codes, links. Pure."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from gatehouse.audit.head import ChainHead
from gatehouse.audit.model import AuditRecord, Seal
from gatehouse.kernel.digests import constant_time_equal, hmac_sha256, sha256

CANONICAL_JSON = msgspec.json.Encoder(order="sorted")


def commitment_of(salt: bytes, personal: Mapping[str, str]) -> bytes:
    """Bind a record to its personal part without revealing it; once the salt is erased, it cannot be guessed."""
    return sha256(salt + CANONICAL_JSON.encode(personal))


def canonical_bytes(record: AuditRecord) -> bytes:
    """Return the canonical bytes that are authenticated and chained."""
    return CANONICAL_JSON.encode(
        (
            record.record_id,
            record.at,
            record.event,
            record.actor,
            record.subject,
            record.request_id,
            record.details,
            record.commitment.hex(),
        )
    )


def with_mac(record: AuditRecord, mac_key: bytes) -> AuditRecord:
    return replace(record, mac=hmac_sha256(mac_key, canonical_bytes(record)))


def is_authentic(record: AuditRecord, mac_key: bytes) -> bool:
    return constant_time_equal(hmac_sha256(mac_key, canonical_bytes(record)), record.mac)


def matches_commitment(record: AuditRecord) -> bool:
    """True for an erased personal part, and for one that matches the commitment."""
    if record.personal is None or record.salt is None:
        return record.personal is None and record.salt is None
    return constant_time_equal(commitment_of(record.salt, record.personal), record.commitment)


def next_link(previous: bytes, place: int, record: AuditRecord) -> bytes:
    return sha256(previous + place.to_bytes(8, "big") + sha256(canonical_bytes(record)))


def link_after(previous: bytes, first_place: int, records: Sequence[AuditRecord]) -> bytes:
    link = previous
    for place, record in enumerate(records, first_place):
        link = next_link(link, place, record)
    return link


def seal_message(seal: Seal, previous: int) -> bytes:
    """The message that a seal signs; `previous` is the place of the seal before it, so that none can be removed."""
    numbers = b"".join(number.to_bytes(8, "big", signed=True) for number in (previous, seal.place, seal.at))
    return b"gatehouse audit seal 2" + numbers + seal.link


def unlinked_seal_message(seal: Seal) -> bytes:
    """Return the message of seals from before there was a head."""
    return b"gatehouse audit seal" + seal.place.to_bytes(8, "big", signed=True) + seal.link


# Verify seals.


class SealSigner(Protocol):
    """The interface of the audit key; the package `keys` is a level above this package."""

    def sign(self, message: bytes) -> tuple[str, bytes]:
        """The key's id and its signature."""

    async def is_valid_signature(self, kid: str, message: bytes, signature: bytes) -> bool:
        """Whether a signature was made by an audit key of this installation."""


async def verified_predecessor(key: SealSigner, seal: Seal, previous: int, head: ChainHead | None) -> int | None:
    """The place of the seal before this one, as it was signed; None for a seal that is not genuine.

    `previous` is the place of the seal that the log has before it. Where the log was broken the signed one is
    missing, and the head names it. Seals from before there was a head name none, and follow any seal.
    """
    gone = (
        []
        if head is None
        else [chain_break.place for chain_break in head.breaks if previous < chain_break.place < seal.place]
    )
    for place in (previous, *gone):
        if await key.is_valid_signature(seal.kid, seal_message(seal, place), seal.signature):
            return place
    is_unlinked = head is not None and seal.place <= head.unlinked
    if is_unlinked and await key.is_valid_signature(seal.kid, unlinked_seal_message(seal), seal.signature):
        return previous
    return None
