"""The audit record and the letter of a change, made together so that neither is forgotten (S-16)."""

from collections.abc import Sequence
from dataclasses import dataclass

from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.model import Factor
from gatehouse.audit.events import Event
from gatehouse.audit.model import Detail, Origin, Record
from gatehouse.audit.recorder import Recorder
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import Mail, Template


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    recorder: Recorder
    composer: Composer

    def added(self, factor: Factor, user: User, origin: Origin, device: str) -> tuple[Record, Sequence[Mail]]:
        record = self.record(Event.FACTOR_ADDED, user, origin, factor=factor.value)
        return record, self.mails(Template.FACTOR_ADDED, user, origin, device, factor=factor.value)

    def removed(
        self, factor: Factor, user: User, origin: Origin, device: str, reason: str = ""
    ) -> tuple[Record, Sequence[Mail]]:
        """`reason`: why somebody else than its owner removed it."""
        record = self.record(Event.FACTOR_REMOVED, user, origin, factor=factor.value, **because(reason))
        return record, self.mails(Template.FACTOR_REMOVED, user, origin, device, factor=factor.value)

    def record(self, event: Event, user: User, origin: Origin, **details: Detail) -> Record:
        return self.recorder.record(event, origin, subject=user.user_id, details=details)

    def mails(self, template: Template, user: User, origin: Origin, device: str, **values: str) -> Sequence[Mail]:
        """One letter to the account's address, if it has one."""
        if user.login is None:
            return ()
        told = {"address": origin.address, "device": device, **values}
        return (self.composer.compose(template, to=user.login, lang=user.lang, **told),)


def because(reason: str) -> dict[str, Detail]:
    return {"reason": reason} if reason else {}
