"""From the settings to whoever writes and carries the mail."""

from collections.abc import Callable

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.colours import Colour
from gatehouse.keys.sealing import MasterKeys
from gatehouse.mail.composer import Composer
from gatehouse.mail.delivery import Carrier, PrintingCarrier, Security, Sender, SmtpCarrier, SmtpServer
from gatehouse.mail.inks import OURS, inks_of
from gatehouse.mail.outbox import Postman
from gatehouse.mail.store import OutboxStore
from gatehouse.settings import Settings

Show = Callable[[str], object]


def composer(settings: Settings, *, masters: MasterKeys, clock: Clock) -> Composer:
    accent = settings.branding.accent
    return Composer(
        sealing=masters,
        base_url=settings.server.base_url,
        name=settings.mail.from_name,
        clock=clock,
        inks=inks_of(Colour.parse(accent)) if accent else OURS,
    )


def postman(
    settings: Settings, *, store: OutboxStore, masters: MasterKeys, clock: Clock, show: Show | None
) -> Postman:
    return Postman(store=store, carrier=carrier(settings, show), sealing=masters, clock=clock)


def carrier(settings: Settings, show: Show | None) -> Carrier | None:
    """The configured server; without one whoever is shown all mail, which is for --dev only; or nobody."""
    if settings.mail.host:
        return smtp(settings)
    return None if show is None else PrintingCarrier(show)


def smtp(settings: Settings) -> SmtpCarrier:
    mail = settings.mail
    server = SmtpServer(
        host=mail.host,
        port=mail.port,
        security=Security(mail.security),
        timeout=mail.timeout_seconds,
        username=mail.username,
        password=mail.password.reveal(),
    )
    return SmtpCarrier(server, Sender(address=mail.from_address, name=mail.from_name))
