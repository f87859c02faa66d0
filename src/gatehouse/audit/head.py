"""The head of the audit chain, stored apart from the log: where the log begins and ends, and where it was broken.

The log alone cannot show that its end was cut off. The head can: it is sealed under the master key, is written in
the transaction of each seal, and never follows a log that ends elsewhere (docs/decisions/0031-audit-head.md).
"""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Struct

from gatehouse.audit.model import GENESIS, ChainEnd
from gatehouse.kernel.digests import constant_time_equal, hmac_sha256
from gatehouse.kernel.sealing import SecretSealer

AUDIT_HEAD_PURPOSE: Final = "audit_head"  # what the sealed head is bound to
MAX_BREAKS: Final = 20  # the newest; `broken` counts all
MAC_CHARACTERS: Final = 32
# Version, installation, place, link, authentication code.
EXPORTED_HEAD: Final = re.compile(
    r"gh1\.([0-9a-f]{16})\.(0|[1-9][0-9]{0,17})\.([0-9a-f]{64})\.([0-9a-f]{32})", re.ASCII
)


class ChainBreak(msgspec.Struct, frozen=True, kw_only=True):
    """A mismatch that the sealer found: the log does not end where the head says; sealing continued after `place`."""

    at: int
    expected: int | None  # the place of the head; None when the head was missing or did not open
    sealed: int  # where the seals ended
    recorded: int  # where the records ended
    place: int
    link: bytes


class ChainHead(msgspec.Struct, frozen=True, kw_only=True):
    place: int = 0  # of the newest sealed record
    link: bytes = GENESIS
    at: int
    begins: int = 1  # the first record that retention has left
    unlinked: int = 0  # seals up to here were made before seals named their predecessor
    offered: int = 0  # the place last written to the service's log and to webhooks
    offered_at: int = 0
    breaks: tuple[ChainBreak, ...] = ()
    broken: int = 0  # how many breaks there were


class ExportedHead(msgspec.Struct, frozen=True, kw_only=True):
    """A head that was stored elsewhere."""

    text: str
    place: int
    link: bytes
    authentic: bool  # made by this installation


HEAD_DECODER: Final = msgspec.json.Decoder(ChainHead)


class HeadCodec(Struct, eq=False):
    """Seals the head for the installation table and opens it again."""

    sealing: SecretSealer

    def encode(self, head: ChainHead) -> str:
        return base64.b64encode(self.sealing.seal(msgspec.json.encode(head), purpose=AUDIT_HEAD_PURPOSE)).decode()

    def decode(self, end: ChainEnd) -> ChainHead | None:
        """Return the head; None when there is none or it does not open.

        Raises Unavailable when it is sealed with a master key that the installation uses and this process does not
        have: then nothing is wrong with the log.
        """
        if end.head is None:
            return None
        self.sealing.follow(end.master_keys)
        try:
            plain = self.sealing.try_open(base64.b64decode(end.head, validate=True), purpose=AUDIT_HEAD_PURPOSE)
            return None if plain is None else HEAD_DECODER.decode(plain)
        except (binascii.Error, msgspec.DecodeError):
            return None


class HeadExporter:
    """Heads as text, to be stored outside the database; only this installation can make one."""

    def __init__(self, *, key: bytes, installation: str) -> None:
        self._key = key
        self._installation = installation

    def export(self, head: ChainHead) -> str:
        text = f"gh1.{self._installation}.{head.place}.{head.link.hex()}"
        return f"{text}.{self._mac(text)}"

    def parse_all(self, text: str) -> Sequence[ExportedHead]:
        """Return every head in the text, which may be a log of the service, in the order of their places."""
        heads = {match[0]: self._parse(match) for match in EXPORTED_HEAD.finditer(text)}
        return sorted(heads.values(), key=lambda noted: noted.place)

    def _parse(self, match: re.Match[str]) -> ExportedHead:
        signed, _, mac = match[0].rpartition(".")
        return ExportedHead(
            text=match[0],
            place=int(match[2]),
            link=bytes.fromhex(match[3]),
            authentic=match[1] == self._installation and constant_time_equal(self._mac(signed), mac),
        )

    def _mac(self, text: str) -> str:
        return hmac_sha256(self._key, text.encode()).hex()[:MAC_CHARACTERS]


def head_matches_end(head: ChainHead, end: ChainEnd) -> bool:
    """Whether seals and records end where the head says."""
    sealed = (end.seal.place, end.seal.link) if end.seal else (0, GENESIS)
    # Retention may have removed every record.
    recorded = end.last_place == head.place or (end.last_place == 0 and head.begins == head.place + 1)
    return sealed == (head.place, head.link) and recorded


def describe_break(chain_break: ChainBreak) -> str:
    """Return a description of the break, for operators."""
    at = datetime.fromtimestamp(chain_break.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if chain_break.expected is None:
        before = "the head of the log was missing or unreadable"
    else:
        before = f"the log had been sealed up to record {chain_break.expected}"
    ends = f"its seals ended at record {chain_break.sealed} and its records at record {chain_break.recorded}"
    return f"found broken at {at}: {before}; {ends}; it continues at record {chain_break.place + 1}"


def problems_at_end(head: ChainHead | None, end: ChainEnd) -> list[str]:
    """Contradictions between head, seals and records, and every break that was found before.

    All are read by one statement, so sealing at the same time makes no difference.
    """
    if head is None:
        return ["the head of the audit log is missing or was changed"]
    problems = [describe_break(chain_break) for chain_break in head.breaks]
    if head.broken > len(head.breaks):
        problems.append(f"found broken {head.broken} times in total; the first are no longer listed")
    if not head_matches_end(head, end):
        problems += list(end_mismatches(head, end))
    if end.first_place < head.begins and end.first_place != 0:
        problems.append(f"record {end.first_place} is before the start of the log at {head.begins}")
    return problems


def end_mismatches(head: ChainHead, end: ChainEnd) -> Iterator[str]:
    sealed = end.seal.place if end.seal else 0
    if sealed < head.place:
        yield f"the seals end at record {sealed}; the log was sealed up to record {head.place}"
    elif sealed > head.place:
        yield (
            f"there is a seal at record {sealed}, but the log was sealed up to record {head.place}: "
            "the head was replaced by an older one, or the seal is forged"
        )
    elif end.seal and end.seal.link != head.link:
        yield f"the seal at record {sealed} does not match the head"
    if end.last_place > max(head.place, sealed):
        yield f"record {end.last_place} is after the end of the log"
    elif end.last_place < head.place and head.begins <= head.place:
        yield missing_at_end_text(max(end.last_place + 1, head.begins), head.place)


def missing_text(first: int, last: int) -> str:
    return f"record {first} is missing" if first == last else f"records {first} to {last} are missing"


def missing_at_end_text(first: int, last: int) -> str:
    return f"{missing_text(first, last)} at the end"
