"""Records, errors and the store of a person's own account."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from gatehouse.accounts.address_proofs.model import ProvingBrowser
from gatehouse.accounts.bans.model import Ban
from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.failed_sign_ins.model import FailedSignIn
from gatehouse.accounts.merge import GuestUpgrade
from gatehouse.accounts.model import (
    EmailLink,
    EnabledMethods,
    Identity,
    ProvidedLabel,
    ProvidedLabels,
    ProviderAnswer,
    SignInMethod,
    User,
    login_key,
)
from gatehouse.accounts.second_factors.model import Factor, FactorOverview, Passkey
from gatehouse.accounts.session_model import Session
from gatehouse.accounts.terms.model import AcceptedVersion
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.images.model import StoredImage
from gatehouse.kernel.errors import Conflict, Refused
from gatehouse.mail.model import OutboxMail


class SameAddress(BadAccount):
    """The new address is the current one."""


class LastAdministrator(Conflict):
    public = "This is the last administrator. Make someone else an administrator first."


class SessionEnded(Refused):
    """The session was ended elsewhere during reauthentication."""

    public = "This session has ended; sign in again."


class NothingToProve(Refused):
    """The account has neither a password nor a factor to reauthenticate with."""

    public = "This account has no password and no second factor. Set a password by email first."


# What is stored about a person beside the account itself.


MAX_ACTIVITY_SHOWN: Final = 50
AGENT_KEY: Final = "agent"  # of the browser, in the personal part of a sign-in's audit record


class AccountDetails(Struct, frozen=True, kw_only=True):
    """Everything the account page shows, from one read."""

    overview: FactorOverview
    passkeys: Sequence[Passkey]  # the oldest first
    sessions: Sequence[Session]  # live ones, the last seen first
    records: Sequence[AuditRecord]  # about this account, the newest first
    pending_login: str  # a new address that is not verified yet
    identities: Sequence[Identity]  # the oldest first
    labels: Sequence[ProvidedLabel]


class PastSignIn(Struct, frozen=True, kw_only=True):
    """One line of the sign-in history, which is read from the audit log."""

    at: int
    auth: str  # of SignInMethod
    application: str  # its name, if a game or service signed the person in
    address: str
    agent: str  # of a browser


class AssignedRole(Struct, frozen=True, kw_only=True):
    application_id: int
    role: str
    project_id: str  # "" at the root
    ends_at: int  # 0 for no end


class ConsentedClient(Struct, frozen=True, kw_only=True):
    """What a person allowed a third-party client to see."""

    client_id: str
    scopes: Sequence[str]
    given_at: int
    ends_at: int  # 0 for no end


class ClientSignIn(Struct, frozen=True, kw_only=True):
    """A sign-in to a client whose tokens may still be valid, or were until recently."""

    client_id: str
    scopes: Sequence[str]
    created_at: int
    ends_at: int
    revoked_at: int


class ApplicationData(Struct, frozen=True, kw_only=True):
    """What an application reports to store about a person."""

    application_id: int
    application: str
    answered_at: int
    document: bytes  # JSON, as received


class SiteSignInRecord(Struct, frozen=True, kw_only=True):
    """A session of the person on a protected site."""

    origin: str
    created_at: int
    ends_at: int


class StoredView(Struct, frozen=True, kw_only=True):
    """A search of a list in the console that the person saved."""

    list: str
    name: str
    query: str


class HeldOnObject(Struct, frozen=True, kw_only=True):
    """A role or a permission of the person on an object of an application."""

    application_id: int
    object_key: str
    item: str  # the role, or the permission
    value: bool
    ends_at: int


class PersonalRecords(Struct, frozen=True, kw_only=True):
    """Everything stored about a person, for the export."""

    details: AccountDetails
    roles: Sequence[AssignedRole]
    objects: Sequence[HeldOnObject]
    allowed: Sequence[ConsentedClient]
    sign_ins: Sequence[ClientSignIn]
    sites: Sequence[SiteSignInRecord]
    bans: Sequence[Ban]  # also ended and lifted ones
    terms: Sequence[AcceptedVersion]
    failures: Sequence[FailedSignIn]
    views: Sequence[StoredView]
    former_ids: Sequence[str]  # IDs that ended when a guest was upgraded or merged


def may_remove_password(*, passkeys: int, identities: int, email_verified: bool) -> bool:
    """Whether an account can be without a password: with a passkey, and another sign-in method if that is lost."""
    return passkeys > 0 and (passkeys > 1 or identities > 0 or email_verified)


class EmailChange(Struct, frozen=True, kw_only=True):
    """A new address for an account, which is set once access to that mailbox is proved."""

    owner: User
    login: str
    session_id: str  # of the session that asked

    def may_be_proved_in(self, browser: ProvingBrowser) -> bool:
        """Return whether the browser has the session that asked, or one of the account with a second factor (R10).

        Otherwise the owner of the new address could give it to a stranger's account with one careless click.
        """
        session = browser.session
        return session is not None and (session.session_id == self.session_id or session.has_second_factor)

    @property
    def new_key(self) -> str:
        return login_key(self.login)


class AccountActivity(Struct, frozen=True, kw_only=True):
    """One line of the activity list."""

    at: int
    event: str
    address: str


class ReauthenticationMethods(Struct, frozen=True, kw_only=True):
    """What reauthentication asks for, the same as the person's sign-in, but for a phone."""

    password: bool
    factors: tuple[Factor, ...]  # one of them, if any
    lacks_factor: bool = False  # the sign-in asks for a factor, and none of them counts here

    @property
    def is_empty(self) -> bool:
        return not self.password and not self.factors

    @property
    def can_be_typed(self) -> bool:
        """False when a passkey is the only second factor: then the password alone is not enough."""
        if self.lacks_factor:
            return False
        return not self.factors or any(factor is not Factor.PASSKEY for factor in self.factors)


class ReauthenticationInput(SecretRecord, frozen=True, kw_only=True):
    password: SecretText = ""
    otp: SecretText = ""
    credential: SecretText = ""  # of a passkey, which is sufficient alone


class ReauthenticationClient(Struct, frozen=True, kw_only=True):
    """The client that reauthenticates."""

    source: str  # as rate limits count it
    device_cookie: str  # if the browser sent one
    browser: bytes  # digest of a secret that only this browser has
    device: str  # "Firefox, Linux"
    origin: AuditOrigin


class AddressRelease(Struct, frozen=True, kw_only=True):
    """What is done to an account that has the verified address of a new one unverified."""

    record: Callable[[str], AuditRecord]  # of the loss, by the ID of that account
    by_username: bool  # people may sign in with a user name and a password


class OwnAccountStore(Protocol):
    async def account_details(self, user_id: str, now: int) -> AccountDetails:
        """Return what is stored beside the account, with the newest MAX_ACTIVITY_SHOWN audit records only."""

    async def sign_in_history(self, user_id: str, after: int) -> Sequence[PastSignIn]:
        """Return the newest MAX_ACTIVITY_SHOWN sign-ins of the person after that time."""

    async def personal_records(self, user_id: str, now: int) -> PersonalRecords:
        """Return everything stored about the person, every audit record included, from one snapshot."""

    async def add_record(self, record: AuditRecord) -> None:
        """Store the audit record of an action that changes nothing else."""

    async def user_by_login(self, login: str) -> User | None:
        """Return the account with this login: in its exact spelling, else in its canonical one."""

    async def set_lang(self, user_id: str, lang: str, entry: AuditRecord) -> None:
        """Set the language. Raises UserNotFound."""

    async def set_profile(self, after: User, entry: AuditRecord) -> None:
        """Replace the fields of OWN_FIELDS. Raises UserNotFound."""

    async def set_username(self, user_id: str, username: str, entry: AuditRecord, *, chosen_before: int) -> None:
        """Give the account a user name that no other account has or ever had, also under races.

        Raises UsernameTaken, UserNotFound, and UsernameChangedRecently unless the current one was generated or was
        chosen at this time or before. An account may take a former name of its own again.
        """

    async def generate_username(self, user_id: str, candidates: Sequence[str], entry: AuditRecord) -> str | None:
        """Return the account's user name; if it has none, give it the first free candidate, or none if all are taken.

        Of concurrent callers one stores a name and all return it. Raises UserNotFound.
        """

    async def set_picture(self, user_id: str, image: StoredImage | None, entry: AuditRecord) -> None:
        """Replace the picture, or remove it; the former one is deleted. Raises UserNotFound."""

    async def change_account(
        self,
        user: User,
        entries: Sequence[AuditRecord],
        mails: Sequence[OutboxMail],
        *,
        ends_links: bool,
        picture: StoredImage | None = None,
    ) -> None:
        """Replace the account if its version has not changed, all or nothing.

        `picture`: a new one, which the account names by its ID; that of an account that names none is deleted. With
        `ends_links` every link mailed before stops working. Raises UserChanged, LoginTaken and UsernameTaken.
        """

    async def save_email_change(
        self, change: EmailChange, link: EmailLink, entry: AuditRecord, mails: Sequence[OutboxMail]
    ) -> None:
        """Store the link, bound to the account, its current address and the new one, and end an older link."""

    async def find_email_change(self, digest: bytes, now: int) -> EmailChange | None:
        """Return what the link would change now, without using the link.

        None when the link was used, replaced, has expired or never existed, and when the account is gone, has another
        address than before, or had its sessions ended: an attacker who was signed out keeps no link to come back.
        """

    async def apply_email_change(
        self, digest: bytes, change: EmailChange, entry: AuditRecord, mails: Sequence[OutboxMail], now: int
    ) -> None:
        """Use the link and give the account its new, verified address in one transaction; its other links end.

        Raises LinkDead, also when another account has that address by now. Of any number of callers one succeeds.
        """

    async def set_password(
        self,
        user: User,
        password_hash: str,
        entry: AuditRecord,
        mails: Sequence[OutboxMail],
        *,
        keep: bytes,
        proved: Sequence[str],
        now: int,
    ) -> None:
        """Replace the password and end every link, token and session but `keep`, in one transaction.

        `proved`: what that session was made with from now on.

        Raises UserChanged when the account's sessions were ended since it was read: a client that was signed out in
        the meantime sets no password.
        """

    async def rotate_session_secret(
        self,
        digest: bytes,
        fresh: bytes,
        auth: SignInMethod,
        entry: AuditRecord,
        now: int,
        *,
        proved: Sequence[str],
        second_factor: str = "",
    ) -> bool:
        """Give a session a new secret and record that its owner has just reauthenticated, in one transaction.

        False, with nothing recorded, when it has ended: an ended session is never revived.
        """

    async def erase_user(self, user_id: str, entry: AuditRecord, *, even_last_administrator: bool, now: int) -> None:
        """Delete the account and everything stored about the person; its ID is never used again.

        The same transaction queues the removal calls to applications that have addresses for them (R6). Audit
        records about the account stay, without their personal parts, and the chain stays valid. Raises UserNotFound,
        and LastAdministrator, also when the last two are erased at the same time. Active bans stay as digests (R14).
        """

    async def user_by_identity(self, issuer: str, subject: str) -> User | None:
        """Return the account that the identity belongs to."""

    async def create_with_identity(
        self, user: User, identity: Identity, entry: AuditRecord, *, release: AddressRelease | None = None
    ) -> None:
        """Store a new account and its identity, all or nothing. Raises IdentityTaken, LoginTaken and UserIdTaken.

        With `release` a self-registered account that has the same address unverified and holds nothing loses it;
        without another sign-in method it ends, and is erased later (R10). Of any number of callers with
        one identity exactly one succeeds. Raises PersonBanned when the person is banned from the installation under
        another account; other bans of theirs are copied (R14).
        """

    async def link_identity(
        self, identity: Identity, entry: AuditRecord, mails: Sequence[OutboxMail], *, rev: int
    ) -> None:
        """Add the identity to its account. Raises IdentityTaken, TooManyIdentities and UserNotFound.

        Raises UserChanged when the account is blocked or has another epoch than `rev`: its sessions have ended.
        Bans that match the identity are copied to the account (R14).
        """

    async def unlink_identity(
        self,
        user_id: str,
        issuer: str,
        subject: str,
        entry: AuditRecord,
        mails: Sequence[OutboxMail],
        *,
        methods: EnabledMethods,
        keep: str | None = None,
    ) -> None:
        """Remove the identity and what it brought.

        Raises IdentityNotFound, and LastSignInMethod, also when two are removed at once.

        `methods`: that they can sign in with now. With `keep`, every session that was made with the identity ends,
        except the one of that ID. Active bans keep a digest of the identity (R14).
        """

    async def remove_password(
        self, user: User, entry: AuditRecord, mails: Sequence[OutboxMail], *, methods: EnabledMethods
    ) -> None:
        """Remove the password if the account has a passkey and a second passkey, an identity or a verified address.

        `methods`: that they can sign in with now. Raises LastSignInMethod otherwise, and UserChanged when there is
        none or the account's sessions were ended.
        """

    async def record_identity_use(
        self, identity: Identity, answer: ProviderAnswer, record: Callable[[str], AuditRecord]
    ) -> User:
        """Store when and under which label it was used, and the tags and purchases that the provider says.

        What people and other identities gave the account stays. `record`: of a change, by the ID of the account; it
        may be another one, which had the identity before and loses a kept tag. Returns the account. Raises
        UserNotFound.
        """

    async def find_sources(self, rules: Mapping[str, ProvidedLabels]) -> bool:
        """Find identities for some tags and purchases of before sources were stored; True if there may be more.

        It is done once for an installation, with the rules of that time.
        """

    async def end_labels_without_rule(
        self, rules: Mapping[str, ProvidedLabels], record: Callable[[str, str], AuditRecord]
    ) -> bool:
        """End some tags and purchases that no rule of their provider sets any more; True if there may be more.

        `record`: by the IDs of account and provider. A tag whose rule keeps it now, or no longer, follows the rule.
        """

    async def use_ticket(self, digest: bytes, now: int, ends_at: int) -> bool:
        """Mark a ticket as used until it ends. Of any number of callers one gets True, the others False."""

    async def save_provider_request(self, digest: bytes, details: Mapping[str, str], now: int, ends_at: int) -> None:
        """Store a request to a provider by the digest of its state."""

    async def take_provider_request(self, digest: bytes, now: int) -> Mapping[str, str] | None:
        """Return the request and use it: of any number of callers one gets it."""

    # Guests (R10).

    async def use_challenge(self, digest: bytes, now: int, ends_at: int) -> bool:
        """Record that a challenge was used; False if it was used before, at any node."""

    async def is_retired_key(self, subject: str) -> bool:
        """Return whether the key belonged to a guest who has an account now."""

    async def find_guest(self, subject: str) -> User | None:
        """Return the guest of a device key."""

    async def is_merge(self, upgrade: GuestUpgrade) -> bool:
        """Return True if the guest would be merged into the account, False if it would be upgraded."""

    async def complete_upgrade(
        self,
        upgrade: GuestUpgrade,
        records: Callable[[bool, Sequence[str]], Sequence[AuditRecord]],
        mails: Callable[[bool], Sequence[OutboxMail]],
        now: int,
    ) -> bool:
        """Upgrade or merge the guest, retire the device key and confirm the game session, in one transaction.

        Returns whether it was a merge; `records` and `mails` get the same, `records` also what was dropped. An active
        ban of either refuses a merge. Of any number of callers with one guest,
        at any nodes, exactly one succeeds. Raises GuestNotUpgraded, MergeBanned.
        """

    async def account_of_former_id(self, former_id: str, now: int) -> str | None:
        """Return the account that has this former ID, for 90 days."""

    async def erase_lost_accounts(self, before: int, record: Callable[[str], AuditRecord], now: int) -> int:
        """Erase some accounts that lost their address and ended by then, each with the record of its ID.

        Returns how many. An account that an administrator unblocked or gave another address stays.
        """

    async def erase_idle_guests(self, idle_since: int, record: Callable[[str], AuditRecord], now: int) -> int:
        """Erase some guests that have not signed in since then, each with the record of its ID; return how many.

        Guests with an active ban stay, so that no one waits for a ban to be forgotten, and so do those with a role of
        application 1. A guest who signs in at the same time is kept or gets a new account.
        """


class ApplicationDataSource(Protocol):
    async def collect(self, user_id: str) -> Sequence[ApplicationData]:
        """Return the applications' new answers about the person, each once."""
