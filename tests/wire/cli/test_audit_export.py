"""`gatehouse audit export`: JSON lines and syslog, continued where the last run ended."""

import json
import re
import socket
import threading
from pathlib import Path
from typing import Any

from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.processes import LOOPBACK, Node

BOB = ("--login", "bob@studio.example", "--nick", "Bob", "--no-password")
SYSLOG_HEAD = re.compile(r"<(\d+)>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) (\S+) gatehouse - (\S+) - (\{.*\})")


def seal(installation: InstallationPaths) -> None:
    with Node(data=installation.data, environment=installation.settings) as node:
        node.terminate()


def json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_audit_export_continues_where_it_ended(
    installation: InstallationPaths, gatehouse: CommandLine, tmp_path: Path
) -> None:
    state = tmp_path / "export.state"
    gatehouse("user", "create", *BOB)
    seal(installation)
    first = json_lines(gatehouse("audit", "export", "--state", str(state)))
    assert [entry["place"] for entry in first] == list(range(1, len(first) + 1))
    assert "user.created" in [entry["event"] for entry in first]
    assert "personal" not in first[0]
    assert gatehouse("audit", "export", "--state", str(state)) == ""

    gatehouse("user", "block", "bob@studio.example")
    seal(installation)
    second = json_lines(gatehouse("audit", "export", "--state", str(state), "--with-personal"))
    assert [entry["place"] for entry in second] == list(range(len(first) + 1, len(first) + len(second) + 1))
    assert [entry["event"] for entry in second].count("user.blocked") == 1
    assert all("address" in entry["personal"] for entry in second)
    assert state.read_text() == f"{second[-1]['place']}\n"
    assert json_lines(gatehouse("audit", "export", "--after", "0"))[: len(first)] == first


def test_audit_export_refuses_a_state_that_is_not_its_own(
    installation: InstallationPaths, gatehouse: CommandLine, tmp_path: Path
) -> None:
    state = tmp_path / "export.state"
    state.write_text("somewhere")
    refused = gatehouse.run("audit", "export", "--state", str(state))
    assert (refused.code, refused.out) == (1, "")
    assert "is not a state file" in refused.err
    state.write_text("4711\n")
    ahead = gatehouse.run("audit", "export", "--state", str(state))
    assert ahead.code == 1
    assert "the export is at 4711: was a backup restored?" in ahead.err
    assert gatehouse.run("audit", "export", "--syslog", "udp://siem:514").code == 2
    assert installation.data.exists()


def test_audit_export_sends_counted_syslog_messages(
    installation: InstallationPaths, gatehouse: CommandLine, tmp_path: Path
) -> None:
    gatehouse("user", "create", *BOB)
    seal(installation)
    received = bytearray()
    with socket.create_server((LOOPBACK, 0)) as listening:

        def receive() -> None:
            connection, _ = listening.accept()
            with connection:
                while data := connection.recv(65_536):
                    received.extend(data)

        receiver = threading.Thread(target=receive)
        receiver.start()
        server = f"tcp://{LOOPBACK}:{listening.getsockname()[1]}"
        gatehouse("audit", "export", "--syslog", server, "--state", str(tmp_path / "state"))
        receiver.join(10)
    messages = []
    while received:
        length, _, rest = bytes(received).partition(b" ")
        messages.append(SYSLOG_HEAD.fullmatch(rest[: int(length)].decode()))
        received = bytearray(rest[int(length) :])
    entries = [json.loads(message[5]) for message in messages if message is not None]
    assert len(entries) == len(messages) == int((tmp_path / "state").read_text())
    assert {message[4] for message in messages if message is not None} == {entry["event"] for entry in entries}

    refused = gatehouse.run("audit", "export", "--syslog", server, "--after", "0")
    assert refused.code == 1
    assert f"cannot reach {server}" in refused.err
