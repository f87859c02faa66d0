"""What a person's dealings with his own account need kept."""

from collections.abc import Sequence
from typing import Protocol

from gatehouse.accounts.model import EmailLink, SignInMethod, User
from gatehouse.accounts.own.model import AccountDetails, ApplicationData, EmailChange, PersonalRecords
from gatehouse.audit.model import AuditRecord
from gatehouse.mail.model import OutboxMail


class ProfileStore(Protocol):
    async def account_details(self, user_id: str, now: int) -> AccountDetails:
        """What is kept beside the account; the newest ACTS_SHOWN records only."""

    async def set_nick(self, user_id: str, nick: str, entry: AuditRecord) -> None:
        """Raises UserNotFound."""

    async def set_lang(self, user_id: str, lang: str, entry: AuditRecord) -> None:
        """Raises UserNotFound."""


class EmailChangeStore(Protocol):
    async def user_by_login(self, login_key: str) -> User | None:
        """Return the account whose login has this spelling."""

    async def save_email_change(
        self, owner: User, link: EmailLink, login: str, entry: AuditRecord, mails: Sequence[OutboxMail]
    ) -> None:
        """Keep the link, bound to the account, its present address and the new one; an older one dies with it."""

    async def find_email_change(self, digest: bytes, now: int) -> EmailChange | None:
        """What the link would change now; takes nothing.

        None when it was taken, replaced or never was, when it has expired, and when the account is gone, has
        another address than it had, or had its sessions ended: whoever is thrown out leaves no way back.
        """

    async def apply_email_change(
        self, digest: bytes, change: EmailChange, entry: AuditRecord, mails: Sequence[OutboxMail], now: int
    ) -> None:
        """Take the link and give the account its new address, confirmed, in one act; its other links die.

        Raises LinkDead, also when somebody else has that address by now. Of any number of callers one succeeds.
        """


class PasswordChangeStore(Protocol):
    async def set_password(
        self,
        user: User,
        password_hash: str,
        entry: AuditRecord,
        mails: Sequence[OutboxMail],
        *,
        keep: bytes,
        now: int,
    ) -> None:
        """Replace the password and end every link, token and session but `keep`, in one act.

        Raises UserChanged when the account's sessions were ended since it was read: whoever was thrown out
        meanwhile sets no password.
        """


class ReauthenticationStore(Protocol):
    async def rotate_session_secret(
        self, digest: bytes, fresh: bytes, auth: SignInMethod, entry: AuditRecord, now: int
    ) -> bool:
        """Give a session another secret and note that its owner has just proved himself, in one act.

        False, and nothing recorded, when it has ended: a session that was ended is never revived.
        """


class ExportStore(Protocol):
    async def personal_records(self, user_id: str, now: int) -> PersonalRecords:
        """All of it, every record included, as it was at one moment."""

    async def add_record(self, record: AuditRecord) -> None:
        """Keep the record of an act that changes nothing else."""


class ApplicationDataSource(Protocol):
    async def collect(self, user_id: str) -> Sequence[ApplicationData]:
        """Hand over what applications have answered about the person since they were asked; each answer once."""


class ErasureStore(Protocol):
    async def erase_user(self, user_id: str, entry: AuditRecord, *, even_last_administrator: bool, now: int) -> None:
        """Remove the account and all that is kept of the person; its id stays spent.

        Applications that have addresses for it are told to do the same, from the same commit on (R6).
        Audit records about it stay, without their personal parts, and the chain still holds. Raises UserNotFound;
        and LastAdministrator, also when the last two go at the same moment.
        """
