"""From the settings to whoever writes and carries the mail."""

from collections.abc import Callable

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.colours import Color
from gatehouse.keys.sealing import MasterKeys
from gatehouse.mail.composer import Composer
from gatehouse.mail.delivery import MailTransport, PrintingTransport, Sender, SmtpSecurity, SmtpServer, SmtpTransport
from gatehouse.mail.inks import DEFAULT_THEME, theme_for_accent
from gatehouse.mail.outbox import OutboxWorker
from gatehouse.mail.store import OutboxStore
from gatehouse.settings import Settings

PrintMessage = Callable[[str], object]


def mail_composer(settings: Settings, *, masters: MasterKeys, clock: Clock) -> Composer:
    accent = settings.branding.accent
    return Composer(
        sealer=masters,
        base_url=settings.server.base_url,
        name=settings.mail.from_name,
        clock=clock,
        theme=theme_for_accent(Color.parse(accent)) if accent else DEFAULT_THEME,
    )


def outbox_worker(
    settings: Settings, *, store: OutboxStore, masters: MasterKeys, clock: Clock, print_with: PrintMessage | None
) -> OutboxWorker:
    return OutboxWorker(store=store, transport=mail_transport(settings, print_with), sealer=masters, clock=clock)


def mail_transport(settings: Settings, print_with: PrintMessage | None) -> MailTransport | None:
    """The configured server; without one whoever is shown all mail, which is for --dev only; or nobody."""
    if settings.mail.host:
        return smtp_transport(settings)
    return None if print_with is None else PrintingTransport(print_with)


def smtp_transport(settings: Settings) -> SmtpTransport:
    mail = settings.mail
    server = SmtpServer(
        host=mail.host,
        port=mail.port,
        security=SmtpSecurity(mail.security),
        timeout=mail.timeout_seconds,
        username=mail.username,
        password=mail.password.reveal(),
    )
    return SmtpTransport(server, Sender(address=mail.from_address, name=mail.from_name))
