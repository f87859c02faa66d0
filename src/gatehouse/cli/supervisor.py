"""Several serving processes on one port: started, watched, restarted, stopped together.

Each worker listens for itself on the shared port and the kernel spreads the connections, so that no
request passes through here. Needs PostgreSQL: SQLite means one process.
"""

import asyncio
import signal
import sys
from collections.abc import Sequence
from typing import Final

import click
import structlog

from gatehouse.settings import LoadedSettings

log = structlog.get_logger(__name__)

RESTART_SECONDS: Final = 1.0
STOP_SECONDS: Final = 40.0  # a worker ends within 35 by itself, once it has left


def supervise(loaded: LoadedSettings) -> int:
    """Run until told to stop; the exit code. A first worker that cannot start ends everything."""
    server = loaded.settings.server
    return asyncio.run(Supervisor(sys.argv[1:], server.workers, STOP_SECONDS + server.leave_seconds).run())


class Supervisor:
    def __init__(self, arguments: Sequence[str], workers: int, stop_seconds: float) -> None:
        self._arguments = arguments
        self._stop_seconds = stop_seconds
        self._workers = workers
        self._stopping = asyncio.Event()
        self._running: dict[int, asyncio.subprocess.Process] = {}

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        ready = await self._start(0)  # alone, so that it migrates and makes the keys
        if ready is None:
            return await self._running[0].wait() or 1
        watchers = [asyncio.create_task(self._watch(worker)) for worker in range(self._workers)]
        click.echo(ready)
        await self._stopping.wait()
        await self._stop()
        await asyncio.gather(*watchers)
        return 0

    async def _watch(self, worker: int) -> None:
        if worker:
            await self._start(worker)
        while True:
            code = await self._running[worker].wait()
            if self._stopping.is_set():
                return
            log.error("worker exited", worker=worker, status=code)
            await asyncio.sleep(RESTART_SECONDS)
            if self._stopping.is_set():
                return
            await self._start(worker)

    async def _start(self, worker: int) -> str | None:
        """Start a worker and wait for its ready line, which is returned; what else it prints is passed on."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gatehouse", *self._arguments, "--worker", str(worker)),
            stdout=asyncio.subprocess.PIPE,
        )
        self._running[worker] = process
        assert process.stdout is not None  # noqa: S101 - it was asked for
        async for line in process.stdout:
            text = line.decode().rstrip("\n")
            if text.startswith("ready "):
                return text
            click.echo(text)
        return None

    async def _stop(self) -> None:
        for process in self._running.values():
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self._stop_seconds):
                await asyncio.gather(*(process.wait() for process in self._running.values()))
        except TimeoutError:
            for process in self._running.values():
                if process.returncode is None:
                    process.kill()
