"""`expired` and `ttl` as they are written (interface §2.7, checklist RO-19)."""

from collections.abc import Mapping
from typing import Final

from gatehouse.permissions.documents.fields import read_number
from gatehouse.permissions.model.rules import NO_END, End

MAX_EXPIRED: Final = 253_402_300_799  # the end of the year 9999; a time in milliseconds is larger and is refused
MAX_TTL: Final = 2**31 - 1


def parse_expired(value: object, place: str) -> int:
    """Unix seconds; 0 is no end."""
    return read_number(value, place, MAX_EXPIRED)


def parse_end(members: Mapping[str, object], place: str, expired: int = 0) -> End:
    """Return the end of an object; without its own it gets `expired`, the end of the request (R5)."""
    if "expired" not in members and "ttl" not in members:
        return End(expired=expired)
    return End(
        expired=parse_expired(members.get("expired", 0), f"{place}.expired"),
        ttl=read_number(members.get("ttl", 0), f"{place}.ttl", MAX_TTL),
    )


def end_members(end: End) -> dict[str, int]:
    """Return the members of an end that are set."""
    return {name: seconds for name, seconds in (("expired", end.expired), ("ttl", end.ttl)) if seconds}


def stored_end(leaf: Mapping[str, object]) -> End:
    """Return a stored end; one that is not a number counts as passed (S-22)."""
    expired, ttl = leaf.get("expired", 0), leaf.get("ttl", 0)
    if not expired and not ttl:
        return NO_END
    if not isinstance(expired, int) or not isinstance(ttl, int):
        return End(expired=1)
    return End(expired=expired, ttl=ttl)
