"""Generate docs/reference/checklist.md, which maps the adversarial checklist to tests.

The IDs come from docs/security/checklist.toml, the tests from function names in tests/:
`test_ht_04_ambiguous_framing_is_refused` covers HT-04. A name can contain several IDs.

    python tools/checklist.py            write the page and print what is missing
    python tools/checklist.py --check    write nothing; exit 1 if a test is missing or the page is out of date
"""

import argparse
import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = Path("docs/security/checklist.toml")
PAGE: Final = Path("docs/reference/checklist.md")
NAMED_ID: Final = re.compile(r"(?<=_)([a-z]{2})_([0-9]{2})(?=_|$)")

Tests = Mapping[str, Sequence[str]]  # id -> path::name

HEADER: Final = """\
# Adversarial checklist

<!-- Made by tools/checklist.py from docs/security/checklist.toml and the names of the tests. -->

Attacks and the tests that cover them. A test has the IDs it covers in its name. An ID that needs a feature Gatehouse
does not have yet waits for it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    id: str
    holds: str
    waits: tuple[str, ...]
    partly: bool
    void: str

    @property
    def needs_a_test(self) -> bool:
        return not self.void and (self.partly or not self.waits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    number: int
    title: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checklist:
    capabilities: frozenset[str]
    built: frozenset[str]
    sections: tuple[Section, ...]

    @property
    def items(self) -> tuple[Item, ...]:
        return tuple(item for section in self.sections for item in section.items)


def load(root: Path) -> Checklist:
    with (root / SOURCE).open("rb") as file:
        content = tomllib.load(file)
    return Checklist(
        capabilities=frozenset(content["capabilities"]),
        built=frozenset(content["built"]),
        sections=tuple(section_of(table) for table in content["section"]),
    )


def section_of(table: Mapping[str, Any]) -> Section:
    items = tuple(item_of(name, given, table["waits"]) for name, given in table["items"].items())
    return Section(number=table["number"], title=table["title"], items=items)


def item_of(name: str, given: str | Mapping[str, Any], waits: Sequence[str]) -> Item:
    table: Mapping[str, Any] = {"holds": given} if isinstance(given, str) else given
    return Item(
        id=name,
        holds=table["holds"],
        waits=tuple(table.get("waits", waits)),
        partly=table.get("partly", False),
        void=table.get("void", ""),
    )


def find_tests(root: Path) -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted((root / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name in names_of_tests(tree.body):
            for letters, digits in NAMED_ID.findall(name.rpartition("::")[2]):
                found[f"{letters.upper()}-{digits}"].append(f"{path.relative_to(root).as_posix()}::{name}")
    return dict(found)


def names_of_tests(body: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield from (f"{statement.name}::{name}" for name in names_of_tests(statement.body))
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name.startswith("test_"):
            yield statement.name


def problems(checklist: Checklist, tests: Tests) -> list[str]:
    return [
        *unknown_ids(checklist, tests),
        *(found for item in checklist.items for found in problems_of(item, checklist, tests)),
    ]


def unknown_ids(checklist: Checklist, tests: Tests) -> Iterator[str]:
    """Ids with letters of ours and a number that is not: a slip of the pen, which would answer nothing."""
    known = {item.id for item in checklist.items}
    letters = {name[:2] for name in known}
    for name in sorted(tests.keys() - known):
        if name[:2] in letters:
            yield f"{name} is not an ID in {SOURCE}: {', '.join(tests[name])}"


def problems_of(item: Item, checklist: Checklist, tests: Tests) -> Iterator[str]:
    if item.needs_a_test and item.id not in tests:
        yield f"{item.id} has no test: {item.holds}"
    for capability in item.waits:
        if capability in checklist.built:
            yield f"{item.id} waits for {capability}, which is built"
        elif capability not in checklist.capabilities:
            yield f"{item.id} waits for {capability}, which is not in {SOURCE}"


def page(checklist: Checklist, tests: Tests) -> str:
    parts = [HEADER, summary(checklist, tests)]
    for section in checklist.sections:
        parts += [f"\n## {section.number} {section.title}\n\n| Id | What must hold | Tests |\n|---|---|---|\n"]
        parts += [f"| {item.id} | {item.holds} | {answer(item, tests)} |\n" for item in section.items]
    return "".join(parts)


def summary(checklist: Checklist, tests: Tests) -> str:
    tested = sum(item.id in tests for item in checklist.items)
    missing = sum(item.needs_a_test and item.id not in tests for item in checklist.items)
    void = sum(bool(item.void) for item in checklist.items)
    waiting = len(checklist.items) - tested - missing - void
    return (
        f"\n{len(checklist.items)} IDs: {tested} with tests, {waiting} waiting, {void} not applicable, "
        f"{missing} missing.\n"
    )


def answer(item: Item, tests: Tests) -> str:
    if item.void:
        return f"not applicable: {item.void}"
    lines = [f"`{test}`" for test in tests.get(item.id, ())]
    if item.needs_a_test and not lines:
        lines.append("**missing**")
    if item.waits:
        lines.append(f"{'the rest ' if lines else ''}waits for {', '.join(item.waits)}")
    return "<br>".join(lines)


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 on problems")
    check = parser.parse_args(arguments).check
    checklist, tests = load(root), find_tests(root)
    found = problems(checklist, tests)
    text = page(checklist, tests)
    if not check:
        (root / PAGE).write_text(text, encoding="utf-8")
    elif not is_current(root / PAGE, text):
        found.append(f"{PAGE} is out of date: run python tools/checklist.py")
    print(*found, sep="\n", file=sys.stderr, end="\n" if found else "")
    return 1 if check and found else 0


def is_current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
