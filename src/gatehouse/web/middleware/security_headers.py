"""What every answer tells a browser not to do (S-08, S-09, checklist HT-01)."""

from collections.abc import Iterable
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from gatehouse.web.middleware.answers import Header, with_headers

TWO_YEARS: Final = 2 * 365 * 24 * 3600
UNUSED_FEATURES: Final = (
    "accelerometer",
    "camera",
    "display-capture",
    "geolocation",
    "gyroscope",
    "magnetometer",
    "microphone",
    "midi",
    "payment",
    "usb",
)


def content_security_policy(*, form_action: Iterable[str] = (), images: Iterable[str] = ()) -> str:
    """The strict policy, with these sources beside 'self': a client's redirect origin, `data:` on /docs."""
    return "; ".join(
        [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            f"img-src {policy_sources(images)}",
            "font-src 'self'",
            "connect-src 'self'",
            f"form-action {policy_sources(form_action)}",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ]
    )


def policy_sources(extra: Iterable[str]) -> str:
    allowed = ["'self'", *extra]
    for source in allowed:
        if not source.isascii() or not source.isprintable() or any(mark in source for mark in " ;,"):
            raise ValueError(f"{source!r} would add more than one source to a policy")
    return " ".join(allowed)


SECURITY_HEADERS: Final[tuple[Header, ...]] = (
    (b"content-security-policy", content_security_policy().encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", ", ".join(f"{feature}=()" for feature in UNUSED_FEATURES).encode()),
    (b"cache-control", b"no-store"),
)
HSTS: Final[Header] = (b"strict-transport-security", b"max-age=%d; includeSubDomains" % TWO_YEARS)


class SecurityHeadersMiddleware:
    """Adds what the answer does not say itself: a page may bring its own policy, a static file its caching."""

    def __init__(self, app: ASGIApp, *, https: bool) -> None:
        self._app = app
        self._headers = (*SECURITY_HEADERS, HSTS) if https else SECURITY_HEADERS
        self._names = frozenset(name for name, _ in self._headers)
        self._missing_cache: dict[tuple[bytes, ...], tuple[Header, ...]] = {}  # a handful: answers say few of them

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, with_headers(send, self.missing_headers))

    def missing_headers(self, present: Iterable[Header]) -> Iterable[Header]:
        """What an answer with these headers does not say yet."""
        said = tuple(lower for name, _ in present if (lower := name.lower()) in self._names)
        missing = self._missing_cache.get(said)
        if missing is None:
            missing = tuple(header for header in self._headers if header[0] not in said)
            if len(set(said)) == len(said):  # else an endpoint that repeats itself could make this grow
                self._missing_cache[said] = missing
        return missing
