"""Each client signs a player in at the running service, through its real pages."""

import hashlib
import json
from pathlib import Path
from typing import Final

import httpx2
import pytest

from tests.game_clients.conftest import TRIES, GameStudio, turn_guests_on
from tests.game_clients.support.games import Game, output_of
from tests.game_clients.support.player import ELSEWHERE, NICK, Player, choices_in
from tests.support.guides import programs_for
from tests.support.oauth import claims_of

FACTOR = "device-factor-of-this-machine"
ASKS_TERMS: Final = 50020  # an application of its own: the other tests accept nothing
TERMS: Final = {"title": "Terms", "url": "https://studio.example/terms", "version": "1", "applications": ASKS_TERMS}


def test_a_player_confirms_in_the_browser_and_is_signed_in(game: Game, studio: GameStudio) -> None:
    parameters = (f"app_id={studio.application_id}", f"factor={FACTOR}", "qr=1", "distr=eu")
    with game.start(studio.base_url, *parameters) as playing, Player() as player:
        link = playing.wait_for_line("^link (.+)$", playing.stdout)[1]
        assert studio.info(link)["distr"] == "eu"
        player.confirm(link)
        output = output_of(playing)
    assert (output["outcome"], output["user_id"], output["nick"]) == ("ok", studio.user_id, NICK)
    assert claims_of(output["jwt"])["uid"] == studio.user_id
    assert output["state"].startswith("waiting")
    assert output["state"].endswith("confirmed")
    assert output["qr"].startswith("data:image/svg+xml")
    assert studio.info(link)["state"] == "Success"


def test_no_jwt_is_issued_without_a_factor(game: Game, studio: GameStudio) -> None:
    with game.start(studio.base_url) as playing, Player() as player:
        player.confirm(playing.wait_for_line("^link (.+)$", playing.stdout)[1])
        output = output_of(playing)
    assert (output["outcome"], output["nick"], output["jwt"]) == ("ok", NICK, "")


def test_a_player_who_cancels_in_the_browser_is_not_signed_in(game: Game, studio: GameStudio) -> None:
    with game.start(studio.base_url, f"app_id={studio.application_id}") as playing, Player() as player:
        page = player.open(playing.wait_for_line("^link (.+)$", playing.stdout)[1])
        player.decide(page, "cancel")
        output = output_of(playing)
    assert output["outcome"] == "refused"
    assert output["state"].endswith("cancelled")
    assert studio.record(output["error"])


def test_the_right_code_signs_in_and_a_wrong_one_ends_it(game: Game, studio: GameStudio) -> None:
    outcomes = {}
    for right in (True, False):
        with game.start(studio.base_url, "code=1") as playing, Player(address=ELSEWHERE) as player:
            shown_code = playing.wait_for_line(r"^code (\d\d)$", playing.stdout)[1]
            page = player.open(playing.wait_for_line("^link (.+)$", playing.stdout)[1])
            picked = next(code for code in choices_in(page) if (code == shown_code) == right)
            player.decide(page, "confirm", code=picked)
            outcomes[right] = output_of(playing)["outcome"]
    assert outcomes == {True: "ok", False: "refused"}


def test_a_game_that_cancels_takes_its_link_with_it(game: Game, studio: GameStudio, tmp_path: Path) -> None:
    cancel = tmp_path / "cancel"
    with game.start(studio.base_url, f"cancel={cancel}") as playing, Player() as player:
        playing.wait_for_line("^state waiting", playing.stdout)
        cancel.touch()
        link = playing.wait_for_line("^link (.+)$", playing.stdout)[1]
        assert output_of(playing)["outcome"] == "cancelled"
        assert studio.info(link)["state"] == "Error"
        assert 'name="decision"' not in player.client.get(link).text


def test_a_session_that_someone_else_closes_ends_with_a_record(game: Game, studio: GameStudio) -> None:
    with game.start(studio.base_url) as playing:
        link = playing.wait_for_line("^link (.+)$", playing.stdout)[1]
        closing = {"gsid": link.partition("gsid=")[2], "status": "Error"}
        httpx2.post(f"{studio.base_url}/proxy/api/gameSession/closeGsid", json=closing).raise_for_status()
        output = output_of(playing)
    assert output["outcome"] == "refused"
    assert studio.record(output["error"])


@pytest.mark.parametrize("game", ["python", "typescript"], indirect=True)
def test_id_token_for_the_back_end_of_the_guide_is_in_the_login_data(
    game: Game, studio: GameStudio, tmp_path: Path
) -> None:
    [client] = programs_for(__file__, "game-back-ends", "yaml")
    described = tmp_path / "back-end.yaml"
    described.write_text(client)
    studio.commands("apply", described)
    parameters = (f"app_id={studio.application_id}", "id_token_client=raiders-backend", "nonce=n-0S6_WzA2Mj")
    with game.start(studio.base_url, *parameters) as playing, Player() as player:
        player.confirm(playing.wait_for_line("^link (.+)$", playing.stdout)[1])
        output = output_of(playing)
    claims = claims_of(output["id_token"])
    assert (claims["sub"], claims["aud"], claims["nonce"]) == (studio.user_id, "raiders-backend", "n-0S6_WzA2Mj")


@pytest.mark.parametrize("game", ["python"], indirect=True)
def test_guest_accepts_the_terms_by_the_link_and_signs_in_again(
    game: Game, studio: GameStudio, tmp_path: Path
) -> None:
    described = tmp_path / "game.json"
    described.write_text(json.dumps({"applications": [{"application_id": ASKS_TERMS, "name": "Asks terms"}]}))
    studio.commands("apply", described)
    studio.commands("config", "set", *(f"terms.clients.{name}={value}" for name, value in TERMS.items()))
    turn_guests_on(studio)
    key = hashlib.sha256(str(tmp_path).encode()).hexdigest()
    parameters = ("do=guest", f"key={key}", f"app_id={ASKS_TERMS}", "factor=device")
    for _ in range(TRIES):  # the service notices the setting within a second
        output = game.play(studio.base_url, *parameters)
        if output["outcome"] != "ok":
            break
    assert (output["outcome"], output["ban"], output["jwt"]) == ("refused", "terms  0", "")
    assert output["url"].startswith(f"{studio.base_url}/terms?token=")
    with Player() as player:
        assert "Return to the game" in player.decide(player.client.get(output["url"]), "accept").text
    assert game.play(studio.base_url, *parameters)["outcome"] == "ok"
