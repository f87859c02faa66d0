"""A token of every kind that distrusting the signing keys ends, and every request that accepts one."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Any, Final

import httpx2

from gatehouse.accounts.model import User
from gatehouse.app.services import Services
from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.digests import sha256
from gatehouse.keys.model import KeyLine, KeyPurpose
from gatehouse.keys.rotation import KEY_LINES, RotationMode
from gatehouse.oauth.model import Client, ClientProfile
from tests.support.browser import PASSWORD
from tests.support.builders import ORIGIN, a_record
from tests.support.oauth import DAY, REDIRECT, TOKEN, a_grant, basic_auth, header_of, native_proof, success_body
from tests.support.permission_builders import create_application
from tests.support.studio import FACTOR

OK: Final = 200
RECORD: Final = "/api/permissions/meta/data"
USER_INFO: Final = "/api/permissions/user/info"
EXCHANGE_TOKEN: Final = "/proxy/oauth/exchangeToken"
CLIENT: Final = "web"
LOGIN: Final = "anna@studio.example"
Use = Callable[[], Coroutine[Any, Any, bool]]
TOKEN_LINES: Final[tuple[KeyLine, ...]] = tuple(line for line in KEY_LINES if line.purpose is not KeyPurpose.AUDIT)


async def distrust_all(services: Services) -> None:
    """Do what `gatehouse key rotate --distrust` does."""
    for line in TOKEN_LINES:
        await services.keys.rotation.rotate(line, origin=ORIGIN, mode=RotationMode.DISTRUST)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedTokens:
    user_jwt: str = field(repr=False)
    service_jwt: str = field(repr=False)
    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    id_token: str = field(repr=False)
    exchanged_jwt: str = field(repr=False)

    @property
    def kids(self) -> frozenset[str]:
        tokens = (self.user_jwt, self.service_jwt, self.refresh_token, self.id_token, self.exchanged_jwt)
        return frozenset(header_of(token)["kid"] for token in tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenScenario:
    """A person with a password, an application, and a native client that may exchange tokens."""

    user: User
    application_id: int
    secret: str = field(repr=False)

    async def code(self, services: Services) -> str:
        """Store a code of the person for the client."""
        code, now = token_urlsafe(32), services.clock.now()
        grant = a_grant(
            client_id=CLIENT,
            user_id=self.user.user_id,
            rev=self.user.rev,
            code=sha256(code),
            auth_time=now,
            created_at=now,
            code_ends_at=now + 600,
            ends_at=now + 90 * DAY,
        )
        assert await services.storage.grants.create_grant(grant, a_record(AuditEvent.GRANT_MADE))
        return code

    async def tokens(self, http: httpx2.AsyncClient, code: str) -> dict[str, Any]:
        return success_body(await self._token(http, grant_type="authorization_code", code=code))

    async def refresh(self, http: httpx2.AsyncClient, refresh_token: str) -> httpx2.Response:
        return await self._token(http, grant_type="refresh_token", refresh_token=refresh_token)

    async def _token(self, http: httpx2.AsyncClient, **fields: str) -> httpx2.Response:
        headers = bearer(native_proof(REDIRECT, self.secret))
        return await http.post(TOKEN, data={"redirect_uri": REDIRECT, **fields}, headers=headers)

    async def log_in(self, http: httpx2.AsyncClient) -> str:
        body = {"login": LOGIN, "password": PASSWORD, "factor": FACTOR}
        jwt: str = success_body(await http.post("/proxy/api/login", json=body))["jwt"]
        return jwt

    async def issue(self, http: httpx2.AsyncClient, services: Services) -> SignedTokens:
        tokens = await self.tokens(http, await self.code(services))
        exchanged = await http.post(EXCHANGE_TOKEN, headers=bearer(tokens["access_token"]))
        service = await services.permissions.service_tokens.issue(self.application_id, origin=ORIGIN)
        return SignedTokens(
            user_jwt=await self.log_in(http),
            service_jwt=service.jwt,
            access_token=tokens["access_token"],
            refresh_token=tokens["refresh_token"],
            id_token=tokens["id_token"],
            exchanged_jwt=success_body(exchanged)["token"],
        )

    def uses(self, http: httpx2.AsyncClient, tokens: SignedTokens) -> Mapping[str, Use]:
        """Send every request that takes one of the tokens; return by name whether it was accepted.

        Spends the refresh token.
        """
        user_and_service = bearer(tokens.user_jwt) | {"Service-Jwt": tokens.service_jwt}
        return {
            "user JWT": lambda: is_ok(self.own_record(http, tokens.user_jwt)),
            "user JWT beside a service JWT": lambda: is_ok(self._own_record(http, user_and_service)),
            "exchanged JWT": lambda: is_ok(http.post(USER_INFO, json={}, headers=bearer(tokens.exchanged_jwt))),
            "service JWT": lambda: is_ok(self._record_for_service(http, tokens.service_jwt)),
            "exchange": lambda: is_ok(http.post("/proxy/oauth/exchange", headers=bearer(tokens.user_jwt))),
            "exchangeToken": lambda: is_ok(http.post(EXCHANGE_TOKEN, headers=bearer(tokens.access_token))),
            "userinfo": lambda: is_ok(http.get("/proxy/oauth/userinfo", headers=bearer(tokens.access_token))),
            "id_token_hint": lambda: is_ok(
                http.get("/proxy/oauth/logout", params={"id_token_hint": tokens.id_token})
            ),
            "introspected access token": lambda: self._is_active(http, tokens.access_token),
            "introspected refresh token": lambda: self._is_active(http, tokens.refresh_token),
            "refresh": lambda: is_ok(self.refresh(http, tokens.refresh_token)),
        }

    async def accepted_uses(self, http: httpx2.AsyncClient, tokens: SignedTokens) -> dict[str, bool]:
        return {name: await use() for name, use in self.uses(http, tokens).items()}

    async def own_record(self, http: httpx2.AsyncClient, user_jwt: str) -> httpx2.Response:
        return await self._own_record(http, bearer(user_jwt) | {"Factor": FACTOR})

    async def _own_record(self, http: httpx2.AsyncClient, headers: Mapping[str, str]) -> httpx2.Response:
        body = {"action": "get", "application_id": self.application_id, "data": {}}
        return await http.post(RECORD, json=body, headers=dict(headers))

    async def _record_for_service(self, http: httpx2.AsyncClient, service_jwt: str) -> httpx2.Response:
        data = {"user_id": self.user.user_id, "type": "roles"}
        body = {"action": "get", "application_id": self.application_id, "data": data}
        return await http.post(RECORD, json=body, headers={"Service-Jwt": service_jwt})

    async def _is_active(self, http: httpx2.AsyncClient, token: str) -> bool:
        headers = {"Authorization": basic_auth(CLIENT, self.secret)}
        answer = await http.post("/proxy/oauth/introspect", data={"token": token}, headers=headers)
        active: bool = success_body(answer)["active"]
        return active


async def token_scenario(services: Services) -> TokenScenario:
    user = await services.accounts.administration.create(login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN)
    client = Client(
        client_id=CLIENT,
        name="Web shop",
        created_at=services.clock.now(),
        profile=ClientProfile.NATIVE,
        redirect_hosts=("shop.example",),
        first_party=True,
    )
    secret = await services.oauth.clients.commands.create(client, ORIGIN) or ""
    application = await create_application(services.storage, name="Shop")
    return TokenScenario(user=user, application_id=application.application_id, secret=secret)


async def is_ok(asking: Awaitable[httpx2.Response]) -> bool:
    return (await asking).status_code == OK


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def published_kids(http: httpx2.AsyncClient) -> frozenset[str]:
    return frozenset(key["kid"] for key in success_body(await http.get("/proxy/oauth/keys"))["keys"])
