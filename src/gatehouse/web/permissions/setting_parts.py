"""The parts of `settings` as the API answers them and the console shows them; loaded with the first of both."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from gatehouse.admin.key_strip import Bar, Picture, Strip
from gatehouse.admin.model.paging import wanted
from gatehouse.admin.model.settings import MailServer, OutboxLine, SettingLine
from gatehouse.keys.rotation import DAY
from gatehouse.permissions.rights.actor import Actor
from gatehouse.web.branding import Swatch
from gatehouse.web.installation import Condition, Installation, InstallationDesk, Post
from gatehouse.web.permissions.moments import moment
from gatehouse.web.permissions.settings import (
    AnyPart,
    BrandingPart,
    ColourEntry,
    ConfigurationPart,
    EmailPart,
    HealthPart,
    KeyEntry,
    KeyLineEntry,
    KeysPart,
    LetterEntry,
    PartData,
    PoliciesPart,
    PolicyEntry,
    RiskEntry,
    RisksPart,
    ServerEntry,
    SettingEntry,
)


class SettingParts:
    def __init__(self, desk: InstallationDesk) -> None:
        self._desk = desk

    async def part(self, actor: Actor, asked: PartData) -> AnyPart:
        match asked.part:
            case "configuration" | "branding" | "policies" | "risks":
                return SETTLED[asked.part](self._desk.settled(actor))
            case "health":
                return health(await self._desk.condition(actor))
            case "keys":
                return keys(await self._desk.keys.picture(actor), every=self._desk.keys.policy.every)
            case "email":
                return email(await self._desk.post(actor, wanted("", asked.page, size=asked.limit)))


def configuration(installation: Installation) -> ConfigurationPart:
    return ConfigurationPart(settings=settings(installation.lines))


def branding(installation: Installation) -> BrandingPart:
    shown = installation.swatches if installation.accent else ()
    return BrandingPart(settings=settings(installation.branding), colours=tuple(map(colour, shown)))


def policies(installation: Installation) -> PoliciesPart:
    every = (PolicyEntry(name=one.name, settings=settings(one.lines)) for one in installation.policies)
    return PoliciesPart(policies=tuple(every))


def risks(installation: Installation) -> RisksPart:
    return RisksPart(
        risks=tuple(
            RiskEntry(name=one.name, serious=one.serious, setting=one.setting, value=installation.value(one.setting))
            for one in installation.risks
        )
    )


def health(found: Condition) -> HealthPart:
    return HealthPart(
        status=found.report.status,
        checks=found.report.checks,
        version=found.installation.version,
        started=moment(found.installation.opened_at),
        database="SQLite" if found.installation.on_sqlite else "PostgreSQL",
        database_version=found.database.version,
        megabytes=found.megabytes,
        schema=found.installation.schema,
        workers=found.installation.workers,
        python=found.python,
        sealed=found.seal.place if found.seal else 0,
        sealed_at=moment(found.seal.at) if found.seal else "",
        unsealed_since=moment(found.unsealed_since),
    )


def keys(picture: Picture, *, every: int) -> KeysPart:
    return KeysPart(rotate_days=every // DAY, lines=tuple(map(key_line, picture.strips)))


def email(found: Post) -> EmailPart:
    return EmailPart(
        server=server(found.server) if found.server.host else None,
        waiting=found.waiting.waiting,
        given_up=found.waiting.given_up,
        oldest=moment(found.waiting.oldest_at),
        trouble=found.waiting.trouble,
        letters=tuple(map(letter, found.found.rows)),
        total=found.found.total,
        page=found.found.number,
        pages=found.found.last,
    )


def settings(lines: Iterable[SettingLine]) -> tuple[SettingEntry, ...]:
    return tuple(
        SettingEntry(name=one.name, value=one.value, unit=one.unit, meaning=one.meaning, source=one.source)
        for one in lines
    )


def colour(swatch: Swatch) -> ColourEntry:
    return ColourEntry(
        theme=swatch.theme,
        use=swatch.use,
        colour=str(swatch.shown),
        contrast=round(swatch.contrast, 1),
        adapted=swatch.is_adapted,
    )


def key_line(strip: Strip) -> KeyLineEntry:
    return KeyLineEntry(purpose=strip.line.purpose, alg=strip.line.alg, keys=tuple(map(key, strip.bars)))


def key(bar: Bar) -> KeyEntry:
    return KeyEntry(
        kid=bar.kid,
        state=bar.state,
        published=moment(bar.created_at),
        signs_from=moment(bar.signs_from),
        signs_until=moment(bar.signs_until),
        verifies_until=moment(bar.verifies_until),
    )


def server(mail: MailServer) -> ServerEntry:
    return ServerEntry(
        host=mail.host, port=mail.port, security=mail.security, username=mail.username, sender=mail.sender
    )


def letter(line: OutboxLine) -> LetterEntry:
    return LetterEntry(
        mail_id=line.mail_id,
        letter=line.template,
        written=moment(line.created_at),
        tries=line.tries,
        next_try=moment(line.next_try_at),
        trouble=line.trouble,
    )


SETTLED: Final[Mapping[str, Callable[[Installation], AnyPart]]] = {
    "configuration": configuration,
    "branding": branding,
    "policies": policies,
    "risks": risks,
}
