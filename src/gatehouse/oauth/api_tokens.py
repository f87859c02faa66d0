"""Access tokens for the APIs of applications, and opaque ones of machines (R9).

For an API it is a JWT, which the API verifies offline (RFC 9068). A machine that names none gets an opaque token,
which only its own application can introspect. Neither is stored.

`jti` says what a token depends on, so that introspection and revocation find it:

    grant.<grant id>.<serial>     a person's, which ends with the grant
    grant.<grant id>.<revs>.<serials>  the same for a program that acts for them, with the epochs of all clients that
                                  act and the serials of their tokens, the newest first and joined by "-": it ends
                                  with each of them (R11)
    client.<rev>.<serial>         a client's own, which ends with the client's epoch
    account.<rev>.<serial>        a service account's, which ends with the account's epoch
"""

from collections.abc import Collection, Iterator, Sequence
from secrets import token_hex
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.bans.model import find_ban
from gatehouse.accounts.model import MachineAccount, User
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import HmacSha256, constant_time_equal
from gatehouse.keys.encoding import decode_base64url, encode_base64url
from gatehouse.keys.keyring import Keyring
from gatehouse.oauth.api_model import Api, resource_in
from gatehouse.oauth.delegation import actors_in, may_act_for
from gatehouse.oauth.errors import ClientNotFound
from gatehouse.oauth.mapped_claims import APPLICATION_CLAIMS, MappedClaims, application_sources, fitting_claims
from gatehouse.oauth.model import Client, GrantHolder
from gatehouse.oauth.store import ClientStore, FindAccount, GrantStore
from gatehouse.oauth.vocabulary import AUTHZEN
from gatehouse.tokens.claim_sizes import payload_bytes_left
from gatehouse.tokens.claims import ActClaim, ApiTokenClaims, InvalidToken
from gatehouse.tokens.signer import Signer
from gatehouse.tokens.verifier import TokenVerifier

SERIAL_BYTES: Final = 12
ACCOUNT_SCOPES: Final = (AUTHZEN,)  # that service accounts may ask for: they may read what AuthZEN tells (R1)
MAX_API_TOKEN: Final = 6_144  # characters; roles, groups and permissions beyond are left out (R9)


CHAIN_MARK: Final = "-"  # between the epochs of a chain, and between its serials


def tokens_of_chain(jti: str) -> Iterator[str]:
    """Yield the jti of a token with which a program acts, and those of the tokens that it came from."""
    source, grant_id, revs, serials = jti.split(".")
    while serials:
        yield f"{source}.{grant_id}.{revs}.{serials}"
        revs, serials = revs.partition(CHAIN_MARK)[2], serials.partition(CHAIN_MARK)[2]


class TokenSubject(msgspec.Struct, frozen=True, kw_only=True):
    """Who a token is about, and what it depends on."""

    sub: str
    client_id: str
    source: str  # the beginning of its jti
    earlier: str = ""  # the end of its jti: the serials of the tokens that it came from
    user_id: str = ""  # whose roles and permissions it may name

    @classmethod
    def of_client(cls, client: Client) -> "TokenSubject":
        return cls(sub=client.subject, client_id=client.client_id, source=f"client.{client.rev}")

    @classmethod
    def of_account(cls, user_id: str, rev: int) -> "TokenSubject":
        return cls(sub=user_id, client_id=user_id, source=f"account.{rev}", user_id=user_id)

    @classmethod
    def of_grant(cls, holder: GrantHolder) -> "TokenSubject":
        user_id = holder.user.user_id
        source = f"grant.{holder.grant.grant_id}"
        return cls(sub=user_id, client_id=holder.client.client_id, source=source, user_id=user_id)

    @classmethod
    def of_delegation(cls, holder: GrantHolder, acting: Client, earlier_jti: str) -> "TokenSubject":
        """`earlier_jti`: of the token with which another program acted before; "" for none."""
        user_id, revs, serials = holder.user.user_id, str(acting.rev), ""
        if earlier_jti:
            _, _, earlier_revs, serials = earlier_jti.split(".")
            revs = f"{revs}{CHAIN_MARK}{earlier_revs}"
        source = f"grant.{holder.grant.grant_id}.{revs}"
        return cls(sub=user_id, client_id=acting.client_id, source=source, earlier=serials, user_id=user_id)

    def new_jti(self) -> str:
        serial = token_hex(SERIAL_BYTES)
        return f"{self.source}.{serial}{CHAIN_MARK}{self.earlier}" if self.earlier else f"{self.source}.{serial}"


class FoundToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token of an API or a machine, with what it depends on."""

    sub: str
    client_id: str
    jti: str
    ends_at: int
    scope: str = ""
    api: Api | None = None  # None for an opaque token of a machine
    holder: GrantHolder | None = None  # of a person's
    client: Client | None = None  # that got it; None for a service account
    account: MachineAccount | None = None  # the service account that got it
    act: ActClaim | None = None  # the program that acts for the person

    @property
    def project_id(self) -> str:
        """The project of the service account; "" for a client's."""
        return "" if self.account is None else self.account.project_id

    @property
    def revs(self) -> str:
        """The epochs of the clients that act, as its jti has them; "" for none."""
        return "" if self.act is None else self.jti.split(".")[2]

    @property
    def chain(self) -> tuple[str, ...]:
        """The jti of each token that it depends on, its own first."""
        return (self.jti,) if self.act is None else tuple(tokens_of_chain(self.jti))

    @property
    def machine(self) -> str:
        """The subject of the machine that got it for itself, or of the program that acts with it; "" for others."""
        if self.holder is None:
            return self.sub
        return "" if self.act is None else self.act.sub


# Opaque tokens of machines: version 1 | HMAC-SHA256 24 | end, distrusted, jti, sub, client_id and scope as JSON.


VERSION: Final = b"\x03"
MAC_BYTES: Final = 24
MAX_OPAQUE_TOKEN: Final = 512  # characters


class OpaquePayload(msgspec.Struct, frozen=True, array_like=True):
    ends_at: int
    distrust_count: int  # after one more distrusted signing key the token is invalid, like JWTs
    jti: str
    sub: str
    client_id: str
    scope: str = ""  # of the service's own API


class OpaqueTokens:
    def __init__(self, key: bytes) -> None:
        self._hmac = HmacSha256(key)

    def encode(self, payload: OpaquePayload) -> str:
        body = msgspec.json.encode(payload)
        return encode_base64url(VERSION + self._mac(body) + body).decode()

    def decode(self, token: str) -> OpaquePayload | None:
        """Read a token of this service; its end is not checked."""
        if len(token) > MAX_OPAQUE_TOKEN or not token.isascii():
            return None
        try:
            raw = decode_base64url(token.encode())
        except ValueError:
            return None
        mac, body = raw[1 : 1 + MAC_BYTES], raw[1 + MAC_BYTES :]
        if not raw.startswith(VERSION) or not constant_time_equal(mac, self._mac(body)):
            return None
        return msgspec.json.decode(body, type=OpaquePayload)

    def _mac(self, body: bytes) -> bytes:
        return self._hmac.digest(VERSION + body)[:MAC_BYTES]


class ApiTokens(Struct, kw_only=True, eq=False):
    grants: GrantStore
    clients: ClientStore
    find_account: FindAccount
    mapping: MappedClaims
    opaque_tokens: OpaqueTokens
    signer: Signer
    verifier: TokenVerifier
    keyring: Keyring
    clock: Clock
    issuer: str

    async def issue(
        self,
        api: Api,
        subject: TokenSubject,
        scopes: Collection[str],
        *,
        ends_at: int,
        act: ActClaim | None = None,
        keys_version: int | None = None,
    ) -> str:
        """Sign a token for the API; `scopes` are names of its own, and roles, groups, permissions."""
        claims = ApiTokenClaims(
            iss=self.issuer,
            iat=self.clock.now(),
            exp=ends_at,
            sub=subject.sub,
            aud=api.resource,
            client_id=subject.client_id,
            jti=subject.new_jti(),
            act=act,
            scope=" ".join(scopes),
        )
        claims = msgspec.structs.replace(claims, **await self._held_claims(api, subject, scopes, claims))
        return await self.signer.sign(claims, keys_version=keys_version)

    async def issue_opaque(self, subject: TokenSubject, scopes: Collection[str] = (), *, ends_at: int) -> str:
        await self.keyring.refresh()
        distrust_count, scope = self.keyring.distrust_count, " ".join(scopes)
        return self.opaque_tokens.encode(
            OpaquePayload(ends_at, distrust_count, subject.new_jti(), subject.sub, subject.client_id, scope)
        )

    async def _held_claims(
        self, api: Api, subject: TokenSubject, scopes: Collection[str], claims: ApiTokenClaims
    ) -> dict[str, object]:
        """Return what the subject holds in the application of the API, never in that of the client.

        A role of another application with the same name must not open this API.
        """
        sources = application_sources(api.application_id, scopes) if subject.user_id else {}
        holdings = await self.mapping.load(subject.user_id, sources, client_id=subject.client_id)
        marked = msgspec.structs.replace(claims, claims_omitted=tuple(sources))
        return fitting_claims(holdings, sources, payload_bytes_left(marked, MAX_API_TOKEN))

    async def find(self, token: str, *, include_expired: bool = False) -> FoundToken | None:
        """Return the token if this service issued it and nothing ended it since; its API must still exist.

        `include_expired`: for callers that end it.
        """
        api_token = await self._find_jwt(token, include_expired=include_expired)
        api_token = api_token or await self._find_opaque(token, include_expired=include_expired)
        if api_token is None:
            return None
        source, _, rest = api_token.jti.partition(".")
        grant_or_rev = rest.partition(".")[0]
        match source:
            case "grant":
                return await self._with_grant(api_token, grant_or_rev, include_banned=include_expired)
            case "client":
                return await self._with_client(api_token, grant_or_rev)
            case "account":
                return await self._with_account(api_token, grant_or_rev)
        return None

    async def find_for_own_api(self, token: str, scope: str) -> FoundToken | None:
        """Return a machine's token for the endpoints of this scope; None for what no machine got here (R11).

        Raises InvalidToken for a token that has ended, or is for something else.
        """
        if self.opaque_tokens.decode(token) is None:
            return None
        found = await self.find(token)
        if found is None or scope not in found.scope.split():
            raise InvalidToken(f"the token has ended, or has no scope {scope}")
        return found

    async def _find_jwt(self, token: str, *, include_expired: bool) -> FoundToken | None:
        verifier = self.verifier
        verify = verifier.verify_with_cached_keys_ignoring_time if include_expired else verifier.verify
        try:
            claims = await verify(token, ApiTokenClaims)
        except InvalidToken:
            return None
        api = await self.clients.find_api(claims.aud)
        if api is None:
            return None
        return FoundToken(
            sub=claims.sub,
            client_id=claims.client_id,
            jti=claims.jti,
            ends_at=claims.exp,
            scope=claims.scope,
            api=api,
            act=claims.act,
        )

    async def _find_opaque(self, token: str, *, include_expired: bool) -> FoundToken | None:
        read = self.opaque_tokens.decode(token)
        if read is None:
            return None
        if not include_expired:
            await self.keyring.refresh()
            if read.ends_at <= self.clock.now() or read.distrust_count != self.keyring.distrust_count:
                return None
        return FoundToken(
            sub=read.sub, client_id=read.client_id, jti=read.jti, ends_at=read.ends_at, scope=read.scope
        )

    async def _with_grant(self, token: FoundToken, grant_id: str, *, include_banned: bool) -> FoundToken | None:
        now, api = self.clock.now(), token.api
        holder = await self.grants.find_live_grant(grant_id, now)
        if holder is None or api is None or resource_in(holder.grant.scopes) != api.resource:
            return None
        if not api.admits_client_of_person(holder.client):
            return None
        if not include_banned and (api.is_banned(holder.user, now) or holder.is_banned(now)):
            return None
        scopes = api.scopes_in(holder.grant.scopes, holder.client)
        found = replace(token, holder=holder, client=holder.client, scope=existing_scopes(token.scope, scopes))
        return (
            found if token.act is None else await self._with_actors(found, holder, api, include_banned=include_banned)
        )

    async def _with_actors(
        self, token: FoundToken, holder: GrantHolder, api: Api, *, include_banned: bool
    ) -> FoundToken | None:
        """Return the token of a program that acts for a person, if it still may."""
        chain = await self._find_chain(token)
        if chain is None or not api.accepts_act or await self.grants.is_machine_token_revoked(*token.chain):
            return None
        scope = token.scope
        for client in chain:
            if not may_act_for(client, holder.client, holder.grant.scopes):
                return None
            if not api.admits_client_of_person(client):
                return None
            if not include_banned and await self._is_banned_from(holder.user, client):
                return None
            scope = existing_scopes(scope, api.scopes_in(holder.grant.scopes, client))
        return replace(token, client=chain[0], scope=scope)

    async def _find_chain(self, token: FoundToken) -> Sequence[Client] | None:
        """Return the clients that act, the newest first; None when one is gone or its tokens were revoked."""
        try:
            chain = [await self.clients.active_client(client_id) for client_id in actors_in(token.act)]
        except ClientNotFound:
            return None
        revs = CHAIN_MARK.join(str(client.rev) for client in chain)
        return chain if (chain[0].client_id, revs) == (token.client_id, token.revs) else None

    async def _is_banned_from(self, user: User, client: Client) -> bool:
        """Whether the person is banned from the client's application now."""
        application_id = client.application_id or 0
        project_id = await self.clients.project_of(application_id)
        now = self.clock.now()
        return find_ban(user.bans, now, application_id=application_id, project_id=project_id or "") is not None

    async def _with_client(self, token: FoundToken, rev: str) -> FoundToken | None:
        try:
            client = await self.clients.active_client(token.client_id)
        except ClientNotFound:
            return None
        if str(client.rev) != rev:
            return None
        if token.api is not None and not token.api.admits_client(client):
            return None
        if await self.grants.is_machine_token_revoked(token.jti):
            return None
        declared = client.own_api_scopes if token.api is None else token.api.scopes
        return replace(token, client=client, scope=existing_scopes(token.scope, declared))

    async def _with_account(self, token: FoundToken, rev: str) -> FoundToken | None:
        account = await self.find_account(token.sub)
        if account is None or str(account.rev) != rev:
            return None
        if token.api is not None and not token.api.admits_account(account.user_id, account.project_id):
            return None
        if await self.grants.is_machine_token_revoked(token.jti):
            return None
        declared = ACCOUNT_SCOPES if token.api is None else (*token.api.scopes, *APPLICATION_CLAIMS)
        return replace(token, account=account, scope=existing_scopes(token.scope, declared))


def existing_scopes(scope: str, existing: Collection[str]) -> str:
    """Return the scopes of a token that still exist: the API may have removed one since, or the client lost it."""
    return " ".join(name for name in scope.split() if name in existing)
