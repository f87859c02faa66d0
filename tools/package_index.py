"""Writes each room's sentence into docs/architecture.md; `--check` only says whether it is there."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "architecture.md"
BEGIN: Final = "<!-- packages -->\n"
END: Final = "<!-- /packages -->"


def packages() -> Iterator[str]:
    for package in sorted((ROOT / "src" / "gatehouse").glob("*/__init__.py")):
        sentence = ast.get_docstring(ast.parse(package.read_text())) or ""
        yield f"- **`{package.parent.name}/`** {' '.join(sentence.split())}"


def page() -> str:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    return before + BEGIN + "\n".join(packages()) + "\n" + END + after


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text() != page())
    PAGE.write_text(page())
