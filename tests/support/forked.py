"""Run `python -m MODULE` in a fork of a process that has imported Gatehouse, which saves its imports per start."""

import atexit
import multiprocessing
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path
from typing import IO, Final

FORKING: Final = multiprocessing.get_context("forkserver")
# What the service and the programs of the tests import, not the programs: those run as `__main__`.
FORKING.set_forkserver_preload(
    [
        "gatehouse.cli.serve",
        "gatehouse.app.endpoints",
        "alembic.command",
        "tests.support.guest_racers",
        "tests.support.permission_racers",
        __name__,
    ]
)
# Waits for the server, so that the CPU time of everything it started counts as that of this process.
atexit.register(forkserver._forkserver._stop)  # type: ignore[attr-defined]


class ForkedModule:
    """The part of subprocess.Popen that tests use. Unless `errors` are read, they go where those of the tests go."""

    def __init__(
        self, module: str, arguments: Sequence[str], environment: Mapping[str, str], *, errors: bool = True
    ) -> None:
        ours, theirs = zip(*(socket.socketpair() for _ in range(3)), strict=True)
        self.stdin: IO[str] = ours[0].makefile("w")
        self.stdout: IO[str] = ours[1].makefile(errors="replace")
        self.stderr: IO[str] = ours[2].makefile(errors="replace")
        self._process = FORKING.Process(
            target=run_module,
            args=(module, arguments, dict(environment), Path.cwd(), theirs if errors else theirs[:2]),
            daemon=False,
        )
        self._process.start()
        for stream in (*ours, *theirs):
            stream.close()  # the files keep ours open
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("python -m", timeout or 0)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def close(self) -> None:
        """End its input and wait until it has ended, for a program that reads until then."""
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()
        self.wait()


def run_module(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    streams: Sequence[socket.socket],
) -> None:
    """The whole life of the child: a session of its own, its own streams and environment."""
    os.setsid()
    os.chdir(directory)
    for number, stream in enumerate(streams):
        with stream:
            os.dup2(stream.fileno(), number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - multiprocessing has opened /dev/null
    os.environ.clear()  # noqa: TID251 - no setting is read
    os.environ.update(environment)  # noqa: TID251
    sys.argv = [module, *arguments]  # run_module sets the first to the file, which `--workers` passes on
    runpy.run_module(module, run_name="__main__", alter_sys=True)
