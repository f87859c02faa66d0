"""OpenID Connect providers: discovery, authorization code with PKCE, verified id_token (Core §3.1)."""

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar
from urllib.parse import quote_plus, urlencode

from msgspec import Struct

from gatehouse.accounts.identities import ForeignPerson
from gatehouse.kernel.cache import WeightedCache
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal, sha256
from gatehouse.kernel.text import is_plain_line
from gatehouse.kernel.web_urls import parse_web_url
from gatehouse.keys.encoding import encode_base64url
from gatehouse.keys.jwk_parsing import KeyOfSet, matching_keys, usable_keys
from gatehouse.outbound.shared_reads import SharedReads
from gatehouse.providers.answers import ProviderCalls, flag_in, object_in, text_in
from gatehouse.providers.apple import client_secret_jwt, name_of_first_sign_in
from gatehouse.providers.model import Provider, ProviderAuthorization, ProviderUnavailable, TicketRefused
from gatehouse.tokens.claims import InvalidToken
from gatehouse.tokens.foreign_jws import parse_foreign_jws
from gatehouse.tokens.verifier import LEEWAY, MAX_ACCEPTED_TOKEN, ParsedJws, is_signed_by

TENANT_MARK: Final = "{tenantid}"  # in the issuer of Microsoft's discovery document
DEFAULT_TENANT: Final = "common"
DISCOVERY_PATH: Final = "/.well-known/openid-configuration"
CACHE_BYTES: Final = 4 * 2**20
CACHE_SECONDS: Final = 3_600
KEY_RETRY_SECONDS: Final = 30  # a key that is not in the set makes us read it again, at most so often
FAILURE_SECONDS: Final = 10  # that a failed read of a document is not repeated
MAX_KEYS: Final = 50
MAX_ID_TOKEN_AGE: Final = 600  # seconds since it was issued
NICKS: Final = ("preferred_username", "nickname", "given_name")
EPIC_NICKS: Final = ("preferred_username", "dn")
TWITCH_CLAIMS: Final = '{"id_token":{"email":null,"email_verified":null,"preferred_username":null}}'


T = TypeVar("T")
ProviderDocument = Mapping[str, object]


class ProviderMetadata(Struct, frozen=True, kw_only=True):
    """What a discovery document says."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str
    jwks_uri: str
    names_issuer: bool  # in the authorization response (RFC 9207)
    basic_only: bool  # the token endpoint takes the secret in a header only


class CachedKeys(Struct, frozen=True, kw_only=True):
    keys: tuple[KeyOfSet, ...]
    read_at: float


class OpenIdConnect:
    def __init__(self, *, calls: ProviderCalls, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        # Both for an hour; a key that is not in the set makes us read the set again.
        self._metadata: WeightedCache[tuple[float, ProviderMetadata]] = WeightedCache(CACHE_BYTES)
        self._keys: WeightedCache[CachedKeys] = WeightedCache(CACHE_BYTES)
        self._reads = SharedReads(
            failure=ProviderUnavailable, failure_seconds=FAILURE_SECONDS, cache_bytes=CACHE_BYTES, clock=clock
        )

    async def authorization_url(self, provider: Provider, request: ProviderAuthorization) -> str:
        """Return where the browser goes. Raises ProviderUnavailable."""
        metadata = await self.metadata(provider)
        fields = {**authorization_fields(provider, request), "nonce": request.nonce}
        if provider.preset.posts_response:
            fields["response_mode"] = "form_post"
        if request.again:
            fields |= {"prompt": "login", "max_age": "0"}
        if provider.kind == "twitch":
            fields["claims"] = TWITCH_CLAIMS
        joint = "&" if "?" in metadata.authorization_endpoint else "?"
        return f"{metadata.authorization_endpoint}{joint}{urlencode(fields)}"

    async def fetch_person(
        self, provider: Provider, request: ProviderAuthorization, answer: Mapping[str, str]
    ) -> ForeignPerson:
        """Return who signed in, from the answer that the browser brought. Raises ProviderProblem."""
        metadata = await self.metadata(provider)
        issuer = answer.get("iss", "")
        if (issuer or metadata.names_issuer) and issuer != metadata.issuer:
            raise ProviderUnavailable("the response names another issuer")
        tokens = await self._redeem(provider, metadata, request, answer.get("code", ""))
        id_token = text_in(tokens, "id_token", most=MAX_ACCEPTED_TOKEN)
        claims = (await self.verified_token(provider, metadata, id_token)).payload
        refuse_other_audience(provider, claims)
        refuse_other_time(claims, self._clock.now(), max_age=MAX_ID_TOKEN_AGE)
        if not constant_time_equal(text_in(claims, "nonce"), request.nonce):
            raise ProviderUnavailable("the id_token has another nonce")
        if request.again:
            refuse_old_sign_in(claims, self._clock.now())
        more = await self._userinfo(metadata, claims, text_in(tokens, "access_token", most=MAX_ACCEPTED_TOKEN))
        return person_of(provider, metadata, {**more, **claims}, name=name_of_first_sign_in(answer))

    async def metadata(self, provider: Provider) -> ProviderMetadata:
        """Return the discovery document, from a cache for an hour. Raises ProviderUnavailable."""
        if provider.keys_url:
            return metadata_without_discovery(provider)
        url = f"{discovery_base(provider)}{DISCOVERY_PATH}"
        cached = self._metadata.get(provider.provider_id, url)
        if cached is not None and cached[0] > self._clock.monotonic():
            return cached[1]
        metadata = await self._fetch_document(provider, url, partial(read_metadata, provider))
        self._metadata.put(provider.provider_id, url, (self._clock.monotonic() + CACHE_SECONDS, metadata), 2_000)
        return metadata

    async def _redeem(
        self, provider: Provider, metadata: ProviderMetadata, request: ProviderAuthorization, code: str
    ) -> dict[str, object]:
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": request.redirect_uri,
            "client_id": provider.client_id,
        }
        if provider.preset.has_pkce:
            fields["code_verifier"] = request.code_verifier
        secret = self._secret(provider)
        headers = {}
        if secret and metadata.basic_only:
            headers["Authorization"] = basic_credentials(provider.client_id, secret)
        elif secret:
            fields["client_secret"] = secret
        answer = await self._calls.post_form(metadata.token_endpoint, fields, headers=headers)
        if not answer.is_success:
            raise ProviderUnavailable(f"the token endpoint answered {answer.status}")
        return object_in(answer, metadata.token_endpoint)

    def _secret(self, provider: Provider) -> str:
        if provider.kind == "apple":
            return client_secret_jwt(provider, self._clock.now())
        return provider.client_secret

    async def verified_token(self, provider: Provider, metadata: ProviderMetadata, token: str) -> ParsedJws:
        """Return the token if a key of the provider signed it for its issuer; the caller checks the other claims.

        Raises TicketRefused, and ProviderUnavailable if the keys cannot be read.
        """
        try:
            jws = parse_foreign_jws(token)
        except InvalidToken as error:
            raise TicketRefused(f"the id_token: {error.detail}") from None
        refuse_other_issuer(provider, metadata, jws.payload)
        keys = await self._keys_of(provider, metadata, jws)
        if not any(is_signed_by(jws, key.public) for key in keys):
            raise TicketRefused("the signature of the id_token is wrong")
        return jws

    async def _keys_of(self, provider: Provider, metadata: ProviderMetadata, jws: ParsedJws) -> Sequence[KeyOfSet]:
        """Return the keys that may have signed it; the set is read again if it has none, but not too often."""
        cached = self._keys.get(provider.provider_id, metadata.jwks_uri)
        now = self._clock.monotonic()
        if cached is not None and now < cached.read_at + CACHE_SECONDS:
            matches = matching_keys(cached.keys, alg=jws.alg, kid=jws.kid)
            if matches or now < cached.read_at + KEY_RETRY_SECONDS:
                return matches
        keys = await self._fetch_document(provider, metadata.jwks_uri, read_keys)
        self._keys.put(
            provider.provider_id, metadata.jwks_uri, CachedKeys(keys=keys, read_at=now), 2_000 * len(keys) + 200
        )
        return matching_keys(keys, alg=jws.alg, kid=jws.kid)

    async def _fetch_document(self, provider: Provider, url: str, parse: Callable[[ProviderDocument], T]) -> T:
        """Return what a document says. Raises ProviderUnavailable, for some seconds without asking again."""

        async def fetch() -> T:
            return parse(await self._calls.get_object(url))

        return await self._reads.fetch_shared(provider.provider_id, url, fetch)

    async def _userinfo(
        self, metadata: ProviderMetadata, claims: Mapping[str, object], token: str
    ) -> dict[str, object]:
        """Return what the id_token leaves out; it must be about the same person (Core §5.3.2)."""
        if "email" in claims or not metadata.userinfo_endpoint or not token:
            return {}
        userinfo = await self._calls.get_object(metadata.userinfo_endpoint, token=token)
        if userinfo.get("sub") != claims.get("sub"):
            raise ProviderUnavailable("userinfo is about another person")
        return userinfo


def discovery_base(provider: Provider) -> str:
    if provider.kind == "microsoft":
        return f"{provider.issuer}/{provider.tenant or DEFAULT_TENANT}/v2.0"
    return provider.issuer.rstrip("/")


def metadata_without_discovery(provider: Provider) -> ProviderMetadata:
    return ProviderMetadata(
        issuer=provider.issuer,
        authorization_endpoint="",
        token_endpoint="",
        userinfo_endpoint="",
        jwks_uri=provider.keys_url,
        names_issuer=False,
        basic_only=False,
    )


def read_keys(document: ProviderDocument) -> tuple[KeyOfSet, ...]:
    listed = document.get("keys")
    return tuple(usable_keys(listed[:MAX_KEYS] if isinstance(listed, list) else ()))


def read_metadata(provider: Provider, document: Mapping[str, object]) -> ProviderMetadata:
    issuer = text_in(document, "issuer", most=1_000)
    expected = discovery_base(provider)
    if provider.kind == "microsoft":
        # The document of a domain or of `common` has the ID of the tenant, or a mark, in place of the name.
        if not issuer.startswith(f"{provider.issuer}/") or not issuer.endswith("/v2.0"):
            raise ProviderUnavailable("the discovery document names another issuer")
    elif issuer.rstrip("/") != expected:
        raise ProviderUnavailable("the discovery document names another issuer")
    endpoints = {
        name: text_in(document, name, most=2_000)
        for name in ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")
    }
    missing = [name for name, url in endpoints.items() if not url and name != "userinfo_endpoint"]
    if missing:
        raise ProviderUnavailable(f"the discovery document has no {missing[0]}")
    if any(url and not is_endpoint(url) for url in endpoints.values()):
        raise ProviderUnavailable("the discovery document has an endpoint that is not a web address")
    methods = document.get("token_endpoint_auth_methods_supported")
    return ProviderMetadata(
        issuer=issuer,
        **endpoints,
        names_issuer=document.get("authorization_response_iss_parameter_supported") is True,
        basic_only=not isinstance(methods, list) or "client_secret_post" not in methods,
    )


def is_endpoint(text: str) -> bool:
    url = parse_web_url(text)
    return url is not None and not url.fragment


def refuse_other_issuer(provider: Provider, metadata: ProviderMetadata, claims: Mapping[str, object]) -> None:
    expected = {metadata.issuer.replace(TENANT_MARK, text_in(claims, "tid"))}
    if provider.kind == "google":  # it documents both spellings
        expected.add(metadata.issuer.removeprefix("https://"))
    if text_in(claims, "iss") not in expected:
        raise TicketRefused("the id_token has another issuer")


def refuse_other_audience(provider: Provider, claims: Mapping[str, object]) -> None:
    """Core §3.1.3.7: among several audiences the authorized party must be this client."""
    audience = claims.get("aud")
    several = audience if isinstance(audience, list) else [audience]
    if provider.client_id not in several or claims.get("azp", provider.client_id) != provider.client_id:
        raise TicketRefused("the id_token is for another client")
    if len(several) > 1 and "azp" not in claims:
        raise TicketRefused("the id_token has several audiences")


def refuse_other_time(claims: Mapping[str, object], now: int, *, max_age: int) -> None:
    issued, ends = claims.get("iat"), claims.get("exp")
    if not isinstance(issued, int) or not isinstance(ends, int):
        raise TicketRefused("the id_token has no times")
    if ends + LEEWAY <= now or not now - max_age <= issued <= now + LEEWAY:
        raise TicketRefused("the id_token has expired, or is not valid yet")


def refuse_old_sign_in(claims: Mapping[str, object], now: int) -> None:
    """Refuse a sign-in that the provider did not ask for anew; not every provider says when it was."""
    signed_in_at = claims.get("auth_time")
    if isinstance(signed_in_at, int) and signed_in_at < now - MAX_ID_TOKEN_AGE:
        raise ProviderUnavailable("the provider did not ask the person to sign in again")


def person_of(
    provider: Provider, metadata: ProviderMetadata, claims: Mapping[str, object], *, name: str
) -> ForeignPerson:
    issuer, subject = provider.issuer, text_in(claims, "sub")  # as configured, whatever slash the document ends with
    email, verified = text_in(claims, "email", most=254), flag_in(claims, "email_verified")
    if provider.kind == "microsoft":
        # `sub` differs from client to client; tenant and object ID do not (R10). Tenants choose addresses freely.
        issuer = metadata.issuer.replace(TENANT_MARK, text_in(claims, "tid"))
        subject = text_in(claims, "oid")
        verified = flag_in(claims, "xms_edov")
    if not subject or not is_plain_line(subject):
        raise TicketRefused("the id_token names no one")
    return ForeignPerson(
        issuer=issuer,
        subject=subject,
        email=email,
        email_verified=verified and bool(email),
        name=text_in(claims, "name", most=200) or name,
        nick=first_text(claims, EPIC_NICKS if provider.kind == "epic" else NICKS),
        claims=claims,
    )


def first_text(values: Mapping[str, object], names: Iterable[str]) -> str:
    return next((text for name in names if (text := text_in(values, name))), "")


def authorization_fields(provider: Provider, request: ProviderAuthorization) -> dict[str, str]:
    """Return the parameters of an authorization request that OAuth 2.0 has, with PKCE where the provider knows it."""
    fields = {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": request.redirect_uri,
        "scope": " ".join(provider.scopes),
        "state": request.state,
    }
    if provider.preset.has_pkce:
        challenge = encode_base64url(sha256(request.code_verifier)).decode()
        fields |= {"code_challenge": challenge, "code_challenge_method": "S256"}
    return fields


def basic_credentials(client_id: str, secret: str) -> str:
    """RFC 6749 §2.3.1: both are encoded as in a form first."""
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return f"Basic {b64encode(pair.encode()).decode()}"
