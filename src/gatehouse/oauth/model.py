"""OAuth clients and their secrets, and what people allowed them: grants, consents, device requests (R3)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from gatehouse.accounts.bans.model import find_ban
from gatehouse.accounts.model import User
from gatehouse.fields.model import Field, Kind, described_fields
from gatehouse.fields.secrets import SecretBytes, SecretRecord
from gatehouse.keys.model import Algorithm
from gatehouse.oauth.vocabulary import (
    AUTHZEN,
    EMAIL,
    GROUPS,
    OBJECTS,
    OFFLINE_ACCESS,
    OPENID,
    PERMISSIONS,
    PHONE,
    PROFILE,
    ROLES,
    TRUST,
)
from gatehouse.oauth.workloads.model import WorkloadIdentity

DEFAULT_SCOPES: Final = (OPENID, OFFLINE_ACCESS, EMAIL, PROFILE, TRUST)
APPLICATION_SCOPES: Final = (GROUPS, ROLES, PERMISSIONS)  # of the client's application, profile oidc only (R9)
SCOPES: Final = (*DEFAULT_SCOPES, *APPLICATION_SCOPES, PHONE)
OWN_API_SCOPES: Final = (AUTHZEN, OBJECTS)  # that a client may be allowed, for tokens without a person (R11)
ALLOWED_SCOPES: Final = (*SCOPES, *OWN_API_SCOPES)
CLIENT_SUBJECT: Final = "client:"  # before the ID of a client, where a user ID may stand too
MAX_LIVE_SECRETS: Final = 2  # live at once, while one is being rotated
MIN_TOKEN_SECONDS: Final = 60  # lifetime of any token
MAX_ACCESS_SECONDS: Final = 3_600  # interface §8
MAX_REFRESH_SECONDS: Final = 30 * 86_400  # interface §8


class ClientProfile(StrEnum):
    NATIVE = "native"  # exactly interface §4.2: the SHA-1 proof
    OIDC = "oidc"  # plain OpenID Connect for off-the-shelf clients


class SecretKind(StrEnum):
    SEALED = "sealed"  # native clients: the proof needs the secret itself
    SHA256 = "sha256"  # generated secrets of oidc clients: 256 bit need no slow hash
    ARGON2 = "argon2"  # imported weak ones


class ClientSecret(SecretRecord, frozen=True, kw_only=True):
    slot: int = 1  # or 2
    kind: SecretKind
    secret: SecretBytes
    created_at: int
    expires_at: int = 0


class FormSection(StrEnum):
    """The parts of the console's form that list their fields by description."""

    MAIN = "main"
    LINKS = "links"
    SIGN_OUT = "sign_out"
    TOKENS = "tokens"
    ACTING = "acting"
    ACTING_FOR_OTHERS = "acting_for_others"
    ADMINISTRATORS = "administrators"


class ClaimContent(StrEnum):
    """What a mapped claim contains: roles, groups or rules."""

    ROLES = "roles"
    GROUPS = "groups"
    RULES = "rules"


class ClaimSource(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the value of a mapped claim comes from: what the user holds in one application."""

    application_id: Annotated[int, Meta(ge=1, le=2**53)]
    told: ClaimContent


class TokenSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Token lifetimes; omitted fields use the defaults."""

    id_token_alg: Annotated[
        Algorithm,
        Field(
            "Signing algorithm for ID tokens.  [default: depends on profile]", section=FormSection.TOKENS, hint=False
        ),
    ] = msgspec.field(default=Algorithm.RS256, name="id_token_signed_response_alg")  # new oidc clients: ES256 (R2)
    access_seconds: Annotated[
        int,
        Field(
            "Access token lifetime.",
            section=FormSection.TOKENS,
            hint=False,
            minimum=MIN_TOKEN_SECONDS,
            maximum=MAX_ACCESS_SECONDS,
        ),
    ] = MAX_ACCESS_SECONDS
    refresh_seconds: Annotated[
        int,
        Field(
            "Refresh token lifetime.",
            section=FormSection.TOKENS,
            hint=False,
            minimum=MIN_TOKEN_SECONDS,
            maximum=MAX_REFRESH_SECONDS,
        ),
    ] = MAX_REFRESH_SECONDS
    refresh_grace_seconds: Annotated[
        int | None,  # None: as the settings say
        Field(
            "How long concurrent refreshes get the same token.  [default: setting]",
            section=FormSection.TOKENS,
            maximum=60,  # as oauth.refresh_grace_seconds
        ),
    ] = None


DEFAULT_TOKEN_SETTINGS: Final = TokenSettings()


def new_token_settings(profile: ClientProfile) -> TokenSettings:
    """Return the token settings of a new client that says nothing (R2)."""
    return TokenSettings(id_token_alg=Algorithm.ES256) if profile is ClientProfile.OIDC else DEFAULT_TOKEN_SETTINGS


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """An OAuth client; a `Field` says how the API, files, the command line and the console read a field."""

    client_id: str
    name: Annotated[str, Field("Display name on the sign-in page.", maximum=64)]
    profile: Annotated[
        ClientProfile,
        Field("native: dialect of the interface document; oidc: standard OpenID Connect."),
    ] = ClientProfile.NATIVE
    application_id: Annotated[
        int | None, Field("Application whose login permissions apply.", minimum=1, patchable=False)
    ] = None
    redirect_hosts: Annotated[
        tuple[str, ...],
        Field(
            "Host allowed in redirect URIs (native); repeatable.",
            option="--redirect-host",
            section=FormSection.ADMINISTRATORS,
            administrators_only=True,
        ),
    ] = ()
    redirect_uris: Annotated[
        tuple[str, ...],
        Field("Exact redirect URI; repeatable.", option="--redirect-uri", section=FormSection.MAIN),
    ] = ()
    post_logout_uris: Annotated[
        tuple[str, ...],
        Field("Post-logout redirect URI; repeatable.", option="--post-logout-uri", section=FormSection.SIGN_OUT),
    ] = ()
    client_uri: Annotated[
        str, Field("Website, shown at sign-in and consent.", kind=Kind.URL, section=FormSection.LINKS)
    ] = ""
    policy_uri: Annotated[
        str, Field("Privacy policy, shown at sign-in and consent.", kind=Kind.URL, section=FormSection.LINKS)
    ] = ""
    tos_uri: Annotated[
        str, Field("Terms of service, shown at sign-in and consent.", kind=Kind.URL, section=FormSection.LINKS)
    ] = ""
    scopes: Annotated[
        tuple[str, ...],
        Field("Allowed scope; repeatable.", kind=Kind.SCOPES, option="--scope", section=FormSection.MAIN, hint=False),
    ] = DEFAULT_SCOPES
    origins: Annotated[
        tuple[str, ...],
        Field(
            "Origin allowed to call the token endpoint (CORS); repeatable.",
            option="--origin",
            section=FormSection.TOKENS,
        ),
    ] = ()
    backchannel_logout_uri: Annotated[
        str, Field("Back-channel logout URL.", kind=Kind.URL, section=FormSection.SIGN_OUT)
    ] = ""
    jwks: Annotated[
        Mapping[str, Any],  # public keys of private_key_jwt; empty for none
        Field("File with the client's public keys (JWK set).", kind=Kind.DOCUMENT, section=FormSection.TOKENS),
    ] = msgspec.field(default_factory=dict)
    workload_identities: Annotated[  # R11
        tuple[WorkloadIdentity, ...],
        Field(
            "JSON file with issuers whose tokens authenticate a machine, as Kubernetes, GitHub, GitLab and SPIFFE.",
            kind=Kind.DOCUMENT,
            section=FormSection.TOKENS,
        ),
    ] = ()
    claims: Annotated[
        Mapping[str, ClaimSource],  # by the name of the claim
        Field(
            "Add a claim with a person's roles, groups or permissions in an application; repeatable.",
            kind=Kind.CLAIMS,
            option="--claim",
            section=FormSection.TOKENS,
        ),
    ] = msgspec.field(default_factory=dict)
    claims_in_id_token: Annotated[  # R9
        bool,
        Field(
            "Add email and profile claims to ID tokens, for programs that do not read userinfo (oidc).",
            section=FormSection.TOKENS,
        ),
    ] = False  # profile native always has them
    token_settings: Annotated[TokenSettings, Field(kind=Kind.GROUP)] = DEFAULT_TOKEN_SETTINGS
    device_grant: Annotated[  # RFC 8628
        bool, Field("Allow the device grant (oidc).", section=FormSection.MAIN)
    ] = False
    game_id_token: Annotated[  # R10
        bool,
        Field(
            "Allow game logins to get an ID token for this client (oidc).",
            section=FormSection.ADMINISTRATORS,
            administrators_only=True,
        ),
    ] = False
    explain_errors: Annotated[
        bool, Field("Show error details for developers on error pages.", section=FormSection.MAIN)
    ] = False
    first_party: Annotated[
        bool,
        Field("Trusted: skip consent.", section=FormSection.ADMINISTRATORS, administrators_only=True),
    ] = False
    may_exchange: Annotated[
        bool,
        Field(
            "Allow exchangeToken.  [default: depends on profile]",
            option="--may-exchange/--no-exchange",
            section=FormSection.ADMINISTRATORS,
        ),
    ] = True
    may_act: Annotated[  # R11
        bool,
        Field(
            "Allow it to act for people who let its application act through other clients of it (oidc).",
            section=FormSection.ACTING,
        ),
    ] = False
    may_act_for_others: Annotated[  # R11
        bool,
        Field(
            "Allow it to act through clients of other applications, too.",
            section=FormSection.ACTING_FOR_OTHERS,
            administrators_only=True,
        ),
    ] = False
    require_pkce: Annotated[
        bool,
        Field(
            "Require PKCE.  [default: depends on profile]",
            option="--require-pkce/--no-require-pkce",
            section=FormSection.MAIN,
        ),
    ] = False  # new clients of profile oidc: true (R9)
    require_pushed_authorization_requests: Annotated[  # RFC 9126 §6
        bool,
        Field("Require pushed authorization requests (oidc).", section=FormSection.MAIN),
    ] = False
    public: Annotated[bool, Field("Public client without a secret: SPA, mobile or desktop app (oidc).")] = False
    machine: Annotated[  # R9
        bool,
        Field("Machine or cron job: gets tokens for itself (client_credentials), and signs no one in (oidc)."),
    ] = False
    logo: str = ""  # ID of the image, if there is one
    removed: bool = False
    created_at: int
    version: int = 1
    rev: int = 0  # its revocation epoch: tokens that it got for itself under another one are invalid
    secrets: tuple[ClientSecret, ...] = ()

    @property
    def has_document(self) -> bool:
        """Whether it is described by its client ID metadata document; registered IDs never contain a colon (R9)."""
        return self.client_id.startswith("https://")

    @property
    def subject(self) -> str:
        """`sub` of the tokens it gets for itself, and its name as an actor in the audit log."""
        return f"{CLIENT_SUBJECT}{self.client_id}"

    @property
    def own_api_scopes(self) -> tuple[str, ...]:
        """The scopes of the service's own API that it may ask for (R11)."""
        return tuple(scope for scope in OWN_API_SCOPES if scope in self.scopes)

    @property
    def weight(self) -> int:
        """Estimated bytes in memory."""
        texts = sum(64 + len(text) for name in LIST_FIELDS for text in getattr(self, name))
        texts += sum(64 + len(getattr(self, name)) for name in URL_FIELDS)
        documents = (self.jwks, self.claims, self.workload_identities)
        return 4_000 + texts + 4 * sum(len(str(document)) for document in documents)

    @property
    def application_ids(self) -> tuple[int, ...]:
        """Its application; empty for a client without one."""
        return () if self.application_id is None else (self.application_id,)


CLIENT_FIELDS: Final = tuple(described_fields(Client, Field))
LIST_FIELDS: Final = tuple(field.name for field in CLIENT_FIELDS if field.kind in {Kind.LIST, Kind.SCOPES})
URL_FIELDS: Final = tuple(field.name for field in CLIENT_FIELDS if field.kind is Kind.URL)
LINK_FIELDS: Final = ("client_uri", "policy_uri", "tos_uri")  # that people see
# All fields, those of a group in its place; options and form controls are made from these.
SINGLE_FIELDS: Final = tuple(
    single
    for field in CLIENT_FIELDS
    for single in (described_fields(field.type, Field, group=field.name) if field.kind is Kind.GROUP else (field,))
)


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """One sign-in to one client with its code, access tokens and refresh tokens (R3).

    Its refresh tokens are numbered: `generation` is the number of the only valid one, 0 before the first.
    A grant is dead when it was revoked, has ended, its user's `rev` has changed, or its client is removed.
    """

    grant_id: str
    client_id: str
    user_id: str
    rev: int  # the user's at sign-in
    session_id: str  # the browser session it came from; the `sid` of logout tokens
    scopes: tuple[str, ...]
    redirect_uri: str  # empty for the device grant
    nonce: str | None = None
    code_challenge: str = ""  # S256; empty when PKCE was not used
    wanted_claims: tuple[
        str, ...
    ] = ()  # of the `claims` parameter; with their places in profile oidc: userinfo.email
    auth: str
    second_factor: str = ""
    auth_time: int
    acr: str = ""  # if the client requires one value: the one that was met; otherwise it follows from `auth`
    code: bytes | None = None  # digest; None for the device grant
    code_ends_at: int = 0
    code_taken_at: int = 0
    code_failures: int = 0
    generation: int = 0
    refreshed_at: int = 0  # when the newest refresh token was made
    refresh_kid: str = ""  # of the key of the newest one, after a rotation: a repeat uses the same key (R2)
    attempt: str = ""  # the id of the last redemption or rotation, by which a second run recognizes the first
    created_at: int
    ends_at: int  # of the whole family
    revoked_at: int = 0
    used_at: int = 0  # when one of its tokens was first exchanged on the last day that this happened

    @property
    def last_used_at(self) -> int:
        """When it last gave tokens, to the day."""
        return max(self.created_at, self.code_taken_at, self.refreshed_at, self.used_at)


class GrantHolder(msgspec.Struct, frozen=True, kw_only=True):
    """A live grant with its user and client: what every use of a token needs, read in one statement."""

    grant: Grant
    user: User
    client: Client
    keys_version: int  # of the signing keys at the same time, by which tokens are signed and verified
    project_id: str = ""  # of the client's application

    def is_banned(self, now: int) -> bool:
        """Whether the person is banned from the client's application now: nothing of the grant works meanwhile."""
        application_id = self.client.application_id or 0
        return find_ban(self.user.bans, now, application_id=application_id, project_id=self.project_id) is not None

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes of the grant that the client is still allowed."""
        granted, allowed = self.grant.scopes, self.client.scopes
        if set(allowed).issuperset(granted):
            return granted
        return tuple(scope for scope in granted if scope in allowed)


class ActingProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A client that may act for people who allow its application to."""

    application_id: int
    application: str  # its name
    client_id: str
    name: str
    may_act_for_others: bool = False

    def acts_through(self, application_id: int | None) -> bool:
        """Whether it may act through clients of this application."""
        return self.may_act_for_others or self.application_id == application_id


class GivenGrant(msgspec.Struct, frozen=True, kw_only=True):
    """A live grant as its person sees it."""

    grant_id: str
    client_id: str
    application_id: int | None  # of the client
    name: str  # of the client
    scopes: tuple[str, ...]
    given_at: int
    used_at: int  # when it last gave tokens, to the day
    ends_at: int


class Consent(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str
    client_id: str
    scopes: tuple[str, ...]
    given_at: int
    ends_at: int = 0  # 0: until it is withdrawn

    def has_ended(self, now: int) -> bool:
        return 0 < self.ends_at <= now


class DeviceState(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"


class DeviceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A device without a browser waits for someone to confirm its user code elsewhere (RFC 8628)."""

    digest: bytes  # of the device code
    user_code: str  # as it is compared: letters only, upper case
    client_id: str
    scopes: tuple[str, ...]
    address: str  # the address of the device
    state: DeviceState = DeviceState.PENDING
    grant_id: str = ""  # of the grant that the confirmation made
    interval: int = 5  # seconds between two polls
    polled_at: int = 0
    created_at: int
    ends_at: int


class PushedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An authorization request that a client sent before the browser brings its request_uri (RFC 9126)."""

    digest: bytes  # of the request_uri
    client_id: str
    source: str  # the caller as the throttles count them
    request: str  # the checked AuthorizationRequest, as JSON
    created_at: int
    ends_at: int


class LogoutCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that tells a client about a sign-out (OpenID Connect Back-Channel Logout)."""

    call_id: str
    client_id: str
    uri: str
    user_id: str
    session_id: str
    created_at: int
    tries: int = 0
    next_try_at: int
    trouble: str = ""
