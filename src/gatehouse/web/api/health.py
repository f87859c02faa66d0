"""Liveness, readiness, metrics and the security contact.

The bare status is public; details and metrics are on the operations listener, or with its token
(docs/interface.md R8, checklist HT-17).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal

import msgspec
import structlog
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp
from structlog.typing import FilteringBoundLogger

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal
from gatehouse.throttle.rate_limiter import RateLimiter
from gatehouse.web.http.context import RequestContext
from gatehouse.web.http.errors import Dialect, ErrorRenderer, plain_error_page
from gatehouse.web.http.metrics import Metrics
from gatehouse.web.http.responses import NO_STORE, cacheable_response, json_response
from gatehouse.web.http.routing import Endpoint, RateClass, RequiredAuth, build_application

CHECK_TIMEOUT: Final = 2.0  # seconds after which a check counts as failed
REPORT_CACHE_SECONDS: Final = 1.0  # the path is public and the checks are expensive
SERVICE_UNAVAILABLE: Final = 503
SECURITY_TXT_CACHE_CONTROL: Final = "public, max-age=3600"

log: FilteringBoundLogger = structlog.get_logger("gatehouse.web.api.health")


class HealthStatus(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["ok", "unavailable"]


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    ok: bool
    detail: str = ""


class HealthReport(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["ok", "unavailable"]
    checks: dict[str, CheckResult]


HealthCheck = Callable[[], Awaitable[CheckResult]]
DetailsAllowed = Callable[[Request], bool]


STOPPING_REPORT: Final = HealthReport(
    status="unavailable", checks={"leaving": CheckResult(ok=False, detail="shutting down")}
)


class Readiness:
    """Runs the checks concurrently, each with a timeout, and caches the report for a second."""

    def __init__(
        self, checks: Mapping[str, HealthCheck], *, clock: Clock, is_stopping: Callable[[], bool] = lambda: False
    ) -> None:
        """`is_stopping`: once true, the process is not ready for anything new."""
        self._checks = checks
        self._clock = clock
        self._is_stopping = is_stopping
        self._lock = asyncio.Lock()
        self._cached_report: HealthReport | None = None
        self._cached_at = 0.0

    async def report(self) -> HealthReport:
        if self._is_stopping():
            return STOPPING_REPORT
        async with self._lock:
            if self._cached_report is None or self._clock.monotonic() - self._cached_at >= REPORT_CACHE_SECONDS:
                self._cached_report = await self._run_checks()
                self._cached_at = self._clock.monotonic()
            return self._cached_report

    async def _run_checks(self) -> HealthReport:
        results = await asyncio.gather(*(self._run_check(name, check) for name, check in self._checks.items()))
        sound = all(result.ok for result in results)
        checks = dict(zip(self._checks, results, strict=True))
        return HealthReport(status="ok" if sound else "unavailable", checks=checks)

    async def _run_check(self, name: str, check: HealthCheck) -> CheckResult:
        work = asyncio.ensure_future(check())
        alarm = asyncio.ensure_future(self._clock.sleep(CHECK_TIMEOUT))
        try:
            await asyncio.wait({work, alarm}, return_when=asyncio.FIRST_COMPLETED)
            return work.result() if work.done() else CheckResult(ok=False, detail="timeout")
        except Exception as error:
            log.exception("check failed", check=name)
            return CheckResult(ok=False, detail=type(error).__name__)
        finally:
            work.cancel()
            alarm.cancel()


def allow_everyone(_request: Request) -> bool:
    """Allow every request; for the operations listener, which is protected by its address."""
    return True


def allow_bearer(token: str) -> DetailsAllowed:
    """Allow requests with the token, on the public listener; without a configured token no request is allowed."""

    def has_token(request: Request) -> bool:
        credentials = request.headers.getlist("authorization")
        return bool(token) and len(credentials) == 1 and constant_time_equal(credentials[0], f"Bearer {token}")

    return has_token


class HealthEndpoints(Struct, kw_only=True, eq=False):
    readiness: Readiness
    metrics: Metrics
    details_allowed: DetailsAllowed

    async def alive(self, _request: Request) -> Response:
        return json_response(HealthStatus(status="ok"))

    async def ready(self, request: Request) -> Response:
        report = await self.readiness.report()
        visible_report = report if self.details_allowed(request) else HealthStatus(status=report.status)
        return json_response(visible_report, status=200 if report.status == "ok" else SERVICE_UNAVAILABLE)

    async def show_metrics(self, request: Request) -> Response:
        if not self.details_allowed(request):
            raise HTTPException(401)
        from gatehouse.web.http.metrics_text import MEDIA_TYPE, metrics_text  # noqa: PLC0415 - few processes are asked

        return Response(metrics_text(self.metrics), 200, NO_STORE, media_type=MEDIA_TYPE)

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                name="health.alive",
                path="/healthz",
                methods=("GET",),
                handler=self.alive,
                dialect=Dialect.PLAIN,
                rate_class=RateClass.PUBLIC,
                section="operations",
                summary="Liveness: the process is running",
                answers={200: HealthStatus},
            ),
            Endpoint(
                name="health.ready",
                path="/readyz",
                methods=("GET",),
                handler=self.ready,
                dialect=Dialect.PLAIN,
                rate_class=RateClass.PUBLIC,
                section="operations",
                summary="Readiness; with the operations token including details",
                answers={200: HealthStatus, SERVICE_UNAVAILABLE: HealthStatus},
            ),
            Endpoint(
                name="health.metrics",
                path="/metrics",
                methods=("GET",),
                handler=self.show_metrics,
                dialect=Dialect.PLAIN,
                rate_class=RateClass.PUBLIC,
                section="operations",
                summary="Prometheus metrics",
                auth=RequiredAuth.OPERATIONS,
                hidden=True,
            ),
        ]


class SecurityTextEndpoint:
    """The operator's security contact (RFC 9116), as the file has it; 404 without one."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    async def show(self, request: Request) -> Response:
        if not self._content:
            raise HTTPException(404)
        return cacheable_response(
            request, self._content, media_type="text/plain; charset=utf-8", cache_control=SECURITY_TXT_CACHE_CONTROL
        )

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="security_txt",
            path="/.well-known/security.txt",
            methods=("GET",),
            handler=self.show,
            dialect=Dialect.PLAIN,
            rate_class=RateClass.PUBLIC,
            section="operations",
            summary="Security contact (RFC 9116)",
            hidden=True,
        )


def operations_app(*, readiness: Readiness, metrics: Metrics, clock: Clock) -> ASGIApp:
    """Build the application of the operations listener.

    The same three paths, with all details and without rate limits.
    """
    health = HealthEndpoints(readiness=readiness, metrics=metrics, details_allowed=allow_everyone)
    errors = ErrorRenderer(render_error=plain_error_page)
    served = build_application(health.endpoints(), limiter=RateLimiter({}, clock=clock), errors=errors)
    return RequestContext(served, errors=errors, https=False)
