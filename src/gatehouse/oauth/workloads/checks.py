"""The rules for the workload identities of a client (R11)."""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from gatehouse.kernel.text import is_plain_line
from gatehouse.kernel.web_urls import parse_web_url
from gatehouse.keys.jwk_parsing import foreign_keys
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import Client
from gatehouse.oauth.private_key_jwt import refuse_private_keys
from gatehouse.oauth.workloads.model import SPIFFE, WILDCARD, WorkloadIdentity

MAX_IDENTITIES: Final = 10
MAX_CLAIMS: Final = 20
MAX_KEYS: Final = 20
MAX_JWKS_BYTES: Final = 32_768
FIELD: Final = "workload_identities"
TRUST_DOMAIN: Final = re.compile(r"[a-z0-9._-]{1,255}", re.ASCII)
# What a subject begins with before an owner is named: the kind of thing, and in SPIFFE the trust domain.
KINDS: Final = (
    re.compile(r"spiffe://[^/]*/((ns|sa)/)?"),
    re.compile(r"system:serviceaccount:"),
    re.compile(r"[^:/]*[:/]"),
)
OWNER: Final = re.compile(r"[^:/*]+[:/]([^:/*]+[:/])*")
REGISTERED_CLAIMS: Final = frozenset({"iss", "sub", "aud", "exp", "iat", "nbf", "jti"})  # have rules of their own

Problem = tuple[object, str, str]  # whether it holds, the member, and the error text


def check_workload_identities(client: Client) -> None:
    """Raise BadClient for the first thing that is not acceptable."""
    identities = client.workload_identities
    if not identities:
        return
    for holds, problem in _client_checks(client):
        if not holds:
            raise BadClient(problem, field=FIELD)
    for place, identity in enumerate(identities):
        _check_identity(identity, f"{FIELD}[{place}]")


def _client_checks(client: Client) -> Iterable[tuple[object, str]]:
    yield client.machine, "workload identities need a machine: they get tokens for the client itself only"
    yield not client.first_party, "workload identities and first_party exclude each other"
    yield not client.may_exchange, "workload identities and may_exchange exclude each other"
    yield not client.jwks, "a client has workload identities or keys, not both"
    yield len(client.workload_identities) <= MAX_IDENTITIES, f"at most {MAX_IDENTITIES} workload identities"


def refuse_own_issuer(client: Client, base_url: str) -> None:
    """Refuse this service as the issuer: its tokens are for others. Raises BadClient."""
    for place, identity in enumerate(client.workload_identities):
        if identity.issuer and identity.issuer.rstrip("/") == base_url:
            raise BadClient("the issuer must be another service", field=f"{FIELD}[{place}].issuer")


def _check_identity(identity: WorkloadIdentity, place: str) -> None:
    for holds, member, problem in (*_issuer_checks(identity), *_subject_checks(identity), *_key_checks(identity)):
        if not holds:
            raise BadClient(problem, field=f"{place}.{member}")
    if identity.jwks:
        _check_keys(identity, f"{place}.jwks")


def _issuer_checks(identity: WorkloadIdentity) -> Iterable[Problem]:
    named = bool(identity.issuer) + bool(identity.trust_domain)
    yield named == 1, "issuer", "name an issuer or, for SPIFFE, a trust domain"
    words = "the issuer must be an https URL without query and fragment"
    yield not identity.issuer or _is_https(identity.issuer, query=False), "issuer", words
    domain = "the trust domain must be 1 to 255 lower-case letters, digits, '.', '_', '-'"
    yield not identity.trust_domain or TRUST_DOMAIN.fullmatch(identity.trust_domain), "trust_domain", domain
    yield (
        is_plain_line(identity.audience) and identity.audience == identity.audience.strip(),
        "audience",
        ("the audience must be one line"),
    )


def _subject_checks(identity: WorkloadIdentity) -> Iterable[Problem]:
    subject = identity.subject
    yield is_plain_line(subject) and subject == subject.strip(), "subject", "the subject must be one line"
    start = f"{SPIFFE}{identity.trust_domain}/"
    inside = not identity.trust_domain or (subject.startswith(start) and subject != start)
    yield inside, "subject", "the subject must be a SPIFFE ID of the trust domain"
    if WILDCARD in subject:
        owner = "a * ends the subject, after a : or / and the name of an owner, as in repo:owner/*"
        yield names_owner(subject), "subject", owner
        yield identity.claims, "claims", "a subject with * needs at least one exact claim"
    yield len(identity.claims) <= MAX_CLAIMS, "claims", f"at most {MAX_CLAIMS} claims"
    for name in identity.claims:
        yield name not in REGISTERED_CLAIMS, f"claims.{name}", "this claim has a rule of its own"
        yield is_plain_line(name) and all(name.split("/")), f"claims.{name}", "this is no name of a claim"


def names_owner(subject: str) -> bool:
    """Whether a subject with a wildcard names an owner before it: `repo:octo/*`, not `repo:*`."""
    start, _, rest = subject.partition(WILDCARD)
    if rest:
        return False
    kind = next((match for pattern in KINDS if (match := pattern.match(start))), None)
    return kind is not None and OWNER.fullmatch(start, kind.end()) is not None


def _key_checks(identity: WorkloadIdentity) -> Iterable[Problem]:
    places = bool(identity.jwks) + bool(identity.jwks_uri) + identity.discovery
    yield places == 1, "jwks", "name one place of the keys: jwks, jwks_uri or discovery"
    yield not identity.discovery or identity.issuer, "discovery", "a trust domain has jwks or jwks_uri, not discovery"
    words = "jwks_uri must be an https URL without fragment"
    yield not identity.jwks_uri or _is_https(identity.jwks_uri), "jwks_uri", words


def _is_https(text: str, *, query: bool = True) -> bool:
    url = parse_web_url(text)
    return url is not None and url.scheme == "https" and not url.fragment and (query or "?" not in text)


def _check_keys(identity: WorkloadIdentity, place: str) -> None:
    keys = identity.jwks.get("keys")
    if not isinstance(keys, list | tuple) or not 0 < len(keys) <= MAX_KEYS:
        raise BadClient(f"jwks must have 1 to {MAX_KEYS} keys", field=place)
    try:
        refuse_private_keys(keys)
    except BadClient as error:
        raise BadClient(error.detail, field=place) from None
    if len(msgspec.json.encode(identity.jwks)) > MAX_JWKS_BYTES:
        raise BadClient(f"jwks must have at most {MAX_JWKS_BYTES} bytes", field=place)
    if not any(foreign_keys(keys, use=identity.key_use)):
        names = "RS256, PS256, ES256, ES384 or EdDSA"
        raise BadClient(f"jwks has no key of use {identity.key_use} for {names}", field=place)
