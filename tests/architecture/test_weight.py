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
    "jinja2",
    "aiosmtplib",
    "prometheus_client",
)
SERVES = "import sys, gatehouse.logs, gatehouse.cli.serve, gatehouse.app.endpoints; print(*sys.modules)"


def test_a_server_on_sqlite_loads_nothing_heavy_that_it_does_not_use() -> None:
    run = subprocess.run([sys.executable, "-c", SERVES], check=True, capture_output=True, text=True)
    assert {"gatehouse.app.endpoints", "gatehouse.app.services.accounts"} <= set(run.stdout.split())
    assert set(HEAVY) & set(run.stdout.split()) == set()
    assert "gatehouse.demo" not in run.stdout  # imported with --demo
    assert "gatehouse.app.console" not in run.stdout  # a section is imported with its first request
    assert "gatehouse.app.services.installation" not in run.stdout  # imported with its first request


def test_a_section_of_the_console_loads_no_screens_of_another() -> None:
    code = "import sys, gatehouse.app.console.webhooks; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(run.stdout.split())
    assert "gatehouse.web.console.webhooks" in loaded
    others = {"applications.clients", "people", "person", "projects.project", "role_editor"}
    assert not {f"gatehouse.web.console.{name}" for name in others} & loaded
