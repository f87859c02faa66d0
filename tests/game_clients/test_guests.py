"""Clients sign in guests and platforms, and give guests an account (R10)."""

import base64
import hashlib
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.game_clients.conftest import GameStudio, turn_guests_on
from tests.game_clients.support.games import Game, output_of
from tests.game_clients.support.player import Player
from tests.game_clients.support.responder import GSID, ScriptedReply, scripted_responder
from tests.support.oauth import claims_of

LANGUAGES: Final = (
    "cpp",
    "csharp",
    "godot",
    "python",
    "typescript",
    "unity",
)  # Godot 3 signs in with the browser only
OK: Final = ScriptedReply(
    body={"status": "OK", "user_id": "1001", "nick": "Guest 3f2a", "jwt": "a.b.c", "auth": "guest"}
)
CHALLENGE: Final = ScriptedReply(body={"status": "CHALLENGE", "challenge": "guest.1.first.aa", "expires_in": 120})
BAN: Final = {"reason": "banned", "public_text": "Cheating", "until": 1_900_000_000}
PUZZLE: Final = {"puzzle": "guest.6.1788003600.9f86.2c26", "difficulty": 6, "parts": 8, "expires": 1_788_003_600}
ANSWERS: Final[dict[str, tuple[ScriptedReply, str, str]]] = {
    "OK": (OK, "ok", "  0"),
    "ban": (ScriptedReply(body={"status": "DENIED", **BAN}), "refused", "banned Cheating 1900000000"),
    "login rule": (ScriptedReply(body={"status": "DENIED"}), "refused", "denied  0"),
    "LOGINERROR": (ScriptedReply(body={"status": "LOGINERROR"}), "refused", "login_error  0"),
    "no account": (ScriptedReply(body={"status": "LOGINERROR", "reason": "no_account"}), "refused", "no_account  0"),
    "2STEP": (ScriptedReply(body={"status": "2STEP", "request_id": "r"}), "refused", "second_factor  0"),
    "TERMS": (ScriptedReply(body={"status": "TERMS", "url": "https://x/terms"}), "refused", "terms  0"),
    "BLOCKED": (ScriptedReply(body={"status": "BLOCKED", "retry_after": 60}), "refused", "throttled  0"),
    "429": (ScriptedReply(status=429, body={"error": "too many"}), "refused", "throttled  0"),
    "off": (ScriptedReply(status=403, body={"error": "turned off"}), "refused", "  0"),
    "503": (ScriptedReply(status=503, body={"error": "Steam is away"}), "unreachable", "  0"),
    "nonsense": (ScriptedReply(body={"status": "FINE"}), "unreachable", "  0"),
}

pytestmark = pytest.mark.parametrize("game", LANGUAGES, indirect=True)


@pytest.fixture
def device(tmp_path: Path) -> dict[str, str]:
    """A device without stored values; the key is for the clients that store nothing."""
    return {"PREFERENCES": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}


@pytest.fixture(scope="module")
def service_with_guests(studio: GameStudio) -> GameStudio:
    return turn_guests_on(studio)


@pytest.fixture
def key(tmp_path: Path) -> str:
    return f"key={hashlib.sha256(str(tmp_path).encode()).hexdigest()}"


def test_ticket_is_sent_and_every_answer_understood(game: Game, device: dict[str, str]) -> None:
    replies = [reply for reply, _, _ in ANSWERS.values()]
    with scripted_responder(*replies) as service:
        words = ("ticket=1400af", "app_id=50001", "factor=f1", f"do={','.join('platform' for _ in replies)}")
        with game.start(service.address, *words, environment=device) as playing:
            output = output_of(playing)
            bans = [line.removeprefix("ban ").rstrip("\n") for line in playing.stdout if line.startswith("ban ")]
    assert output["outcome"].split() == [outcome for _, outcome, _ in ANSWERS.values()]
    assert bans == [ban for _, _, ban in ANSWERS.values()]
    assert [call.name for call in service.calls] == ["platformLogin"] * len(replies)
    assert service.calls[0].body == {"platform": "steam", "ticket": "1400af", "app_id": 50001, "factor": "f1"}


def test_player_enters_the_code_of_the_second_factor(game: Game, device: dict[str, str]) -> None:
    asked = ScriptedReply(body={"status": "2STEP", "request_id": "r1", "methods": ["totp"]})
    wrong = ScriptedReply(body={"status": "2STEPERROR"})
    with scripted_responder(asked, wrong, OK) as service:
        words = ("ticket=1400af", "otp=123456", "do=platform,code,code")
        with game.start(service.address, *words, environment=device) as playing:
            output = output_of(playing)
            reasons = [line.split()[1:2] for line in playing.stdout if line.startswith("ban ")]
    assert output["outcome"] == "refused refused ok"
    assert [reason[0] for reason in reasons[:2]] == ["second_factor", "wrong_code"]
    assert [call.name for call in service.calls] == ["platformLogin", "login", "login"]
    assert service.calls[1].body == {"request_id": "r1", "otp": "123456"}


def test_guest_signs_the_challenge_and_solves_the_puzzle(game: Game, device: dict[str, str], key: str) -> None:
    challenges: list[dict[str, Any]] = [
        {"status": "CHALLENGE", "challenge": "guest.1.first.aa", "expires_in": 120},
        {"status": "PUZZLE", "challenge": "guest.2.second.bb", "expires_in": 120, "puzzle": PUZZLE},
    ]
    with scripted_responder(*(ScriptedReply(body=body) for body in challenges), OK) as service:
        output = game.play(
            service.address, "do=guest", key, "app_id=50001", "factor=f1", "distr=eu", environment=device
        )
    assert (output["outcome"], output["user_id"], output["nick"]) == ("ok", "1001", "Guest 3f2a")
    asked, first, second = (call.body for call in service.calls)
    assert asked == {"app_id": 50001, "device_key": first["device_key"]}
    for body, challenge in zip((first, second), challenges, strict=True):
        assert body["challenge"] == challenge["challenge"]
        public = Ed25519PublicKey.from_public_bytes(base64.b64decode(body["device_key"]))
        public.verify(base64.b64decode(body["signature"]), challenge["challenge"].encode())
    assert first.keys() == {"app_id", "factor", "distr", "device_key", "challenge", "signature"}
    assert first.keys() | {"puzzle", "solution"} == second.keys()
    assert second["puzzle"] == PUZZLE["puzzle"]
    numbers = [int(number) for number in second["solution"].split(".")]
    assert [is_solved(part, number) for part, number in enumerate(numbers)] == [True] * 8


def is_solved(part: int, number: int) -> bool:
    seed = hashlib.sha256(str(PUZZLE["puzzle"]).encode()).digest()
    return hashlib.sha256(seed + bytes([part]) + number.to_bytes(4, "big")).digest()[0] >> 2 == 0


def test_guest_comes_back_and_gets_an_account(
    game: Game, service_with_guests: GameStudio, device: dict[str, str], key: str
) -> None:
    studio = service_with_guests
    words = (key, f"app_id={studio.application_id}", "factor=device")
    first = game.play(studio.base_url, "do=guest,guest", *words, environment=device)
    assert first["outcome"] == "ok ok"
    claims = claims_of(first["jwt"])
    assert (claims["auth"], claims["tgs"], claims["uid"]) == ("guest", "guest", first["user_id"])
    again = game.play(studio.base_url, "do=guest", *words, environment=device)
    assert again["user_id"] == first["user_id"] != studio.user_id

    with game.start(studio.base_url, "do=upgrade", *words, environment=device) as playing, Player() as player:
        code = playing.wait_for_line(r"^code (\d\d)$", playing.stdout)[1]
        page = player.open(playing.wait_for_line("^link (.+)$", playing.stdout)[1])
        player.decide(page, "confirm", code=code)
        upgraded = output_of(playing)
    assert (upgraded["outcome"], upgraded["user_id"]) == ("ok", studio.user_id)
    assert claims_of(upgraded["jwt"])["auth"] == "login"
    if game.language in ("godot", "unity"):  # they have forgotten the key, and the next one is of a new guest
        assert game.play(studio.base_url, "do=has_guest", *words, environment=device)["has_guest"] == "false"
    else:
        retired = game.play(studio.base_url, "do=guest", *words, environment=device)
        assert (retired["outcome"], retired["ban"]) == ("refused", "login_error  0")


def test_upgrade_is_refused_with_a_reason_where_guests_are_off(game: Game, device: dict[str, str], key: str) -> None:
    with scripted_responder(CHALLENGE, OK, ANSWERS["off"][0]) as service:
        output = game.play(service.address, "do=guest,upgrade", key, environment=device)
    assert (output["outcome"], output["error"]) == ("ok refused", "turned off")
    assert [call.body for call in service.calls[2:]] == [{"app_id": 0, "intent": "upgrade"}]
    assert GSID not in str(output)


def test_upgrade_is_cancelled_during_its_first_request(
    game: Game, device: dict[str, str], key: str, tmp_path: Path
) -> None:
    cancel = tmp_path / "cancel"
    with scripted_responder(CHALLENGE, OK, ScriptedReply(held=True)) as service:
        words = ("do=guest,upgrade", f"cancel={cancel}", key)
        with game.start(service.address, *words, environment=device) as playing:
            service.wait_for("guest", 3)
            cancel.touch()
            output = output_of(playing)
    assert output["outcome"] == "ok cancelled"
    assert [call.name for call in service.calls] == ["guest"] * 3
