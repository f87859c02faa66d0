"""What accounts store."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from gatehouse.accounts.address_proofs.model import HeldMethods, ProofNotices, ProvingBrowser
from gatehouse.accounts.bans.model import UserBan
from gatehouse.accounts.errors import EmailCodeWrong
from gatehouse.accounts.model import (
    EmailLink,
    EmailSignInProof,
    EmailSignInRequest,
    LinkKind,
    OpenLink,
    PendingRegistrationRecord,
    SetupLink,
    User,
)
from gatehouse.accounts.session_model import LoginToken, LoginTokenRecord, Session, ShortTokenOwner, UserSession
from gatehouse.audit.model import AuditRecord
from gatehouse.images.model import StoredImage
from gatehouse.mail.model import OutboxMail
from gatehouse.tokens.claims import PermissionClaims


class AccountStore(Protocol):
    async def create_user(
        self, user: User, record: AuditRecord, *, administrator: bool = False, picture: StoredImage | None = None
    ) -> None:
        """Store a new account under an ID that was never used and a free login, with its picture, all or nothing.

        With `administrator` it has that role of application 1 from the same transaction on, and setup is closed. Of
        two callers racing for one login, user name or ID exactly one succeeds; the other gets LoginTaken,
        UsernameTaken or UserIdTaken.
        """

    async def user(self, user_id: str) -> User:
        """Return the account. Raises UserNotFound."""

    async def user_by_login(self, login: str) -> User | None:
        """Return the account with this login: in its exact spelling, else in its canonical one."""

    async def user_by_username(self, username: str) -> User | None:
        """Return the account that has this user name now."""

    async def replace_password_hash(self, user_id: str, old: str, new: str) -> None:
        """Store the new hash if the old one is still stored, so that a concurrent password change wins."""

    async def password_hashes(self, after: str, limit: int) -> Mapping[str, str]:
        """Return the hashes of the next accounts that have one, by user ID and in its order."""

    async def hash_kinds(self) -> str | None:
        """Return what `set_hash_kinds` stored last."""

    async def set_hash_kinds(self, value: str) -> None:
        """Store how many accounts have a hash of each kind."""

    async def set_blocked(
        self, user_id: str, record: AuditRecord, *, blocked: bool, now: int, even_last_administrator: bool = False
    ) -> User:
        """Block or unblock; blocking raises `rev` in the same transaction, so that every token ends.

        `rev` grows with every call, also when the clock was set back. Raises UserNotFound, and LastAdministrator
        when no administrator would be left, also when the last two are blocked concurrently.
        """

    async def set_labels(
        self,
        user_id: str,
        record: AuditRecord,
        *,
        tags: frozenset[str] | None = None,
        purchases: frozenset[str] | None = None,
    ) -> User:
        """Replace the account's tags, purchases or both; None keeps the current ones. Raises UserNotFound."""

    async def add_record(self, record: AuditRecord) -> None:
        """Store the audit record of an action that changes nothing else."""

    async def put_setup_link(self, link: SetupLink, record: AuditRecord, *, keep_unused: bool = False) -> bool:
        """Store the link and end older ones. Raises SetupClosed once an administrator was created.

        With `keep_unused`, an older link that can still be used stays instead, and the answer is False.
        """

    async def setup_is_closed(self) -> bool:
        """True forever once the first administrator was created, even after their removal (LG-27)."""

    async def setup_link_is_open(self, digest: bytes, now: int) -> bool:
        """Return whether the link can be used, without using it."""

    async def complete_setup(self, digest: bytes, user: User, records: Mapping[str, AuditRecord], now: int) -> None:
        """Use the link, create the first administrator and close setup, in one transaction.

        Of any number of callers on any number of nodes exactly one succeeds. Raises SetupLinkDead or SetupClosed,
        and then nothing is changed. `records` holds the entries `created` and `closed`.
        """


class SessionStore(Protocol):
    async def open_session(
        self, session: Session, entry: AuditRecord, *, replaces: bytes | None, mails: Sequence[OutboxMail] = ()
    ) -> Session:
        """Store the session and end the one it replaces in the same transaction (LG-01).

        Returns the stored session: one that replaces a session of the same person takes over its ID, by which
        clients know it. When it replaces another person's session, the client grants of that session end and the
        clients are notified.
        """

    async def find_session(self, digest: bytes, now: int) -> UserSession | None:
        """Return the session and its account, unless it has ended, idled out, or was revoked or blocked."""

    async def update_last_seen(self, digest: bytes, now: int, idle_ends_at: int) -> None:
        """Record the last use; the later of two times wins."""

    async def end_session(self, user_id: str, session_id: str, entry: AuditRecord) -> bool:
        """End one session of that user; False, with nothing recorded, when there is none with that ID."""

    async def sessions_of_user(self, user_id: str, now: int) -> Sequence[Session]:
        """Return the user's live sessions, the last seen first."""

    async def revoke_user(self, user_id: str, entry: AuditRecord, *, keep: bytes | None, now: int) -> int:
        """Raise the account's rev, which ends every session, login token and user JWT, and return the new one.

        The session `keep`, if any, is carried over in the same transaction. Raises UserNotFound.
        """


class EmailLinkStore(Protocol):
    async def find_link(self, kind: LinkKind, digest: bytes, now: int) -> OpenLink | None:
        """Return the link and the account that it would open now, without using it.

        None when the link was used, replaced by a newer one, has expired or never existed, and when the account is
        gone, blocked, or has another address than the one the link was mailed to.
        """

    async def user_by_login(self, login: str) -> User | None:
        """Return the account with this login: in its exact spelling, else in its canonical one."""

    async def send_link(self, owner: User, link: EmailLink, entry: AuditRecord, mails: Sequence[OutboxMail]) -> None:
        """Store the link, bound to the account and its address, and end older links of its kind."""

    async def simulate_send(
        self, placeholder: User, link: EmailLink, entry: AuditRecord, mails: Sequence[OutboxMail]
    ) -> None:
        """Run every step of `send_link` and leave nothing that can be found or read.

        Used for addresses without an account, so that the response time does not reveal them (LG-05).
        """

    async def create_with_link(
        self,
        user: User,
        link: EmailLink,
        entry: AuditRecord,
        mails: Sequence[OutboxMail],
        pending: PendingRegistrationRecord | None = None,
    ) -> None:
        """Store a new account, the link that will verify its address, and what its browser waits for.

        Raises LoginTaken or UserIdTaken, and then nothing is changed.
        """

    async def renew_registration(
        self,
        known: User,
        link: EmailLink,
        entry: AuditRecord,
        mails: Sequence[OutboxMail],
        pending: PendingRegistrationRecord,
    ) -> None:
        """Store a new link of an account that was registered again with its password, now in this browser."""

    async def record_repeated_registration(
        self, known: User, entry: AuditRecord, mails: Sequence[OutboxMail], pending: PendingRegistrationRecord
    ) -> None:
        """End the links that would verify the account's address and change nothing else of the account."""

    async def find_registration(self, browser: bytes, now: int) -> tuple[str, bytes] | None:
        """Return the user ID and the sealed content of the registration that waits in this browser."""

    async def try_registration_code(
        self, browser: bytes, typed: str, code_of: Callable[[bytes], str], now: int
    ) -> bytes | EmailCodeWrong | None:
        """Return the digest of the account's open link if `code_of` makes the typed code of it, using nothing up.

        Wrong codes count: None after MAX_EMAIL_CODE_TRIES, and without a registration in this browser.
        """

    async def held_methods(self, user_id: str, now: int) -> HeldMethods:
        """Return what is stored beside the account of how it can be entered."""

    async def verify_email(
        self, digest: bytes, password_hash: str | None, browser: ProvingBrowser, notices: ProofNotices, now: int
    ) -> None:
        """Use the link and mark the address it was mailed to as verified, in one transaction. Raises LinkDead.

        The first proof ends what the browser did not prove (methods_that_end); `notices` makes records and emails.
        With `password_hash` the password is replaced. Of any number of callers exactly one succeeds, and only while
        the account still has that address.
        """

    async def accept_invitation(
        self,
        digest: bytes,
        browser: ProvingBrowser,
        notices: ProofNotices,
        now: int,
        *,
        nick: str,
        password_hash: str,
        lang: str,
    ) -> None:
        """Use the link, set nick, first password and language, and mark the address as verified, as `verify_email`.

        A link that was shown proves nothing: the address stays as it was, and nothing ends. Raises LinkDead, also
        when the account has got a password in the meantime.
        """

    async def reset_password(
        self, digest: bytes, password_hash: str, browser: ProvingBrowser, notices: ProofNotices, now: int
    ) -> None:
        """Use the link, replace the password and mark the address as verified, as `verify_email`.

        Every session, login token, user JWT and other link of the account ends with it. Of any number of callers
        exactly one succeeds. A link that was shown does not verify the address. Raises LinkDead.
        """

    async def save_email_request(
        self, request: EmailSignInRequest, entry: AuditRecord | None, mails: Sequence[OutboxMail], *, discards: bool
    ) -> None:
        """Store the browser's request, which replaces its earlier one, and queue the emails.

        With `discards` the emails are deleted in the same transaction. All calls take the same time, with and
        without an account (LG-05).
        """

    async def find_email_request(self, browser: bytes, link: bytes, now: int) -> bytes | None:
        """Return the sealed purpose of the browser's request if it can be used with this link, without using it."""

    async def use_email_request(self, proof: EmailSignInProof, now: int, *, keeps: bool = False) -> bytes:
        """Use the request and return its sealed purpose: of any number of callers, by code or link, one gets it.

        With `keeps` a right answer uses nothing up. Raises EmailCodeWrong, which counts, and EmailSignInGone, also
        after MAX_EMAIL_CODE_TRIES wrong codes.
        """

    async def verify_by_email(
        self, user_id: str, login_key: str, browser: ProvingBrowser, notices: ProofNotices, now: int
    ) -> User:
        """Mark the address that the account still has as verified, end its links and return the account.

        The first proof ends what the browser did not prove, in the same transaction. Raises EmailSignInGone if the
        account was blocked or has another address.
        """


class LoginStore(Protocol):
    async def save_login(self, login: LoginTokenRecord, entry: AuditRecord) -> bool:
        """Store tokens and record in one transaction; False, with nothing stored, if the account was revoked."""

    async def live_login_token(self, digest: bytes, now: int) -> LoginToken | None:
        """Return the `token` of login data (R1), unless it ended, or its user is blocked, banned or revoked it."""

    async def find_short_token_owner(self, digest: bytes, address: str, now: int) -> ShortTokenOwner | None:
        """Return the owner, as of the time of issue, of a token that can still be used from that address."""

    async def take_short_token(self, digest: bytes, address: str, now: int) -> ShortTokenOwner | None:
        """Return the same and use the token: of any number of callers one gets it; another address uses nothing."""


class ApplicationAccess(Protocol):
    """Decisions of `permissions` that a login needs."""

    async def may_log_in(self, user: User, application_ids: Sequence[int]) -> bool:
        """Return whether the login rules of all these applications admit the user (R5); unknown ones do not.

        A ban from any of them, or from the installation, admits no one either.
        """

    async def find_ban_from(
        self, user: User, application_ids: Sequence[int], device_bans: tuple[UserBan, ...] = ()
    ) -> UserBan | None:
        """Return the ban of the user from any of these applications, or from the installation (R10).

        `device_bans`: those of the device that the user signs in on.
        """

    async def has_protected_role(self, user: User) -> bool:
        """Return whether the user holds a protected role or rule of application 1."""

    async def service_application(self, service_jwt: str) -> int:
        """Return the application of this service JWT. Raises InvalidToken."""

    async def permissions(self, user: User, application_id: int) -> PermissionClaims | None:
        """Return the user's permissions for their JWT; None when there is no such application."""

    async def shares_email(self, application_id: int, secret: str) -> bool:
        """Return whether this secret lets the application see login emails (R1)."""
