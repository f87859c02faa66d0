"""Browsers that have signed in to an account before (S-15).

Guesses from a known browser are counted by themselves: whoever keeps failing for someone else's
account does not lock its owner out (checklist LG-09). The cookie is a sealed statement of ours and
proves nothing else.
"""

from typing import Final

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal, hmac_sha256, sha256
from gatehouse.kernel.ids import new_record_id

COOKIE_LIFETIME: Final = 365 * 86_400  # seconds
COOKIE_FIELDS: Final = 3


class DeviceCookies:
    def __init__(self, *, key: bytes, clock: Clock) -> None:
        self._key = key
        self._clock = clock

    def issue(self, login_key: str) -> str:
        """A cookie that says: this browser has signed in to that login."""
        now = self._clock.now()
        body = f"{new_record_id(now)}.{now + COOKIE_LIFETIME}"
        return f"{body}.{self._mac(body, login_key)}"

    def recognize(self, cookie: str, login_key: str) -> str | None:
        """The browser's own name if the cookie is ours, for this login, and has not ended."""
        parts = cookie.split(".")
        if len(parts) != COOKIE_FIELDS or not cookie.isascii():
            return None
        name, ends_at, code = parts
        if not constant_time_equal(code, self._mac(f"{name}.{ends_at}", login_key)):
            return None
        return name if int(ends_at) > self._clock.now() else None

    def _mac(self, body: str, login_key: str) -> str:
        return hmac_sha256(self._key, body.encode() + sha256(login_key)).hex()
