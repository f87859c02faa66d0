"""POST /proxy/oauth/introspect: whether a token is good, for the client or application it is about (RFC 7662).

A client proves itself as it does elsewhere; an application without one shows an access key as Bearer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.oauth.bearers import Bearers
from gatehouse.oauth.client_authentication import ClientAuthentication, Credentials
from gatehouse.oauth.errors import InvalidClient, InvalidRequest
from gatehouse.oauth.model import Holder
from gatehouse.oauth.ports import AccessKeys
from gatehouse.oauth.refresh_tokens import RefreshTokens
from gatehouse.oauth.store import LoginTokenStore
from gatehouse.oauth.vocabulary import OFFLINE_ACCESS
from gatehouse.tokens.errors import InvalidToken

INACTIVE: Final[Mapping[str, object]] = {"active": False}  # and not a word about why (RFC 7662 §2.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    application_id: int | None
    client_id: str = ""

    def may_know(self, holder: Holder) -> bool:
        """Its own tokens, and those of the clients of its application."""
        owner = holder.client
        same_application = self.application_id is not None and owner.application_id == self.application_id
        return owner.client_id == self.client_id or same_application


class Introspection:
    def __init__(
        self,
        *,
        logins: LoginTokenStore,
        authentication: ClientAuthentication,
        access_keys: AccessKeys,
        refresh_tokens: RefreshTokens,
        bearers: Bearers,
        clock: Clock,
        issuer: str,
    ) -> None:
        self._logins = logins
        self._authentication = authentication
        self._access_keys = access_keys
        self._refresh_tokens = refresh_tokens
        self._bearers = bearers
        self._clock = clock
        self._issuer = issuer

    async def ask(self, shown: Credentials, token: str) -> Mapping[str, object]:
        """Raises InvalidClient, for public clients too, and InvalidRequest."""
        if not token:
            raise InvalidRequest("token is missing")
        asker = await self._asker(shown)
        for look in (self._access_token, self._refresh_token, self._login_token):
            told = await look(token, asker)
            if told is not None:
                return told
        return INACTIVE

    async def _asker(self, shown: Credentials) -> Asker:
        if shown.proof:
            return Asker(application_id=await self._application(shown))
        client = await self._authentication.by_secret(shown)
        if client.public:
            raise InvalidClient("a public client cannot authenticate")
        return Asker(application_id=client.application_id, client_id=client.client_id)

    async def _application(self, shown: Credentials) -> int:
        try:
            return await self._access_keys.application_of(shown.proof, source=shown.source)
        except InvalidToken as error:
            raise InvalidClient(error.detail) from None

    async def _access_token(self, token: str, asker: Asker) -> Mapping[str, object] | None:
        bearer = await self._bearers.find(token)
        if bearer is None or not asker.may_know(bearer.holder):
            return None
        scopes = [scope for scope in bearer.holder.scopes if scope in bearer.token.scopes]
        return {
            **self._told(bearer.holder, " ".join(scopes)),
            "token_type": "Bearer",
            "exp": bearer.token.ends_at,
        }

    async def _refresh_token(self, token: str, asker: Asker) -> Mapping[str, object] | None:
        found = await self._refresh_tokens.find(token)
        if found is None or not asker.may_know(found.holder):
            return None
        holder = found.holder
        if not found.is_newest or OFFLINE_ACCESS not in holder.scopes:
            return None
        return {**self._told(holder, " ".join(holder.scopes)), "exp": found.ends_at}

    async def _login_token(self, token: str, asker: Asker) -> Mapping[str, object] | None:
        """The `token` of login data: its application alone is told about it (R1)."""
        login = await self._logins.live_token(sha256(token), self._clock.now())
        if login is None or login.application_id != asker.application_id:
            return None
        return {"active": True, "iss": self._issuer, "sub": login.user_id, "exp": login.ends_at}

    def _told(self, holder: Holder, scope: str) -> dict[str, object]:
        return {
            "active": True,
            "iss": self._issuer,
            "sub": holder.user.user_id,
            "client_id": holder.client.client_id,
            "aud": [self._issuer, holder.client.client_id],
            "scope": scope,
        }
