"""What commands import, which is most of their time: what they are about, and no screens."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.support.command_line import InstallationPaths, execute_statements
from tests.support.processes import inherited_environment

RUN: Final = """
import sys
from gatehouse.cli import main
try:
    main(sys.argv[1:], prog_name="gatehouse")
finally:
    print(*sys.modules, file=sys.stderr)
"""
SERVED: Final = "INSERT INTO installation (name, value) VALUES ('base_url', 'http://localhost:8080')"
NEVER: Final = frozenset(
    {
        *("starlette", "uvicorn", "jinja2", "markupsafe", "asyncpg", "aiohttp", "yaml", "alembic", "argon2"),
        *("gatehouse.web.http", "gatehouse.web.pages", "gatehouse.web.console", "gatehouse.web.server"),
        *("gatehouse.app.endpoints", "gatehouse.app.services.oauth", "gatehouse.app.services.sign_in"),
        *(
            "gatehouse.storage.gamesessions",
            "gatehouse.storage.tables.gamesessions",
        ),
        *("gatehouse.storage.tables.every_table", "gatehouse.provision"),
    }
)


@pytest.fixture
def installation(installed_sqlite_url: str, tmp_path: Path) -> InstallationPaths:
    """An installation that a service was started on; commands import the same on both databases but the driver."""
    execute_statements(installed_sqlite_url, [SERVED])
    return InstallationPaths(data=tmp_path, url=installed_sqlite_url)


@pytest.mark.parametrize(
    ("words", "ceiling"),
    [
        (("user", "list"), 196),
        (("user", "search", "anna"), 196),
        (("application", "list"), 220),
        (("project", "list"), 220),
        (("group", "list"), 220),
        (("role", "list", "1"), 262),
    ],
    ids=str,
)
def test_command_imports_no_screens_and_few_modules(
    installation: InstallationPaths, words: Sequence[str], ceiling: int
) -> None:
    assert len(modules_of(installation, *words)) <= ceiling


def test_showing_a_person_imports_no_screens_and_few_modules(installation: InstallationPaths) -> None:
    user_id = installation.command_line()(
        "user", "create", "--login", "a@b.example", "--nick", "Anna", "--no-password"
    ).strip()
    assert len(modules_of(installation, "user", "show", user_id)) <= 210


def modules_of(installation: InstallationPaths, *words: str) -> set[str]:
    """Run a command in a new process; return our modules that it imported. None of them may be one of NEVER."""
    command = [sys.executable, "-c", RUN, *words, "--dev", "--data", str(installation.data)]
    ended = subprocess.run(
        command, env=inherited_environment(installation.settings), check=True, capture_output=True, text=True
    )
    imported = set(ended.stderr.split())
    assert imported & NEVER == set()
    return {name for name in imported if name.startswith("gatehouse")}
