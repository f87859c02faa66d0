"""Storage of OAuth, and what it needs of other packages."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Protocol

from msgspec import Struct

from gatehouse.accounts.model import MachineAccount, User
from gatehouse.accounts.store import ApplicationAccess
from gatehouse.audit.model import AuditRecord
from gatehouse.images.model import StoredImage, image_path
from gatehouse.kernel.addresses import Address
from gatehouse.oauth.api_model import MAX_SCOPE_CLAIM, SCOPE_MARK, Api, plain_scope, resource_in
from gatehouse.oauth.errors import InvalidScope, InvalidTarget
from gatehouse.oauth.model import (
    APPLICATION_SCOPES,
    ActingProgram,
    Client,
    ClientSecret,
    Consent,
    DeviceRequest,
    GivenGrant,
    Grant,
    GrantHolder,
    LogoutCall,
    PushedRequest,
)
from gatehouse.oauth.vocabulary import OPENID


class RedeemOutcome(Enum):
    """The outcome of redeeming a code."""

    REDEEMED = auto()
    REUSED = auto()  # redeemed before: the whole grant is revoked now
    GONE = auto()  # expired, failed too often, revoked, or unknown


class RotationOutcome(Enum):
    """The outcome of rotating a refresh token."""

    ROTATED = auto()
    REPEATED = auto()  # repeated within the grace window: return the same new token
    REUSED = auto()  # too late: the whole family is revoked now
    GONE = auto()


class RotationResult(Struct, frozen=True, kw_only=True):
    outcome: RotationOutcome
    generation: int = 0  # of the valid refresh token
    refreshed_at: int = 0
    kid: str = ""  # of its key; empty for one from before keys were stored with the grant


class ClientStore(Protocol):
    async def create_client(self, client: Client, record: AuditRecord, logo: StoredImage | None = None) -> None:
        """Insert a client with secrets and logo. Of two callers with one ID one succeeds, one gets ClientExists."""

    async def client(self, client_id: str) -> Client:
        """Return the client with its live secrets. Raises ClientNotFound, for removed ones too."""

    async def active_client(self, client_id: str) -> Client:
        """Return the client. Raises ClientNotFound, also when its application or project is removed (R5)."""

    async def clients(self) -> Sequence[Client]:
        """Return all clients that are not removed, by id."""

    async def clients_of_application(self, application_id: int) -> Sequence[Client]:
        """Return the clients of one application, by id."""

    async def change_client(
        self,
        client: Client,
        record: AuditRecord,
        logo: StoredImage | None = None,
        *,
        ended: AuditRecord | None = None,
    ) -> None:
        """Replace the client, its secrets too, if its version is still the given one. Raises ClientChanged.

        `logo`: a new one, which the client names by its ID. `ended`: everything it was granted ends, with
        this record.
        """

    async def is_client_in_use(self, client_id: str) -> bool:
        """Return whether a person allowed the client anything, or has signed in to it, and it is not removed."""

    async def find_api(self, resource: str) -> Api | None:
        """Return the API that a live application declares under exactly this resource."""

    async def acting_programs(self, application_ids: Collection[int]) -> Sequence[ActingProgram]:
        """Return the clients of these applications, if they are live, that may act for people."""

    async def project_of(self, application_id: int) -> str | None:
        """Return the project of a live application; None for none."""

    async def application_logo(self, application_id: int) -> str:
        """Return the ID of the application's logo; "" for none."""

    async def rotate_secret(
        self, client_id: str, secret: ClientSecret, record: AuditRecord, *, old_ends_at: int
    ) -> None:
        """Add the secret in a free slot; the newest one so far gets an end, an older one is removed.

        One transaction; at most two secrets are ever live, with any number of concurrent callers. Raises
        ClientNotFound.
        """

    async def remove_client(self, client_id: str, record: AuditRecord, *, seen: int | None = None) -> None:
        """Mark the client removed and delete its secrets and its logo; its ID is never reused.

        Raises ClientNotFound; ClientChanged when `seen` is given and is not its version.
        """


class GrantStore(Protocol):
    async def create_grant(
        self, grant: Grant, record: AuditRecord, *, in_session: bool = False, consented: bool = False
    ) -> bool:
        """Store a new grant with its code; False, and nothing stored, when the user is blocked or their rev changed.

        `in_session`: also when the session it came from has ended, so that no grant outlives a sign-out unseen.
        `consented`: also when its scopes are not, or no longer, all allowed by the person, or it ends after its
        consent.
        """

    async def find_grant_by_code(self, code: bytes) -> GrantHolder | None:
        """Return the grant of a code, redeemed or not, with its user, client and secrets; one round trip."""

    async def find_live_grant(self, grant_id: str, now: int) -> GrantHolder | None:
        """Return the same for a live grant (see model.Grant) when a token is presented; one round trip."""

    async def redeem_code(
        self, code: bytes, now: int, *, generation: int, reused: Callable[[], AuditRecord]
    ) -> RedeemOutcome:
        """Redeem the code once and set generation and refreshed_at: of any number of callers one gets REDEEMED.

        Taken before: the grant is revoked, with the record, and the answer is REUSED.
        """

    async def count_code_failure(self, code: bytes, *, most: int) -> None:
        """Count a failed attempt; after `most` of them the code is invalid."""

    async def rotate(
        self, grant_id: str, generation: int, now: int, *, kid: str, grace: int, reused: Callable[[], AuditRecord]
    ) -> RotationResult:
        """Redeem the refresh token of that generation and make the next one valid: one atomic step.

        Of any number of callers one gets ROTATED, and the key `kid` of the next token is stored. The one before the
        newest, within `grace` seconds of it, is REPEATED, with the stored key. Any other is REUSED, and the family is
        revoked with the record.
        """

    async def mark_grant_used(self, grant_id: str, now: int) -> None:
        """Store when one of its tokens was exchanged."""

    async def revoke_grant(self, grant_id: str, now: int, record: AuditRecord) -> bool:
        """End a grant with all its tokens; False when it was dead already."""

    async def revoke_client_tokens(self, client_id: str, now: int, record: AuditRecord) -> int:
        """End every live grant of a client and raise its revocation epoch; returns how many grants there were."""

    async def add_machine_record(self, record: AuditRecord) -> None:
        """Store the record of a token that a machine got for itself."""

    async def revoke_machine_token(self, jti: str, now: int, *, ends_at: int, record: AuditRecord) -> bool:
        """End a token of a machine before its time; False when it was revoked before."""

    async def is_machine_token_revoked(self, *jtis: str) -> bool:
        """Whether one of these tokens was revoked."""

    async def spend_assertion(self, digest: bytes, client_id: str, now: int, *, ends_at: int) -> bool:
        """Store the ID of a client's assertion until it expires: of any number of callers one gets True."""


class ConsentStore(Protocol):
    async def consent(self, user_id: str, client_id: str) -> Consent | None:
        """Return what this person has allowed this client so far."""

    async def consents(self, user_id: str, now: int) -> Sequence[tuple[Consent, Client]]:
        """Return a person's consents, and grants without one, for their account page; no removed clients.

        A client without a logo has that of its application.
        """

    async def grants_of_user(self, user_id: str, now: int) -> Sequence[GivenGrant]:
        """Return a person's live grants, at most 1,000, the newest first; codes that were not redeemed are none."""

    async def add_consent(self, consent: Consent, record: AuditRecord) -> None:
        """Add the scopes to what is allowed already; two windows at once lose nothing.

        Its end counts for all; scopes that were allowed for a shorter time are allowed no more.
        """

    async def withdraw_consent(self, user_id: str, client_id: str, now: int, record: AuditRecord) -> bool:
        """Delete the consent and revoke every grant of that person to that client, in one transaction."""


class DeviceStore(Protocol):
    async def create_request(self, request: DeviceRequest) -> bool:
        """Insert a new request; False when its user code is in use."""

    async def find_pending_request(self, user_code: str, now: int) -> DeviceRequest | None:
        """Return the pending request of a user code."""

    async def approve_request(
        self, user_code: str, grant: Grant, now: int, record: AuditRecord, *, consented: bool = False
    ) -> bool:
        """Approve the pending request and store its grant, together; False when it is no longer pending.

        `consented`: as in GrantStore.begin.
        """

    async def deny_request(self, user_code: str, now: int, record: AuditRecord) -> bool:
        """Refuse the pending request."""

    async def record_poll(self, digest: bytes, now: int) -> tuple[DeviceRequest | None, bool]:
        """Record a poll; return the request, and whether the poll came before its interval was over.

        An early one lengthens the interval by five seconds (RFC 8628 §3.5).
        """

    async def redeem_request(self, request: DeviceRequest, now: int, *, generation: int) -> GrantHolder | None:
        """Remove the approved request and return its live grant, once: of any number of callers one gets it."""


class PushedRequestStore(Protocol):
    async def add_pushed_request(self, request: PushedRequest, *, most: int) -> int:
        """Store the request; return 0, or the seconds until it can be stored.

        Of one client and source at most `most` are stored and unexpired at a time, with any number of concurrent
        callers.
        """

    async def find_pushed_request(self, digest: bytes, client_id: str, now: int) -> PushedRequest | None:
        """Return the unexpired request of this client."""

    async def take_pushed_request(self, digest: bytes, client_id: str, now: int) -> PushedRequest | None:
        """Remove the unexpired request of this client and return it: of any number of callers one gets it."""


class LogoutStore(Protocol):
    """Calls are stored in the transaction that ends one session or all sessions of an account (accounts/store.py).

    With one session its grants end, except those with offline access; with all sessions, all grants end.
    """

    async def claim_calls(self, now: int, *, most: int, lease: int) -> Sequence[LogoutCall]:
        """Claim the calls that are due; each belongs to one caller until its lease ends."""

    async def mark_delivered(self, call: LogoutCall, record: AuditRecord) -> None:
        """Remove a delivered call; without effect for a node that no longer holds it."""

    async def schedule_retry(self, call: LogoutCall, trouble: str, next_try_at: int) -> None:
        """Schedule the next try of a failed call; 0 for none."""

    async def give_up_call(self, call: LogoutCall, trouble: str, record: AuditRecord) -> None:
        """Give up a failed call; it stays stored for the operator."""


# What OAuth needs of other packages; `app/services/oauth.py` provides it.


class AccessKeyLookup(Protocol):
    """Access keys of applications (interface §4.8)."""

    async def application_of(self, access_key: str, *, source: str) -> int:
        """Return the application of an access key. Raises InvalidToken; TooMany for a source that keeps guessing."""


FindAccount = Callable[[str], Awaitable[MachineAccount | None]]  # None unless the service account is live
# Takes the JWT of a service account, the caller's proven address and its name for throttles. Raises InvalidToken.
VerifyAccountJwt = Callable[[str, Address | None, str], Awaitable[MachineAccount]]


async def scope_texts(clients: ClientStore, scopes: Sequence[str]) -> tuple[str, ...]:
    """Return scopes as pages show them; those of an API that no live application declares stay as they are."""
    texts = await api_scope_texts(clients, scopes)
    return tuple(texts.get(scope, scope) for scope in scopes)


async def api_scope_texts(clients: ClientStore, scopes: Iterable[str]) -> Mapping[str, str]:
    """Return how pages show scopes of APIs: by their titles; access and `roles` and the like by the application."""
    resources = sorted({scope.rpartition(SCOPE_MARK)[0] for scope in scopes if SCOPE_MARK in scope})
    found = await asyncio.gather(*map(clients.find_api, resources))
    return {scope: text for api in found if api is not None for scope, text in api.scope_texts().items()}


async def find_api_in(clients: ClientStore, scopes: Sequence[str]) -> Api | None:
    """Return the API that the scopes of a grant are for; None for none, and when no live application declares it."""
    resource = resource_in(scopes)
    return await clients.find_api(resource) if resource else None


async def scopes_for_api(
    clients: ClientStore, client: Client, resource: str, *, own: Sequence[str], wanted: Collection[str]
) -> tuple[str, ...]:
    """Return the scopes of a grant for an API: `own` of this service, and the wanted ones of the API.

    `roles` and the like are about the application of the API, which the consent page names. A client that needs no
    consent gets them within its project only. Without an id_token none of the client's own application are needed.
    Raises InvalidTarget, InvalidScope.
    """
    api = await find_granted_api(clients, client, (f"{resource}{SCOPE_MARK}",))
    if api is None:
        return tuple(own)
    gets_application_scopes = not client.first_party or await _is_of_project(clients, client, api)
    application_scopes = {name for name in own if gets_application_scopes and name in APPLICATION_SCOPES}
    of_api = api.qualified_scopes(application_scopes.union(wanted) - (set(APPLICATION_SCOPES) - application_scopes))
    refuse_long_scope(plain_scope(scope) for scope in of_api)
    return (*(scope for scope in own if OPENID in own or scope not in APPLICATION_SCOPES), *of_api)


async def _is_of_project(clients: ClientStore, client: Client, api: Api) -> bool:
    """Whether client and API belong to one application, or to applications of one project."""
    if client.application_id is None or api.project_id is None:
        return client.application_id == api.application_id
    return api.project_id == await clients.project_of(client.application_id)


def refuse_long_scope(names: Iterable[str]) -> None:
    """Refuse more scopes than an access token has room for."""
    if len(" ".join(names)) > MAX_SCOPE_CLAIM:
        raise InvalidScope(f"the scopes of an API take more than {MAX_SCOPE_CLAIM} characters")


async def find_granted_api(clients: ClientStore, client: Client, scopes: Sequence[str]) -> Api | None:
    """Return the API that the scopes of a grant are for; None for none.

    Raises InvalidTarget when no live application declares it any more, or the client may not ask for it any more.
    """
    resource = resource_in(scopes)
    if not resource:
        return None
    api = await find_api_in(clients, scopes)
    if api is None or not api.admits_client_of_person(client):
        raise InvalidTarget(f"{client.client_id} may not ask for {resource}")
    return api


async def logo_path(clients: ClientStore, client: Client) -> str:
    """Return the path of the client's logo, or else of its application's; "" for none."""
    if client.logo or client.application_id is None:
        return image_path(client.logo)
    return image_path(await clients.application_logo(client.application_id))


# Whether the application of a client, and that of the API its tokens are for, still let a person in (R3, R9).


def deciding_applications(client: Client, api: Api | None) -> tuple[int, ...]:
    """Return the applications whose bans, login rules and terms count for a sign-in to the client."""
    return client.application_ids if api is None else (*client.application_ids, api.application_id)


async def may_log_in_to_client(rules: ApplicationAccess, user: User, client: Client, api: Api | None) -> bool:
    """`api`: the one that the tokens are for; None for tokens of this service."""
    return await rules.may_log_in(user, deciding_applications(client, api))
