"""How many images one account may have fetched and converted: one at a time, ten a minute, in each process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import TooMany
from gatehouse.throttle.rate_limiter import RateLimit, RateLimiter

OPERATOR: Final = ""  # an uploader without limits: files of the operator, documents of clients
UPLOADS: Final = "images"
PER_MINUTE: Final = 10
RETRY_SECONDS: Final = 3  # about the longest conversion


class UploadLimit:
    def __init__(self, clock: Clock) -> None:
        self._rates = RateLimiter({UPLOADS: RateLimit(PER_MINUTE)}, clock=clock)
        self._busy: set[str] = set()

    @contextmanager
    def admit(self, uploader: str) -> Iterator[None]:
        """Count an upload and hold its account's only place until it is done. Raises TooMany."""
        if uploader == OPERATOR:
            yield
            return
        if uploader in self._busy:
            raise TooMany(RETRY_SECONDS, "an image of this account is being converted")
        if retry_after := self._rates.admit(UPLOADS, uploader):
            raise TooMany(retry_after, "too many images of this account")
        self._busy.add(uploader)
        try:
            yield
        finally:
            self._busy.remove(uploader)
