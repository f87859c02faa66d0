"""A running service that a Hypothesis state machine, which cannot await, calls step by step."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import seed
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.fuzz.conftest import SEED, examples
from tests.support.clock import MovableClock
from tests.support.service import RunningService, running_service

T = TypeVar("T")

UNLIMITED = {"GATEHOUSE__RATES__ENABLED": "false"}


class SteppedService:
    """Runs the service only during a step."""

    def __init__(self, runner: asyncio.Runner, service: RunningService) -> None:
        self.runner = runner
        self.service = service
        self._numbers = itertools.count(1)

    def number(self) -> int:
        """A number that is unique over all runs of the machine."""
        return next(self._numbers)

    def run(self, step: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(step)

    def now(self) -> int:
        return self.service.clock.now()

    def wait(self, seconds: int) -> None:
        self.run(self.service.clock.advance(seconds))


@contextmanager
def stepped_service(url: str, data: Path, environment: Mapping[str, str] = UNLIMITED) -> Iterator[SteppedService]:
    with asyncio.Runner() as runner, started_service(runner, url, data, environment) as service:
        yield SteppedService(runner, service)


@contextmanager
def second_node(
    bench: SteppedService, url: str, data: Path, environment: Mapping[str, str]
) -> Iterator[RunningService]:
    """Another node of the service, on the same database and clock."""
    same = {**environment, "GATEHOUSE__SERVER__BASE_URL": bench.service.base_url}
    with started_service(bench.runner, url, data, same, bench.service.clock) as service:
        yield service


@contextmanager
def started_service(
    runner: asyncio.Runner,
    url: str,
    data: Path,
    environment: Mapping[str, str],
    clock: MovableClock | None = None,
) -> Iterator[RunningService]:
    leaving = asyncio.Event()
    serving, service = runner.run(start_service(url, data, environment, leaving, clock))
    try:
        yield service
    finally:
        leaving.set()
        runner.run(wait_until_ended(serving))


async def start_service(
    url: str, data: Path, environment: Mapping[str, str], leaving: asyncio.Event, clock: MovableClock | None
) -> "tuple[asyncio.Task[None], RunningService]":
    """Run the service in one task, from the first step to the last."""
    started: asyncio.Future[RunningService] = asyncio.get_running_loop().create_future()

    async def serve() -> None:
        async with running_service(url, data, clock=clock, environment=environment) as service:
            started.set_result(service)
            await leaving.wait()

    serving = asyncio.create_task(serve())
    await asyncio.wait({serving, started}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
    return serving, started.result()


async def wait_until_ended(serving: "asyncio.Task[None]") -> None:
    await serving


def run_machine(machine: Callable[[], RuleBasedStateMachine], *, short: int, steps: int) -> None:
    """Run the machine `short` times in `make test`, each with at most this many steps."""

    def start_machine() -> RuleBasedStateMachine:
        return machine()

    seed(SEED)(start_machine)
    lives = examples(short)
    run_state_machine_as_test(start_machine, settings=type(lives)(lives, stateful_step_count=steps))  # type: ignore[arg-type]
