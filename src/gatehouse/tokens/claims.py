"""The claims of each class of token, and the errors of a refused token, which are for the log only."""

import hashlib
from typing import Annotated, ClassVar, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from gatehouse.kernel.errors import GatehouseError
from gatehouse.keys.model import Algorithm, KeyAlgorithm, KeyPurpose, MacAlgorithm

AuthMethod = Literal["login", "2step", "openid", "passkey", "provider", "platform", "guest", "email"]  # R1, R10


class InvalidToken(GatehouseError):
    public = "The token is invalid."


class TokenTooLong(GatehouseError):
    """A token to be signed is too long: a limit is missing where its parts are received."""


class ExpiredToken(InvalidToken):
    """The token has expired; everything else about it is valid."""


# One frozen type for each class of token (R2, interface §2.1).
#
# Classes of tokens differ only by their type: its `typ` (absence is a value), the algorithms and the purpose of the
# keys it may be signed with, its members. Optional members that are absent are left out of the payload; members that
# are not named here are refused.


# Integers that every JSON reader reads exactly (RFC 7519 §2 and RFC 8259 §6).
Seconds = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
# Canonical: "01", " 1" and fullwidth digits name no application (checklist UI-27). An origin or an address never
# looks like one, so an outbound token is never accepted here (R6, GDPR).
ApplicationId = Annotated[str, msgspec.Meta(pattern=r"\A[1-9][0-9]{0,17}\Z")]
Name = Annotated[str, msgspec.Meta(min_length=1)]

RSA_ONLY: Final = (Algorithm.RS256,)


class Claims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The claims that every class has. `kid` is filled in when the token is signed."""

    header_typ: ClassVar[str] = "JWT"
    algs: ClassVar[tuple[KeyAlgorithm, ...]] = RSA_ONLY  # the first one by default
    purpose: ClassVar[KeyPurpose] = KeyPurpose.TOKENS
    repeats_kid: ClassVar[bool] = True  # in the payload (R2)

    iss: Name
    iat: Seconds
    exp: Seconds
    kid: str = ""

    def is_meant_for(self, issuer: str) -> bool:  # noqa: ARG002 - classes that name an audience look at it
        """The audience rule of the class, beyond what its type already says."""
        return True


class PermissionClaims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a user JWT about one application: app_perm, perm and perm_exp (R2)."""

    application_id: int
    entries: tuple[str, ...]  # list_short
    ends_at: int  # after this time readers ask again


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

    auth: AuthMethod
    fac: str | None = None  # without it no factor check ever passes


class ExchangedUserClaims(PersonClaims, frozen=True, kw_only=True, tag_field="typ", tag="exchanged_token"):
    """The user JWT of exchangeToken: no `fac`, read-only, not exchangeable again."""

    auth: Literal["openid"]
    azp: Name
    gid: Name  # its grant; the JWT ends with it


class IdClaims(Claims, frozen=True, kw_only=True, tag_field="typ", tag="id_token", forbid_unknown_fields=False):
    """An id_token may also have claims that its client has mapped (R3); the service never reads those."""

    algs: ClassVar[tuple[Algorithm, ...]] = tuple(Algorithm)

    sub: Name
    aud: tuple[str, str]  # the service address and the client
    azp: Name
    nonce: str | None = None
    email: str | None = None
    nickname: str | None = None
    auth_time: Seconds | None = None
    at_hash: str | None = None
    sid: str | None = None  # for clients with back-channel logout
    claims_omitted: bool = False  # mapped claims are omitted because of their length; userinfo has them

    @property
    def client_id(self) -> str:
        return self.azp

    def is_meant_for(self, issuer: str) -> bool:
        return self.aud == (issuer, self.azp)


class OidcIdClaims(Claims, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """The id_token of a client with profile oidc: no `typ` and no `kid` in its payload (R9).

    Claims about the person are added when it is signed; the service never reads those. Callers compare `aud` with
    the client.
    """

    algs: ClassVar[tuple[Algorithm, ...]] = tuple(Algorithm)
    repeats_kid: ClassVar[bool] = False
    sub: Name
    aud: Name  # the client
    nonce: str | None = None
    auth_time: Seconds | None = None
    acr: str | None = None
    amr: tuple[str, ...] = ()
    at_hash: Name | None = None  # without an access token there is none: game login (R10)
    sid: str | None = None  # for clients with back-channel logout
    claims_omitted: tuple[str, ...] = ()  # the names of claims that are left out because of their length
    typ: UnsetType = UNSET  # this and the next three, of other classes, are refused whatever they say (R9)
    uid: UnsetType = UNSET
    slt: UnsetType = UNSET
    rev: UnsetType = UNSET

    @property
    def client_id(self) -> str:
        return self.aud


class ExchangedIdClaims(Claims, frozen=True, kw_only=True, tag_field="typ", tag="id_token"):
    """The id_token that `exchange` returns for a user JWT: for the service itself, no client, no nonce."""

    sub: Name
    aud: tuple[str]
    email: str | None = None
    nickname: str | None = None
    auth_time: Seconds | None = None

    def is_meant_for(self, issuer: str) -> bool:
        return self.aud == (issuer,)


class RefreshClaims(Claims, frozen=True, kw_only=True, tag_field="typ", tag="refresh_token"):
    """A refresh token, authenticated by a secret key; the state of its family decides, not the JWT alone.

    HMAC and EdDSA are deterministic: equal claims and the same key give the same token, which a repeat within the
    grace window needs. EdDSA tokens were issued before HS256 ones, and are valid until they end.
    """

    algs: ClassVar[tuple[KeyAlgorithm, ...]] = (MacAlgorithm.HS256, Algorithm.EDDSA)
    purpose: ClassVar[KeyPurpose] = KeyPurpose.REFRESH

    sub: Name
    aud: tuple[str, str]
    azp: Name
    scopes: str  # space-separated
    jti: Name

    def is_meant_for(self, issuer: str) -> bool:
        return self.aud == (issuer, self.azp)


class StaticServiceClaims(Claims, frozen=True, kw_only=True, tag_field="typ", tag="service_jwt"):
    """A service JWT that an administrator issued for an application; revocable by `jti`."""

    aud: ApplicationId
    jti: Name


class GeneratedServiceClaims(
    Claims, frozen=True, kw_only=True, tag_field="typ", tag="service_jwt", forbid_unknown_fields=False
):
    """A service JWT that an application signs with its own key, valid for minutes.

    Other libraries create it, so it may have unknown members.
    """

    iss: ApplicationId
    aud: Name
    sub: str | None = None
    nbf: Seconds | None = None
    jti: str | None = None

    def is_meant_for(self, issuer: str) -> bool:
        return self.aud == issuer


class OutboundServiceClaims(Claims, frozen=True, kw_only=True, tag_field="typ", tag="service_jwt"):
    """The JWT of an outbound call to an application (R6, GDPR): valid for minutes, and for that origin only."""

    aud: Name  # the target's origin
    jti: Name  # the request it belongs to

    def is_meant_for(self, issuer: str) -> bool:  # noqa: ARG002 - every one presented here was issued here
        return False


class ForwardAuthClaims(Claims, frozen=True, kw_only=True, tag_field="typ", tag="forward_auth"):
    """Tells a protected site who opened it (R9): valid for minutes, and for that origin only."""

    sub: Name
    aud: Name  # the site's origin
    nick: str
    email: str | None = None  # verified
    roles: tuple[str, ...] = ()
    roles_omitted: bool = False  # too long for a header: the site asks for them

    def is_meant_for(self, issuer: str) -> bool:  # noqa: ARG002 - we tell, and are never told
        return False


class LogoutEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The only member of `events`, an empty object (Back-Channel Logout §2.4)."""

    ended: dict[str, str] = msgspec.field(
        default_factory=dict, name="http://schemas.openid.net/event/backchannel-logout"
    )


class LogoutClaims(Claims, frozen=True, kw_only=True, tag_field="typ", tag="logout_token"):
    """Tells a client that a person has signed out. It has no nonce, so that it is never accepted as an id_token."""

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


class ActClaim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The program that acts for the person of a token, and inside it the one that acted before (RFC 8693 §4.1)."""

    sub: Name  # `client:<id>`
    client_id: Name
    act: "ActClaim | None" = None


class ApiTokenClaims(Claims, frozen=True, kw_only=True):
    """An access token for the API of an application (RFC 9068): for its owner to verify offline.

    Its header has a type of its own, so it is never accepted as another class, nor another class as it (R9).
    """

    header_typ: ClassVar[str] = "at+jwt"
    repeats_kid: ClassVar[bool] = False

    sub: Name
    aud: Name  # the resource
    client_id: Name
    jti: Name
    act: ActClaim | None = None
    scope: str = ""  # space-separated
    roles: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    permissions: tuple[str, ...] | None = None
    claims_omitted: tuple[str, ...] | None = None  # which of these are too long for a token


def claim_names(kind: type[Claims]) -> frozenset[str]:
    """Return the names of the claims of a class, and of all classes derived from it."""
    return frozenset(kind.__struct_fields__).union(*map(claim_names, kind.__subclasses__()))


TOKEN_CLAIMS: Final = claim_names(Claims) | {"typ"}  # no mapped claim has one of these names (R9)


def refuse_uid_sub_mismatch(uid: str, sub: str) -> None:
    if uid != sub:
        raise ValueError("uid and sub must be equal")


def typ_of(kind: type[Claims]) -> str | None:
    tag = kind.__struct_config__.tag
    return tag if isinstance(tag, str) else None


def factor_digest(factor: str, slt: str) -> str:
    """Return `fac`; the factor itself is never stored beside a token (R2)."""
    return salted_digest(factor, slt)


def location_digest(country: str, slt: str) -> str:
    """Return `loc`, the digest of a location."""
    return salted_digest(country, slt)


def salted_digest(text: str, slt: str) -> str:
    return hashlib.sha256((text + slt).encode("utf-8", "surrogatepass")).hexdigest()
