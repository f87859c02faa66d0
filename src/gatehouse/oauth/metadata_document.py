"""Client ID metadata documents: what a client says about itself at the URL that is its client_id (R9).

draft-ietf-oauth-client-id-metadata-document. Its members are those of RFC 7591; unknown ones are ignored.
"""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gatehouse.kernel.strict_json import decode_strict_json
from gatehouse.kernel.web_urls import parse_web_url
from gatehouse.keys.model import Algorithm
from gatehouse.oauth.clients import check_client
from gatehouse.oauth.errors import BadClient, BadDocument
from gatehouse.oauth.model import DEFAULT_SCOPES, Client, ClientProfile, TokenSettings
from gatehouse.oauth.redirects import document_host, is_document_redirect
from gatehouse.oauth.vocabulary import AuthMethod
from gatehouse.outbound.model import OutboundResponse

OK: Final = 200
HTTPS_PORT: Final = 443
MEDIA_TYPE: Final = "application/json"
MIN_CACHE_SECONDS: Final = 300
MAX_CACHE_SECONDS: Final = 86_400
MAX_AGE: Final = re.compile(r'max-age="?([0-9]{1,9})"?', re.ASCII | re.IGNORECASE)
SECONDS: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
AUTH_METHODS: Final = frozenset({AuthMethod.NONE, AuthMethod.PRIVATE_KEY})
CHECKED_ID: Final = "document"  # stands in for the URL where the fields of a registered client are checked


class MetadataDocument(msgspec.Struct, frozen=True, kw_only=True):
    client_id: str
    redirect_uris: tuple[str, ...]
    client_name: str = ""
    # A document is public, so a client without this member has no secret (RFC 7591 §2 assumes one).
    token_endpoint_auth_method: AuthMethod = AuthMethod.NONE
    jwks: dict[str, Any] = {}
    id_token_signed_response_alg: object = Algorithm.RS256  # anything else than one of ours means RS256 (R2)
    logo_uri: object = ""  # anything else than an accepted URL means no logo
    client_secret: object = msgspec.UNSET


class DescribedClient(msgspec.Struct, frozen=True, kw_only=True):
    client: Client
    logo_uri: str  # as the document says; not checked


def read_document(client_id: str, response: OutboundResponse, now: int) -> DescribedClient:
    """Return the client that the response describes. Raises BadDocument."""
    if response.status != OK:
        raise BadDocument(f"the document's server answered with status {response.status}")
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != MEDIA_TYPE:
        raise BadDocument(f"the document must be {MEDIA_TYPE}")
    try:
        document = decode_strict_json(response.body.decode(), MetadataDocument)
    except ValueError as error:  # of the encoding, the JSON or its members
        raise BadDocument(f"the document is malformed: {error}") from None
    if document.client_id != client_id:
        raise BadDocument("the document names another client_id than its own URL")
    if document.client_secret is not msgspec.UNSET or document.token_endpoint_auth_method not in AUTH_METHODS:
        raise BadDocument("a document is public, so its client must not have a secret")
    logo_uri = document.logo_uri if isinstance(document.logo_uri, str) else ""
    return DescribedClient(client=client_of_document(document, now), logo_uri=logo_uri)


def client_of_document(document: MetadataDocument, now: int) -> Client:
    """Return a third-party client with PKCE and exact redirect URIs; the others of the document are left out."""
    host = document_host(document.client_id)
    public = document.token_endpoint_auth_method is AuthMethod.NONE
    client = Client(
        client_id=document.client_id,
        name=document.client_name.strip() or host,
        profile=ClientProfile.OIDC,
        redirect_uris=tuple(uri for uri in document.redirect_uris if is_document_redirect(host, uri)),
        scopes=DEFAULT_SCOPES,  # without groups, roles and permissions (R9)
        origins=(f"https://{host}",),
        jwks={} if public else document.jwks,
        token_settings=TokenSettings(id_token_alg=algorithm_of(document)),
        may_exchange=False,
        require_pkce=True,
        public=public,
        created_at=now,
        version=now,  # above every version that an earlier row of this client had, which caches may still contain
    )
    if not client.redirect_uris:
        raise BadDocument("the document has no redirect URI on its own origin or on loopback")
    if not public and not client.jwks:
        raise BadDocument("private_key_jwt needs the public keys in jwks")
    try:
        check_client(replace(client, client_id=CHECKED_ID))
    except BadClient as error:
        raise BadDocument(f"the document is not acceptable: {error.detail}") from None
    # The name alone is the client's own choice; every page and list shows whose it is.
    return client if client.name == host else replace(client, name=f"{client.name} ({host})")


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
