"""Fields of an account, edited by an administrator: one save, one version, one audit record per kind of change."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from gatehouse.accounts.errors import UserChanged
from gatehouse.accounts.model import ACCOUNT_FIELDS, ADDRESS_CHANGED, JOINED_KEY, User
from gatehouse.accounts.own_account.model import OwnAccountStore
from gatehouse.accounts.profile_fields import AccountChanges, apply_changes, date_profile
from gatehouse.accounts.second_factors.model import Factor
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.fields.derive import changed_names
from gatehouse.fields.model import Kind
from gatehouse.images.loading import NewImage
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import MailTemplate, OutboxMail


class AccountEditor:
    def __init__(self, *, store: OwnAccountStore, composer: Composer, recorder: Recorder) -> None:
        self._store = store
        self._composer = composer
        self._recorder = recorder

    async def save(self, user: User, changes: AccountChanges, origin: AuditOrigin, *, version: int) -> None:
        """Save these fields if the account has this version; a save without changes records nothing.

        Raises BadAccount, UserChanged, LoginTaken and UsernameTaken. The 30 days of a user name do not apply.
        """
        if version != user.version:
            raise UserChanged
        after = with_address_origin(user, apply_changes(user, changes))
        changed = changed_names(user, after, ACCOUNT_FIELDS)
        if changed:
            moved = after.login_key != user.login_key
            mails = (
                *(self._old_address_notice(user, origin) if moved else ()),
                *self._phone_notices(user, after, origin),
            )
            entries = tuple(self._audit_records(user, after, changed, origin))
            dated = date_profile(user, after, entries[0].at)
            picture: NewImage = changes.get("picture")
            await self._store.change_account(dated, entries, mails, ends_links=moved, picture=picture or None)

    def _audit_records(
        self, before: User, after: User, changed: Sequence[str], origin: AuditOrigin
    ) -> Iterator[AuditRecord]:
        """Yield the general event, and the specific one for tags and purchases."""
        described = [field for field in ACCOUNT_FIELDS if field.name in changed]
        yield self._recorder.record(
            AuditEvent.USER_CHANGED,
            origin,
            subject=after.user_id,
            details={"fields": ", ".join(changed)},
            personal={field.name: field.value_of(after) or "" for field in described if field.field.is_personal},
        )
        labels = {
            field.name: ", ".join(sorted(field.value_of(after))) for field in described if field.kind is Kind.LABELS
        }
        if labels:
            yield self._recorder.record(AuditEvent.USER_TAGS_SAVED, origin, subject=after.user_id, details=labels)
        if before.phone_code and not after.phone_code:
            details = {"factor": Factor.PHONE.value}
            yield self._recorder.record(AuditEvent.FACTOR_REMOVED, origin, subject=after.user_id, details=details)

    def _old_address_notice(self, user: User, origin: AuditOrigin) -> Iterator[OutboxMail]:
        """Yield the email that tells the old address about the change, as when the owner changes it."""
        if user.login is not None:
            yield self._composer.compose(
                MailTemplate.EMAIL_CHANGED_OLD, to=user.login, lang=user.lang, address=origin.address, device=""
            )

    def _phone_notices(self, user: User, after: User, origin: AuditOrigin) -> Iterator[OutboxMail]:
        """Yield emails about a verified number that is released, as when the owner removes it."""
        if user.login is None or not user.phone_verified or (after.phone_verified and after.phone == user.phone):
            return
        yield self._composer.compose(
            MailTemplate.PHONE_REMOVED, to=user.login, lang=user.lang, address=origin.address, device=""
        )
        if user.phone_code:
            yield self._composer.compose(
                MailTemplate.FACTOR_REMOVED,
                to=user.login,
                lang=user.lang,
                address=origin.address,
                device="",
                factor=Factor.PHONE.value,
            )


def with_address_origin(user: User, after: User) -> User:
    """Return the account after a change by an administrator, who vouches for an address that they set (R10).

    An address that no one proved by email before stays one, whatever they say about it in between.
    """
    is_withdrawn = user.email_verified and not after.email_verified
    if after.login_key == user.login_key and (after.unproved_origin or not is_withdrawn):
        return after
    return replace(after, meta={**after.meta, JOINED_KEY: ADDRESS_CHANGED})
