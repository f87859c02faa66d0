"""What a client may be: every field checked before it is kept (R3)."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from gatehouse.kernel.text import is_plain_line
from gatehouse.kernel.urls import parse_web_url
from gatehouse.oauth.client_document import LISTS
from gatehouse.oauth.client_keys import client_keys
from gatehouse.oauth.errors import BadClient, ClientNotFound
from gatehouse.oauth.model import SCOPES, ClaimSource, Client, Profile, TokenSettings
from gatehouse.oauth.redirects import (
    LOGOUT_NAMES,
    RESPONSE_NAMES,
    is_registrable_host,
    is_registrable_origin,
    is_registrable_uri,
    reserved_name,
)

CLIENT_ID: Final = re.compile(r"[A-Za-z0-9._~-]{1,64}", re.ASCII)
NAME_LONGEST: Final = 64
CLAIM_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:/-]{0,127}", re.ASCII)  # a word, or a name like a URL
CLAIMS_MOST: Final = 16
ENTRIES_MOST: Final = 100  # of each list, counted as sent
# What tokens and userinfo say anyway: a mapped claim never speaks in their place (OpenID Connect Core §2, §5.1).
OWN_CLAIMS: Final = frozenset(
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
SHORTEST: Final = 60  # seconds any token lives
DEFAULTS: Final = TokenSettings()  # which are the most, too
GRACE_MOST: Final = 60  # as oauth.refresh_grace_seconds

Problem = tuple[object, str, str]  # whether it holds, of which field, and the words when it does not


def checked_id(name: str) -> str:
    """A name off the wire, before storage is asked for it: PostgreSQL takes no NUL. Raises ClientNotFound."""
    if CLIENT_ID.fullmatch(name) is None:
        raise ClientNotFound("malformed client_id")
    return name


def check_client(client: Client) -> None:
    """Raise BadClient for the first thing that is not acceptable."""
    for holds, field, problem in (*_names(client), *_addresses(client), *_kinds(client), *_tokens(client)):
        if not holds:
            raise BadClient(problem, field=field)
    if client_keys(client.jwks) and (client.public or client.profile is Profile.NATIVE):
        raise BadClient("jwks needs profile oidc and a confidential client", field="jwks")


def _names(client: Client) -> Iterable[Problem]:
    words = "client_id must be 1 to 64 letters, digits, '.', '_', '~', '-'"
    yield CLIENT_ID.fullmatch(client.client_id), "client_id", words
    seen = client.name.strip() and is_plain_line(client.name)
    yield seen and len(client.name) <= NAME_LONGEST, "name", "name must be 1 to 64 visible characters"
    yield from _each("scopes", client.scopes, SCOPES.__contains__, f"scopes must be among {', '.join(SCOPES)}")
    for field in LISTS:
        entries = len(getattr(client, field))
        yield entries <= ENTRIES_MOST, field, f"{field}: at most {ENTRIES_MOST} entries"


def _addresses(client: Client) -> Iterable[Problem]:
    host = "a redirect host must be a lower-case host name only"
    yield from _each("redirect_hosts", client.redirect_hosts, is_registrable_host, host)
    uri = "a redirect URI must be https (or http on loopback), without user info or fragment"
    yield from _each("redirect_uris", client.redirect_uris, is_registrable_uri, uri)
    yield from _each("post_logout_uris", client.post_logout_uris, is_registrable_uri, uri)
    yield from _unreserved("redirect_uris", client.redirect_uris, RESPONSE_NAMES)
    yield from _unreserved("post_logout_uris", client.post_logout_uris, LOGOUT_NAMES)
    somewhere = client.redirect_hosts or client.redirect_uris or client.device_grant
    yield somewhere, "redirect_uris", "a client needs a redirect URI or host"
    origin = "an origin must be https://host or https://host:port (or http on loopback), without a path"
    yield from _each("origins", client.origins, is_registrable_origin, origin)
    called = "backchannel_logout_uri must be an http or https URL without user info or fragment"
    yield is_callable_address(client.backchannel_logout_uri), "backchannel_logout_uri", called


def _each(field: str, values: Iterable[str], fits: Callable[[str], object], words: str) -> Iterable[Problem]:
    return ((fits(value), f"{field}[{place}]", words) for place, value in enumerate(values))


def _unreserved(field: str, uris: Iterable[str], reserved: frozenset[str]) -> Iterable[Problem]:
    for place, uri in enumerate(uris):
        name = reserved_name(uri, reserved)
        yield not name, f"{field}[{place}]", f"the query parameter {name} is reserved"


def _kinds(client: Client) -> Iterable[Problem]:
    is_oidc = client.profile is Profile.OIDC
    exact = "profile oidc accepts exact redirect URIs only"
    yield not is_oidc or not client.redirect_hosts, "redirect_hosts", exact
    yield is_oidc or not client.public, "public", "a public client needs profile oidc"
    # The only proof of a native client is made with its redirect_uri, and a device has none (interface §5.1).
    yield is_oidc or not client.device_grant, "device_grant", "the device grant needs profile oidc"


def _tokens(client: Client) -> Iterable[Problem]:
    wanted, grace = client.token_settings, client.token_settings.refresh_grace_seconds
    for name, most in (("access_seconds", DEFAULTS.access_seconds), ("refresh_seconds", DEFAULTS.refresh_seconds)):
        fits = SHORTEST <= getattr(wanted, name) <= most
        yield fits, f"token_settings.{name}", f"{name} must be {SHORTEST} to {most}"
    words = f"refresh_grace_seconds must be 0 to {GRACE_MOST}"
    yield grace is None or 0 <= grace <= GRACE_MOST, "token_settings.refresh_grace_seconds", words
    yield from _claims(client.claims)


def _claims(claims: Mapping[str, ClaimSource]) -> Iterable[Problem]:
    yield len(claims) <= CLAIMS_MOST, "claims", f"at most {CLAIMS_MOST} mapped claims"
    name = "the name of a mapped claim must consist of letters, digits and _.:/-"
    yield all(map(CLAIM_NAME.fullmatch, claims)), "claims", name
    own = "a mapped claim cannot use the name of a standard token claim"
    yield not OWN_CLAIMS & set(claims), "claims", own
    yield all(one.application_id > 0 for one in claims.values()), "claims", "a mapped claim needs an application"


def is_callable_address(uri: str) -> bool:
    """What the outbound room will try; whether it may is decided by the address behind it, at each call (R6)."""
    if not uri:
        return True
    url = parse_web_url(uri)
    return url is not None and not url.fragment
