"""`gatehouse serve` and `sample-app` when they cannot start."""

import socket
from collections.abc import Iterator

import pytest

from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.processes import GATEHOUSE_COMMAND, LOOPBACK, WatchedProcess


@pytest.fixture
def used_port() -> Iterator[int]:
    """A port that a different program listens on."""
    with socket.create_server((LOOPBACK, 0)) as other:
        yield other.getsockname()[1]


def test_a_taken_port_is_named_and_no_one_is_sent_there(
    installation: InstallationPaths, gatehouse: CommandLine, used_port: int
) -> None:
    refusal = (
        f"Error: cannot listen on {LOOPBACK}:{used_port}: Address already in use; use --port to choose another\n"
    )
    words = [*GATEHOUSE_COMMAND, "serve", "--dev", "--data", str(installation.data), "--port", str(used_port)]
    with WatchedProcess(words, environment={**installation.settings, "GATEHOUSE__LOG__LEVEL": "info"}) as serving:
        assert serving.wait() == 1
        assert (serving.stdout, serving.stderr) == ([], [refusal])
    sample = gatehouse.run("sample-app", "--port", str(used_port))
    assert (sample.code, sample.out, sample.err) == (1, "", refusal)
    assert gatehouse.json("audit", "show", "--event", "setup.link_made") == []


def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(gatehouse: CommandLine) -> None:
    assert "No such command 'srve'. Did you mean serve?" in gatehouse.expect_failure("srve", code=2)
    assert "Did you mean" not in gatehouse.expect_failure("frobnicate", code=2)
