"""What administrators see of the installation itself, composed; loaded with the first who looks."""

from collections.abc import Mapping, Sequence
from typing import Final

from gatehouse import __version__
from gatehouse.admin.keys import KeyAdmin
from gatehouse.admin.model.settings import MailServer, SettingGroup, SettingListItem
from gatehouse.admin.risks import find_risks
from gatehouse.app.house import Services, rotation_policy
from gatehouse.app.posture import posture
from gatehouse.audit.head import HeadCodec
from gatehouse.kernel.colours import Color
from gatehouse.settings.entries import ALL_SETTINGS
from gatehouse.settings.showing import display_line, display_value
from gatehouse.storage.admin.settings import InstallationReadStorage
from gatehouse.storage.migrations import HEAD
from gatehouse.web.branding import DEFAULT_ACCENT, swatches
from gatehouse.web.health import Readiness
from gatehouse.web.installation import Installation, InstallationReader
from gatehouse.web.permissions.setting_parts import SettingParts

POLICIES: Final[Mapping[str, Sequence[str]]] = {  # sections, or single settings of one
    "passwords": ("passwords", "accounts.breached_passwords"),
    "registration": ("accounts.registration", "accounts.allowed_domains"),
    "sessions": ("sessions",),
    "tokens": ("tokens", "oauth", "keys"),
    "rates": ("rates", "game"),
    "audit": ("audit",),
}


def setting_parts(services: Services, readiness: Readiness) -> SettingParts:
    return SettingParts(installation_admin(services, readiness))


def installation_admin(services: Services, readiness: Readiness) -> InstallationReader:
    storage = services.storage
    return InstallationReader(
        installation=installation(services),
        reads=InstallationReadStorage(storage.runner),
        outbox=storage.mail,
        audit=storage.audit,
        box=HeadCodec(services.masters),
        readiness=readiness,
        keys=KeyAdmin(
            store=storage.keys,
            rotation=services.key_rotation,
            keyring=services.keyring,
            policy=rotation_policy(services.settings),
            clock=services.clock,
        ),
    )


def installation(services: Services) -> Installation:
    settings = services.settings
    lines = [setting_line(services, name) for name in ALL_SETTINGS]
    return Installation(
        version=__version__,
        opened_at=services.opened_at,
        on_sqlite=settings.database.url.is_sqlite,
        schema=HEAD,
        workers=settings.server.workers,
        mail=MailServer(
            host=settings.mail.host,
            port=settings.mail.port,
            security=settings.mail.security,
            username=settings.mail.username,
            sender=settings.mail.from_address,
            is_shown=services.mail_is_logged,
        ),
        lines=lines,
        policies=[SettingGroup(name=name, lines=lines_in_sections(lines, parts)) for name, parts in POLICIES.items()],
        risks=find_risks(posture(settings, dev=services.dev)),
        swatches=swatches(Color.parse(settings.branding.accent or DEFAULT_ACCENT)),
        branding=lines_in_sections(lines, ("branding", "mail.from_name")),
    )


def setting_line(services: Services, name: str) -> SettingListItem:
    about = ALL_SETTINGS[name].about
    return SettingListItem(
        name=name,
        value=display_line(display_value(services.settings, name)),
        unit="" if ALL_SETTINGS[name].is_secret else about.unit,
        meaning=about.meaning,
        source=services.setting_sources[name],
    )


def lines_in_sections(lines: Sequence[SettingListItem], sections: Sequence[str]) -> list[SettingListItem]:
    return [line for part in sections for line in lines if line.name == part or line.name.startswith(f"{part}.")]
