import asyncio
from collections.abc import Mapping

import pytest

from gatehouse.web.api.health import (
    CheckResult,
    HealthCheck,
    HealthEndpoints,
    Readiness,
    allow_bearer,
    operations_app,
)
from gatehouse.web.http.metrics import Metrics
from tests.support.clock import MovableClock, run_ready_tasks
from tests.support.sample_asgi_app import AppResponse, SampleAsgiApp, call_app

TOKEN = "operations-token"


async def check_passes() -> CheckResult:
    return CheckResult(ok=True, detail="revision 0007")


async def failing_check() -> CheckResult:
    return CheckResult(ok=False, detail="clock is 40 s off")


async def check_fails() -> CheckResult:
    raise ConnectionError("postgresql://user:hunter2@db")


async def check_hangs() -> CheckResult:
    await asyncio.Event().wait()
    return CheckResult(ok=True)


def a_readiness(checks: Mapping[str, HealthCheck], clock: MovableClock | None = None) -> Readiness:
    return Readiness(checks, clock=clock or MovableClock())


async def call_health(
    target: str, checks: Mapping[str, HealthCheck], *, token: str = TOKEN, sent: str = ""
) -> AppResponse:
    health = HealthEndpoints(
        readiness=a_readiness(checks), metrics=Metrics(["x"]), details_allowed=allow_bearer(token)
    )
    headers = [("Authorization", sent)] if sent else []
    return await call_app(SampleAsgiApp(endpoints=health.endpoints()).app(), "GET", target, headers=headers)


async def test_the_process_says_that_it_is_alive_whatever_the_checks_say() -> None:
    response = await call_health("/healthz", {"database": failing_check})
    assert (response.status, response.json()) == (200, {"status": "ok"})


async def test_everyone_learns_only_whether_it_is_ready() -> None:
    ready = await call_health("/readyz", {"database": check_passes})
    assert (ready.status, ready.json()) == (200, {"status": "ok"})
    not_ready = await call_health("/readyz", {"database": check_passes, "clock": failing_check})
    assert (not_ready.status, not_ready.json()) == (503, {"status": "unavailable"})


async def test_stopping_process_is_unready_immediately() -> None:
    stopping: list[bool] = []
    readiness = Readiness({"database": check_passes}, clock=MovableClock(), is_stopping=lambda: bool(stopping))
    assert (await readiness.report()).status == "ok"  # cached for a second
    stopping.append(True)
    assert (await readiness.report()).status == "unavailable"


async def test_readiness_shows_check_details_with_the_token() -> None:
    response = await call_health(
        "/readyz", {"database": check_passes, "clock": failing_check, "keys": check_fails}, sent=f"Bearer {TOKEN}"
    )
    assert response.status == 503
    assert response.json() == {
        "status": "unavailable",
        "checks": {
            "database": {"ok": True, "detail": "revision 0007"},
            "clock": {"ok": False, "detail": "clock is 40 s off"},
            "keys": {"ok": False, "detail": "ConnectionError"},
        },
    }


@pytest.mark.parametrize(
    ("token", "sent"),
    [(TOKEN, ""), (TOKEN, "Bearer wrong"), (TOKEN, TOKEN), ("", "Bearer "), ("", ""), (TOKEN, "Bearer \xff")],
)
async def test_details_and_metrics_are_hidden_without_the_right_token(token: str, sent: str) -> None:
    bare = await call_health("/readyz", {"database": check_passes}, token=token, sent=sent)
    assert bare.json() == {"status": "ok"}
    assert (await call_health("/metrics", {}, token=token, sent=sent)).status == 401


async def test_metrics_are_shown_with_the_token() -> None:
    response = await call_health("/metrics", {}, sent=f"Bearer {TOKEN}")
    assert response.status == 200
    assert b"# TYPE gatehouse_requests_total counter" in response.body
    assert response.headers["content-type"].startswith("text/plain; version=")


async def test_a_check_that_hangs_counts_as_failed_after_two_seconds_and_holds_up_no_other() -> None:
    clock = MovableClock()
    report = asyncio.ensure_future(a_readiness({"database": check_hangs, "keys": check_passes}, clock).report())
    await run_ready_tasks()
    await clock.advance(1.9)
    assert not report.done()
    await clock.advance(0.2)
    checks = (await report).checks
    assert (checks["database"].ok, checks["database"].detail) == (False, "timeout")
    assert checks["keys"].ok


async def test_many_askers_share_one_run_of_the_checks_for_a_second() -> None:
    runs = []

    async def count_calls() -> CheckResult:
        runs.append(1)
        return CheckResult(ok=True)

    clock = MovableClock()
    readiness = a_readiness({"database": count_calls}, clock)
    await asyncio.gather(*(readiness.report() for _ in range(50)))
    await clock.advance(0.9)
    await readiness.report()
    assert len(runs) == 1
    await clock.advance(0.2)
    await readiness.report()
    assert len(runs) == 2


async def test_the_operations_listener_needs_no_token() -> None:
    metrics = Metrics(["x"])
    app = operations_app(readiness=a_readiness({"clock": failing_check}), metrics=metrics, clock=MovableClock())
    ready = await call_app(app, "GET", "/readyz", client="127.0.0.1")
    assert (ready.status, ready.json()["checks"]["clock"]["detail"]) == (503, "clock is 40 s off")
    assert (await call_app(app, "GET", "/metrics")).status == 200
    assert (await call_app(app, "GET", "/healthz")).json() == {"status": "ok"}
    other = await call_app(app, "POST", "/api/permissions/roles")
    assert (other.status, other.headers["x-content-type-options"]) == (404, "nosniff")
