"""Emails: how they look, and the worker that sends them."""

import sys
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from gatehouse.accounts.phones.message_call import SenderAccount
from gatehouse.app.services.core import Core, outbound_client
from gatehouse.app.services.policies import message_call
from gatehouse.languages import LANGUAGES
from gatehouse.mail.composer import Composer, mail_brand
from gatehouse.mail.delivery import MailTransport, PrintingTransport
from gatehouse.mail.model import Channel
from gatehouse.mail.outbox import OutboxWorker
from gatehouse.outbound.model import CallLimits
from gatehouse.settings.model import Settings
from gatehouse.web.pages.translations import language_policy

PrintMessage = Callable[[str], object]
TEXT_LIMITS: Final = CallLimits(total_seconds=10.0, body_bytes=65_536)


class MailServices(Struct, frozen=True, kw_only=True, eq=False):
    composer: Composer
    outbox: OutboxWorker
    text_outbox: OutboxWorker  # of text messages
    is_logged: Callable[[], bool]  # whether mail is printed: in development mode without a mail server


def build_mail(core: Core) -> MailServices:
    return MailServices(
        composer=Composer(
            sealer=core.masters,
            base_url=core.base_url,
            clock=core.clock,
            brand=lambda: mail_brand(core.settings.mail.from_name, core.settings.branding.accent),
            languages=lambda: language_policy(core.settings.languages).available(LANGUAGES),
        ),
        outbox=outbox_worker(core, print_message if core.dev else None),
        text_outbox=OutboxWorker(
            store=core.storage.mail,
            find_transport=lambda: text_transport(core),
            sealer=core.masters,
            clock=core.clock,
            channel=Channel.TEXT,
        ),
        is_logged=lambda: core.dev and not core.settings.mail.host,
    )


def outbox_worker(core: Core, print_with: PrintMessage | None) -> OutboxWorker:
    """A worker that prints mail with the given function where no mail server is configured."""
    return OutboxWorker(
        store=core.storage.mail,
        find_transport=lambda: mail_transport(core.settings, print_with),
        sealer=core.masters,
        clock=core.clock,
    )


def text_transport(core: Core) -> MailTransport | None:
    """The sender of text messages; without one they are printed in development mode."""
    wanted = core.settings.phone
    call = message_call(wanted)
    if call is None:
        return PrintingTransport(print_message) if core.dev else None
    from gatehouse.accounts.phones.sender import TextMessageTransport  # noqa: PLC0415 - most have no sender

    account = SenderAccount(account=wanted.account, secret=wanted.secret.reveal(), sender_id=wanted.sender_id)
    return TextMessageTransport(client=outbound_client(core.settings, TEXT_LIMITS), call=call, account=account)


def mail_transport(settings: Settings, print_with: PrintMessage | None) -> MailTransport | None:
    """The configured mail server; without one, the given printer; without that, none."""
    if settings.mail.host:
        from gatehouse.app.services.smtp import smtp_transport  # noqa: PLC0415 - many installations have no server

        return smtp_transport(settings)
    return None if print_with is None else PrintingTransport(print_with)


def print_message(text: str) -> None:
    sys.stderr.write(f"{text}\n")
