"""The account page's actions: profile, password change, deletion, and the activity list."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from gatehouse.accounts.field_checks import check_username
from gatehouse.accounts.model import OWN_FIELDS, PASSWORD_PROOF, EnabledMethods, User, UserSession
from gatehouse.accounts.own_account.model import AccountActivity, AccountDetails, OwnAccountStore, PastSignIn
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.accounts.profile_fields import apply_changes
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.accounts.sign_in import PasswordAttempt, PasswordSignIn
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.fields.derive import changed_names
from gatehouse.images.loading import ImageLoader
from gatehouse.images.model import PICTURE
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import NotFound
from gatehouse.kernel.times import DAY
from gatehouse.mail.model import MailTemplate


def activity_of(records: Iterable[AuditRecord], user_id: str) -> tuple[AccountActivity, ...]:
    return tuple(
        AccountActivity(at=record.at, event=record.event, address=visible_address(record, user_id))
        for record in records
    )


def visible_address(record: AuditRecord, user_id: str) -> str:
    """Return the address of the action; the address of another person, an administrator, is hidden."""
    if record.actor.isdecimal() and record.actor != user_id:
        return ""
    return (record.personal or {}).get("address", "")


# Names, language, and everything the account page shows.


USERNAME_INTERVAL: Final = 30 * 86_400  # seconds between two user names that a person chooses (R9)


class AccountProfile:
    def __init__(
        self,
        *,
        store: OwnAccountStore,
        images: ImageLoader,
        recorder: Recorder,
        clock: Clock,
        offers_usernames: Callable[[], bool],
        history_seconds: Callable[[], int],
    ) -> None:
        """`history_seconds`: how long the sign-in history goes back."""
        self._store = store
        self._images = images
        self._recorder = recorder
        self._clock = clock
        self._offers_usernames = offers_usernames
        self._history_seconds = history_seconds

    @property
    def offers_usernames(self) -> bool:
        """Whether people may choose a user name."""
        return self._offers_usernames()

    async def load_details(self, user: User) -> AccountDetails:
        return await self._store.account_details(user.user_id, self._clock.now())

    async def load_sign_ins(self, user_id: str) -> Sequence[PastSignIn]:
        return await self._store.sign_in_history(user_id, self._clock.now() - self._history_seconds())

    async def save(self, user: User, given: Mapping[str, str], origin: AuditOrigin) -> None:
        """Save the given fields of OWN_FIELDS; without changes nothing is recorded. Raises BadAccount."""
        after = apply_changes(user, {one.name: given[one.name] for one in OWN_FIELDS if one.name in given})
        changed = changed_names(user, after, OWN_FIELDS)
        if changed:
            entry = self._audit_record(user, {name: getattr(after, name) for name in changed}, origin)
            await self._store.set_profile(after, entry)

    async def set_username(self, user: User, username: str, origin: AuditOrigin) -> None:
        """Set the user name. Raises BadAccount, UsernameTaken and UsernameChangedRecently; NotFound if turned off."""
        if not self.offers_usernames:
            raise NotFound("user names are turned off")
        checked = check_username(username)
        if checked == user.username:
            return
        entry = self._audit_record(user, {"username": checked}, origin)
        latest = self._clock.now() - USERNAME_INTERVAL
        await self._store.set_username(user.user_id, checked, entry, chosen_before=latest)

    async def set_picture(self, user: User, upload: bytes, origin: AuditOrigin) -> None:
        """Store the upload as the person's picture. Raises BadImage, TooMany, Unavailable."""
        image = await self._images.convert(upload, PICTURE, uploader=user.user_id)
        entry = self._audit_record(user, {"picture": image.image_id}, origin)
        await self._store.set_picture(user.user_id, image, entry)

    async def remove_picture(self, user: User, origin: AuditOrigin) -> None:
        if user.picture:
            await self._store.set_picture(user.user_id, None, self._audit_record(user, {"picture": ""}, origin))

    def _audit_record(self, user: User, changed: Mapping[str, str], origin: AuditOrigin) -> AuditRecord:
        return self._recorder.record(
            AuditEvent.PROFILE_CHANGED,
            origin,
            subject=user.user_id,
            details={"field": ", ".join(changed)},
            personal=changed,
        )

    async def set_language(self, user: User, lang: str, origin: AuditOrigin) -> None:
        """Set the language of pages and emails; the caller checks that it is supported."""
        entry = self._recorder.record(
            AuditEvent.PROFILE_CHANGED, origin, subject=user.user_id, details={"field": "lang", "lang": lang}
        )
        await self._store.set_lang(user.user_id, lang, entry)


# Change of the password by its owner, or the first password of an account without one.


class PasswordChange:
    def __init__(
        self,
        *,
        store: OwnAccountStore,
        sign_in: PasswordSignIn,
        passwords: Passwords,
        rules: PasswordRules,
        notifier: AccountNotifier,
        clock: Clock,
        methods: Callable[[], EnabledMethods],
    ) -> None:
        """`methods` returns what people can sign in with now."""
        self._methods = methods
        self._store = store
        self._sign_in = sign_in
        self._passwords = passwords
        self._rules = rules
        self._notifier = notifier
        self._clock = clock

    async def change_password(
        self,
        signed_in: UserSession,
        password: str,
        *,
        current_attempt: PasswordAttempt,
        origin: AuditOrigin,
        device: str,
    ) -> None:
        """Set the password, keep this session, end every other session and token, and notify the owner by email.

        The current password costs and counts like a sign-in attempt. Raises SignInRefused, TooMany, BadAccount for
        a password that breaks the rules, and UserChanged.
        """
        user = signed_in.user
        if user.password_hash is not None:
            await self._sign_in.verify_owner(user, current_attempt)
        await self._rules.check(password, user.login or "", user.nick)
        await self._store.set_password(
            user,
            await self._passwords.hash(password),
            self._notifier.record(AuditEvent.PASSWORD_CHANGED, user, origin, first=user.password_hash is None),
            self._notifier.mails(MailTemplate.PASSWORD_CHANGED, user, origin, device),
            keep=signed_in.session.digest,
            proved=signed_in.session.with_proofs(PASSWORD_PROOF),
            now=self._clock.now(),
        )

    async def remove_password(self, user: User, *, origin: AuditOrigin, device: str) -> None:
        """Remove the password of an account that has a passkey and another way to recover it; sessions stay.

        Raises LastSignInMethod and UserChanged.
        """
        entry = self._notifier.record(AuditEvent.PASSWORD_REMOVED, user, origin)
        mails = self._notifier.mails(MailTemplate.PASSWORD_REMOVED, user, origin, device)
        await self._store.remove_password(user, entry, mails, methods=self._methods())


# Deletion of an account: personal data is erased, the ID is never reused, the audit log stays complete (OP-14).


LOST_DAYS: Final = 30  # after which an account is erased that lost its address (R10)
MAX_BATCHES: Final = 50  # in one sweep


class Erasure:
    def __init__(self, *, store: OwnAccountStore, recorder: Recorder, clock: Clock) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock

    async def erase(self, user: User, origin: AuditOrigin, *, even_last_administrator: bool = False) -> None:
        """Erase the account with every session, token and link. Raises UserNotFound, LastAdministrator."""
        # Without the address, because this record is never erased.
        entry = self._recorder.record(AuditEvent.USER_ERASED, replace(origin, address=""), subject=user.user_id)
        await self._store.erase_user(
            user.user_id, entry, even_last_administrator=even_last_administrator, now=self._clock.now()
        )

    async def erase_lost(self, origin: AuditOrigin) -> None:
        """Erase accounts that lost their address LOST_DAYS ago and cannot be entered (R10), a few at a time."""

        def record(user_id: str) -> AuditRecord:
            return self._recorder.record(
                AuditEvent.USER_ERASED, replace(origin, address=""), subject=user_id, details={"reason": "lost email"}
            )

        now = self._clock.now()
        for _ in range(MAX_BATCHES):
            if not await self._store.erase_lost_accounts(now - LOST_DAYS * DAY, record, now):
                return
