"""Names, language, and everything the account page shows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from gatehouse.accounts.failed_sign_ins.model import FailedSignIn, FailedSignInStore
from gatehouse.accounts.field_checks import check_username
from gatehouse.accounts.model import OWN_FIELDS, User
from gatehouse.accounts.own_account.model import AccountActivity, AccountDetails, OwnAccountStore, PastSignIn
from gatehouse.accounts.profile_fields import apply_changes
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.fields.derive import changed_names
from gatehouse.images.loading import ImageLoader
from gatehouse.images.model import PICTURE
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import NotFound


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


MAX_FAILURES_SHOWN: Final = 100
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
        failures: FailedSignInStore,
    ) -> None:
        """`history_seconds`: how long the sign-in history goes back."""
        self._store = store
        self._images = images
        self._recorder = recorder
        self._clock = clock
        self._offers_usernames = offers_usernames
        self._history_seconds = history_seconds
        self._failures = failures

    @property
    def offers_usernames(self) -> bool:
        """Whether people may choose a user name."""
        return self._offers_usernames()

    async def load_details(self, user: User) -> AccountDetails:
        return await self._store.account_details(user.user_id, self._clock.now())

    async def load_sign_ins(self, user_id: str) -> Sequence[PastSignIn]:
        return await self._store.sign_in_history(user_id, self._clock.now() - self._history_seconds())

    async def load_failures(self, user_id: str) -> Sequence[FailedSignIn]:
        """Return the newest failed sign-ins of the history, by hour."""
        since = self._clock.now() - self._history_seconds()
        return await self._failures.failures_of_user(user_id, since, MAX_FAILURES_SHOWN)

    async def save(self, user: User, values: Mapping[str, str], origin: AuditOrigin) -> None:
        """Save the given fields of OWN_FIELDS; without changes nothing is recorded. Raises BadAccount."""
        after = apply_changes(user, {field.name: values[field.name] for field in OWN_FIELDS if field.name in values})
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
