"""Is the process alive, can it serve, and what do its figures say.

Everyone is told the bare fact; why, and the metrics, only on the operations listener or to whoever has its
token (docs/interface.md R8, checklist HT-17).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal

import msgspec
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp
from structlog.typing import FilteringBoundLogger

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import same_secret
from gatehouse.web import metrics
from gatehouse.web.dialects import Dialect
from gatehouse.web.errors import ErrorAnswers, bare_page
from gatehouse.web.metrics import Metrics
from gatehouse.web.middleware.client_address import ClientAddress
from gatehouse.web.middleware.request_id import RequestId
from gatehouse.web.middleware.security_headers import SecurityHeaders
from gatehouse.web.responses import NO_STORE, json_answer
from gatehouse.web.routes.table import Auth, Endpoint, RateClass, application

CHECK_SECONDS: Final = 2.0  # after which a check counts as failed
REPORT_SECONDS: Final = 1.0  # for which one report answers everyone: the path is public, the checks cost
UNAVAILABLE: Final = 503

log: FilteringBoundLogger = structlog.get_logger("gatehouse.web.health")


class Status(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["ok", "unavailable"]


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    ok: bool
    detail: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["ok", "unavailable"]
    checks: dict[str, CheckResult]


Check = Callable[[], Awaitable[CheckResult]]
Gate = Callable[[Request], bool]


LEAVING: Final = Report(status="unavailable", checks={"leaving": CheckResult(ok=False, detail="shutting down")})


class Readiness:
    """Runs the checks side by side, each within its time, and remembers the outcome for a moment."""

    def __init__(
        self, checks: Mapping[str, Check], *, clock: Clock, leaving: Callable[[], bool] = lambda: False
    ) -> None:
        """`leaving`: told to stop, and so ready for nothing new, from that moment on."""
        self._checks = checks
        self._clock = clock
        self._leaving = leaving
        self._one_at_a_time = asyncio.Lock()
        self._report: Report | None = None
        self._made_at = 0.0

    async def report(self) -> Report:
        if self._leaving():
            return LEAVING
        async with self._one_at_a_time:
            if self._report is None or self._clock.monotonic() - self._made_at >= REPORT_SECONDS:
                self._report = await self._run()
                self._made_at = self._clock.monotonic()
            return self._report

    async def _run(self) -> Report:
        results = await asyncio.gather(*(self._bounded(name, check) for name, check in self._checks.items()))
        sound = all(result.ok for result in results)
        checks = dict(zip(self._checks, results, strict=True))
        return Report(status="ok" if sound else "unavailable", checks=checks)

    async def _bounded(self, name: str, check: Check) -> CheckResult:
        work = asyncio.ensure_future(check())
        alarm = asyncio.ensure_future(self._clock.sleep(CHECK_SECONDS))
        try:
            await asyncio.wait({work, alarm}, return_when=asyncio.FIRST_COMPLETED)
            return work.result() if work.done() else CheckResult(ok=False, detail="timeout")
        except Exception as error:
            log.exception("check failed", check=name)
            return CheckResult(ok=False, detail=type(error).__name__)
        finally:
            work.cancel()
            alarm.cancel()


def everyone(_request: Request) -> bool:
    """The gate of the operations listener, whose address is the gate."""
    return True


def bearer_of(token: str) -> Gate:
    """The gate of the public listener; without a token it never opens."""

    def opens(request: Request) -> bool:
        given = request.headers.getlist("authorization")
        return bool(token) and len(given) == 1 and same_secret(given[0], f"Bearer {token}")

    return opens


class Health:
    def __init__(self, *, readiness: Readiness, metrics: Metrics, gate: Gate) -> None:
        self._readiness = readiness
        self._metrics = metrics
        self._gate = gate

    async def alive(self, _request: Request) -> Response:
        return json_answer(Status(status="ok"))

    async def ready(self, request: Request) -> Response:
        report = await self._readiness.report()
        told = report if self._gate(request) else Status(status=report.status)
        return json_answer(told, status=200 if report.status == "ok" else UNAVAILABLE)

    async def figures(self, request: Request) -> Response:
        if not self._gate(request):
            raise HTTPException(401)
        return Response(self._metrics.text(), 200, NO_STORE, media_type=metrics.MEDIA_TYPE)

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
                answers={200: Status},
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
                answers={200: Status, UNAVAILABLE: Status},
            ),
            Endpoint(
                name="health.metrics",
                path="/metrics",
                methods=("GET",),
                handler=self.figures,
                dialect=Dialect.PLAIN,
                rate_class=RateClass.PUBLIC,
                section="operations",
                summary="Prometheus metrics",
                auth=Auth.OPERATIONS,
                hidden=True,
            ),
        ]


class Unlimited:
    """The operations listener serves the operator's own machines."""

    def admit(self, _rate_class: RateClass, _source: str) -> int:
        return 0


def operations_app(*, readiness: Readiness, metrics: Metrics) -> ASGIApp:
    """What the separate operations address serves: the same three paths, with all details."""
    health = Health(readiness=readiness, metrics=metrics, gate=everyone)
    errors = ErrorAnswers(render_error=bare_page)
    served = application(health.endpoints(), limiter=Unlimited(), errors=errors)
    return RequestId(SecurityHeaders(ClientAddress(served, refuse=errors.refuse), https=False))
