"""An API that Gatehouse issues access tokens for: verifies them offline and tells clients where to get one (R9).

The metadata document is that of RFC 9728, the tokens are those of RFC 9068.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from gatehouse.client.clock import Clock, SystemClock
from gatehouse.client.decoding import DecodedJws, decode_jws
from gatehouse.client.errors import ClientError, MissingScope, Unauthenticated
from gatehouse.client.middleware import App, AsgiExchange, Receive, Scope, Send, bearer_token
from gatehouse.client.published_keys import PublishedKeyCache
from gatehouse.client.transport import StandardTransport, Transport, parse_base_url
from gatehouse.client.verification import LEEWAY, NonEmpty, Seconds

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
TOKEN_TYPE: Final = "at+jwt"  # noqa: S105 - the type in the header of an access token
TOKEN_KEY: Final = "token"  # noqa: S105 - in the state of the scope
WEB_RESOURCE: Final = re.compile(r"(?P<origin>https?://[^/?#]+)(?P<path>/[^?#]*)?", re.ASCII)
CLIENT_PREFIX: Final = "client:"
MAX_ACTORS: Final = 3  # programs that act, one through the other (R11)


class ActorClaim(msgspec.Struct, frozen=True, kw_only=True):
    """The program that acts for the person, and inside it the one that acted before (RFC 8693 §4.1)."""

    sub: NonEmpty
    client_id: NonEmpty
    act: "ActorClaim | None" = None

    def __post_init__(self) -> None:
        if self.sub != f"{CLIENT_PREFIX}{self.client_id}":
            raise ValueError("sub of act must be the client")

    @property
    def client_ids(self) -> tuple[str, ...]:
        return (self.client_id, *(() if self.act is None else self.act.client_ids))


class AccessTokenClaims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of RFC 9068; unknown members of a newer service are accepted."""

    iss: NonEmpty
    iat: Seconds
    exp: Seconds
    sub: NonEmpty
    aud: str | tuple[str, ...]
    client_id: NonEmpty
    jti: NonEmpty
    act: ActorClaim | None = None
    scope: str = ""
    roles: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()
    claims_omitted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.act is not None and (self.act.client_id != self.client_id or self.sub.startswith(CLIENT_PREFIX)):
            raise ValueError("act must name the client of the token, which acts for a person")
        if len(self.actors) > MAX_ACTORS:
            raise ValueError("too many programs in act")

    @property
    def actors(self) -> tuple[str, ...]:
        return () if self.act is None else self.act.client_ids


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceToken:
    """A verified access token."""

    subject: str  # a user ID, or `client:` and a client ID
    client_id: str
    actors: tuple[str, ...] = ()  # client IDs of the programs that act for the person, the newest first (`act`)
    scopes: frozenset[str]
    roles: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()
    claims_omitted: tuple[str, ...] = ()  # which of these are missing because of their length
    expires_at: int
    claims: Mapping[str, object] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_machine(self) -> bool:
        """Whether a client acts for itself; a service account has a user ID like a person."""
        return self.subject.startswith(CLIENT_PREFIX)

    def require(self, *scopes: str) -> None:
        """Raise MissingScope unless the token has all of these scopes."""
        missing = [scope for scope in scopes if scope not in self.scopes]
        if missing:
            raise MissingScope(f"the token lacks {' '.join(missing)}", scopes=tuple(scopes))


class ProtectedResource:
    """Make one for the whole application. `resource` is what the application declares as its API.

    `scopes` are named in the metadata document, for clients that ask for all of them.
    """

    def __init__(
        self,
        base_url: str,
        *,
        resource: str,
        scopes: Iterable[str] = (),
        name: str = "",
        documentation: str = "",
        transport: Transport | None = None,
        clock: Clock | None = None,
    ) -> None:
        parse_base_url(base_url)
        found = WEB_RESOURCE.fullmatch(resource)
        if found is None:
            raise ValueError("resource must be an http or https URL without query and fragment")
        self._issuer = base_url
        self._resource = resource
        self._origin, path = found["origin"], found["path"] or ""
        self.metadata_path = WELL_KNOWN + ("" if path == "/" else path)  # RFC 9728 §3.1
        self._scopes = tuple(scopes)
        self._name = name
        self._documentation = documentation
        self._clock = clock or SystemClock()
        self._transport = transport or StandardTransport(base_url)
        self._keys = PublishedKeyCache(transport=self._transport, clock=self._clock)

    def metadata(self) -> dict[str, object]:
        """Return the metadata document (RFC 9728 §2)."""
        optional = {
            "scopes_supported": list(self._scopes),
            "resource_name": self._name,
            "resource_documentation": self._documentation,
        }
        return {
            "resource": self._resource,
            "authorization_servers": [self._issuer],
            "bearer_methods_supported": ["header"],
            **{name: value for name, value in optional.items() if value},
        }

    def challenge(self, error: ClientError) -> str:
        """Return the value of WWW-Authenticate for a refused request (RFC 6750 §3, RFC 9728 §5.1)."""
        parts = {"resource_metadata": self._origin + self.metadata_path}
        if isinstance(error, MissingScope):
            parts = {"error": "insufficient_scope", "scope": " ".join(error.scopes), **parts}
        elif error.detail:  # a token was sent
            parts = {"error": "invalid_token", **parts}
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parts.items())

    async def verify(self, token: str, *, scopes: Iterable[str] = ()) -> ResourceToken:
        """Verify a token for this API.

        Raises Unauthenticated; MissingScope unless it has all of the scopes; Unavailable while the keys of the
        service are unknown.
        """
        if not token:
            raise Unauthenticated
        jws = decode_jws(token, typ=TOKEN_TYPE)
        await self._refuse_signature(jws)
        claims = parse_access_token(jws)
        self._refuse_foreign(claims)
        verified = ResourceToken(
            subject=claims.sub,
            client_id=claims.client_id,
            actors=claims.actors,
            scopes=frozenset(claims.scope.split()),
            roles=claims.roles,
            groups=claims.groups,
            permissions=claims.permissions,
            claims_omitted=claims.claims_omitted,
            expires_at=claims.exp,
            claims=jws.payload,
        )
        verified.require(*scopes)
        return verified

    async def _refuse_signature(self, jws: DecodedJws) -> None:
        key = await self._keys.find_key(jws.kid)
        if key is None:
            raise Unauthenticated(f"the service has no key {jws.kid}")
        try:
            key.verify(jws.signature, jws.signing_input, PKCS1v15(), SHA256())
        except InvalidSignature:
            raise Unauthenticated("the signature is wrong") from None

    def _refuse_foreign(self, claims: AccessTokenClaims) -> None:
        audiences = (claims.aud,) if isinstance(claims.aud, str) else claims.aud
        if claims.iss != self._issuer or self._resource not in audiences:
            raise Unauthenticated("the token is of another service or for another API")
        now = self._clock.now()
        if claims.exp <= now or claims.iat > now + LEEWAY:
            raise Unauthenticated("expired, or issued in the future")

    async def close(self) -> None:
        await self._transport.close()


def parse_access_token(jws: DecodedJws) -> AccessTokenClaims:
    try:
        return msgspec.convert(jws.payload, AccessTokenClaims)
    except msgspec.ValidationError as error:
        raise Unauthenticated(str(error)) from None


class ProtectedResourceMiddleware:
    """Serves the metadata document and verifies the token of every other request, which is then `state.token`.

    It is plain ASGI, like GatehouseMiddleware. Errors that the application raises with `ResourceToken.require` are
    answered too.
    """

    def __init__(self, app: App, *, resource: ProtectedResource, scopes: Iterable[str] = ()) -> None:
        self._app = app
        self._resource = resource
        self._scopes = tuple(scopes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "http" and scope["path"] == self._resource.metadata_path:
            await send_metadata(self._resource.metadata(), send)
            return
        exchange = AsgiExchange(scope, receive, send)
        try:
            token = await self._resource.verify(bearer_token(scope) or "", scopes=self._scopes)
            known: dict[str, Any] = {**scope, "state": {**scope.get("state", {}), TOKEN_KEY: token}}
            await self._app(known, exchange.receive, exchange.send)
        except ClientError as error:
            if not await exchange.refuse(
                error, challenge=self._resource.challenge(error) if error.status in (401, 403) else ""
            ):
                raise


async def send_metadata(document: Mapping[str, object], send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"access-control-allow-origin", b"*")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(document)})
