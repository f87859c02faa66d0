"""Modules that a serving process does not import: its memory is promised (README, bench)."""

import subprocess
import sys

HEAVY = (
    "asyncpg",
    "babel",
    "yaml",
    "alembic",
    "markdown_it",
    "maxminddb",
    "segno",
    "zxcvbn_rs_py",
    "fido2",
    "websockets",
)
SERVES = "import sys, gatehouse.logs, gatehouse.cli.serve, gatehouse.app.endpoints; print(*sys.modules)"


def test_a_server_on_sqlite_loads_nothing_heavy_that_it_does_not_use() -> None:
    run = subprocess.run([sys.executable, "-c", SERVES], check=True, capture_output=True, text=True)
    assert {"gatehouse.app.endpoints", "gatehouse.app.services.accounts"} <= set(run.stdout.split())
    assert set(HEAVY) & set(run.stdout.split()) == set()
    assert "gatehouse.demo" not in run.stdout  # imported with --demo
    assert "gatehouse.app.services.console" not in run.stdout  # imported with its first request
    assert "gatehouse.app.services.installation" not in run.stdout  # imported with its first request
