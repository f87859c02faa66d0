"""Which SQL statements ran on which database: a whole run fails if one ran on a single database only.

Most tests run on one of the two databases. This makes sure that nothing of the storage is tested on one alone.
Services in other processes are not seen.
"""

import gc
import os
import pkgutil
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from importlib import import_module
from types import ModuleType
from typing import Final

import pytest

import gatehouse
from gatehouse import admin, storage
from gatehouse.storage.statements import CompiledStatement, DatabaseKind, Statement

NO_STATEMENTS: Final = re.compile(r"gatehouse\.(client|demo|storage\.migrations)\b|.*__main__$")
WORKER_OUTPUT: Final = "statements_run"
CURRENT_TEST: Final = "PYTEST_CURRENT_TEST"
ONE_DATABASE_STATEMENTS: Final = frozenset(
    {
        "admin.settings.POSTGRES_FACTS",
        *(f"admin.settings.SQLITE_{name}" for name in ("PAGE_COUNT", "PAGE_SIZE", "VERSION")),
        # PostgreSQL does in one statement what is a short transaction on SQLite.
        "gamesessions.CONFIRM_SINGLE_STATEMENT",
        "gamesessions.TAKE_ANSWER_SINGLE_STATEMENT",
        "oauth.grants.CREATE_SINGLE_STATEMENT",
        "oauth.grants.LOCK_UNREVOKED_SESSION",
    }
)


def all_statements() -> Iterator[tuple[str, Statement]]:
    """Every statement by the name of its module and its own name."""
    modules = [
        *pkgutil.walk_packages(storage.__path__, "gatehouse.storage."),
        *pkgutil.walk_packages(admin.__path__, "gatehouse.admin."),
    ]
    for module in modules:
        if ".migrations" not in module.name:
            short = module.name.removeprefix("gatehouse.").removeprefix("storage.")
            for name, value in vars(import_module(module.name)).items():
                for statement in statements_in(value):
                    yield f"{short}.{name}", statement


def statements_in(value: object) -> Iterator[Statement]:
    if isinstance(value, Statement):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from statements_in(item)
    elif isinstance(value, dict):
        yield from statements_in(list(value.values()))


def every_statement() -> dict[Statement, str]:
    """Every statement of the package with its name, also those that objects hold: pages of lists, tables of a backup.

    What is built for a request alone is not among them.
    """
    found: dict[Statement, str] = {}
    for module in package_modules():
        short = module.__name__.removeprefix("gatehouse.").removeprefix("storage.")
        for name, value in vars(module).items():
            for statement in statements_within(value, set()):
                found.setdefault(statement, f"{short}.{name}")
    return found


def unnamed_statements() -> list[str]:
    """The builders of statements that `every_statement` misses; in a process in which no test has made any."""
    found = every_statement()
    return [
        f"{one._build.__module__}.{one._build.__qualname__}"
        for one in gc.get_objects()
        if isinstance(one, Statement) and one not in found
    ]


def package_modules() -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages(gatehouse.__path__, "gatehouse."):
        if not NO_STATEMENTS.match(module.name):
            yield import_module(module.name)


def statements_within(value: object, seen: set[int]) -> Iterator[Statement]:
    """Like `statements_in`, and in the fields of our objects."""
    if isinstance(value, Statement):
        yield value
    elif id(value) not in seen:
        seen.add(id(value))
        for part in parts_of(value):
            yield from statements_within(part, seen)


def parts_of(value: object) -> Sequence[object]:
    if isinstance(value, tuple | list | frozenset):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, partial):
        return [value.func, *value.args]
    if type(value).__module__.startswith("gatehouse."):
        names = getattr(value, "__struct_fields__", None) or getattr(value, "__dict__", {})
        return [getattr(value, name, None) for name in tuple(names)]
    return ()


class StatementCoverage:
    """Records the statements that this process runs, and adds up what the workers of the run report."""

    def __init__(self, *, whole_run: bool) -> None:
        self._whole_run = whole_run
        # The statements with the test that ran each first, and the same by name, of all workers.
        self._statements: dict[DatabaseKind, list[tuple[Statement, str]]] = {kind: [] for kind in DatabaseKind}
        self._tests: dict[str, dict[str, str]] = {kind.name: {} for kind in DatabaseKind}
        self._failures: list[str] = []

    def install(self) -> None:
        self._record("for_sqlite", DatabaseKind.SQLITE)
        self._record("for_postgres", DatabaseKind.POSTGRES)

    def _record(self, attribute: str, kind: DatabaseKind) -> None:
        compile_statement = vars(Statement)[attribute].func

        def compile_and_record(statement: Statement) -> CompiledStatement:
            self._statements[kind].append((statement, os.environ.get(CURRENT_TEST, "")))  # noqa: TID251 - of pytest
            return compile_statement(statement)

        recording: cached_property[CompiledStatement] = cached_property(compile_and_record)
        recording.__set_name__(Statement, attribute)
        setattr(Statement, attribute, recording)

    def tests_by_name(self) -> dict[str, dict[str, str]]:
        known = {id(statement): name for name, statement in all_statements()}
        return {
            kind.name: {known[id(one)]: test for one, test in statements if id(one) in known}
            for kind, statements in self._statements.items()
        }

    def add(self, tests: dict[str, dict[str, str]]) -> None:
        for kind, more in tests.items():
            self._tests[kind].update(more)

    @pytest.hookimpl(optionalhook=True)  # of pytest-xdist
    def pytest_testnodedown(self, node: object) -> None:
        self.add(getattr(node, "workeroutput", {}).get(WORKER_OUTPUT, {}))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[WORKER_OUTPUT] = self.tests_by_name()
            return
        self.add(self.tests_by_name())
        on_both = set.intersection(*map(set, self._tests.values()))
        self._failures = sorted(
            f"{name} ran on {kind} alone, in {test}"
            for kind, tests in self._tests.items()
            for name, test in tests.items()
            if name not in on_both | ONE_DATABASE_STATEMENTS
        )
        if self._whole_run and self._failures and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._whole_run:
            return
        on_both = set.intersection(*map(set, self._tests.values()))
        terminalreporter.write_line(f"SQL statements that ran on both databases: {len(on_both)}")
        for failure in self._failures:
            terminalreporter.write_line(f"FAILED {failure}; mark it with both_databases", red=True)


def pytest_configure(config: pytest.Config) -> None:
    whole_run = config.args == ["tests"] and config.getoption("--database") is None
    coverage = StatementCoverage(whole_run=whole_run)
    coverage.install()
    config.pluginmanager.register(coverage, "statement_coverage")


if __name__ == "__main__":
    sys.stdout.write("\n".join(unnamed_statements()))
