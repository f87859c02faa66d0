"""The parts of `settings` as the API returns them and the console shows them.

Loaded with the first request of either.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from gatehouse.accounts.phones.model import PhonesOff
from gatehouse.accounts.phones.text_messages import TextMessages, TextMessageStatus
from gatehouse.accounts.store import AccountStore
from gatehouse.admin.keys import KeyBar, KeyLineTimeline, KeyTimeline
from gatehouse.admin.paging import page_request
from gatehouse.admin.settings import MailServer, OutboxListItem, SettingListItem
from gatehouse.fields.derive import copy_as
from gatehouse.kernel.errors import NotFound
from gatehouse.kernel.times import iso8601
from gatehouse.keys.model import KeyLine, KeyPurpose, key_algorithm
from gatehouse.keys.rotation import DAY, RotationMode
from gatehouse.mail.model import Undelivered
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.web.api.permissions.installation import (
    Installation,
    InstallationReader,
    InstallationStatus,
    MailStatus,
    SaveSettings,
)
from gatehouse.web.api.permissions.settings import (
    AnySettingsPart,
    BrandingPart,
    ColorEntry,
    ConfigurationPart,
    EmailPart,
    HealthPart,
    KeyLineEntry,
    KeyRotationData,
    KeysPart,
    MailEntry,
    MailServerEntry,
    PartName,
    PhonePart,
    PoliciesPart,
    PolicyEntry,
    RiskEntry,
    RisksPart,
    SettingEntry,
    SettingsPartData,
    SigningKeyEntry,
    TestEmailPart,
    TestMessagePart,
)
from gatehouse.web.pages.branding import Swatch


class SettingParts:
    def __init__(
        self,
        installation: InstallationReader,
        *,
        save: SaveSettings,
        send_test: Callable[[str], Awaitable[None]],
        text_messages: TextMessages,
        accounts: AccountStore,
    ) -> None:
        """`send_test` sends a test email to a user ID."""
        self._text_messages = text_messages
        self._accounts = accounts
        self._installation = installation
        self._save = save
        self._send_test = send_test

    async def rotate_key(self, actor: Actor, asked: KeyRotationData) -> KeysPart:
        keys = self._installation.keys
        await keys.rotate(actor, parse_key_line(asked.purpose, asked.alg), ROTATION_MODES[asked.manner])
        return keys_part(await keys.timeline(actor), every=keys.policy.interval)

    async def send_test_email(self, actor: Actor) -> TestEmailPart:
        require_operation(actor.rights, Operation.ADMINISTER)
        try:
            await self._send_test(actor.user_id)
        except Undelivered as error:
            return TestEmailPart(sent=False, trouble=error.detail or error.public)
        return TestEmailPart(sent=True, trouble="")

    async def send_test_message(self, actor: Actor, phone: str) -> TestMessagePart:
        require_operation(actor.rights, Operation.ADMINISTER)
        try:
            await self._text_messages.send_test(await self._accounts.user(actor.user_id), phone)
        except Undelivered as error:
            return TestMessagePart(sent=False, trouble=error.detail or error.public)
        except PhonesOff as error:
            return TestMessagePart(sent=False, trouble=error.public)
        return TestMessagePart(sent=True, trouble="")

    async def save(self, actor: Actor, changes: Mapping[str, object]) -> ConfigurationPart:
        require_operation(actor.rights, Operation.ADMINISTER)
        await self._save(changes, actor.origin)
        return configuration_part(self._installation.installation(actor))

    async def part(self, actor: Actor, part: PartName, asked: SettingsPartData) -> AnySettingsPart:
        match part:
            case "configuration" | "branding" | "policies" | "risks":
                return STATIC_PARTS[part](self._installation.installation(actor))
            case "health":
                return health_part(await self._installation.status(actor))
            case "keys":
                return keys_part(
                    await self._installation.keys.timeline(actor), every=self._installation.keys.policy.interval
                )
            case "phone":
                require_operation(actor.rights, Operation.ADMINISTER)
                return phone_part(await self._text_messages.status())
            case "email":
                return email_part(
                    await self._installation.mail_status(actor, page_request("", asked.page, size=asked.limit))
                )


ROTATION_MODES: Final = {
    "planned": RotationMode.PLANNED,
    "at_once": RotationMode.AT_ONCE,
    "distrust": RotationMode.DISTRUST,
}


def parse_key_line(purpose: str, alg: str) -> KeyLine:
    try:
        return KeyLine(KeyPurpose(purpose), key_algorithm(alg))
    except ValueError:
        raise NotFound("no such keys") from None


def configuration_part(installation: Installation) -> ConfigurationPart:
    return ConfigurationPart(settings=setting_entries(installation.lines))


def branding_part(installation: Installation) -> BrandingPart:
    shown = installation.swatches if installation.accent else ()
    return BrandingPart(settings=setting_entries(installation.branding), colours=tuple(map(color_entry, shown)))


def policies_part(installation: Installation) -> PoliciesPart:
    every = (
        PolicyEntry(name=policy.name, settings=setting_entries(policy.lines)) for policy in installation.policies
    )
    return PoliciesPart(policies=tuple(every))


def risks_part(installation: Installation) -> RisksPart:
    return RisksPart(
        risks=tuple(
            RiskEntry(
                name=risk.name, serious=risk.serious, setting=risk.setting, value=installation.value(risk.setting)
            )
            for risk in installation.risks
        )
    )


def health_part(status: InstallationStatus) -> HealthPart:
    return HealthPart(
        status=status.report.status,
        checks=status.report.checks,
        version=status.installation.version,
        started=iso8601(status.installation.opened_at),
        database="SQLite" if status.installation.on_sqlite else "PostgreSQL",
        database_version=status.database.version,
        megabytes=status.megabytes,
        schema=status.installation.schema,
        workers=status.installation.workers,
        python=status.python,
        sealed=status.seal.place if status.seal else 0,
        sealed_at=iso8601(status.seal.at) if status.seal else "",
        unsealed_since=iso8601(status.unsealed_since),
    )


def keys_part(picture: KeyTimeline, *, every: int) -> KeysPart:
    return KeysPart(rotate_days=every // DAY, lines=tuple(map(key_line_entry, picture.strips)))


def email_part(status: MailStatus) -> EmailPart:
    return EmailPart(
        server=mail_server_entry(status.server) if status.server.host else None,
        waiting=status.waiting.waiting,
        given_up=status.waiting.given_up,
        oldest=iso8601(status.waiting.oldest_at),
        trouble=status.waiting.trouble,
        letters=tuple(map(mail_entry, status.mails.rows)),
        total=status.mails.total,
        page=status.mails.number,
        pages=status.mails.last,
    )


def phone_part(status: TextMessageStatus) -> PhonePart:
    return copy_as(PhonePart, status)


def setting_entries(lines: Iterable[SettingListItem]) -> tuple[SettingEntry, ...]:
    return tuple(copy_as(SettingEntry, line) for line in lines)


def color_entry(swatch: Swatch) -> ColorEntry:
    return ColorEntry(
        theme=swatch.theme,
        use=swatch.use,
        colour=str(swatch.accent_shade),
        contrast=round(swatch.contrast, 1),
        adapted=swatch.is_adapted,
    )


def key_line_entry(strip: KeyLineTimeline) -> KeyLineEntry:
    return KeyLineEntry(
        purpose=strip.line.purpose, alg=strip.line.alg, keys=tuple(map(signing_key_entry, strip.bars))
    )


def signing_key_entry(bar: KeyBar) -> SigningKeyEntry:
    return SigningKeyEntry(
        kid=bar.kid,
        alg=bar.alg,
        state=bar.state,
        published=iso8601(bar.created_at),
        signs_from=iso8601(bar.signs_from),
        signs_until=iso8601(bar.signs_until),
        verifies_until=iso8601(bar.verifies_until),
    )


def mail_server_entry(mail: MailServer) -> MailServerEntry:
    return copy_as(MailServerEntry, mail)


def mail_entry(line: OutboxListItem) -> MailEntry:
    return MailEntry(
        mail_id=line.mail_id,
        letter=line.template,
        written=iso8601(line.created_at),
        tries=line.tries,
        next_try=iso8601(line.next_try_at),
        trouble=line.trouble,
    )


STATIC_PARTS: Final[Mapping[str, Callable[[Installation], AnySettingsPart]]] = {
    "configuration": configuration_part,
    "branding": branding_part,
    "policies": policies_part,
    "risks": risks_part,
}
