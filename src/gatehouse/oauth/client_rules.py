"""What a client may be: every field checked before it is kept (R3)."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from gatehouse.kernel.text import is_plain_line
from gatehouse.kernel.urls import parse_web_url
from gatehouse.oauth.client_document import LIST_FIELDS
from gatehouse.oauth.client_keys import parse_client_keys
from gatehouse.oauth.errors import BadClient, ClientNotFound
from gatehouse.oauth.model import SCOPES, ClaimSource, Client, ClientProfile, TokenSettings
from gatehouse.oauth.redirects import (
    LOGOUT_PARAMETERS,
    RESPONSE_PARAMETERS,
    is_registrable_host,
    is_registrable_origin,
    is_registrable_uri,
    reserved_parameter_in,
)

CLIENT_ID_PATTERN: Final = re.compile(r"[A-Za-z0-9._~-]{1,64}", re.ASCII)
MAX_NAME_LENGTH: Final = 64
CLAIM_NAME_PATTERN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:/-]{0,127}", re.ASCII)  # a word, or a name like a URL
MAX_CLAIMS: Final = 16
MAX_LIST_ENTRIES: Final = 100  # of each list, counted as sent
# What tokens and userinfo say anyway: a mapped claim never speaks in their place (OpenID Connect Core §2, §5.1).
RESERVED_CLAIMS: Final = frozenset(
    (
        *(
            "iss",
            "sub",
            "aud",
            "exp",
            "nbf",
            "iat",
            "jti",
            "azp",
            "typ",
            "kid",
            "sid",
            "events",
            "scope",
            "client_id",
        ),
        *("nonce", "auth_time", "acr", "amr", "at_hash", "c_hash", "s_hash", "claims_omitted"),
        *("status", "email", "email_verified", "nickname", "name", "preferred_username", "locale"),
        *("phone_verified", "phone_number", "phone_number_verified"),
    )
)
MIN_TOKEN_SECONDS: Final = 60  # seconds any token lives
DEFAULT_TOKEN_SETTINGS: Final = TokenSettings()  # which are the most, too
MAX_GRACE_SECONDS: Final = 60  # as oauth.refresh_grace_seconds

RuleCheck = tuple[object, str, str]  # whether it holds, of which field, and the words when it does not


def check_client_id(name: str) -> str:
    """A name off the wire, before storage is asked for it: PostgreSQL takes no NUL. Raises ClientNotFound."""
    if CLIENT_ID_PATTERN.fullmatch(name) is None:
        raise ClientNotFound("malformed client_id")
    return name


def check_client(client: Client) -> None:
    """Raise BadClient for the first thing that is not acceptable."""
    for holds, field, problem in (
        *_name_checks(client),
        *_address_checks(client),
        *_profile_checks(client),
        *_token_checks(client),
    ):
        if not holds:
            raise BadClient(problem, field=field)
    if parse_client_keys(client.jwks) and (client.public or client.profile is ClientProfile.NATIVE):
        raise BadClient("jwks needs profile oidc and a confidential client", field="jwks")


def _name_checks(client: Client) -> Iterable[RuleCheck]:
    words = "client_id must be 1 to 64 letters, digits, '.', '_', '~', '-'"
    yield CLIENT_ID_PATTERN.fullmatch(client.client_id), "client_id", words
    seen = client.name.strip() and is_plain_line(client.name)
    yield seen and len(client.name) <= MAX_NAME_LENGTH, "name", "name must be 1 to 64 visible characters"
    yield from _check_each("scopes", client.scopes, SCOPES.__contains__, f"scopes must be among {', '.join(SCOPES)}")
    for field in LIST_FIELDS:
        entries = len(getattr(client, field))
        yield entries <= MAX_LIST_ENTRIES, field, f"{field}: at most {MAX_LIST_ENTRIES} entries"


def _address_checks(client: Client) -> Iterable[RuleCheck]:
    host = "a redirect host must be a lower-case host name only"
    yield from _check_each("redirect_hosts", client.redirect_hosts, is_registrable_host, host)
    uri = "a redirect URI must be https (or http on loopback), without user info or fragment"
    yield from _check_each("redirect_uris", client.redirect_uris, is_registrable_uri, uri)
    yield from _check_each("post_logout_uris", client.post_logout_uris, is_registrable_uri, uri)
    yield from _reserved_name_checks("redirect_uris", client.redirect_uris, RESPONSE_PARAMETERS)
    yield from _reserved_name_checks("post_logout_uris", client.post_logout_uris, LOGOUT_PARAMETERS)
    somewhere = client.redirect_hosts or client.redirect_uris or client.device_grant
    yield somewhere, "redirect_uris", "a client needs a redirect URI or host"
    origin = "an origin must be https://host or https://host:port (or http on loopback), without a path"
    yield from _check_each("origins", client.origins, is_registrable_origin, origin)
    called = "backchannel_logout_uri must be an http or https URL without user info or fragment"
    yield is_outbound_url(client.backchannel_logout_uri), "backchannel_logout_uri", called


def _check_each(field: str, values: Iterable[str], fits: Callable[[str], object], words: str) -> Iterable[RuleCheck]:
    return ((fits(value), f"{field}[{place}]", words) for place, value in enumerate(values))


def _reserved_name_checks(field: str, uris: Iterable[str], reserved: frozenset[str]) -> Iterable[RuleCheck]:
    for place, uri in enumerate(uris):
        name = reserved_parameter_in(uri, reserved)
        yield not name, f"{field}[{place}]", f"the query parameter {name} is reserved"


def _profile_checks(client: Client) -> Iterable[RuleCheck]:
    is_oidc = client.profile is ClientProfile.OIDC
    exact = "profile oidc accepts exact redirect URIs only"
    yield not is_oidc or not client.redirect_hosts, "redirect_hosts", exact
    yield is_oidc or not client.public, "public", "a public client needs profile oidc"
    # The only proof of a native client is made with its redirect_uri, and a device has none (interface §5.1).
    yield is_oidc or not client.device_grant, "device_grant", "the device grant needs profile oidc"


def _token_checks(client: Client) -> Iterable[RuleCheck]:
    wanted, grace = client.token_settings, client.token_settings.refresh_grace_seconds
    for name, most in (
        ("access_seconds", DEFAULT_TOKEN_SETTINGS.access_seconds),
        ("refresh_seconds", DEFAULT_TOKEN_SETTINGS.refresh_seconds),
    ):
        fits = MIN_TOKEN_SECONDS <= getattr(wanted, name) <= most
        yield fits, f"token_settings.{name}", f"{name} must be {MIN_TOKEN_SECONDS} to {most}"
    words = f"refresh_grace_seconds must be 0 to {MAX_GRACE_SECONDS}"
    yield grace is None or 0 <= grace <= MAX_GRACE_SECONDS, "token_settings.refresh_grace_seconds", words
    yield from _claim_checks(client.claims)


def _claim_checks(claims: Mapping[str, ClaimSource]) -> Iterable[RuleCheck]:
    yield len(claims) <= MAX_CLAIMS, "claims", f"at most {MAX_CLAIMS} mapped claims"
    name = "the name of a mapped claim must consist of letters, digits and _.:/-"
    yield all(map(CLAIM_NAME_PATTERN.fullmatch, claims)), "claims", name
    own = "a mapped claim cannot use the name of a standard token claim"
    yield not RESERVED_CLAIMS & set(claims), "claims", own
    yield all(one.application_id > 0 for one in claims.values()), "claims", "a mapped claim needs an application"


def is_outbound_url(uri: str) -> bool:
    """What the outbound room will try; whether it may is decided by the address behind it, at each call (R6)."""
    if not uri:
        return True
    url = parse_web_url(uri)
    return url is not None and not url.fragment
