"""Client behavior in rare situations (interface §4.3, R4)."""

import json
import ssl
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from tests.game_clients.conftest import WHOLE
from tests.game_clients.support.games import Game, output_of
from tests.game_clients.support.responder import GSID, LOCATION, ScriptedReply, error, retry, scripted_responder

NICK = 'Jörg "Ace" 🚀\\'
JWT = "eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmF0dXJl"
SIGNED_IN = {
    "meta": {"geo": {"country": "DE", "list": [1, -2.5e3, True, None, {}, []]}, "tags": []},
    "status": "OK",
    "user_id": "1001",
    "nick": NICK,
    "jwt": JWT,
    "token_exp": 3600,
}
OK = ScriptedReply(body=SIGNED_IN)
NOT_JSON = [
    '{"status": "ERROR"} x',
    '{"status": "ERROR",}',
    '{"status": "ERROR" "nick": "x"}',
    '{"status": "ERROR", "nick": "\\x"}',
    '{"status": "ERROR", "nick": "\\u12"}',
    '{"status": "ERROR", "nick": "a\nb"}',
    '{"status": "ERROR", "ts": 01}',
    '{"status": "ERROR", "ts": 1.}',
    '{"status": "ERROR", "ts": tru}',
    '{"status": "ERROR", "meta": [1, 2}',
    '{"status": "ERROR", "meta": ' + "[" * 40 + "]" * 40 + "}",
    '{"status": "ERROR", "nick": "',
    '{"status": "ERROR", "nick": "\\',
    '{"status"',
]
NOT_SECURE = [
    "http://sso.studio.example",
    "http://localhost.studio.example",
    "http://localhost@sso.studio.example",
    "https://anna:secret@sso.studio.example",
    "https://sso.studio.example/?a=b",
    "file:///etc/passwd",
    "localhost",
]
HELD = ScriptedReply(held=True)
UNFINISHED = {
    "silent": HELD,
    "without a body": ScriptedReply(body={**SIGNED_IN, "gsid": GSID}, stalls=True),
    "dripping": ScriptedReply(body={**SIGNED_IN, "gsid": GSID}, drips=True),
}
GIVES_UP_WITHIN = 9.0  # seconds, on a busy machine; a client without a timeout takes longer


def test_a_client_polls_as_the_rules_say(game: Game) -> None:
    steps = [HELD, HELD, retry(0), retry(0), retry(0), retry(0), retry(1, "opened")]
    steps += [error("r0", 503), retry(0, "signing_in")]
    # Godot 3 cannot parse an escaped rocket, and the service does not escape it.
    escaped = json.dumps(SIGNED_IN, ensure_ascii=game.language != "gdscript").encode()
    steps += [error("r1", 429, **{"Retry-After": "1"}), ScriptedReply(body=escaped)]
    with scripted_responder(*steps) as service:
        output = game.play(
            service.address, "poll_timeout=1", "app_id=50001", "factor=f1", "code=1", "qr=1", "distr=eu"
        )
        polls = service.polls
        gaps = [later.at - sooner.at for sooner, later in pairwise(polls)]

    assert output["state"] == "waiting opened signing_in confirmed"
    assert (output["outcome"], output["user_id"], output["nick"], output["jwt"]) == ("ok", "1001", NICK, JWT)
    assert (output["link"], output["code"]) == (f"{service.address}/?gsid={GSID}", "42")
    assert output["qr"].startswith("data:image/svg+xml")
    assert len(polls) == len(steps)
    # A busy machine records a poll late, which makes the gap before it longer and the one after it shorter.
    assert min(gaps[:2]) < 1.9  # an HTTP timeout: immediately
    assert max(gaps[:2]) > 0.9
    assert min(gaps[2:6]) < 0.9  # delay 0
    delayed, backed_off, _, blocked = gaps[6:]
    assert min(delayed, backed_off, blocked) >= 1.0
    registration = {"app_id": 50001, "factor": "f1", "code": "1", "qr": "1", "distr": "eu"}
    assert service.calls[0].body == registration
    assert all(poll.body == {"gsid": GSID, "states": "1"} for poll in polls)
    assert all(call.query == f"location={LOCATION}" for call in service.calls[1:])
    assert service.closings == [{"gsid": GSID, "status": "Success"}]


def test_a_client_keeps_tokens_to_itself(game: Game) -> None:
    with scripted_responder(OK) as service, game.start(service.address) as played:
        output = output_of(played)
        spoken = [line for line in [*played.stdout, *played.stderr] if JWT in line or GSID in line]
    assert output["outcome"] == "ok"
    assert spoken == [f"link {service.address}/?gsid={GSID}\n", f"jwt {JWT}\n"]


@pytest.mark.parametrize(
    ("reply", "outcome", "record", "closings"),
    [
        pytest.param(error("rec-1"), "refused", "rec-1", [], id="ERROR"),
        pytest.param(error("rec-2", 403), "refused", "rec-2", [], id="403"),
        pytest.param(ScriptedReply(status=403, body=b"<html>"), "refused", "", [], id="403-of-someone-else"),
        pytest.param(error("rec-3", 429, **{"Retry-After": "3600"}), "refused", "rec-3", [], id="429-for-an-hour"),
        pytest.param(
            ScriptedReply(body={"status": "CANCELLED", "gsid": GSID}),
            "cancelled",
            "",
            [{"gsid": GSID, "status": "Error"}],
            id="CANCELLED",
        ),
    ],
)
def test_a_client_stops_where_it_must(
    game: Game, reply: ScriptedReply, outcome: str, record: str, closings: list[dict[str, str]]
) -> None:
    with scripted_responder(reply) as service:
        output = game.play(service.address)
    assert (output["outcome"], output.get("error", "")) == (outcome, record)
    assert len(service.polls) == 1
    assert service.closings == closings


def test_a_client_tells_a_banned_player_why_and_until_when(game: Game) -> None:
    told = {"reason": "banned", "public_text": "Cheating in ranked games", "until": 1_900_000_000}
    banned = ScriptedReply(body={"status": "ERROR", "error": "rec-1", **told})
    with scripted_responder(banned) as service:
        output = game.play(service.address)
    assert (output["outcome"], output["error"]) == ("refused", "rec-1")
    assert output["ban"] == "banned Cheating in ranked games 1900000000"


def test_a_game_that_cancels_leaves_a_held_poll_and_closes_the_session(game: Game, tmp_path: Path) -> None:
    cancel = tmp_path / "cancel"
    with (
        scripted_responder(retry(0, "opened"), HELD) as service,
        game.start(service.address, f"cancel={cancel}") as playing,
    ):
        service.wait_for("getGsidResult", 2)
        cancel.touch()
        output = output_of(playing)
    assert output["outcome"] == "cancelled"
    assert service.closings == [{"gsid": GSID, "status": "Error"}]


def test_a_game_that_cancels_during_a_pause_does_not_wait_for_its_end(game: Game, tmp_path: Path) -> None:
    cancel = tmp_path / "cancel"
    with (
        scripted_responder(retry(60, "opened")) as service,
        game.start(service.address, f"cancel={cancel}") as playing,
    ):
        playing.wait_for_line("^state opened", playing.stdout)
        cancel.touch()
        output = output_of(playing)
    assert output["outcome"] == "cancelled"
    assert service.closings == [{"gsid": GSID, "status": "Error"}]


def unreachable_by(game: Game, answers: Sequence[str]) -> None:
    """A client that reads one of them would be refused. Registration is not retried, so there is no pause."""
    with scripted_responder(registered=[ScriptedReply(body=answer.encode()) for answer in answers]) as service:
        output = game.play(",".join(service.address for _ in answers))
    assert output["outcome"].split() == ["unreachable"] * len(answers)
    assert len(service.calls) == len(answers)


def test_an_answer_that_no_one_understands_is_no_answer(game: Game) -> None:
    unreachable_by(game, ["", "[]", '{"status": "ERROR"'])


def test_a_poll_that_no_one_understands_is_sent_again(game: Game) -> None:
    with scripted_responder(ScriptedReply(body=b'{"status": "OK"'), error("rec-5")) as service:
        output = game.play(service.address)
    assert (output["outcome"], output["error"]) == ("refused", "rec-5")
    assert len(service.polls) == 2


def test_a_service_that_is_not_there_is_unreachable(game: Game) -> None:
    with scripted_responder() as service:
        pass
    assert game.play(service.address)["outcome"] == "unreachable"


@pytest.mark.parametrize("unfinished", UNFINISHED if WHOLE else ["dripping"])
def test_patience_ends_the_wait_for_an_answer_that_never_comes_to_its_end(game: Game, unfinished: str) -> None:
    reply = UNFINISHED[unfinished]
    with (
        scripted_responder(registered=[reply]) as begins_so,
        scripted_responder(reply, closed=reply) as goes_on_so,
        scripted_responder(error("the last one")) as last,
    ):
        services = (begins_so, goes_on_so, last)
        output = game.play(",".join(service.address for service in services), "patience=1")
        began = [service.calls[0].at for service in services]
    assert output["outcome"].split() == ["unreachable", "unreachable", "refused"]
    assert max(later - sooner for sooner, later in pairwise(began)) < GIVES_UP_WITHIN
    assert goes_on_so.closings == [{"gsid": GSID, "status": "Error"}]


def test_patience_ends_the_wait_for_a_service_that_is_gone(game: Game) -> None:
    with scripted_responder(HELD) as service:
        playing = game.start(service.address, "patience=2")
        service.wait_for("getGsidResult")
    with playing:
        began = time.monotonic()
        assert output_of(playing)["outcome"] == "unreachable"
        assert time.monotonic() - began < GIVES_UP_WITHIN


def test_a_client_follows_no_redirect(game: Game) -> None:
    with scripted_responder() as elsewhere:
        there = {"Location": f"{elsewhere.address}/proxy/api/gameSession/getGsid"}
        away = [ScriptedReply(status=status, headers=there) for status in (302, 303, 307)]
        with scripted_responder(registered=away) as service:
            output = game.play(",".join(service.address for _ in away))
        assert output["outcome"].split() == ["unreachable"] * len(away)
        assert elsewhere.calls == []


def test_a_client_talks_over_tls_or_to_its_own_machine(game: Game) -> None:
    assert game.play(",".join(NOT_SECURE))["outcome"].split() == ["invalid"] * len(NOT_SECURE)


def test_a_client_refuses_a_certificate_no_one_vouches_for(game: Game, self_signed: ssl.SSLContext) -> None:
    with scripted_responder(tls=self_signed) as service:
        assert game.play(service.address)["outcome"] == "unreachable"
    assert service.calls == []


def test_a_refused_registration_names_its_record(game: Game) -> None:
    with scripted_responder(registered=[error("rec-4", 429, **{"Retry-After": "60"})]) as service:
        output = game.play(service.address)
    assert (output["outcome"], output["error"]) == ("refused", "rec-4")
    assert "link" not in output
    assert service.polls == []


@pytest.mark.parametrize("game", ["cpp", "csharp", "unity"], indirect=True)
def test_a_json_reader_of_our_own_takes_nothing_but_json(game: Game) -> None:
    unreachable_by(game, NOT_JSON)
