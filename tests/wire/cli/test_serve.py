"""`gatehouse serve` and `sample-app` as they start, or cannot."""

import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, Place
from tests.support.processes import GATEHOUSE, LOOPBACK, Node, WatchedProcess


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program listens on."""
    with socket.create_server((LOOPBACK, 0)) as other:
        yield other.getsockname()[1]


def test_a_taken_port_is_named_and_nobody_is_sent_there(place: Place, gatehouse: CommandLine, taken: int) -> None:
    refusal = f"Error: cannot listen on {LOOPBACK}:{taken}: Address already in use; --port takes another\n"
    words = [*GATEHOUSE, "serve", "--dev", "--data", str(place.data), "--port", str(taken)]
    with WatchedProcess(words, environment={**place.settings, "GATEHOUSE__LOG__LEVEL": "info"}) as serving:
        assert serving.wait() == 1
        assert (serving.stdout, serving.stderr) == ([], [refusal])
    sample = gatehouse.try_("sample-app", "--port", str(taken))
    assert (sample.code, sample.out, sample.err) == (1, "", refusal)
    assert gatehouse.json("audit", "show", "--event", "setup.link_made") == []


def test_a_new_database_file_is_for_its_owner_only_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with Node(data=tmp_path) as node:
        files = sorted(tmp_path.glob("gatehouse.db*"))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files if file.suffix != ".serving"}
        assert modes == dict.fromkeys(["gatehouse.db", "gatehouse.db-shm", "gatehouse.db-wal"], 0o600)
        node.terminate()
        (tmp_path / "gatehouse.db").chmod(0o640)
        node.start()
        assert stat.S_IMODE((tmp_path / "gatehouse.db-wal").stat().st_mode) == 0o640
