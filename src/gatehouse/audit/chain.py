"""How records are bound together: commitments, authentication codes, links. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from gatehouse.audit.model import AuditRecord, Seal
from gatehouse.kernel.digests import constant_time_equal, hmac_sha256, sha256

CANONICAL_JSON = msgspec.json.Encoder(order="sorted")


def commitment_of(salt: bytes, personal: Mapping[str, str]) -> bytes:
    """Bind a record to its personal part without telling it; once the salt is erased, guessing is useless."""
    return sha256(salt + CANONICAL_JSON.encode(personal))


def canonical_bytes(record: AuditRecord) -> bytes:
    """The bytes that are authenticated and chained, in one spelling."""
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
    """True for an erased personal part, and for one that is exactly what was committed to."""
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
    """What a seal signs; `previous` is the place of the seal before it, so that none can be taken out."""
    numbers = b"".join(number.to_bytes(8, "big", signed=True) for number in (previous, seal.place, seal.at))
    return b"gatehouse audit seal 2" + numbers + seal.link


def unlinked_seal_message(seal: Seal) -> bytes:
    """What seals signed before there was a head."""
    return b"gatehouse audit seal" + seal.place.to_bytes(8, "big", signed=True) + seal.link
