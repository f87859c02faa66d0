"""Remove one safeguard from a copy of the program and run the test that should then fail (faults R-31).

The sources are not changed: the copy comes first on the test's path.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.processes import inherited_environment

ROOT: Final = Path(__file__).parents[2]
MUTATIONS_FILE: Final = Path(__file__).parent / "mutations" / "mutations.toml"
TIMEOUT: Final = 300.0  # seconds for one run
FAILED: Final = 1  # pytest's exit code for failed tests; collecting nothing has a different one


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    name: str
    file: str
    old: str
    new: str
    test: str
    quick: bool = False

    def apply(self, package: Path) -> None:
        path = package / self.file
        text = path.read_text()
        assert text.count(self.old) == 1, (
            f"{self.file} contains the line of {self.name!r} {text.count(self.old)} times"
        )
        path.write_text(text.replace(self.old, self.new))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    code: int
    output: str

    @property
    def failed_tests(self) -> tuple[str, ...]:
        """The tests with a failed assertion; a test whose setup failed does not count."""
        lines = self.output.splitlines() if self.code == FAILED else []
        return tuple(line.removeprefix("FAILED ").partition(" ")[0] for line in lines if line.startswith("FAILED "))


def mutations() -> list[Mutation]:
    return [Mutation(**entry) for entry in tomllib.loads(MUTATIONS_FILE.read_text())["mutation"]]


def try_mutations(mutations: Sequence[Mutation], directory: Path) -> Verdict:
    """Apply all of them to one copy and run their tests."""
    package = directory / "gatehouse"
    shutil.copytree(ROOT / "src" / "gatehouse", package)  # with its bytecode, which the other modules can use
    for mutation in mutations:
        mutation.apply(package)
    return run([mutation.test for mutation in mutations], directory)


def run(tests: Sequence[str], directory: Path) -> Verdict:
    """Run the tests with `directory` first on the path."""
    finished = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *tests,
            "-rfE",
            "--database",
            "both",
            "-p",
            "no:cacheprovider",
            "--basetemp",
            str(directory / "tmp"),
        ],
        cwd=ROOT,
        env=run_environment(directory),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    return Verdict(code=finished.returncode, output=finished.stdout)


def run_environment(directory: Path) -> Mapping[str, str]:
    """The environment without the variables of pytest and `make faults`: one short run is enough."""
    path = os.pathsep.join((str(directory), str(ROOT)))
    ours = inherited_environment({"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"})
    return {name: value for name, value in ours.items() if not name.startswith(("PYTEST_", "FAULT_"))}
