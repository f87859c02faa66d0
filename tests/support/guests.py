"""A device with a key, which signs in as a guest."""

from base64 import b64encode
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import httpx2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.game import Game, register_game
from tests.support.service import RunningService

GUEST: Final = "/proxy/api/guest"
NEW: Final = "kim@studio.example"


async def turn_guests_on(service: RunningService, **settings: object) -> None:
    wanted = {f"guests.{name}": value for name, value in {"enabled": True, **settings}.items()}
    await service.services.settings_editor.save(wanted, AuditOrigin(actor="test"))


@dataclass(frozen=True, slots=True)
class Device:
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def public_key(self) -> str:
        return b64encode(self.key.public_key().public_bytes_raw()).decode()

    def sign(self, challenge: str) -> dict[str, str]:
        """The fields that prove the key."""
        signature = b64encode(self.key.sign(challenge.encode())).decode()
        return {"device_key": self.public_key, "challenge": challenge, "signature": signature}

    async def log_in(self, service: RunningService, **fields: Any) -> dict[str, Any]:
        return await post_guest(service, **self.sign(await ask_challenge(service, **fields)), **fields)


async def ask_challenge(service: RunningService, **fields: Any) -> str:
    answer = await post_guest(service, **fields)
    assert (answer["status"], answer["expires_in"]) == ("CHALLENGE", 120)
    challenge: str = answer["challenge"]
    return challenge


async def post_guest(service: RunningService, **fields: Any) -> dict[str, Any]:
    response = await service.client.post(GUEST, json=fields)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def register_upgrade(service: RunningService, device: Device, **fields: Any) -> Game:
    """A game session in which the guest of the device gets an account."""
    proof: dict[str, Any] = device.sign(await ask_challenge(service, intent="upgrade"))
    return await register_game(service, intent="upgrade", factor="pc", **proof, **fields)


async def register_account(service: RunningService, browser: HttpBrowser) -> None:
    """Register NEW, after a game session began: it becomes the account of the guest."""
    await service.clock.advance(1)
    await browser.get("/register")
    page = await browser.post("/register", login=NEW, nick="Kim", password=PASSWORD)
    assert page.status_code == HTTPStatus.OK


async def open_upgrade(browser: HttpBrowser, game: Game, login: str) -> httpx2.Response:
    """Open the link and sign in anew; return the page that asks to confirm."""
    page = await browser.get(f"/?gsid={game.gsid}")
    while page.status_code == HTTPStatus.SEE_OTHER:
        page = await browser.follow()
    assert page.url.path == "/sign-in", page.text
    await browser.post("/sign-in", login=login, password=PASSWORD)
    return await browser.follow()


async def confirm_upgrade(browser: HttpBrowser, game: Game, login: str) -> httpx2.Response:
    await open_upgrade(browser, game, login)
    await browser.post("/sign-in/confirm", decision="confirm", code=game.answer["code"])
    return (
        await browser.follow() if browser.page and browser.page.status_code == HTTPStatus.SEE_OTHER else last(browser)
    )


def last(browser: HttpBrowser) -> httpx2.Response:
    assert browser.page is not None
    return browser.page
