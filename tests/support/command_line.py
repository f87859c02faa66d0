"""Run `gatehouse` commands in one long-lived process, which saves a start per command."""

import asyncio
import atexit
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from traceback import format_exception
from types import MappingProxyType
from typing import Any, Final

import apsw
import asyncpg
from click.testing import CliRunner

from gatehouse.cli import main as gatehouse
from gatehouse.settings.merge import LoadedSettings, load
from tests.support.forked import ForkedModule
from tests.support.processes import GATEHOUSE_COMMAND, inherited_environment
from tests.support.service import FAST_SETTINGS

NO_ENVIRONMENT: Final[Mapping[str, str]] = MappingProxyType({})
BUSY_MILLISECONDS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class CommandProcess:
    """A process that runs commands; it ends when its input closes."""

    def __init__(self) -> None:
        self._process = ForkedModule("tests.support.command_line", (), inherited_environment({}), errors=False)
        atexit.register(self._process.close)

    def run(self, request: Mapping[str, object]) -> CommandResult:
        self._process.stdin.write(f"{json.dumps(request)}\n")
        self._process.stdin.flush()
        return CommandResult(**json.loads(self._process.stdout.readline()))


@cache
def command_process() -> CommandProcess:
    return CommandProcess()


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Run commands on one installation; `options` are appended to each."""

    options: Sequence[str | Path]
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(
        self, *words: str | Path, stdin: str = "", environment: Mapping[str, str] = NO_ENVIRONMENT
    ) -> CommandResult:
        """Run the command and return its result, success or not."""
        return command_process().run(
            {
                "words": [str(word) for word in (*words, *self.options)],
                "stdin": stdin,
                "environment": {**FAST_SETTINGS, **self.environment, **environment},
            }
        )

    def __call__(self, *words: str | Path, stdin: str = "", environment: Mapping[str, str] = NO_ENVIRONMENT) -> str:
        """Run a command that must succeed; return its output."""
        finished = self.run(*words, stdin=stdin, environment=environment)
        assert finished.code == 0, f"{words}: {finished.out}{finished.err}"
        return finished.out

    def json(self, *words: str | Path, stdin: str = "", environment: Mapping[str, str] = NO_ENVIRONMENT) -> Any:
        return json.loads(self(*words, "--json", stdin=stdin, environment=environment))

    def facts(self, *words: str | Path) -> dict[str, str]:
        """Return what a command prints for people, a name and a value per line."""
        lines = (line.partition(" ") for line in self(*words).splitlines())
        return {name: value.strip() for name, _, value in lines}

    def expect_failure(
        self, *words: str | Path, environment: Mapping[str, str] = NO_ENVIRONMENT, code: int = 1
    ) -> str:
        """Run a command that must fail; return its error output."""
        finished = self.run(*words, environment=environment)
        assert finished.code == code, f"{words}: {finished.out}{finished.err}"
        assert "Traceback" not in finished.err
        return finished.err


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationPaths:
    """The paths of an installation, for commands and for nodes that serve it."""

    data: Path
    url: str
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, str]:
        return {**FAST_SETTINGS, "GATEHOUSE__DATABASE__URL": self.url, **self.environment}

    def load_settings(self) -> LoadedSettings:
        """Settings for a test that opens the services itself."""
        return load(data=self.data, config=None, dev=True, environment=self.settings, flags={})

    def command_line(self) -> CommandLine:
        return CommandLine(("--dev", "--data", self.data), self.settings)

    def run_in_terminal(self, *words: str | Path) -> tuple[str, str]:
        """Run a command that must succeed, with errors on a terminal; return its output and what the terminal got."""
        command = [*GATEHOUSE_COMMAND, *map(str, words), "--dev", "--data", str(self.data)]
        environment = inherited_environment({**self.settings, "TERM": "xterm", "COLUMNS": "80"})
        ours, theirs = os.openpty()
        finished = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=theirs, check=True)
        shown = os.read(ours, 65_536).decode()
        os.close(theirs)
        os.close(ours)
        return finished.stdout.decode(), shown


def execute_statements(url: str, statements: Sequence[str]) -> None:
    """Execute SQL as someone with the database's password could."""
    if url.startswith("sqlite:"):
        with apsw.Connection(url.removeprefix("sqlite:///")) as connection:
            connection.set_busy_timeout(BUSY_MILLISECONDS)  # a server may be writing at the same time
            for statement in statements:
                connection.execute(statement)
    else:
        asyncio.run(execute_on_postgres(url, statements))


async def execute_on_postgres(url: str, statements: Sequence[str]) -> None:
    connection = await asyncpg.connect(url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


def run_in_process(request: Mapping[str, Any]) -> CommandResult:
    result = CliRunner(env=request["environment"]).invoke(
        gatehouse, request["words"], input=request["stdin"], prog_name="gatehouse"
    )
    trace = "" if result.exception is None else "".join(format_exception(result.exception))
    err = result.stderr if isinstance(result.exception, SystemExit) else result.stderr + trace
    return CommandResult(code=result.exit_code, out=result.stdout, err=err)


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(f"{json.dumps(asdict(run_in_process(json.loads(line))))}\n")
        sys.stdout.flush()
