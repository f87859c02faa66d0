"""Format, lint and types of the files that differ from the last commit: `python -m tools.check_changed`."""

import subprocess
import sys
from pathlib import Path
from typing import Final

BIN: Final = Path(sys.executable).parent
TYPED: Final = ("src/", "bench/", "tests/faults/")  # what mypy is configured for


def main() -> int:
    changed = [name for name in changed_files() if name.endswith(".py") and Path(name).exists()]
    if not changed:
        return 0
    commands = [["ruff", "format", "--check", *changed], ["ruff", "check", *changed]]
    typed = [name for name in changed if name.startswith(TYPED)]
    if typed:
        commands.append(["mypy", "--follow-imports=silent", *typed])
    return max(subprocess.run([BIN / command[0], *command[1:]], check=False).returncode for command in commands)


def changed_files() -> list[str]:
    if not Path(".git").exists():
        print("check: this is no git repository, so no file is known to have changed; make check checks all")
        return []
    listed = ["git", "diff", "--name-only", "HEAD"], ["git", "ls-files", "--others", "--exclude-standard"]
    return [
        name
        for command in listed
        for name in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    ]


if __name__ == "__main__":
    sys.exit(main())
