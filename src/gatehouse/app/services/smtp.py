"""The mail server that is configured."""

from gatehouse.mail.delivery import Sender, SmtpSecurity, SmtpServer
from gatehouse.mail.smtp import SmtpTransport
from gatehouse.settings.model import Settings


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
