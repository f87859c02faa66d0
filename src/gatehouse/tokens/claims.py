"""The claims of each class of token, and why a token is refused: the reason is for the log only."""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

import msgspec

from gatehouse.kernel.errors import GatehouseError
from gatehouse.keys.model import Algorithm, KeyPurpose


class InvalidToken(GatehouseError):
    public = "The token is invalid."


class TokenTooLong(GatehouseError):
    """A token to be signed is longer than any of ours may be; a limit is missing where its parts are taken in."""


class ExpiredToken(InvalidToken):
    """Everything else about the token is right."""


# One frozen type for each class of token (R2, interface §2.1).
#
# The type is the whole difference between classes: its `typ` (absence is a value), the algorithms and the
# purpose of the keys it may be signed with, its members. Optional members that are absent are left out of the
# payload; members that are not named here are refused.


# Within what every JSON reader holds exactly (RFC 7519 §2 and RFC 8259 §6).
Seconds = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
# Canonical: "01", " 1" and fullwidth digits name no application (checklist UI-27). An origin or an
# address never looks like it, so a token made for someone outside is not accepted back (R6, GDPR).
ApplicationId = Annotated[str, msgspec.Meta(pattern=r"\A[1-9][0-9]{0,17}\Z")]
Name = Annotated[str, msgspec.Meta(min_length=1)]

RSA_ONLY: Final = (Algorithm.RS256,)


class Claims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What every class has. `kid` is filled in when the token is signed."""

    algs: ClassVar[tuple[Algorithm, ...]] = RSA_ONLY  # the first unless another is asked for
    purpose: ClassVar[KeyPurpose] = KeyPurpose.TOKENS

    iss: Name
    iat: Seconds
    exp: Seconds
    kid: str = ""

    def is_meant_for(self, issuer: str) -> bool:  # noqa: ARG002 - classes that name an audience look at it
        """The audience rule of the class, beyond what its type already says."""
        return True


class PermissionClaims(msgspec.Struct, frozen=True, kw_only=True):
    """What a user JWT tells about one application: app_perm, perm and perm_exp (R2)."""

    application_id: int
    entries: tuple[str, ...]  # list_short
    ends_at: int  # later readers ask again


class PersonClaims(Claims, frozen=True, kw_only=True):
    uid: Name
    sub: Name
    nick: str
    slt: Name  # random salt of fac and loc
    loc: str
    tgs: str  # comma-separated
    tgs_omitted: bool = False  # too long for a token: tgs is empty, and readers ask for the tags
    cntry: str
    lng: str
    rev: Seconds  # the user's revocation epoch
    pub_key: str | None = None
    fip: tuple[str, ...] | None = None  # CIDR
    app_perm: int | None = None  # the application `perm` is about
    perm: tuple[str, ...] | None = None
    perm_exp: Seconds | None = None
    perm_omitted: bool = False  # `perm` is too long for a token: readers ask for it (R2)
    aud: ApplicationId | None = None  # the verifier compares it with the request's application

    def __post_init__(self) -> None:
        refuse_uid_sub_mismatch(self.uid, self.sub)


class UserJwtClaims(PersonClaims, frozen=True, kw_only=True):
    """The service's own user JWT. It has no `typ`."""

    auth: Literal["login", "2step", "openid", "passkey"]
    fac: str | None = None  # without it no factor check ever passes


class ExchangedUserClaims(PersonClaims, frozen=True, kw_only=True, tag_field="typ", tag="exchanged_token"):
    """The user JWT of exchangeToken: no `fac`, read-only, not exchangeable again."""

    auth: Literal["openid"]
    azp: Name
    gid: Name  # its grant; the JWT ends with it


class IdClaims(Claims, frozen=True, kw_only=True, tag_field="typ", tag="id_token", forbid_unknown_fields=False):
    """Beside these an id_token may have claims that its client has mapped (R3); we read none of those back."""

    algs: ClassVar[tuple[Algorithm, ...]] = tuple(Algorithm)

    sub: Name
    aud: tuple[str, str]  # the service address and the client
    azp: Name
    nonce: str | None = None
    email: str | None = None
    nickname: str | None = None
    auth_time: Seconds | None = None
    at_hash: str | None = None
    sid: str | None = None  # for clients that are told of a sign-out
    claims_omitted: bool = False  # mapped claims are missing for their length; userinfo tells them

    def is_meant_for(self, issuer: str) -> bool:
        return self.aud == (issuer, self.azp)


class ExchangedIdClaims(Claims, frozen=True, kw_only=True, tag_field="typ", tag="id_token"):
    """The id_token that `exchange` gives for a user JWT: for the service itself, no client, no nonce."""

    sub: Name
    aud: tuple[str]
    email: str | None = None
    nickname: str | None = None
    auth_time: Seconds | None = None

    def is_meant_for(self, issuer: str) -> bool:
        return self.aud == (issuer,)


class RefreshClaims(Claims, frozen=True, kw_only=True, tag_field="typ", tag="refresh_token"):
    """Signed by a key that is published nowhere; its family's state decides, not the JWT alone."""

    # EdDSA is deterministic: the same claims are the same token, which a repeat within the grace needs.
    algs: ClassVar[tuple[Algorithm, ...]] = (Algorithm.EDDSA,)
    purpose: ClassVar[KeyPurpose] = KeyPurpose.REFRESH

    sub: Name
    aud: tuple[str, str]
    azp: Name
    scopes: str  # space-separated
    jti: Name

    def is_meant_for(self, issuer: str) -> bool:
        return self.aud == (issuer, self.azp)


class StaticServiceClaims(Claims, frozen=True, kw_only=True, tag_field="typ", tag="service_jwt"):
    """Issued by an administrator for an application; revocable by `jti`."""

    aud: ApplicationId
    jti: Name


class GeneratedServiceClaims(
    Claims, frozen=True, kw_only=True, tag_field="typ", tag="service_jwt", forbid_unknown_fields=False
):
    """Signed by an application with a key of its own, good for minutes.

    Made by other people's libraries, so members we do not use may be there.
    """

    iss: ApplicationId
    aud: Name
    sub: str | None = None
    nbf: Seconds | None = None
    jti: str | None = None

    def is_meant_for(self, issuer: str) -> bool:
        return self.aud == issuer


class OutboundServiceClaims(Claims, frozen=True, kw_only=True, tag_field="typ", tag="service_jwt"):
    """Goes along with a call of ours to an application (R6, GDPR): for that origin alone, good for minutes."""

    aud: Name  # the target's origin
    jti: Name  # the request it belongs to

    def is_meant_for(self, issuer: str) -> bool:  # noqa: ARG002 - every one presented here was issued here
        return False


class LogoutEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The one member of `events`; its name says it all (Back-Channel Logout §2.4)."""

    ended: dict[str, str] = msgspec.field(
        default_factory=dict, name="http://schemas.openid.net/event/backchannel-logout"
    )


class LogoutClaims(Claims, frozen=True, kw_only=True, tag_field="typ", tag="logout_token"):
    """Tells a client that a person has signed out. Without a nonce, so that it is never taken for an id_token."""

    algs: ClassVar[tuple[Algorithm, ...]] = tuple(Algorithm)

    sub: Name
    aud: Name  # the client
    jti: Name
    sid: Name
    events: LogoutEvent

    def is_meant_for(self, issuer: str) -> bool:  # noqa: ARG002 - we tell, and are never told
        return False


class ServiceAccountClaims(Claims, frozen=True, kw_only=True, tag_field="typ", tag="service_account"):
    """A service account's JWT: no factor; each request is signed when it carries `pub_key` (R1)."""

    uid: Name
    sub: Name
    nick: str
    rev: Seconds
    jti: Name
    pub_key: str | None = None
    fip: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        refuse_uid_sub_mismatch(self.uid, self.sub)


def refuse_uid_sub_mismatch(uid: str, sub: str) -> None:
    if uid != sub:
        raise ValueError("uid and sub must be equal")


def typ_of(kind: type[Claims]) -> str | None:
    tag = kind.__struct_config__.tag
    return tag if isinstance(tag, str) else None


def factor_digest(factor: str, slt: str) -> str:
    """`fac`: the factor itself is never kept beside a token (R2)."""
    return salted_digest(factor, slt)


def location_digest(country: str, slt: str) -> str:
    """`loc`."""
    return salted_digest(country, slt)


def salted_digest(text: str, slt: str) -> str:
    return hashlib.sha256((text + slt).encode("utf-8", "surrogatepass")).hexdigest()


# Size limits of tokens: what does not fit is left out, and the token says so (R2, checklist TK-31).
#
# Proxies and servers commonly read 8 KB of one header line, our own server 16 KB of all of them. What callers and
# administrators write into a token is bounded where it is taken in, so that a token at all of these limits still
# fits; what grows by itself (permissions, mapped claims) goes in only while there is room for it.


MAX_ISSUED_TOKEN: Final = 8_000  # characters: 8 KB of a header line, less `Authorization: Bearer `
MAX_ID_TOKEN: Final = 6_144  # characters: it comes back as id_token_hint, in an address of at most 8 KB
MAX_PERM: Final = 6_144  # characters that `perm` takes in a token
# Bytes of JSON that one value takes in a payload, before base64.
MAX_TAG_BYTES: Final = 1_024
MAX_PUBLIC_KEY_BYTES: Final = 1_792  # an RSA key of 8192 bits takes 1,560 in PEM
MAX_NONCE_BYTES: Final = 2_048
# Characters beside the payload: the header, two dots, and the signature of the largest RSA key (R2: 3072 bits).
JWS_OVERHEAD: Final = 64 + 2 + 512
KID_PLACEHOLDER: Final = "0" * 12  # as long as every kid of ours

P = TypeVar("P", bound=PersonClaims)


def json_length(value: object) -> int:
    """Bytes of a value in a payload; of text without its quotes."""
    return len(msgspec.json.encode(value)) - (2 if isinstance(value, str) else 0)


def base64_length(length: int) -> int:
    return -(-length * 4 // 3)


def payload_bytes_left(claims: Claims, max_length: int) -> int:
    """Bytes of JSON that may still be added to the payload; below 0 when it is too long already."""
    return (max_length - JWS_OVERHEAD) * 3 // 4 - json_length(msgspec.structs.replace(claims, kid=KID_PLACEHOLDER))


def tag_claims(tags: str) -> dict[str, Any]:
    """`tgs`; tags stored before there was a limit may be too long, and a part of them would be wrong."""
    return {"tgs": tags} if json_length(tags) <= MAX_TAG_BYTES else {"tgs": "", "tgs_omitted": True}


def without_long_perm(claims: P) -> P:
    """The same claims, and `perm_omitted` in place of a `perm` that is too long: readers ask for it."""
    if claims.perm is None:
        return claims
    if base64_length(json_length(claims.perm)) <= MAX_PERM and payload_bytes_left(claims, MAX_ISSUED_TOKEN) >= 0:
        return claims
    return msgspec.structs.replace(claims, perm=None, perm_exp=None, perm_omitted=True)


def claims_that_fit(extra_claims: Mapping[str, object], bytes_left: int) -> Mapping[str, object]:
    """As many members as there is room for, the shortest first."""
    kept: dict[str, object] = {}
    for length, name in sorted((json_length({name: value}), name) for name, value in extra_claims.items()):
        bytes_left -= length - 1  # no braces, but a comma
        if bytes_left < 0:
            break
        kept[name] = extra_claims[name]
    return kept
