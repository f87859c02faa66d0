"""What pyproject.toml says about the project. `Repository` is the only line that names where it lives.

Run as a program it prints the dependencies without their bounds, for `make lock UNBOUNDED=1`. Standard library only.
"""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]


def read_project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def repository_url() -> str:
    """Return the address of the repository, without a slash at its end."""
    url: str = read_project()["urls"]["Repository"]
    return url


def dependency_names() -> list[str]:
    return [re.split(r"[<>=]", line)[0] for line in read_project()["dependencies"]]


if __name__ == "__main__":
    print("\n".join(dependency_names()))
