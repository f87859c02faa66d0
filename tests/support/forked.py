"""Start `gatehouse` by forking a process that has imported it, which saves a second of CPU time per start."""

import atexit
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path
from typing import Final

import gatehouse as package
from gatehouse.cli import main as gatehouse

MAIN: Final = str(Path(package.__file__).with_name("__main__.py"))
FORKING: Final = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload(["gatehouse.cli.serve", "gatehouse.app.endpoints", __name__])
# Waits for the server, so that the CPU time of everything it started counts as that of this process.
atexit.register(forkserver._forkserver._stop)  # type: ignore[attr-defined]


class ForkedGatehouse:
    """The part of subprocess.Popen that tests use."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        (read_out, out), (read_err, err) = socket.socketpair(), socket.socketpair()
        with read_out, read_err, out, err:
            self.stdout = read_out.makefile(errors="replace")
            self.stderr = read_err.makefile(errors="replace")
            self._process = FORKING.Process(
                target=run_gatehouse, args=(arguments, dict(environment), out, err), daemon=False
            )
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("gatehouse", timeout or 0)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)


def run_gatehouse(
    arguments: Sequence[str], environment: Mapping[str, str], out: socket.socket, err: socket.socket
) -> None:
    """The whole life of the child: a session of its own, its own output and environment."""
    os.setsid()
    with out, err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
    os.environ.clear()  # noqa: TID251 - no setting is read
    os.environ.update(environment)  # noqa: TID251
    sys.argv = [MAIN, *arguments]  # as of `python -m gatehouse`: commands show it, and `--workers` passes it on
    gatehouse(arguments, prog_name="gatehouse")
