"""`--times`: report the CPU time of a run by directory, set-up and body separately, and the slowest tests.

CPU seconds are nearly the same on a busy machine. A process counts in the test that waits for its end: those that
tests share, PostgreSQL and Chromium, in the last one.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import PurePath
from typing import Final

import pytest

PHASES: Final = ("setup", "call", "teardown")
SLOWEST: Final = 50
DEPTH: Final = 3  # path components of a directory: tests/wire/oauth
CPU_SECONDS: Final = "cpu_seconds"  # a property of each report, also of those that a worker sends


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", action="store_true", help="print where the time goes")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--times"):
        config.pluginmanager.register(CpuTimes(), "cpu_times")
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(Times(), "times")


class CpuTimes:
    """Adds to each report the CPU seconds since the one before."""

    def __init__(self) -> None:
        self._before = 0.0

    def pytest_runtestloop(self) -> None:
        self._before = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = cpu_seconds()
        setattr(report, CPU_SECONDS, now - self._before)
        self._before = now
        return report


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Times:
    def __init__(self) -> None:
        self._seconds: dict[str, Counter[str]] = defaultdict(Counter)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid][report.when or ""] += getattr(report, CPU_SECONDS, 0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        folders: dict[str, Counter[str]] = defaultdict(Counter)
        tests: Counter[str] = Counter()
        for nodeid, spent in self._seconds.items():
            folder = str(PurePath(*PurePath(nodeid.partition("::")[0]).parent.parts[:DEPTH]))
            folders[folder].update(spent)
            tests[folder] += 1
        write = terminalreporter.write_line
        write(f"{'CPU seconds in':40} {'tests':>7} {'set-up':>8} {'body':>8} {'tear-down':>10} {'all':>8}")
        for folder, spent in sorted(folders.items(), key=lambda item: -item[1].total()):
            parts = [spent[phase] for phase in PHASES]
            write(f"{folder:40} {tests[folder]:7} {parts[0]:8.1f} {parts[1]:8.1f} {parts[2]:10.1f} {sum(parts):8.1f}")
        write(f"the {SLOWEST} slowest")
        for nodeid, spent in sorted(self._seconds.items(), key=lambda item: -item[1].total())[:SLOWEST]:
            write(f"{spent.total():8.1f} s  {nodeid}")
