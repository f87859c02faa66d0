"""Settings in the console, composed."""

from collections.abc import Mapping, Sequence
from typing import Final

from gatehouse import __version__
from gatehouse.admin.keys import KeyOffice
from gatehouse.admin.model.settings import MailServer, Policy, SettingLine
from gatehouse.admin.risks import risks
from gatehouse.app.house import House, rotation_policy
from gatehouse.app.people import People
from gatehouse.app.posture import posture
from gatehouse.app.readiness import checks
from gatehouse.kernel.colours import Colour
from gatehouse.keys.jwks import KeySetPublisher
from gatehouse.settings.entries import ENTRIES
from gatehouse.settings.showing import cell, shown
from gatehouse.storage.admin.settings import InstallationReads
from gatehouse.storage.migrations import HEAD
from gatehouse.web.branding import OURS, swatches
from gatehouse.web.console.desk import ConsoleDesk
from gatehouse.web.console.screens import Screen
from gatehouse.web.console.settings import Installation, SettingScreens
from gatehouse.web.console.settings_keys import KeyScreens
from gatehouse.web.health import Readiness

POLICIES: Final[Mapping[str, Sequence[str]]] = {  # sections, or single settings of one
    "passwords": ("passwords", "accounts.breached_passwords"),
    "registration": ("accounts.registration", "accounts.allowed_domains"),
    "sessions": ("sessions",),
    "tokens": ("tokens", "oauth", "keys"),
    "rates": ("rates", "game"),
    "audit": ("audit",),
}


def setting_screens(house: House, them: People, desk: ConsoleDesk) -> list[Screen]:
    storage = house.storage
    keys = KeyOffice(
        store=storage.keys,
        rotation=house.rotation,
        keyring=house.keyring,
        policy=rotation_policy(house.settings),
        clock=house.clock,
    )
    screens = SettingScreens(
        installation=installation(house),
        reads=InstallationReads(storage.runner),
        outbox=storage.mail,
        audit=storage.audit,
        readiness=Readiness(checks(storage, house.keyring, house.clock), clock=house.clock),
        composer=them.composer,
        postman=house.postman,
        desk=desk,
    )
    publisher = KeySetPublisher(keyring=house.keyring, clock=house.clock)
    return [*KeyScreens(office=keys, publisher=publisher, desk=desk).screens(), *screens.screens()]


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
