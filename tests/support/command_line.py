"""The command line in a process of its own, which takes many commands: each is real, and costs no new start."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

from tests.support.finding import ROOT
from tests.support.processes import inherited_environment
from tests.support.service import QUICK

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class CommandLine:
    """Commands about one installation; `options` follow each of them."""

    def __init__(self, *options: str | Path, environment: Mapping[str, str] = NOTHING) -> None:
        self._options = [str(option) for option in options]
        self._environment = {**QUICK, **environment}
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.support.command_line"],
            cwd=ROOT,
            env=inherited_environment({}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """The child ends with its input."""
        self._child.communicate()

    def try_(self, *words: str | Path, stdin: str = "", environment: Mapping[str, str] = NOTHING) -> Finished:
        """Run the command, whatever comes of it."""
        asked = {
            "words": [*map(str, words), *self._options],
            "stdin": stdin,
            "environment": {**self._environment, **environment},
        }
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(f"{json.dumps(asked)}\n")
        self._child.stdin.flush()
        return Finished(**json.loads(self._child.stdout.readline()))

    def __call__(self, *words: str | Path, stdin: str = "", environment: Mapping[str, str] = NOTHING) -> str:
        """Run a command that must succeed; what it printed."""
        finished = self.try_(*words, stdin=stdin, environment=environment)
        assert finished.code == 0, f"{words}: {finished.out}{finished.err}"
        return finished.out

    def json(self, *words: str | Path, stdin: str = "", environment: Mapping[str, str] = NOTHING) -> Any:
        return json.loads(self(*words, "--json", stdin=stdin, environment=environment))

    def refused(self, *words: str | Path, environment: Mapping[str, str] = NOTHING, code: int = 1) -> str:
        """Run a command that must fail; what it said."""
        finished = self.try_(*words, environment=environment)
        assert finished.code == code, f"{words}: {finished.out}{finished.err}"
        assert "Traceback" not in finished.err
        return finished.err


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an installation is: for commands, and for nodes that serve it."""

    data: Path
    url: str
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, str]:
        return {**QUICK, "GATEHOUSE__DATABASE__URL": self.url, **self.environment}

    def commands(self) -> CommandLine:
        return CommandLine("--dev", "--data", self.data, environment=self.settings)


def main() -> None:
    from traceback import format_exception

    from click.testing import CliRunner

    from gatehouse.cli import main as gatehouse

    for line in sys.stdin:
        asked = json.loads(line)
        result = CliRunner(env=asked["environment"]).invoke(
            gatehouse, asked["words"], input=asked["stdin"], prog_name="gatehouse"
        )
        trace = "".join(format_exception(*result.exc_info)) if result.exc_info and result.exception else ""
        trace = "" if isinstance(result.exception, SystemExit) else trace
        print(
            json.dumps({"code": result.exit_code, "out": result.stdout, "err": result.stderr + trace}),
            flush=True,
        )


if __name__ == "__main__":
    main()
