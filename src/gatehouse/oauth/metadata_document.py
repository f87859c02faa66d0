"""Client ID metadata documents: what a client says about itself at the URL that is its client_id (R9, R11).

draft-ietf-oauth-client-id-metadata-document. Its members are those of RFC 7591; unknown ones are ignored.
"""

import re
from collections.abc import Collection, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from gatehouse.kernel.private_schemes import has_plain_scheme
from gatehouse.kernel.strict_json import decode_strict_json
from gatehouse.kernel.web_urls import parse_web_url
from gatehouse.keys.jwk_parsing import usable_keys
from gatehouse.keys.model import Algorithm
from gatehouse.oauth.clients import check_client
from gatehouse.oauth.errors import BadClient, BadDocument
from gatehouse.oauth.model import DEFAULT_SCOPES, Client, ClientProfile, TokenSettings
from gatehouse.oauth.private_key_jwt import parse_client_keys, refuse_private_keys
from gatehouse.oauth.redirects import csp_source, document_host, is_document_redirect, is_registrable_uri
from gatehouse.oauth.vocabulary import AuthMethod
from gatehouse.outbound.model import OutboundResponse

OK: Final = 200
HTTPS_PORT: Final = 443
MEDIA_TYPE: Final = "application/json"
KEYS_MEDIA_TYPES: Final = frozenset({MEDIA_TYPE, "application/jwk-set+json"})
MIN_CACHE_SECONDS: Final = 300
MAX_CACHE_SECONDS: Final = 86_400
MAX_AGE: Final = re.compile(r'max-age="?([0-9]{1,9})"?', re.ASCII | re.IGNORECASE)
SECONDS: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
KEY_MEMBERS: Final = frozenset({"kty", "kid", "use", "alg", "n", "e", "crv", "x", "y"})  # the stored ones
CHECKED_ID: Final = "document"  # stands in for the URL where the fields of a registered client are checked


class MetadataDocument(msgspec.Struct, frozen=True, kw_only=True):
    client_id: str
    redirect_uris: tuple[str, ...]
    client_name: str | None = None  # libraries write null for what is not set
    token_endpoint_auth_method: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] | None = None  # of hosted clients, in place of that one
    jwks: dict[str, Any] | None = None
    jwks_uri: str | None = None
    require_pushed_authorization_requests: object = False  # anything else than true means false
    id_token_signed_response_alg: object = Algorithm.RS256  # anything else than one of ours means RS256 (R2)
    logo_uri: object = ""  # anything else than an accepted URL means no logo
    client_secret: object = msgspec.UNSET


class FetchedKeys(msgspec.Struct, frozen=True):
    keys: tuple[dict[str, Any], ...]


class DescribedClient(msgspec.Struct, frozen=True, kw_only=True):
    client: Client
    logo_uri: str  # as the document says; not checked
    jwks_uri: str = ""  # where the keys of the client are, if they are not in the document


def read_document(
    client_id: str, response: OutboundResponse, now: int, *, app_uris: Collection[str] = ()
) -> DescribedClient:
    """Return the client that the response describes, without the keys at its jwks_uri. Raises BadDocument."""
    document = read_json(response, MetadataDocument, "document", {MEDIA_TYPE})
    if document.client_id != client_id:
        raise BadDocument("the document names another client_id than its own URL")
    if document.client_secret is not msgspec.UNSET:
        raise BadDocument("a document is public, so its client must not have a secret")
    jwks_uri = keys_address(document)
    client = client_of_document(document, now, app_uris)
    logo_uri = document.logo_uri if isinstance(document.logo_uri, str) else ""
    return DescribedClient(client=client, logo_uri=logo_uri, jwks_uri=jwks_uri)


JsonT = TypeVar("JsonT", bound=msgspec.Struct)


def read_json(response: OutboundResponse, into: type[JsonT], name: str, media_types: Collection[str]) -> JsonT:
    if response.status != OK:
        raise BadDocument(f"the {name}'s server answered with status {response.status}")
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in media_types:
        raise BadDocument(f"the {name} must be {MEDIA_TYPE}")
    try:
        return decode_strict_json(response.body.decode(), into)
    except ValueError as error:  # of the encoding, the JSON or its members
        raise BadDocument(f"the {name} is malformed: {error}") from None


def keys_address(document: MetadataDocument) -> str:
    """Return the address of the client's keys, of the document's origin (R11); "" if there is none."""
    if not document.jwks_uri:
        return ""
    if document.jwks:
        raise BadDocument("a document has jwks or jwks_uri, not both")
    origin = f"https://{document_host(document.client_id)}"
    if not is_registrable_uri(document.jwks_uri) or csp_source(document.jwks_uri) != origin:
        raise BadDocument("jwks_uri must have the origin of the document")
    return document.jwks_uri


def auth_method_of(document: MetadataDocument) -> AuthMethod:
    """Return the one method of the client: a document with keys is never accepted without its assertion (R11)."""
    named = {document.token_endpoint_auth_method, *(document.token_endpoint_auth_methods_supported or ())} - {None}
    if document.jwks_uri or (document.jwks or {}).get("keys"):
        if AuthMethod.PRIVATE_KEY in named:
            return AuthMethod.PRIVATE_KEY
        raise BadDocument("a document with keys must name the method private_key_jwt")
    if AuthMethod.NONE in named or not named:
        return AuthMethod.NONE
    raise BadDocument("a document without keys must name the method none: it is public, so it has no secret")


def stored_keys(keys: object) -> Mapping[str, Any]:
    """Return the keys of a client that this service can verify with, as they are stored. Raises BadDocument."""
    usable = [key for key in keys if any(usable_keys([key]))] if isinstance(keys, list | tuple) else []
    if not usable:
        raise BadDocument("no key is for signatures with RS256, ES256 or EdDSA")
    stored = {"keys": [{name: key[name] for name in sorted(KEY_MEMBERS & key.keys())} for key in usable]}
    try:
        refuse_private_keys(keys)
        parse_client_keys(stored)
    except BadClient as error:
        raise BadDocument(f"the keys are not acceptable: {error.detail}") from None
    return stored


def with_keys(client: Client, response: OutboundResponse) -> Client:
    """Return the client with the keys that its jwks_uri has. Raises BadDocument."""
    found = read_json(response, FetchedKeys, "key set", KEYS_MEDIA_TYPES)
    return replace(client, jwks=stored_keys(found.keys))


def client_of_document(document: MetadataDocument, now: int, app_uris: Collection[str]) -> Client:
    """Return a third-party client with PKCE and exact redirect URIs; the others of the document are left out."""
    host = document_host(document.client_id)
    public = auth_method_of(document) is AuthMethod.NONE
    keys = (document.jwks or {}).get("keys")
    client = Client(
        client_id=document.client_id,
        name=(document.client_name or "").strip() or host,
        profile=ClientProfile.OIDC,
        redirect_uris=tuple(uri for uri in document.redirect_uris if is_document_redirect(host, uri, app_uris)),
        scopes=DEFAULT_SCOPES,  # without groups, roles and permissions (R9)
        origins=(f"https://{host}",),
        jwks=stored_keys(keys) if keys else {},
        token_settings=TokenSettings(id_token_alg=algorithm_of(document)),
        may_exchange=False,
        require_pkce=True,
        require_pushed_authorization_requests=document.require_pushed_authorization_requests is True,
        public=public,
        created_at=now,
        version=now,  # above every version that an earlier row of this client had, which caches may still contain
    )
    if not client.redirect_uris:
        raise BadDocument("the document has no redirect URI on its own origin or on loopback, and no listed one")
    refuse_bad_fields(client)
    # The name alone is the client's own choice; every page and list shows whose it is.
    return client if client.name == host else replace(client, name=f"{client.name} ({host})")


def refuse_bad_fields(client: Client) -> None:
    """Check the fields as those of a registered client; schemes without a dot were listed one by one."""
    uris = tuple(uri for uri in client.redirect_uris if not has_plain_scheme(uri)) or client.origins
    try:
        check_client(replace(client, client_id=CHECKED_ID, redirect_uris=uris))
    except BadClient as error:
        raise BadDocument(f"the document is not acceptable: {error.detail}") from None


def algorithm_of(document: MetadataDocument) -> Algorithm:
    named = document.id_token_signed_response_alg
    return next((alg for alg in Algorithm if alg == named), Algorithm.RS256)


def logo_host(uri: str) -> str:
    """Return the host of an https URL as the allow list writes it; "" for anything else."""
    url = parse_web_url(uri)
    if url is None or url.scheme != "https":
        return ""
    return url.host if url.port == HTTPS_PORT else f"{url.host}:{url.port}"


def cache_seconds(headers: Mapping[str, str]) -> int:
    """Return how long the document is used before it is fetched again: as its headers say, within bounds."""
    return max(MIN_CACHE_SECONDS, min(_freshness(headers), MAX_CACHE_SECONDS))


def _freshness(headers: Mapping[str, str]) -> int:
    """Return the seconds for which the response is fresh (RFC 9111 §4.2); 0 when it does not say."""
    directives = [part.strip() for part in headers.get("cache-control", "").split(",")]
    if {"no-store", "no-cache"} & {directive.lower() for directive in directives}:
        return 0
    ages = [int(match[1]) for directive in directives if (match := MAX_AGE.fullmatch(directive))]
    if ages:
        age = headers.get("age", "")
        return min(ages) - (int(age) if SECONDS.fullmatch(age) else 0)
    try:
        ends, begins = (parsedate_to_datetime(headers[name]) for name in ("expires", "date"))
        return int((ends - begins).total_seconds())
    except (KeyError, ValueError, TypeError, OverflowError):
        return 0
