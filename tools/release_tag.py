"""Check that a tag may be released, or print its section of the changelog (docs/operations/release.md).

Run as `python3 tools/release_tag.py v0.1.0 REPOSITORY-URL`, or `--notes v0.1.0`; the standard library is enough.
"""

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.repository import ROOT, read_project


def changelog_section(version: str, changelog: str) -> str:
    """Return what the changelog says about a version, without its heading; empty if there is nothing."""
    heading = re.compile(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", re.MULTILINE)
    found = heading.search(changelog)
    if found is None:
        return ""
    return re.split(r"^## ", changelog[found.end() :], maxsplit=1, flags=re.MULTILINE)[0].strip()


def problems_of(tag: str, repository: str, project: dict[str, Any], changelog: str) -> list[str]:
    """Return what is in the way of a release, one sentence each."""
    version, url = project["version"], project["urls"]["Repository"]
    problems = []
    if tag != f"v{version}":
        problems.append(f"the tag is {tag}, the version in pyproject.toml is {version}")
    if url != repository:
        problems.append(f"Repository in pyproject.toml is {url}, this is {repository}")
    if not changelog_section(version, changelog):
        problems.append(f"CHANGELOG.md has no dated section [{version}] - YYYY-MM-DD")
    return problems


def main(arguments: list[str]) -> int:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if arguments[:1] == ["--notes"]:
        notes = changelog_section(arguments[1].removeprefix("v"), changelog)
        print(notes)
        return 0 if notes else 1
    tag, repository = arguments
    problems = problems_of(tag, repository, read_project(), changelog)
    for problem in problems:
        print(f"NOT READY: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
