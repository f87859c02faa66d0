"""Game platforms on loopback that verify tickets as their documentation says."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Final
from urllib.parse import parse_qsl

from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from tests.support.clock import MovableClock
from tests.support.stub_server import ReceivedRequest, StubServer, http_response, run_stub_server
from tests.support.vendors import STEAM_ID, TENANT, Vendor

PUBLISHER_KEY: Final = "0123456789ABCDEF0123456789ABCDEF"
STEAM_APP: Final = "480"
KEY_SET: Final = "/.well-known/jwks.json"  # Unity's
GAME_CLIENT: Final = "com.studio.skyraiders"  # the audience of tokens for the game
JSON: Final = {"Content_Type": "application/json"}


@dataclass(slots=True, kw_only=True)
class SteamTicket:
    """What GetAuthTicketForWebApi gave a client."""

    steam_id: str = STEAM_ID
    app_id: str = STEAM_APP
    identity: str = "localhost"  # the host of the base URL in tests


@dataclass(slots=True, kw_only=True)
class SteamWebApi:
    """partner.steam-api.com: ISteamUserAuth/AuthenticateUserTicket and ISteamUser/CheckAppOwnership."""

    server: StubServer = field(default_factory=StubServer)
    tickets: dict[str, SteamTicket] = field(default_factory=dict)
    is_down: bool = False
    ownership: dict[str, object] = field(default_factory=lambda: {"ownsapp": True, "permanent": True})
    owner: str = ""  # of the copy that they play, if it is not theirs
    vac_banned: bool = False

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def settings(self, application_id: int, **more: object) -> dict[str, object]:
        """What an administrator enters about it, under the ID `steam`."""
        entered = {
            "kind": "steam",
            "issuer": self.base,
            "create_accounts": True,
            "publisher_key": PUBLISHER_KEY,
            "tickets": [f"{application_id}:{STEAM_APP}"],
            **more,
        }
        return {f"providers.steam.{name}": value for name, value in entered.items()}

    def ticket(self, **fields: str) -> str:
        return self._add_ticket(178, SteamTicket(**fields))

    def largest_ticket(self) -> str:
        """2,560 bytes, of a player with many licenses."""
        return self._add_ticket(2_560 - 3 * 4 - 20 - 24, SteamTicket())

    def _add_ticket(self, ownership_bytes: int, ticket: SteamTicket) -> str:
        """Each part has its length before it: a game connect token, a session header, the proof of ownership."""
        parts = (token_hex(20), token_hex(24), token_hex(ownership_bytes))
        made = "".join(f"{(len(part) // 2).to_bytes(4, 'little').hex()}{part}" for part in parts)
        self.tickets[made] = ticket
        return made

    def cancel(self, ticket: str) -> None:
        del self.tickets[ticket]

    def respond(self, request: ReceivedRequest) -> bytes:
        if self.is_down:
            return http_response(b"<h1>Service unavailable</h1>", "503 Service Unavailable")
        if request.headers.get("x-webapi-key") != PUBLISHER_KEY:
            return http_response(b"<h1>Forbidden</h1>", "403 Forbidden")
        path, _, query = request.line.split(" ")[1].partition("?")
        asked = dict(parse_qsl(query))
        answer = (
            {"appownership": self._ownership(asked)}
            if path == "/ISteamUser/CheckAppOwnership/v4/"
            else {"response": self._authenticate(asked)}
        )
        return http_response(json.dumps(answer).encode(), **JSON)

    def _authenticate(self, asked: dict[str, str]) -> dict[str, object]:
        """Any number of times, until the client cancels the ticket; case and what follows the parts do not matter."""
        given = asked["ticket"].lower()
        found = next((about for ticket, about in self.tickets.items() if given.startswith(ticket)), None)
        if found is None or asked.get("identity", found.identity) != found.identity:
            return {"error": {"errorcode": 101, "errordesc": "Invalid ticket"}}
        if found.app_id != asked["appid"]:
            return {"error": {"errorcode": 102, "errordesc": "Ticket for other app"}}
        return {
            "params": {
                "result": "OK",
                "steamid": found.steam_id,
                "ownersteamid": self.owner or found.steam_id,
                "vacbanned": self.vac_banned,
                "publisherbanned": False,
            }
        }

    def _ownership(self, asked: dict[str, str]) -> dict[str, object]:
        return {
            "timestamp": "2016-01-01T00:00:00Z",
            "timeexpires": "never",
            "ownersteamid": self.owner or asked["steamid"],
            "sitelicense": False,
            "usercanceled": False,
            "result": "OK",
            **self.ownership,
        }


@asynccontextmanager
async def run_steam() -> AsyncIterator[SteamWebApi]:
    steam = SteamWebApi()
    steam.server.respond = steam.respond
    async with run_stub_server(steam.server):
        yield steam


# Issuers of tokens that a game client gets from an SDK.


@dataclass(slots=True, kw_only=True)
class TokenIssuer:
    """An issuer of signed JWTs, with a discovery document or with a key set alone (`unity`, `jwt`)."""

    kind: str
    vendor: Vendor
    ec_key: ECKey

    @property
    def issuer(self) -> str:
        return self.vendor.issuer.replace("{tenantid}", TENANT)

    def settings(self, *tickets: str) -> dict[str, object]:
        """What an administrator enters about it, under the ID `vendor`."""
        entered = self.vendor.settings
        if self.kind in ("unity", "jwt"):
            entered = {"kind": self.kind, "issuer": self.vendor.base, "create_accounts": True}
            if self.kind == "jwt":
                entered["keys_url"] = f"{self.vendor.base}{KEY_SET}"
            entered = {f"providers.vendor.{name}": value for name, value in entered.items()}
        return {**entered, "providers.vendor.tickets": list(tickets)}

    def claims(self, **more: object) -> dict[str, object]:
        now = self.vendor.clock.now()
        common = {"iss": self.issuer, "aud": GAME_CLIENT, "sub": "player-1", "iat": now, "exp": now + 3_600}
        return {**common, "jti": token_hex(8), **more}

    def token(self, *, header: Mapping[str, str] | None = None, key: RSAKey | None = None, **more: object) -> str:
        claims = {name: value for name, value in self.claims(**more).items() if value is not None}
        return jwt.encode({"alg": "RS256", "kid": "v1", **(header or {})}, claims, key or self.vendor.key)

    def elliptic_token(self) -> str:
        return jwt.encode({"alg": "ES256", "kid": "ec"}, self.claims(), self.ec_key)

    def respond(self, request: ReceivedRequest) -> bytes:
        if self.vendor.is_down or request.line.split(" ")[1] != KEY_SET:
            return self.vendor.respond(request)
        keys = [key.as_dict(private=False) for key in (self.vendor.key, self.ec_key)]
        return http_response(json.dumps({"keys": keys}).encode(), **JSON)


@asynccontextmanager
async def run_token_issuer(kind: str, clock: MovableClock) -> AsyncIterator[TokenIssuer]:
    ec_key = ECKey.generate_key("P-256", {"kid": "ec", "use": "sig", "alg": "ES256"})
    issuer = TokenIssuer(kind=kind, vendor=Vendor(kind=kind, clock=clock), ec_key=ec_key)
    issuer.vendor.server.respond = issuer.respond
    async with run_stub_server(issuer.vendor.server):
        yield issuer
