"""What administrators see of the installation itself, composed; loaded with the first who looks."""

from collections.abc import Mapping, Sequence
from typing import Final

from gatehouse import __version__
from gatehouse.admin.keys import KeyOffice
from gatehouse.admin.model.settings import MailServer, Policy, SettingLine
from gatehouse.admin.risks import risks
from gatehouse.app.house import House, rotation_policy
from gatehouse.app.posture import posture
from gatehouse.audit.head import HeadBox
from gatehouse.kernel.colours import Colour
from gatehouse.settings.entries import ENTRIES
from gatehouse.settings.showing import cell, shown
from gatehouse.storage.admin.settings import InstallationReads
from gatehouse.storage.migrations import HEAD
from gatehouse.web.branding import OURS, swatches
from gatehouse.web.health import Readiness
from gatehouse.web.installation import Installation, InstallationDesk
from gatehouse.web.permissions.setting_parts import SettingParts

POLICIES: Final[Mapping[str, Sequence[str]]] = {  # sections, or single settings of one
    "passwords": ("passwords", "accounts.breached_passwords"),
    "registration": ("accounts.registration", "accounts.allowed_domains"),
    "sessions": ("sessions",),
    "tokens": ("tokens", "oauth", "keys"),
    "rates": ("rates", "game"),
    "audit": ("audit",),
}


def setting_parts(house: House, readiness: Readiness) -> SettingParts:
    return SettingParts(installation_desk(house, readiness))


def installation_desk(house: House, readiness: Readiness) -> InstallationDesk:
    storage = house.storage
    return InstallationDesk(
        installation=installation(house),
        reads=InstallationReads(storage.runner),
        outbox=storage.mail,
        audit=storage.audit,
        box=HeadBox(house.masters),
        readiness=readiness,
        keys=KeyOffice(
            store=storage.keys,
            rotation=house.rotation,
            keyring=house.keyring,
            policy=rotation_policy(house.settings),
            clock=house.clock,
        ),
    )


def installation(house: House) -> Installation:
    settings = house.settings
    lines = [line_of(house, name) for name in ENTRIES]
    return Installation(
        version=__version__,
        opened_at=house.opened_at,
        on_sqlite=settings.database.url.is_sqlite,
        schema=HEAD,
        workers=settings.server.workers,
        mail=MailServer(
            host=settings.mail.host,
            port=settings.mail.port,
            security=settings.mail.security,
            username=settings.mail.username,
            sender=settings.mail.from_address,
            is_shown=house.mail_is_shown,
        ),
        lines=lines,
        policies=[Policy(name=name, lines=chosen(lines, parts)) for name, parts in POLICIES.items()],
        risks=risks(posture(settings, dev=house.dev)),
        swatches=swatches(Colour.parse(settings.branding.accent or OURS)),
        branding=chosen(lines, ("branding", "mail.from_name")),
    )


def line_of(house: House, name: str) -> SettingLine:
    about = ENTRIES[name].about
    return SettingLine(
        name=name,
        value=cell(shown(house.settings, name)),
        unit="" if ENTRIES[name].is_secret else about.unit,
        meaning=about.meaning,
        source=house.sources[name],
    )


def chosen(lines: Sequence[SettingLine], parts: Sequence[str]) -> list[SettingLine]:
    return [line for part in parts for line in lines if line.name == part or line.name.startswith(f"{part}.")]
