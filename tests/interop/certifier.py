"""A relying party that verifies everything itself, to certify the service as an OpenID provider."""

from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any, Final

import httpx2
from joserfc import jwt
from joserfc.jwk import KeySet

from tests.support.browser import HttpBrowser
from tests.support.oauth import (
    AUTHORIZE,
    RelyingPartyClient,
    form_action,
    form_answers,
    header_of,
    query_of,
    success_body,
)
from tests.support.service import RunningService
from tests.support.stub_server import StubServer

LOGIN: Final = "anna@studio.example"
BACK: Final = "https://shop.example/back"  # after signing out
STEPS_MOST: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    tokens: dict[str, Any]
    claims: dict[str, Any]  # of the verified id_token

    @property
    def id_token(self) -> str:
        return str(self.tokens["id_token"])

    @property
    def access_token(self) -> str:
        return str(self.tokens["access_token"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Certifier:
    service: RunningService
    client: RelyingPartyClient
    other: RelyingPartyClient  # a second client
    person: HttpBrowser
    back_channel: StubServer  # receives back-channel logout requests
    logins: list[str] = field(default_factory=list)  # one entry per submitted sign-in form

    async def sign_in(self, **changes: str) -> SignedIn:
        """Run the whole flow and verify everything; a field passed as "" is left out."""
        nonce = changes.pop("nonce", token_urlsafe(16))
        verifier = changes.pop("code_verifier", "")
        answer = await self.authorize(nonce=nonce, **changes)
        assert answer.keys() == {"code", "state", "iss"}, answer
        tokens = await self.client.tokens(answer["code"], code_verifier=verifier)
        assert tokens["token_type"] == "Bearer"
        claims = await self.verify_id_token(tokens["id_token"], access_token=tokens["access_token"])
        assert claims.get("nonce", "") == nonce
        return SignedIn(tokens=tokens, claims=claims)

    async def authorize(self, **changes: str) -> dict[str, str]:
        """Complete the authorization in the person's browser; return the response to the client."""
        state = token_urlsafe(8)
        fields = self.client.authorize_fields(**{"response_mode": "", "scope": "openid", "state": state, **changes})
        answer = await self.walk_to_client(await self.person.get(f"{AUTHORIZE}?{httpx2.QueryParams(fields)}"))
        assert answer["state"] == state
        assert answer["iss"] == self.service.base_url
        return answer

    async def begin(self, **changes: str) -> httpx2.Response:
        """Return the first page of an authorization request, which must not be the client's."""
        fields = self.client.authorize_fields(**{"response_mode": "", "scope": "openid", **changes})
        page = await self.person.get(f"{AUTHORIZE}?{httpx2.QueryParams(fields)}")
        return await self.person.follow() if page.is_redirect else page

    async def walk_to_client(self, page: httpx2.Response) -> dict[str, str]:
        for _ in range(STEPS_MOST):
            if page.is_redirect and page.headers["location"].startswith(self.client.redirect_uri):
                return query_of(page.headers["location"])
            page = await self._next(page)
        raise AssertionError(f"not redirected back: {page.status_code} {page.text}")

    async def _next(self, page: httpx2.Response) -> httpx2.Response:
        if page.is_redirect:
            return await self.person.get(page.headers["location"].removeprefix(self.service.base_url))
        fields = form_answers(page, LOGIN, "correct horse battery staple")
        if "password" in fields:
            self.logins.append(fields["login"])
        return await self.person.post(form_action(page), **fields)

    async def verify_id_token(self, token: str, *, access_token: str | None = None) -> dict[str, Any]:
        """Verify an id_token as OpenID Connect Core §3.1.3.7 says; return its claims."""
        keys = KeySet.import_key_set((await self.service.client.get("/proxy/oauth/keys")).json())
        header = header_of(token)
        assert header["alg"] == "RS256"
        assert header["kid"] in {key.kid for key in keys.keys}
        claims = jwt.decode(token, keys, algorithms=["RS256"]).claims
        now = self.service.clock.now()
        assert claims["iss"] == self.service.base_url
        assert self.client.client.client_id in claims["aud"]
        assert claims.get("azp", self.client.client.client_id) == self.client.client.client_id
        assert claims["iat"] <= now < claims.get("exp", now + 1)
        assert 0 < len(claims["sub"]) <= 255
        if access_token is not None:
            assert claims["at_hash"] == at_hash(access_token)
        return claims

    async def userinfo(self, access_token: str) -> dict[str, Any]:
        return success_body(await self.client.userinfo(access_token))

    async def configuration(self) -> dict[str, Any]:
        return success_body(await self.service.client.get("/.well-known/openid-configuration"))

    async def is_signed_in(self) -> bool:
        """Whether prompt=none gets a code."""
        return "code" in await self.authorize(prompt="none")

    async def end_session(self, **fields: str) -> httpx2.Response:
        """Return the response of the end_session_endpoint, after redirects inside the service."""
        page = await self.person.get(f"/proxy/oauth/logout?{httpx2.QueryParams(fields)}")
        while page.is_redirect and page.headers["location"].startswith(("/", self.service.base_url)):
            page = await self.person.get(page.headers["location"].removeprefix(self.service.base_url))
        return page

    async def expect_signed_out_page(self, page: httpx2.Response) -> None:
        """Check that a page of the service tells the person they are signed out, after confirmation if asked."""
        if (await self.person.client.get("/account")).is_success:
            page = await self.person.post(form_action(page), **{**form_answers(page, "", ""), "decision": "confirm"})
        assert not page.is_redirect
        assert not await self.is_signed_in()

    async def expect_no_redirect(self, page: httpx2.Response) -> None:
        """Check that the response is an error or a question, not a redirect to the client."""
        assert page.status_code in (200, 400)
        assert "location" not in page.headers


def at_hash(token: str) -> str:
    """The at_hash of an RS256 token (OpenID Connect Core §3.1.3.6)."""
    return urlsafe_b64encode(sha256(token.encode()).digest()[:16]).rstrip(b"=").decode()
