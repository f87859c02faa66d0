"""How records are bound together: commitments, authentication codes, links. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from gatehouse.audit.model import Record, Seal
from gatehouse.kernel.digests import keyed_digest, same_secret, sha256

CANONICAL = msgspec.json.Encoder(order="sorted")


def commit(salt: bytes, personal: Mapping[str, str]) -> bytes:
    """Bind a record to its personal part without telling it; once the salt is erased, guessing is useless."""
    return sha256(salt + CANONICAL.encode(personal))


def body(record: Record) -> bytes:
    """The bytes that are authenticated and chained, in one spelling."""
    return CANONICAL.encode(
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


def authenticate(record: Record, mac_key: bytes) -> Record:
    return replace(record, mac=keyed_digest(mac_key, body(record)))


def is_authentic(record: Record, mac_key: bytes) -> bool:
    return same_secret(keyed_digest(mac_key, body(record)), record.mac)


def keeps_its_commitment(record: Record) -> bool:
    """True for an erased personal part, and for one that is exactly what was committed to."""
    if record.personal is None or record.salt is None:
        return record.personal is None and record.salt is None
    return same_secret(commit(record.salt, record.personal), record.commitment)


def next_link(previous: bytes, place: int, record: Record) -> bytes:
    return sha256(previous + place.to_bytes(8, "big") + sha256(body(record)))


def head_after(previous: bytes, first_place: int, records: Sequence[Record]) -> bytes:
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
