"""The house is as docs/architecture.md draws it."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tools import package_index

SOURCE = package_index.ROOT / "src" / "gatehouse"
SHELLS = {"web", "storage", "cli", "settings"}
# `conditions` reads stored conditions; `limits` is asked inside the transaction that grows something.
STORAGE_MAY_SEE = {"model", "store", "errors", "events", "conditions", "limits"}


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_every_room_has_its_sentence_and_the_page_repeats_it() -> None:
    assert package_index.PAGE.read_text() == package_index.page(), "run tools/package_index.py"
    assert all(len(line.split()) > 6 for line in package_index.packages())


def test_storage_sees_only_the_records_contracts_and_errors_of_rooms() -> None:
    wrong = []
    for path in SOURCE.glob("storage/**/*.py"):
        for module in imports_of(path):
            parts = module.split(".")
            if parts[0] != "gatehouse" or len(parts) < 2 or parts[1] in {"storage", "kernel"}:
                continue
            if parts[1] != "admin" and not STORAGE_MAY_SEE & set(parts[2:]):  # admin: records and rules
                wrong.append(f"{path.relative_to(SOURCE)} imports {module}")
    assert wrong == []


def test_imports_stand_at_the_top_save_in_commands() -> None:
    wrong = []
    for path in SOURCE.glob("**/*.py"):
        if path.is_relative_to(SOURCE / "cli"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                wrong += [
                    f"{path.relative_to(SOURCE)}: {node.name}"
                    for inner in ast.walk(node)
                    if isinstance(inner, ast.Import | ast.ImportFrom)
                ]
    assert wrong == []


def test_nobody_dodges_a_cycle() -> None:
    assert not [path for path in SOURCE.glob("**/*.py") if "TYPE_CHECKING" in path.read_text()]


def test_no_file_becomes_a_drawer() -> None:
    names = {path.stem for path in SOURCE.glob("**/*.py")}
    assert not names & {"utils", "util", "helpers", "helper", "common_utils", "misc", "manager"}


def test_no_file_outgrows_its_reader() -> None:
    long = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.glob("**/*.py")
        if (lines := len(path.read_text().splitlines())) > 600
    }
    assert long == {}
