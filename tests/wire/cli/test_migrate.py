"""`gatehouse migrate` and `healthcheck`."""

from pathlib import Path

from gatehouse.storage.migrations import HEAD
from tests.support.command_line import Place, change
from tests.support.processes import LOOPBACK, Node, free_port


def test_an_empty_database_is_brought_up_once(database_url: str, tmp_path: Path) -> None:
    place = Place(data=tmp_path / "data", url=database_url)
    gatehouse = place.commands()
    assert gatehouse.try_("migrate", "--check").code == 1
    assert not (tmp_path / "gatehouse.db").exists(), "looking makes no database"
    assert gatehouse.json("migrate") == {"before": "", "after": HEAD, "head": HEAD}
    assert "up to date" in gatehouse("migrate")
    assert gatehouse.json("migrate", "--check") == {"before": HEAD, "after": HEAD, "head": HEAD}
    gatehouse("key", "list")
    change(database_url, ["UPDATE alembic_version SET version_num = '0000'"])
    behind = gatehouse.try_("migrate", "--check")
    assert (behind.code, "is at revision 0000" in behind.out) == (1, True)
    assert "run gatehouse migrate" in gatehouse.refused("key", "list")
    change(database_url, ["UPDATE alembic_version SET version_num = '9999'"])
    for command in (("migrate",), ("migrate", "--check"), ("key", "list")):
        assert "upgrade Gatehouse" in gatehouse.refused(*command)


def test_the_health_of_the_service_on_this_machine_is_asked_for(place: Place) -> None:
    gatehouse = place.commands()
    with Node(data=place.data, environment=place.settings) as node:
        port = ("--port", str(node.port))
        assert gatehouse("healthcheck", *port) == "ready\n"
        assert gatehouse.json("healthcheck", "--host", LOOPBACK, *port) == {"ready": True, "answer": "ready"}
        assert "no answer from 127.0.0.1" in gatehouse.refused("healthcheck", "--port", str(free_port()))
        change(place.url, ["UPDATE alembic_version SET version_num = '9999'"])
        while (told := gatehouse.try_("healthcheck", *port)).code == 0:
            assert told.out == "ready\n"  # for the second that a report is remembered
        assert "not ready: HTTP 503" in told.err
