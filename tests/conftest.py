"""Fixtures for all tests: databases and a browser; plus a summary of the programs that were missing."""

import gc
import re
import zlib
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings
from playwright.async_api import Browser, Page

from tests.fuzz.conftest import FACTOR
from tests.support.capabilities import missing_program_lines
from tests.support.chromium import launch_browser, save_screenshot
from tests.support.postgres import PostgresCluster

pytest_plugins = [
    "tests.support.databases",
    "tests.support.guide_pictures",
    "tests.support.statement_coverage",
    "tests.support.times",
]
# A busy machine is not a failure; tests that must be quick set their own time limits.
settings.register_profile(
    "patient", max_examples=50 * FACTOR, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")

DATABASES: Final = ("sqlite", "postgres")
BOTH: Final = "both"
TESTS_OF_STORAGE: Final = ("tests/conformance/", "tests/faults/", "tests/upgrade/")  # always on both databases
CALL_FAILED: Final = pytest.StashKey[bool]()
SUMMARY_PROPERTY: Final = "told_at_the_end"  # a test property: a line for the summary of the run
PAGE_TIMEOUT: Final = 10_000  # milliseconds
GARBAGE_THRESHOLD: Final = 20_000  # new objects; with Python's 700 a tenth of a run is looking for garbage


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--database", choices=(*DATABASES, BOTH), help="run every test on this database, or on both")
    parser.addoption("--everywhere", action="store_true", help="run tasks in all languages, on all devices")
    parser.addoption("--write-responses", action="store_true", help="write the responses of the API documentation")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from the collected tests: thousands, which live as long as the process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(GARBAGE_THRESHOLD)
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--database")
    left_out = {item for item in items if any(uses_database(item, name) for name in unwanted_databases(item, wanted))}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=needs_no_browser)  # the first worker gets the first tests, so only one worker starts a browser


def unwanted_databases(item: pytest.Item, wanted: str | None) -> set[str]:
    """The databases that the item's test is not run on.

    The tests of the storage run on both databases, and so do those marked with `both_databases`. Each of the others
    runs on one, half of them on either; `statement_coverage` fails a run in which a statement ran on one alone.
    """
    if wanted == BOTH or (
        wanted is None and (item.nodeid.startswith(TESTS_OF_STORAGE) or item.get_closest_marker("both_databases"))
    ):
        return set()
    return set(DATABASES) - {wanted or database_of_test(item)}


def database_of_test(item: pytest.Item) -> str:
    """The database that the test runs on if on one; a test for a single database runs on that."""
    parameters = getattr(item, "callspec", None)
    if parameters is None or not any(name in parameters.params.values() for name in DATABASES):
        return next((name for name in DATABASES if uses_database(item, name)), DATABASES[0])
    without_database = re.sub(rf"\b({'|'.join(DATABASES)})\b", "", item.nodeid)
    return DATABASES[zlib.crc32(without_database.encode()) % len(DATABASES)]


def needs_no_browser(item: pytest.Item) -> bool:
    return "browser" not in getattr(item, "fixturenames", ())


def uses_database(item: pytest.Item, database: str) -> bool:
    """Whether the test runs on the database: by its parameter, or by a fixture such as `postgres_url`."""
    parameters = getattr(item, "callspec", None)
    fixtures = getattr(item, "fixturenames", ())
    return database in (parameters.params.values() if parameters else ()) or any(
        database in name for name in fixtures
    )


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[PostgresCluster]:
    """A PostgreSQL server per test process, started by the first test that needs it."""
    with PostgresCluster() as cluster:
        yield cluster


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite database that does not exist yet."""
    return f"sqlite:///{tmp_path / 'gatehouse.db'}"


@pytest.fixture
def postgres_url(postgres_cluster: PostgresCluster) -> Iterator[str]:
    """The URL of an empty PostgreSQL database."""
    url = postgres_cluster.create_database_sync()
    yield url
    postgres_cluster.drop_sync(url)


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database; the test runs once per kind."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


# Tests that use these run on the session's event loop: `pytestmark = pytest.mark.asyncio(loop_scope="session")`.
@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """A browser per test process; each test opens its own context."""
    async with launch_browser() as chromium:
        yield chromium


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, request: pytest.FixtureRequest) -> AsyncIterator[Page]:
    """A page in a fresh context: no cookies, no storage. A screenshot is saved when the test fails."""
    context = await browser.new_context(locale="en-GB")
    page = await context.new_page()
    page.set_default_timeout(PAGE_TIMEOUT)
    yield page
    if request.node.stash.get(CALL_FAILED, False):
        await save_screenshot(page, request.node.nodeid)
    await context.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call":
        item.stash[CALL_FAILED] = report.failed
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    for line in missing_program_lines(report.longrepr[2] for report in skipped):  # path, line number, reason
        terminalreporter.write_line(line, yellow=True)
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        if getattr(report, "when", "") == "teardown":
            for name, line in report.user_properties:
                if name == SUMMARY_PROPERTY:
                    terminalreporter.write_line(line)
