"""The headers of a sent message, and attempts to inject into them."""

from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default as modern

import msgspec
import pytest

from gatehouse.mail.delivery import SmtpSecurity, SmtpServer
from gatehouse.mail.model import MailTemplate
from gatehouse.mail.smtp import error_text, to_email_message
from tests.support.clock import MovableClock
from tests.support.mail import SENDER, TO, a_mail, a_message


def parsed_message(template: MailTemplate = MailTemplate.VERIFY, lang: str = "de") -> EmailMessage:
    """The message as the recipient's program parses it."""
    original = a_message(MovableClock(), template, lang=lang)
    message = message_from_bytes(to_email_message(a_mail(mail_id="m1"), original, SENDER).as_bytes(), policy=modern)
    assert isinstance(message, EmailMessage)
    return message


def test_a_message_is_from_us_to_one_person_and_names_its_kind() -> None:
    message = parsed_message()
    assert message["From"] == "Gatehouse <gatehouse@studio.example>"
    assert message["To"] == TO
    assert message["Subject"] == "Bestätigen Sie Ihre E-Mail-Adresse"
    assert message["Date"] == "Fri, 15 Jan 2027 08:00:00 +0000"
    assert message["Message-ID"] == "<m1@studio.example>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Content-Language"] == "de"
    assert message["Bcc"] is None


@pytest.mark.parametrize("lang", ["en", "de"])
@pytest.mark.parametrize("template", MailTemplate)
def test_text_and_html_arrive_as_they_were_written(template: MailTemplate, lang: str) -> None:
    original = a_message(MovableClock(), template, lang=lang)
    message = parsed_message(template, lang)
    assert message.get_content_type() == "multipart/alternative"
    text, html = message.iter_parts()
    assert isinstance(text, EmailMessage)
    assert isinstance(html, EmailMessage)
    assert text.get_content().splitlines() == original.text.splitlines()
    assert html.get_content().splitlines() == original.html.splitlines()


@pytest.mark.parametrize("field", ["to", "subject"])
@pytest.mark.parametrize("smuggled", ["\r\nBcc: eve@evil.example", "\nX: y", "\rX: y"])
def test_a_line_break_never_gets_into_a_header(field: str, smuggled: str) -> None:
    original = a_message(MovableClock())
    forged = msgspec.structs.replace(original, **{field: getattr(original, field) + smuggled})
    with pytest.raises(ValueError, match="may not contain linefeed"):
        to_email_message(a_mail(), forged, SENDER)


def test_trouble_is_one_bounded_line_that_does_not_name_the_recipient() -> None:
    words = error_text(OSError(f"550 <{TO}>:\r\n  " + "x" * 900), redacted=TO)
    assert words.startswith("550 <(recipient)>: xxx")
    assert len(words) == 200
    assert error_text(TimeoutError()) == "timeout"


def test_the_password_of_the_server_is_in_no_repr() -> None:
    server = SmtpServer(
        host="mail", port=587, security=SmtpSecurity.TLS, timeout=1, username="u", password="hidden-word"
    )
    assert "hidden-word" not in repr(server)
