"""New ids: random, unguessable, never reused."""

import os
import secrets
from typing import Final

SECRET_BYTES: Final = 32  # 256 bits for every secret that grants access (docs/interface.md R3)
USER_ID_DIGITS: Final = 10


def new_secret() -> str:
    """A 256-bit secret as URL-safe text."""
    return secrets.token_urlsafe(SECRET_BYTES)


def new_record_id(at: int) -> str:
    """An id for numerous records: the second of creation, then 96 random bits.

    So new records are adjacent in an index (docs/decisions/0025-ids-begin-with-the-time.md).
    """
    return f"{at:08x}{secrets.token_hex(12)}"


def first_record_id(at: int) -> str:
    """No record of this second or a later one has a lower id, and every one of an earlier second has."""
    return f"{at:08x}"


def new_request_id() -> str:
    return os.urandom(8).hex()  # what token_hex(8) does, at a third of its cost


def new_key_id() -> str:
    """Return a short key id, generated here and never taken from a request or a file name (R2)."""
    return secrets.token_hex(6)


def new_node_id() -> str:
    """An id for a process: host name and process number may be those of another one, in another container."""
    return secrets.token_hex(8)


def new_user_id() -> str:
    """Ten decimal digits, the first not zero (R1); the store refuses one that was ever used."""
    return str(secrets.randbelow(9 * 10 ** (USER_ID_DIGITS - 1)) + 10 ** (USER_ID_DIGITS - 1))
