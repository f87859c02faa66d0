"""Child processes under test: their output is read, they are stopped by pid and end with the run."""

import atexit
import os
import pwd
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, Self

from tests.support.find_programs import ROOT
from tests.support.forked import ForkedModule

LOOPBACK: Final = "127.0.0.1"
PYTHON_MODULE: Final = (sys.executable, "-m")
GATEHOUSE_COMMAND: Final = (*PYTHON_MODULE, "gatehouse")
SETTINGS_PREFIX: Final = "GATEHOUSE__"
READY: Final = r"^ready (\S+)$"  # the line `serve` prints once it accepts requests (R8)
START_TIMEOUT: Final = 60.0  # seconds
STOP_TIMEOUT: Final = 30.0

# Below the ports Linux assigns to outgoing connections, so that a restarting server finds its port free.
LOWEST_PORT: Final = 20_000
PORTS: Final = 12_000
CLAIMS: Final[deque[int]] = deque(maxlen=100)  # file descriptors, of the ports given last


class DidNotStart(Exception):
    pass


class DidNotStop(Exception):
    pass


def free_port() -> int:
    """Return a port that no program listens on and that no test process was given lately."""
    while True:
        port = LOWEST_PORT + secrets.randbelow(PORTS)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0gatehouse-test-port-{port}")  # as visible as the port itself, and gone with the process
            with socket.socket() as candidate:
                candidate.bind((LOOPBACK, port))
        except OSError:
            claim.close()
            continue
        if len(CLAIMS) == CLAIMS.maxlen:
            os.close(CLAIMS.popleft())
        CLAIMS.append(claim.detach())
        return port


class WatchedProcess:
    """A child process whose output is read in the background, so that a test can wait for a line."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        user: pwd.struct_passwd | None = None,
    ) -> None:
        self._command = command
        self._changed = threading.Condition()
        self._open_streams = 2
        self._child = start_child(command, cwd, inherited_environment(environment or {}), user)
        atexit.register(self.kill)
        self.stdout: list[str] = []
        self.stderr: list[str] = []
        self._readers = [
            self._read(self._child.stdout, self.stdout),
            self._read(self._child.stderr, self.stderr),
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child.poll() is None

    def wait_for_line(self, pattern: str, lines: Sequence[str], *, within: float = START_TIMEOUT) -> re.Match[str]:
        """Wait for the first line of `stdout` or `stderr` that matches; raise DidNotStart if none comes."""
        with self._changed:
            self._changed.wait_for(lambda: first_match(pattern, lines) or not self._open_streams, within)
            match = first_match(pattern, lines)
        if match is None:
            state = "is silent" if self._open_streams else f"ended with {self.wait()}"
            raise DidNotStart(f"{self._command} {state}, no {pattern!r}; output:\n{self.output()}")
        return match

    def wait_until_started(self, pattern: str, lines: Sequence[str]) -> re.Match[str]:
        """Run `wait_for_line`; kill the process when the line does not come."""
        try:
            return self.wait_for_line(pattern, lines)
        except DidNotStart:
            self.kill()
            raise

    def output(self) -> str:
        return "".join([*self.stdout, *self.stderr])

    def send(self, signal_number: signal.Signals) -> None:
        if self.running:
            self._child.send_signal(signal_number)

    def stop(self, signal_number: signal.Signals = signal.SIGTERM, *, within: float = STOP_TIMEOUT) -> int:
        """Send SIGTERM and return the exit code."""
        self.send(signal_number)
        return self.wait(within)

    def wait(self, within: float = STOP_TIMEOUT) -> int:
        """Return the exit code; kill a process that does not end in time and raise DidNotStop."""
        try:
            self._child.wait(within)
        except subprocess.TimeoutExpired:
            self.kill()
            raise DidNotStop(f"{self._command} did not end; output:\n{self.output()}") from None
        return self.kill()

    def kill(self) -> int:
        """Send SIGKILL to the process and all it started; does nothing when they have ended."""
        if self.running or self._open_streams:  # an open stream means that a child of it still runs
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        code = self._child.wait()
        for reader in self._readers:
            reader.join(STOP_TIMEOUT)
        atexit.unregister(self.kill)
        return code

    def _read(self, stream: IO[str] | None, lines: list[str]) -> threading.Thread:
        reader = threading.Thread(target=self._collect, args=(stream, lines), daemon=True)
        reader.start()
        return reader

    def _collect(self, stream: IO[str], lines: list[str]) -> None:
        with stream:
            for line in stream:
                with self._changed:
                    lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._open_streams -= 1
            self._changed.notify_all()


def start_child(
    command: Sequence[str], cwd: Path | None, environment: Mapping[str, str], user: pwd.struct_passwd | None
) -> ForkedModule | subprocess.Popen[str]:
    """Start it in a new process group: Ctrl-C reaches only the tests, and `kill` also ends the child's children."""
    interpreter, program = tuple(command[: len(PYTHON_MODULE)]), command[len(PYTHON_MODULE) :]
    if interpreter == PYTHON_MODULE and cwd in (None, ROOT) and user is None:
        forked = ForkedModule(program[0], program[1:], environment)
        forked.stdin.close()
        return forked
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        user=None if user is None else user.pw_uid,
        group=None if user is None else user.pw_gid,
        extra_groups=None if user is None else [],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def first_match(pattern: str, lines: Sequence[str]) -> re.Match[str] | None:
    return next((match for line in lines if (match := re.search(pattern, line))), None)


def inherited_environment(changes: Mapping[str, str]) -> dict[str, str]:
    """The environment of this run without its Gatehouse settings, because each test sets its own."""
    ours = os.environ.items()  # noqa: TID251 - passed on to a child; no setting is read
    return {name: value for name, value in ours if not name.startswith(SETTINGS_PREFIX)} | dict(changes)


class Node:
    """One `gatehouse serve` on a loopback port that it keeps over restarts."""

    def __init__(
        self,
        *,
        data: Path,
        database_url: str | None = None,
        flags: Sequence[str] = ("--dev",),
        environment: Mapping[str, str] | None = None,
        program: Sequence[str] = GATEHOUSE_COMMAND,
    ) -> None:
        self.port = free_port()
        self.address = f"http://{LOOPBACK}:{self.port}"
        self.base_url = ""  # from the ready line; the same on all nodes of a service
        self._command = [*program, "serve", "--host", LOOPBACK, "--port", str(self.port)]
        self._command += ["--data", str(data), *flags]
        self._environment = dict(environment or {})
        if database_url is not None:
            self._environment["GATEHOUSE__DATABASE__URL"] = database_url
        self._process: WatchedProcess | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def process(self) -> WatchedProcess:
        if self._process is None:
            raise DidNotStart("this node was never started")
        return self._process

    def start(self) -> None:
        """Return once it accepts requests; DidNotStart contains its output."""
        self._process = WatchedProcess(self._command, environment=self._environment)
        ready = self._process.wait_until_started(READY, self._process.stdout)
        self.base_url = ready[1]

    def terminate(self) -> int:
        """Send SIGTERM, as an orderly restart does; return the exit code."""
        return self.process.stop(signal.SIGTERM)

    def kill(self) -> int:
        """Send SIGKILL to the node and its workers."""
        return self.process.kill()

    def restart(self) -> None:
        self.terminate()
        self.start()


@contextmanager
def two_nodes(
    *,
    data: Path,
    database_url: str,
    flags: Sequence[str] = ("--dev",),
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] = GATEHOUSE_COMMAND,
) -> Iterator[tuple[Node, Node]]:
    """Start two nodes of one service: one database, one data directory (so one key), one base_url.

    The second starts after the first, which has created the tables and the key by then.
    """
    settings = dict(environment or {})
    first = Node(data=data, database_url=database_url, flags=flags, environment=settings, program=program)
    settings.setdefault("GATEHOUSE__SERVER__BASE_URL", first.address)
    second = Node(data=data, database_url=database_url, flags=flags, environment=settings, program=program)
    with first, second:
        yield first, second


def run_command(*arguments: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """Run one `gatehouse` command and return its output; a failure raises with stdout and stderr."""
    with WatchedProcess([*GATEHOUSE_COMMAND, *map(str, arguments)], environment=environment) as process:
        code = process.wait(START_TIMEOUT)
        assert code == 0, f"{arguments}: {process.output()}"
        return "".join(process.stdout)
