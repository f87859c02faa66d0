"""Each client signs a player in at the running service, through its real pages."""

import httpx2

from tests.game_clients.conftest import GameStudio
from tests.game_clients.support.games import Game, output_of
from tests.game_clients.support.player import ELSEWHERE, NICK, Player, choices_in
from tests.support.oauth import claims_of

FACTOR = "device-factor-of-this-machine"


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


def test_a_game_that_cancels_takes_its_link_with_it(game: Game, studio: GameStudio) -> None:
    with game.start(studio.base_url, "cancel_on=waiting") as playing, Player() as player:
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
