"""Run clients/sample_game, Sky Raiders, in a pipe and in a terminal."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.game_clients.conftest import GameStudio
from tests.game_clients.support.games import CLIENTS, ENDS_WITHIN
from tests.game_clients.support.player import ELSEWHERE, NICK, Player, choices_in
from tests.game_clients.support.responder import ScriptedReply, scripted_responder
from tests.support.processes import WatchedProcess, inherited_environment

LINK = r"^Open this link to sign in: (.+)$"


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    factor_file = tmp_path / "factor"
    program = [sys.executable, "-B", str(CLIENTS / "sample_game" / "sky_raiders.py")]
    return [*program, "--no-browser", "--app-id", "50010", "--factor-file", str(factor_file)]


def test_a_player_on_another_device_picks_the_code_and_is_greeted(studio: GameStudio, command: list[str]) -> None:
    with WatchedProcess([*command, studio.base_url]) as playing, Player(address=ELSEWHERE) as player:
        link = playing.wait_for_line(LINK, playing.stdout)[1]
        code = playing.wait_for_line(r"^Your code: (\d\d)$", playing.stdout)[1]
        page = player.open(link)
        assert code in choices_in(page)
        player.decide(page, "confirm", code=code)
        assert playing.wait() == 0, playing.output()
    assert playing.stdout[-2:] == ["Confirmed.\n", f"Welcome aboard, {NICK}!\n"]
    assert playing.stderr == []


def test_the_device_keeps_its_factor(studio: GameStudio, command: list[str]) -> None:
    factor_file = Path(command[-1])
    factors = []
    for _ in range(2):
        with WatchedProcess([*command, studio.base_url]) as playing:
            link = playing.wait_for_line(LINK, playing.stdout)[1]
            factors.append(studio.info(link)["factor"])
    assert factors[0] == factors[1]
    assert factor_file.stat().st_mode & 0o777 == 0o600


def test_a_player_who_cancels_is_told_the_record(studio: GameStudio, command: list[str]) -> None:
    with WatchedProcess([*command, studio.base_url]) as playing, Player() as player:
        player.decide(player.open(playing.wait_for_line(LINK, playing.stdout)[1]), "cancel")
        assert playing.wait() == 1
        record = playing.wait_for_line(r"Ask the operators about record (\S+)\.$", playing.stdout)[1]
    assert studio.record(record)


def test_ctrl_c_ends_the_session_too(studio: GameStudio, command: list[str]) -> None:
    with WatchedProcess([*command, studio.base_url]) as playing:
        link = playing.wait_for_line(LINK, playing.stdout)[1]
        playing.wait_for_line("^Waiting for you", playing.stdout)
        assert playing.stop(signal.SIGINT) == 1
    assert playing.stdout[-1] == "Maybe another time.\n"
    assert "Traceback" not in playing.output()
    assert studio.info(link)["state"] == "Error"


def test_terminal_shows_qr_code_and_steps_and_strips_foreign_control_characters(command: list[str]) -> None:
    signed_in = ScriptedReply(body={"status": "OK", "nick": "Ann\x1b[2Ja", "user_id": "1001"})
    with scripted_responder(signed_in) as service:
        output = in_a_terminal([*command, service.address])
    assert len(re.findall("^ +\x1b\\[97;40m[█▀▄ ]{33,}\x1b\\[0m", output, re.MULTILINE)) > 15
    assert "\x1b[1;7m 42 \x1b[0m" in output
    assert output.count("Confirmed") > 1  # first as a pending step
    assert "Welcome aboard, Ann?[2Ja!" in output


def test_the_address_of_a_stranger_is_refused_in_one_line(command: list[str]) -> None:
    with WatchedProcess([*command, "http://sso.studio.example"]) as playing:
        assert playing.wait() == 2
    assert "base_url must be https, or http on this machine" in playing.stderr[-1]


def in_a_terminal(command: list[str]) -> str:
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb", buffering=0) as screen:
        environment = inherited_environment({"COLUMNS": "100", "LINES": "60", "PYTHONUTF8": "1"})
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as playing:
            os.close(theirs)
            output = b""
            try:
                while chunk := screen.read(4096):
                    output += chunk
            except OSError:  # how Linux reports that the other side is closed
                pass
            assert playing.wait(ENDS_WITHIN) == 0, output
    return output.decode()
