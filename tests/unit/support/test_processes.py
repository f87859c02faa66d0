import signal
import socket
import sys
from pathlib import Path

import pytest

from tests.support.find_programs import ROOT
from tests.support.processes import (
    LOOPBACK,
    DidNotStart,
    DidNotStop,
    Node,
    WatchedProcess,
    free_port,
    two_nodes,
)

# Prints the ready line as `serve` does, and ends by the signal it gets.
STAND_IN = """
import os, signal, sys
port = sys.argv[sys.argv.index("--port") + 1]
print("not ready yet", flush=True)
print("ready", os.environ.get("GATEHOUSE__SERVER__BASE_URL", "http://127.0.0.1:" + port), flush=True)
signal.pause()
"""
LISTENS = """
import signal, socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
signal.pause()
"""
LEAVES_THE_WORK_TO_A_CHILD = f"""
import signal, subprocess, sys
subprocess.Popen([sys.executable, "-c", {LISTENS!r}, sys.argv[1]])
signal.pause()
"""
FORGETS_ITS_CHILD = f"""
import sys
from tests.support.processes import WatchedProcess
child = WatchedProcess([sys.executable, "-c", {LISTENS!r}, sys.argv[1]])
child.wait_for_line("listening", child.stdout)
print("leaving", flush=True)
"""


def a_process(program: str, *arguments: str) -> WatchedProcess:
    return WatchedProcess([sys.executable, "-c", program, *arguments], cwd=ROOT)


def is_listening(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex((LOOPBACK, port)) == 0


def test_a_line_is_waited_for_and_returned() -> None:
    with a_process("print('first'); print('port 7', flush=True); import signal; signal.pause()") as process:
        assert process.wait_for_line(r"port (\d+)", process.stdout)[1] == "7"
        assert process.running


def test_a_process_that_ends_early_is_reported_with_its_words() -> None:
    with (
        a_process("import sys; sys.exit('no such setting')") as process,
        pytest.raises(DidNotStart, match=r"ended with 1(.|\n)*no such setting"),
    ):
        process.wait_for_line("ready", process.stdout)


def test_a_silent_process_is_given_up_on() -> None:
    with (
        a_process("import signal; signal.pause()") as process,
        pytest.raises(DidNotStart, match="is silent"),
    ):
        process.wait_for_line("ready", process.stdout, within=0.1)


def test_stopping_returns_the_exit_code() -> None:
    with a_process("import signal; print('up', flush=True); signal.pause()") as process:
        process.wait_for_line("up", process.stdout)
        assert process.stop(signal.SIGTERM) == -signal.SIGTERM


def test_a_process_deaf_to_the_signal_is_killed_and_reported() -> None:
    deaf = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True); signal.pause()"
    with a_process(deaf) as process:
        process.wait_for_line("up", process.stdout)
        with pytest.raises(DidNotStop):
            process.stop(signal.SIGTERM, within=0.1)
        assert not process.running


def test_killing_takes_the_children_along() -> None:
    port = free_port()
    with a_process(LEAVES_THE_WORK_TO_A_CHILD, str(port)) as process:
        process.wait_for_line("listening", process.stdout)
        assert is_listening(port)
    assert not is_listening(port)


def test_a_forgotten_process_ends_with_the_run() -> None:
    port = free_port()
    with a_process(FORGETS_ITS_CHILD, str(port)) as run:
        run.wait_for_line("leaving", run.stdout)
        assert run.wait() == 0
        assert not is_listening(port)


def test_settings_of_the_surroundings_do_not_reach_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEHOUSE__SERVER__BASE_URL", "https://elsewhere.example")
    with a_process("import os; print([n for n in os.environ if 'GATEHOUSE' in n])") as process:
        process.wait_for_line(r"^\[\]$", process.stdout)


def test_a_node_says_where_it_is_and_keeps_its_port(tmp_path: Path) -> None:
    with Node(data=tmp_path, program=[sys.executable, "-c", STAND_IN]) as node:
        first = node.process.pid
        assert node.base_url == node.address
        node.restart()
        assert node.base_url == node.address
        assert node.process.pid != first


def test_two_nodes_speak_for_one_address(tmp_path: Path) -> None:
    program = [sys.executable, "-c", STAND_IN]
    with two_nodes(data=tmp_path, database_url="postgresql://unused", program=program) as (first, second):
        assert first.address != second.address
        assert second.base_url == first.base_url == first.address
