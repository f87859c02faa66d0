"""Clients open the system browser with one argument and without a shell."""

import pytest

from tests.game_clients.support.desktop import Desktop
from tests.game_clients.support.games import Game
from tests.game_clients.support.responder import GSID, ScriptedReply, error, scripted_responder

NO_ADDRESSES = [
    "file:///etc/passwd",
    "http://sso.studio.example/?gsid=1",
    "https://sso.studio.example/?gsid=$(id)",
    "https://sso.studio.example/?gsid=1 --profile x",
    'https://sso.studio.example/?gsid="x"',
    "https://sso.studio.example/?gsid=1\n",
    "--help",
]
REFUSED = error("rec-1")


@pytest.mark.parametrize("word", ["default=1", "browser=1"])
def test_the_browser_is_opened_at_the_link(game: Game, desktop: Desktop, word: str) -> None:
    with (
        scripted_responder(ScriptedReply(held=True)) as service,
        game.start(service.address, word, environment=desktop.environment),
    ):
        assert desktop.wait_for_open() == [f"{service.address}/?gsid={GSID}"]


def test_sign_in_continues_without_a_browser(game: Game, desktop: Desktop) -> None:
    desktop.remove_browser()
    with scripted_responder(REFUSED) as service:
        output = game.play(service.address, "default=1", environment=desktop.environment)
    assert (output["outcome"], output["error"]) == ("refused", "rec-1")


def test_an_address_that_is_none_is_not_opened(game: Game, desktop: Desktop) -> None:
    registered = [ScriptedReply(body={"status": "OK", "gsid": GSID, "url": url}) for url in NO_ADDRESSES]
    with scripted_responder(REFUSED, registered=registered) as service:
        everyone = ",".join(service.address for _ in NO_ADDRESSES)
        output = game.play(everyone, "default=1", environment=desktop.environment)
        assert service.polls == []
    assert output["outcome"].split() == ["unreachable"] * len(NO_ADDRESSES)
    assert desktop.nothing_was_opened()
