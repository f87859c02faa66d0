"""The audit record and the email of a change, built together so that neither is missing (S-16)."""

from collections.abc import Sequence

from msgspec import Struct

from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.model import Factor
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord, Detail
from gatehouse.audit.recorder import Recorder
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import MailTemplate, OutboxMail


class AccountNotifier(Struct, frozen=True, kw_only=True):
    recorder: Recorder
    composer: Composer

    def factor_added(
        self, factor: Factor, user: User, origin: AuditOrigin, device: str
    ) -> tuple[AuditRecord, Sequence[OutboxMail]]:
        record = self.record(AuditEvent.FACTOR_ADDED, user, origin, factor=factor.value)
        return record, self.mails(MailTemplate.FACTOR_ADDED, user, origin, device, factor=factor.value)

    def factor_removed(
        self, factor: Factor, user: User, origin: AuditOrigin, device: str, reason: str = ""
    ) -> tuple[AuditRecord, Sequence[OutboxMail]]:
        """`reason` says why the factor was removed by someone other than its owner."""
        record = self.record(AuditEvent.FACTOR_REMOVED, user, origin, factor=factor.value, **reason_details(reason))
        return record, self.mails(MailTemplate.FACTOR_REMOVED, user, origin, device, factor=factor.value)

    def record(self, event: AuditEvent, user: User, origin: AuditOrigin, **details: Detail) -> AuditRecord:
        return self.recorder.record(event, origin, subject=user.user_id, details=details)

    def mails(
        self, template: MailTemplate, user: User, origin: AuditOrigin, device: str, **values: str
    ) -> Sequence[OutboxMail]:
        """Return one email to the account's address, if it has one."""
        if user.login is None:
            return ()
        needed = {"address": origin.address, "device": device, **values}
        return (self.composer.compose(template, to=user.login, lang=user.lang, **needed),)


def reason_details(reason: str) -> dict[str, Detail]:
    return {"reason": reason} if reason else {}
