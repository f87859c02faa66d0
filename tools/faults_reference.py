"""Which tests answer which fault: makes docs/reference/faults.md of docs/security/faults.toml and the names of tests.

`test_r_04_a_restart_of_postgresql_is_told_as_503` answers R-04; a name may hold several ids.
"""

import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = Path("docs/security/faults.toml")
PAGE: Final = Path("docs/reference/faults.md")
TEST: Final = re.compile(r"^(?:async )?def (test_\w*)", re.MULTILINE)
NAMED_ID: Final = re.compile(r"(?<=_)r_([0-9]{2})(?=_|$)")

HEADER: Final = """\
# Faults and their tests

<!-- Made by tools/faults_reference.py from docs/security/faults.toml and the names of the tests. -->

Faults and the tests that inject them. `make test` runs most of them briefly, `make faults` all for a long time;
[how they work](../operations/faults.md).

| Id | Fault | Tests |
|---|---|---|
"""


def find_tests(root: Path) -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted((root / "tests").rglob("test_*.py")):
        for name in TEST.findall(path.read_text(encoding="utf-8")):
            for digits in NAMED_ID.findall(name):
                found[f"R-{digits}"].append(f"{path.relative_to(root).as_posix()}::{name}")
    return dict(found)


def page(root: Path) -> str:
    with (root / SOURCE).open("rb") as file:
        faults: dict[str, str | dict[str, Any]] = tomllib.load(file)["faults"]
    tests = find_tests(root)
    return HEADER + "".join(line(name, about, tests.get(name, [])) for name, about in faults.items())


def line(name: str, about: str | dict[str, Any], tests: list[str]) -> str:
    fault, without = (about, "") if isinstance(about, str) else (about["fault"], about["without"])
    told = "<br>".join(f"`{test}`" for test in tests) or (f"none: {without}" if without else "**missing**")
    return f"| {name} | {fault} | {told} |\n"


def main(root: Path = ROOT) -> int:
    (root / PAGE).write_text(page(root), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
