"""OAuth clients and their secrets, and what people allowed them: grants, consents, device requests (R3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from gatehouse.accounts.model import User
from gatehouse.keys.model import Algorithm

SCOPES: Final = ("openid", "offline_access", "email", "profile", "trust")
MAX_LIVE_SECRETS: Final = 2  # live at once, while one is being rotated


class ClientProfile(StrEnum):
    NATIVE = "native"  # interface §4.2 to the letter: the SHA-1 proof
    OIDC = "oidc"  # plain OpenID Connect for off-the-shelf clients


class SecretKind(StrEnum):
    SEALED = "sealed"  # native clients: the proof needs the secret itself
    SHA256 = "sha256"  # generated secrets of oidc clients: 256 bit need no slow hash
    ARGON2 = "argon2"  # imported weak ones


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecret:
    slot: int = 1  # or 2
    kind: SecretKind
    secret: bytes = field(repr=False)
    created_at: int
    expires_at: int = 0


class ClaimContent(StrEnum):
    """What a mapped claim contains: roles, groups or rules."""

    ROLES = "roles"
    GROUPS = "groups"
    RULES = "rules"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSource:
    """Where the value of a mapped claim comes from: what the user holds in one application."""

    application_id: int
    told: ClaimContent


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    """What a client may have otherwise than the rest (R3)."""

    id_token_alg: Algorithm = Algorithm.RS256  # id_token_signed_response_alg
    access_seconds: int = 3_600  # interface §8, at most
    refresh_seconds: int = 30 * 86_400  # interface §8, at most
    refresh_grace_seconds: int | None = None  # None: as the settings say


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    client_id: str
    name: str
    profile: ClientProfile = ClientProfile.NATIVE
    application_id: int | None = None
    redirect_hosts: tuple[str, ...] = ()
    redirect_uris: tuple[str, ...] = ()
    post_logout_uris: tuple[str, ...] = ()
    scopes: tuple[str, ...] = SCOPES
    origins: tuple[str, ...] = ()  # whose pages may call token, userinfo and revocation (CORS)
    backchannel_logout_uri: str = ""
    jwks: Mapping[str, object] = field(default_factory=dict)  # public keys of private_key_jwt; empty for none
    claims: Mapping[str, ClaimSource] = field(default_factory=dict)  # by the name of the claim
    token_settings: TokenSettings = TokenSettings()
    device_grant: bool = False  # may ask for RFC 8628
    explain_errors: bool = False  # error pages tell its developer more
    first_party: bool = False
    may_exchange: bool = True
    require_pkce: bool = False
    public: bool = False
    removed: bool = False
    created_at: int
    version: int = 1
    secrets: tuple[ClientSecret, ...] = ()

    @property
    def weight(self) -> int:
        """Estimated bytes in memory."""
        lists = (self.redirect_hosts, self.redirect_uris, self.post_logout_uris, self.scopes, self.origins)
        texts = sum(64 + len(text) for texts in lists for text in texts)
        return 4_000 + texts + len(self.backchannel_logout_uri) + 4 * (len(str(self.jwks)) + len(str(self.claims)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One sign-in to one client, and everything that comes of it: code, access tokens, refresh tokens (R3).

    Its refresh tokens are numbered: `generation` is the number of the only one that is good, 0 before the first.
    A grant is dead when it was revoked, has ended, its user's `rev` is another now, or its client is removed.
    """

    grant_id: str
    client_id: str
    user_id: str
    rev: int  # the user's when he signed in
    session_id: str  # the browser session it came from; the `sid` of logout tokens
    scopes: tuple[str, ...]
    redirect_uri: str  # empty for the device grant
    nonce: str | None = None
    code_challenge: str = ""  # S256; empty when PKCE was not used
    wanted_claims: tuple[str, ...] = ()  # of the `claims` parameter, for userinfo
    auth: str
    auth_time: int
    code: bytes | None = None  # digest; None for the device grant
    code_ends_at: int = 0
    code_taken_at: int = 0
    code_failures: int = 0
    generation: int = 0
    refreshed_at: int = 0  # when the newest refresh token was made
    attempt: str = ""  # the id of the redemption or rotation that came last: by it a second run recognizes the first
    created_at: int
    ends_at: int  # of the whole family
    revoked_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantHolder:
    """A living grant with whose it is: what every use of a token needs to know, read in one statement."""

    grant: Grant
    user: User
    client: Client
    keys_version: int  # of the signing keys at that moment: tokens are judged, and made, by these

    @property
    def scopes(self) -> tuple[str, ...]:
        """Those of the grant that the client may still have: it may have been narrowed since."""
        allowed = self.client.scopes
        return tuple(scope for scope in self.grant.scopes if scope in allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginToken:
    """The `token` of login data (R1): no OAuth token, but introspection tells its application about it."""

    user_id: str
    application_id: int  # 0 for none
    ends_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    user_id: str
    client_id: str
    scopes: tuple[str, ...]
    given_at: int


class DeviceState(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """A device without a browser waits for someone to confirm its user code elsewhere (RFC 8628)."""

    digest: bytes  # of the device code
    user_code: str  # as it is compared: letters only, upper case
    client_id: str
    scopes: tuple[str, ...]
    address: str  # where it was asked for from
    state: DeviceState = DeviceState.PENDING
    grant_id: str = ""  # of the grant that the confirmation made
    interval: int = 5  # seconds between two polls
    polled_at: int = 0
    created_at: int
    ends_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogoutCall:
    """A client is to be told that someone signed out (OpenID Connect Back-Channel Logout)."""

    call_id: str
    client_id: str
    uri: str
    user_id: str
    session_id: str
    created_at: int
    tries: int = 0
    next_try_at: int
    trouble: str = ""
