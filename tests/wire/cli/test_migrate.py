"""`gatehouse migrate` and `healthcheck`."""

from pathlib import Path

from gatehouse.storage.migrations import HEAD
from tests.support.command_line import InstallationPaths, execute_statements
from tests.support.processes import LOOPBACK, Node, free_port


def test_an_empty_database_is_brought_up_once(database_url: str, tmp_path: Path) -> None:
    installation = InstallationPaths(data=tmp_path / "data", url=database_url)
    gatehouse = installation.command_line()
    assert gatehouse.run("migrate", "--check").code == 1
    assert not (tmp_path / "gatehouse.db").exists(), "a healthcheck must not create a database"
    assert gatehouse.json("migrate") == {"before": "", "after": HEAD, "head": HEAD}
    assert "up to date" in gatehouse("migrate")
    assert gatehouse.json("migrate", "--check") == {"before": HEAD, "after": HEAD, "head": HEAD}
    gatehouse("key", "list")
    execute_statements(database_url, ["UPDATE alembic_version SET version_num = '0000'"])
    behind = gatehouse.run("migrate", "--check")
    assert (behind.code, "is at revision 0000" in behind.out) == (1, True)
    assert "run gatehouse migrate" in gatehouse.expect_failure("key", "list")
    execute_statements(database_url, ["UPDATE alembic_version SET version_num = '9999'"])
    for command in (("migrate",), ("migrate", "--check"), ("key", "list")):
        assert "upgrade Gatehouse" in gatehouse.expect_failure(*command)


def test_the_health_of_the_service_on_this_machine_is_asked_for(installation: InstallationPaths) -> None:
    gatehouse = installation.command_line()
    with Node(data=installation.data, environment=installation.settings) as node:
        port = ("--port", str(node.port))
        assert gatehouse("healthcheck", *port) == "ready\n"
        assert gatehouse.json("healthcheck", "--host", LOOPBACK, *port) == {"ready": True, "answer": "ready"}
        assert "no answer from 127.0.0.1" in gatehouse.expect_failure("healthcheck", "--port", str(free_port()))
        execute_statements(installation.url, ["UPDATE alembic_version SET version_num = '9999'"])
        while (result := gatehouse.run("healthcheck", *port)).code == 0:
            assert result.out == "ready\n"  # within the second that a report is cached
        assert "not ready: HTTP 503" in result.err
