"""A player: a person with a browser and a device, and what takes both."""

import re
from html import unescape
from http import HTTPStatus
from typing import Final

import httpx2

from tests.fuzz.account_life.browsers import InBrowser
from tests.fuzz.account_life.devices import OnDevice
from tests.fuzz.account_life.installation import VENDOR
from tests.fuzz.account_life.outcomes import IN, REFUSED
from tests.support.browser import HttpBrowser
from tests.support.game import Game, poll_ended_session, register_game
from tests.support.guests import ask_challenge

PROVIDER_LINK: Final = re.compile(rf'href="(/sign-in/with/{VENDOR}[^"]+)"')


class Player(InBrowser, OnDevice):
    async def authorize_with_short_token(self) -> set[str]:
        """Open the newest short token in a new browser; return the applications that it gets a code for."""
        browser = HttpBrowser(self.service)
        try:
            await browser.get(f"/?stoken={self.short_token}")
            await browser.post("/sign-in/stoken")
            return {name for name in self.installation.clients if await self.authorize(name, browser)}
        finally:
            await browser.client.aclose()

    async def begin_upgrade(self, application: str) -> Game:
        proof = self.device.sign(await ask_challenge(self.service, intent="upgrade"))
        game = await register_game(
            self.service, intent="upgrade", factor=self.factor, app_id=self.app_id(application), **proof
        )
        await self.service.clock.advance(1)  # an account that is registered from now on becomes the guest's
        return game

    async def upgrade_with_password(self, game: Game, address: str, otp_for: str = "") -> str:
        page = await self.open_game(game)
        page = await self.browser.post("/sign-in", login=address, password=self.password)
        return await self.end_of_upgrade(game, page, otp_for)

    async def upgrade_with_provider(self, game: Game, address: str = "", otp_for: str = "") -> str:
        link = PROVIDER_LINK.search((await self.open_game(game)).text)
        assert link is not None
        started = await self.browser.get(unescape(link[1]))
        page = await self.come_back(VENDOR, started.headers["location"], address)
        return await self.end_of_upgrade(game, page, otp_for)

    async def open_game(self, game: Game) -> httpx2.Response:
        page = await self.browser.get(f"/?gsid={game.gsid}")
        while page.status_code == HTTPStatus.SEE_OTHER:
            page = await self.browser.follow()
        return page

    async def end_of_upgrade(self, game: Game, page: httpx2.Response, otp_for: str) -> str:
        """Confirm with the code of the game; let the game take its answer."""
        ended = await self.end_of_sign_in(page, otp_for)
        if ended != IN:
            return ended
        page = await self.browser.follow()
        if page.url.path != "/sign-in/confirm":
            return REFUSED
        page = await self.browser.post("/sign-in/confirm", decision="confirm", code=game.answer["code"])
        if page.is_redirect:
            page = await self.browser.follow()
        if page.url.path != "/game/done":
            return REFUSED
        self.end_of_login((await poll_ended_session(game)).json())  # a ban is answered after a delay
        return IN
