"""The code flow with PKCE, by hand (OpenID Connect Core §3.1, RFC 7636).

A library for your framework does the same.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from gatehouse.client import Request, Transport
from gatehouse.demo.sample_app.settings import SampleSettings

SCOPES: Final = "openid profile email"
OK: Final = 200
FORM: Final = "application/x-www-form-urlencoded"


class SignInFailed(Exception):
    """The sign-in failed; the text is shown to the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSignIn:
    """The values that a redirected browser has to bring back."""

    state: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleUser:
    """The user who signed in."""

    claims: Mapping[str, Any]
    id_token: str = field(repr=False)
    jwt: str = field(repr=False)  # for questions about what they may do


class CodeFlow:
    def __init__(self, settings: SampleSettings, transport: Transport) -> None:
        self._settings = settings
        self._transport = transport

    def authorize_url(self, pending: PendingSignIn) -> str:
        """Return the address that the browser is redirected to."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(pending.verifier.encode()).digest()).rstrip(b"=")
        asked = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": self._settings.redirect_uri,
            "scope": SCOPES,
            "state": pending.state,
            "nonce": pending.nonce,
            "code_challenge": challenge.decode(),
            "code_challenge_method": "S256",
        }
        return f"{self._settings.base_url}/proxy/oauth/authorize?{urlencode(asked)}"

    async def finish(self, pending: PendingSignIn | None, came_back: Mapping[str, str]) -> SampleUser:
        """Finish the sign-in. Raises SignInFailed."""
        if pending is None:
            raise SignInFailed("This sign-in has expired. Try again.")
        if not hmac.compare_digest(came_back.get("state", "").encode(), pending.state.encode()):
            raise SignInFailed("This sign-in was started in another window. Try again.")
        if came_back.get("iss") != self._settings.base_url:
            raise SignInFailed("The response came from another issuer.")  # RFC 9207
        if "code" not in came_back:
            raise SignInFailed(f"Sign-in failed: {came_back.get('error', 'no code')}.")
        tokens = await self._redeem_code(came_back["code"], pending.verifier)
        proved = decode_claims(tokens["id_token"])
        self._check(proved, pending)
        bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
        userinfo = await self._request("GET", "userinfo", bearer)
        if userinfo["sub"] != proved["sub"]:  # Core §5.3.2
            raise SignInFailed("The ID token and UserInfo are about different users.")
        return SampleUser(
            claims=userinfo,
            id_token=tokens["id_token"],
            jwt=(await self._request("POST", "exchangeToken", bearer))["token"],
        )

    def sign_out_url(self, user: SampleUser) -> str:
        asked = {"id_token_hint": user.id_token, "post_logout_redirect_uri": self._settings.home}
        return f"{self._settings.base_url}/proxy/oauth/logout?{urlencode(asked)}"

    async def _redeem_code(self, code: str, verifier: str) -> Mapping[str, str]:
        proof = base64.b64encode(f"{self._settings.client_id}:{self._settings.client_secret}".encode()).decode()
        turned_in = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._settings.redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"Authorization": f"Basic {proof}", "Content-Type": FORM}
        return await self._request("POST", "token", headers, urlencode(turned_in).encode())

    def _check(self, claims: Mapping[str, Any], pending: PendingSignIn) -> None:
        """Check the id_token.

        It came directly from the service, so its signature need not be checked (Core §3.1.3.7, point 6).
        """
        audience, own = claims.get("aud"), self._settings.client_id
        audiences = audience if isinstance(audience, list) else [audience]
        if claims.get("iss") != self._settings.base_url or own not in audiences or claims.get("azp", own) != own:
            raise SignInFailed("The ID token is for another application.")
        if claims.get("nonce") != pending.nonce:
            raise SignInFailed("The ID token belongs to another sign-in.")

    async def _request(
        self, method: str, endpoint: str, headers: Mapping[str, str], body: bytes = b""
    ) -> Mapping[str, Any]:
        path = f"/proxy/oauth/{endpoint}"
        reply = await self._transport.send(Request(method=method, path=path, headers=headers, body=body))
        if reply.status != OK:
            raise SignInFailed(f"Gatehouse returned {reply.status} for {endpoint}.")
        answer: Mapping[str, Any] = msgspec.json.decode(reply.body)
        return answer


def decode_claims(token: str) -> Mapping[str, Any]:
    middle = token.split(".")[1]
    claims: Mapping[str, Any] = msgspec.json.decode(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
    return claims
