"""Stores why a page showed an error, under the reference that it shows (`gatehouse audit show --reference`).

The reference is the request ID. Anyone can cause error pages, so they are stored within limits; the log has each one.
"""

from typing import Final

import structlog
from msgspec.structs import replace
from starlette.requests import Request

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.refusals import RefusalLog
from gatehouse.kernel.errors import GatehouseError
from gatehouse.throttle.rate_limiter import RateLimit, RateLimiter
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of

SOURCE: Final = "source"
PROCESS: Final = "process"
PAGE_RATES: Final = {SOURCE: RateLimit(10), PROCESS: RateLimit(60)}  # error pages stored a minute
MAX_REASON_LENGTH: Final = 500
MAX_RECEIVED_LENGTH: Final = 300  # of a redirect URI, without what follows its path
MAX_CLIENT_LENGTH: Final = 200  # as received: it may be no client's

log = structlog.get_logger("gatehouse.web.http.errors")


class PageRefusals:
    def __init__(self, *, refusals: RefusalLog, rates: RateLimiter) -> None:
        """`rates`: one with PAGE_RATES."""
        self._refusals = refusals
        self._rates = rates

    async def add(
        self, request: Request, error: GatehouseError, *, actor: str = "", client_id: str = "", received: str = ""
    ) -> None:
        """Log and store the error of a page that is shown without raising it."""
        client = _printable(client_id, MAX_CLIENT_LENGTH)
        log.info(
            "refused", kind=type(error).__name__, detail=str(error), client_id=client, endpoint=_endpoint(request)
        )
        await self.store(request, str(error), actor=actor, client_id=client, received=received)

    async def store(
        self, request: Request, reason: str, *, actor: str = "", client_id: str = "", received: str = ""
    ) -> None:
        """Store the reason, if the limits allow it; a failure is only logged: the page shows an error already."""
        try:
            source = caller_address_of(request.scope).source
            if self._rates.admit(SOURCE, source) or self._rates.admit(PROCESS, ""):
                return
            origin = origin_of(request, actor)
            if actor:  # no address beside it: an erasure leaves nothing of the person but this number (OP-14)
                origin = replace(origin, address="")
            await self._refusals.add(
                AuditEvent.PAGE_REFUSED,
                origin,
                reason=_printable(reason, MAX_REASON_LENGTH),
                subject=client_id,
                details={
                    "endpoint": _endpoint(request),
                    **({"received": _printable(received, MAX_RECEIVED_LENGTH)} if received else {}),
                },
                record_id=origin.request_id,
            )
        except Exception:
            log.exception("the reason of an error page could not be stored")


def _endpoint(request: Request) -> str:
    """Return its name; empty for a request that was refused before it was known."""
    return str(request.scope["state"].get("endpoint", ""))


def _printable(text: str, length: int) -> str:
    return "".join(filter(str.isprintable, text[:length]))
