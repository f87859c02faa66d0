"""The rules for the fields of OAuth clients (R3)."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from gatehouse.audit.model import BUILT_IN_ACTORS
from gatehouse.kernel.private_schemes import has_plain_scheme
from gatehouse.kernel.web_urls import parse_web_url
from gatehouse.oauth.errors import BadClient, ClientNotFound
from gatehouse.oauth.mapped_claims import RESERVED_CLAIMS
from gatehouse.oauth.model import (
    ALLOWED_SCOPES,
    APPLICATION_SCOPES,
    LINK_FIELDS,
    LIST_FIELDS,
    OWN_API_SCOPES,
    SINGLE_FIELDS,
    ClaimSource,
    Client,
    ClientProfile,
)
from gatehouse.oauth.private_key_jwt import parse_client_keys
from gatehouse.oauth.redirects import (
    LOGOUT_PARAMETERS,
    RESPONSE_PARAMETERS,
    document_host,
    is_registrable_host,
    is_registrable_origin,
    is_registrable_uri,
    is_web_uri,
    reserved_parameter_in,
)
from gatehouse.oauth.vocabulary import OPENID, PHONE
from gatehouse.oauth.workloads.checks import check_workload_identities

CLIENT_ID_PATTERN: Final = re.compile(r"[A-Za-z0-9._~-]{1,64}", re.ASCII)
CLAIM_NAME_PATTERN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:/-]{0,127}", re.ASCII)  # a word, or a name like a URL
MAX_CLAIMS: Final = 16
MAX_LIST_ENTRIES: Final = 100  # of each list, counted as sent

SIGN_IN_FIELDS: Final = (
    "public",
    "redirect_uris",
    "redirect_hosts",
    "post_logout_uris",
    "backchannel_logout_uri",
    "device_grant",
    "game_id_token",
    "may_exchange",
    "require_pushed_authorization_requests",
)

RuleCheck = tuple[object, str, str]  # whether it holds, its field, and the error text


def check_client_id(name: str) -> str:
    """Check an ID before it reaches the database: PostgreSQL accepts no NUL. Raises ClientNotFound."""
    if CLIENT_ID_PATTERN.fullmatch(name) is None and not document_host(name):
        raise ClientNotFound("malformed client_id")
    return name


def check_client(client: Client) -> None:
    """Raise BadClient for the first thing that is not acceptable."""
    for holds, field, problem in (
        _client_id_check(client),
        *_limit_checks(client),
        *_address_checks(client),
        *_profile_checks(client),
        *_claim_checks(client.claims),
    ):
        if not holds:
            raise BadClient(problem, field=field)
    if parse_client_keys(client.jwks) and (client.public or client.profile is ClientProfile.NATIVE):
        raise BadClient("jwks needs profile oidc and a confidential client", field="jwks")
    check_workload_identities(client)


def has_reserved_id(client: Client) -> bool:
    """Whether its ID could be taken for a user ID, or for a built-in actor of the audit log."""
    return client.client_id.isdigit() or client.client_id.lower() in BUILT_IN_ACTORS


def check_new_client(client: Client) -> None:
    """Check a client that does not exist yet; existing ones keep a reserved ID, and doctor tells them."""
    if has_reserved_id(client):
        raise BadClient("client_id must not be digits only or a reserved name", field="client_id")
    check_client(client)


def _client_id_check(client: Client) -> RuleCheck:
    words = "client_id must be 1 to 64 letters, digits, '.', '_', '~', '-'"
    return CLIENT_ID_PATTERN.fullmatch(client.client_id), "client_id", words


def _limit_checks(client: Client) -> Iterable[RuleCheck]:
    for field in LIST_FIELDS:
        entries = len(getattr(client, field))
        yield entries <= MAX_LIST_ENTRIES, field, f"{field}: at most {MAX_LIST_ENTRIES} entries"
    for single_field in SINGLE_FIELDS:
        problem = single_field.limit_problem(single_field.value_of(client))
        yield not problem, single_field.path, problem


def _address_checks(client: Client) -> Iterable[RuleCheck]:
    names = f"scopes must be among {', '.join(ALLOWED_SCOPES)}"
    yield from _check_each("scopes", client.scopes, ALLOWED_SCOPES.__contains__, names)
    host = "a redirect host must be a lower-case host name only"
    yield from _check_each("redirect_hosts", client.redirect_hosts, is_registrable_host, host)
    uri = "a redirect URI must be https (or http on loopback), without user info or fragment"
    yield from _check_each("redirect_uris", client.redirect_uris, _is_redirect_uri, uri)
    yield from _check_each("post_logout_uris", client.post_logout_uris, is_registrable_uri, uri)
    yield from _reserved_name_checks("redirect_uris", client.redirect_uris, RESPONSE_PARAMETERS)
    yield from _reserved_name_checks("post_logout_uris", client.post_logout_uris, LOGOUT_PARAMETERS)
    somewhere = (
        client.redirect_hosts or client.redirect_uris or client.device_grant or client.game_id_token or client.machine
    )
    yield somewhere, "redirect_uris", "a client needs a redirect URI or host"
    origin = "an origin must be https://host or https://host:port (or http on loopback), without a path"
    yield from _check_each("origins", client.origins, is_registrable_origin, origin)
    for field in LINK_FIELDS:
        link = getattr(client, field)
        fits = not link or (is_web_uri(link) and is_registrable_uri(link))
        yield fits, field, f"{field} must be https (or http on loopback), without user info or fragment"
    called = "backchannel_logout_uri must be an http or https URL without user info or fragment"
    yield is_outbound_url(client.backchannel_logout_uri), "backchannel_logout_uri", called


def _is_redirect_uri(uri: str) -> bool:
    return is_registrable_uri(uri) or has_plain_scheme(uri)


def _check_each(field: str, values: Iterable[str], fits: Callable[[str], object], words: str) -> Iterable[RuleCheck]:
    return ((fits(value), f"{field}[{place}]", words) for place, value in enumerate(values))


def _reserved_name_checks(field: str, uris: Iterable[str], reserved: frozenset[str]) -> Iterable[RuleCheck]:
    for place, uri in enumerate(uris):
        name = reserved_parameter_in(uri, reserved)
        yield not name, f"{field}[{place}]", f"the query parameter {name} is reserved"


def _profile_checks(client: Client) -> Iterable[RuleCheck]:
    is_oidc = client.profile is ClientProfile.OIDC
    plain = sum(map(has_plain_scheme, client.redirect_uris))
    yield is_oidc or not plain, "redirect_uris", "a scheme without a dot needs profile oidc"
    yield plain <= 1, "redirect_uris", "a client has at most one redirect URI whose scheme has no dot"
    exact = "profile oidc accepts exact redirect URIs only"
    yield not is_oidc or not client.redirect_hosts, "redirect_hosts", exact
    names = ", ".join(APPLICATION_SCOPES)
    of_application = f"scopes {names} need profile oidc and an application"
    has_application = is_oidc and client.application_id is not None
    yield has_application or not set(APPLICATION_SCOPES) & set(client.scopes), "scopes", of_application
    yield is_oidc or PHONE not in client.scopes, "scopes", "scope phone needs profile oidc"
    own_api = f"scopes {', '.join(OWN_API_SCOPES)} need profile oidc, a confidential client and an application"
    gets_own_api = has_application and not client.public
    yield gets_own_api or not set(OWN_API_SCOPES) & set(client.scopes), "scopes", own_api
    yield is_oidc or not client.public, "public", "a public client needs profile oidc"
    # A native client's only proof needs its redirect_uri, which a device does not have (interface §5.1).
    yield is_oidc or not client.device_grant, "device_grant", "the device grant needs profile oidc"
    pushed = "require_pushed_authorization_requests"
    yield is_oidc or not getattr(client, pushed), pushed, "pushed authorization requests need profile oidc"
    # A native id_token has two audiences, which other back ends refuse (R2, R10).
    game = "game_id_token needs profile oidc, an application and the scope openid"
    for_games = is_oidc and client.application_id is not None and OPENID in client.scopes
    yield for_games or not client.game_id_token, "game_id_token", game
    is_confidential = is_oidc and not client.public
    yield is_confidential or not client.may_act, "may_act", "may_act needs profile oidc and a confidential client"
    others = "may_act_for_others needs may_act"
    yield client.may_act or not client.may_act_for_others, "may_act_for_others", others
    if client.machine:
        yield from _machine_checks(client)


def _machine_checks(client: Client) -> Iterable[RuleCheck]:
    """Yield what a machine cannot have: it signs no one in."""
    yield client.profile is ClientProfile.OIDC, "machine", "a machine needs profile oidc"
    for field in SIGN_IN_FIELDS:
        yield not getattr(client, field), field, f"{field} is for clients that sign people in, not for a machine"
    own_api = f"a machine has only the scopes {', '.join(OWN_API_SCOPES)}"
    yield set(OWN_API_SCOPES).issuperset(client.scopes), "scopes", own_api


def _claim_checks(claims: Mapping[str, ClaimSource]) -> Iterable[RuleCheck]:
    yield len(claims) <= MAX_CLAIMS, "claims", f"at most {MAX_CLAIMS} mapped claims"
    name = "the name of a mapped claim must consist of letters, digits and _.:/-"
    yield all(map(CLAIM_NAME_PATTERN.fullmatch, claims)), "claims", name
    own = "a mapped claim cannot use the name of a standard token claim"
    yield not RESERVED_CLAIMS & set(claims), "claims", own
    yield all(claim.application_id > 0 for claim in claims.values()), "claims", "a mapped claim needs an application"


def can_never_authenticate(client: Client, now: int) -> bool:
    """Whether it has no live secret, keys or workload identities, though it needs one of them to get tokens."""
    gets_tokens = client.redirect_uris or client.redirect_hosts or client.device_grant or client.machine
    if client.public or client.jwks or client.workload_identities or not gets_tokens:
        return False
    return all(0 < secret.expires_at <= now for secret in client.secrets)


def is_outbound_url(uri: str) -> bool:
    """Whether it is a web URL or empty; each call checks the address it leads to (R6)."""
    if not uri:
        return True
    url = parse_web_url(uri)
    return url is not None and not url.fragment
