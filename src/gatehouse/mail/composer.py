"""Renders email templates and seals the result.

Each email is one small file per language, rendered into two layouts, plain text and HTML, so that both say the
same.
"""

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Final, NamedTuple

import msgspec

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.graphics import BLACK, TEXT_CONTRAST, WHITE, Color, adjust_for_contrast
from gatehouse.kernel.sealing import SecretSealer
from gatehouse.kernel.text import is_plain_line, nfc
from gatehouse.kernel.web_urls import parse_web_url
from gatehouse.languages import LANGUAGES, plural_category
from gatehouse.mail.model import (
    TEST_MESSAGE,
    TEXT_MESSAGE,
    BadMessage,
    Channel,
    MailTemplate,
    Message,
    NotMailable,
    OutboxMail,
    is_mailable,
    mail_sealing_purpose,
)

# Backgrounds of links in templates/layout.html: the card and the page around it.
LIGHT_BACKGROUNDS: Final = (WHITE, Color.parse("#eef2f5"))
DARK_BACKGROUNDS: Final = (Color.parse("#1a2430"), Color.parse("#0f1720"))


class MailTheme(NamedTuple):
    link: Color = Color.parse("#1f66c1")
    link_dark: Color = Color.parse("#8ec5ea")
    button: Color = Color.parse("#1f66c1")  # under white text


DEFAULT_THEME: Final = MailTheme()


def theme_for_accent(accent: Color) -> MailTheme:
    return MailTheme(
        link=adjust_for_contrast(accent, LIGHT_BACKGROUNDS, min_ratio=TEXT_CONTRAST, towards=BLACK),
        link_dark=adjust_for_contrast(accent, DARK_BACKGROUNDS, min_ratio=TEXT_CONTRAST, towards=WHITE),
        button=adjust_for_contrast(accent, (WHITE,), min_ratio=TEXT_CONTRAST, towards=BLACK),
    )


class MailBrand(NamedTuple):
    """The service as emails show it."""

    name: str
    theme: MailTheme = DEFAULT_THEME


@lru_cache(maxsize=1)
def mail_brand(name: str, accent: str) -> MailBrand:
    return MailBrand(name, theme_for_accent(Color.parse(accent)) if accent else DEFAULT_THEME)


MAX_VALUE_LENGTH: Final = 200  # characters; some browsers have long names
# A path of this service without characters that a reader or a mail program could take for its end.
PATH: Final = re.compile(r"/(?![/\\])[A-Za-z0-9/._~?=&%-]{0,999}", re.ASCII)


class Composer:
    def __init__(
        self,
        *,
        sealer: SecretSealer,
        base_url: str,
        clock: Clock,
        brand: Callable[[], MailBrand],
        languages: Callable[[], Sequence[str]] = lambda: LANGUAGES,
    ) -> None:
        """`languages`: those to write in; the first one is for people with another."""
        self._languages = languages
        self._sealer = sealer
        self._base_url = base_url
        self._brand = brand
        self._clock = clock

    def compose(self, template: MailTemplate, *, to: str, lang: str, **values: str) -> OutboxMail:
        """Return the sealed email for the outbox. Raises NotMailable and BadMessage.

        `lang` may be any language tag. The value `path` becomes a link to this service; links to other hosts are
        impossible. Other values become one plain line each, shortened if necessary.
        """
        return self._seal_message(self.render(template, to=to, lang=lang, **values), template.value, Channel.EMAIL)

    def compose_text_message(self, *, to: str, lang: str, code: str) -> OutboxMail:
        """Return the sealed text message with a code; browsers fill in the code of the last line (WebOTP)."""
        address = parse_web_url(self._base_url)  # WebOTP names a host without its port
        return self._compose_text(TEXT_MESSAGE, to, lang, code=code, host=address.host if address else "")

    def compose_test_message(self, *, to: str, lang: str) -> OutboxMail:
        return self._compose_text(TEST_MESSAGE, to, lang)

    def _compose_text(self, template: str, to: str, lang: str, **values: str) -> OutboxMail:
        from gatehouse.mail.email_templates import jinja_environment  # noqa: PLC0415 - brings Jinja

        known = mail_language(lang, self._languages())
        found = jinja_environment(escaping=False).get_template(f"{known}/{template}.txt")
        text = found.render(name=clean_line(self._brand().name), **values)
        return self._seal_message(Message(to=to, subject="", text=text, html="", lang=known), template, Channel.TEXT)

    def _seal_message(self, message: Message, template: str, channel: Channel) -> OutboxMail:
        mail_id = secrets.token_hex(16)
        return OutboxMail(
            mail_id=mail_id,
            sealed=self._sealer.seal(msgspec.json.encode(message), purpose=mail_sealing_purpose(mail_id)),
            template=template,
            created_at=self._clock.now(),
            channel=channel,
        )

    def render(self, template: MailTemplate, *, to: str, lang: str, **values: str) -> Message:
        return self.render_with_brand(self._brand(), template, to=to, lang=lang, **values)

    def render_with_brand(
        self, brand: MailBrand, template: MailTemplate, *, to: str, lang: str, **values: str
    ) -> Message:
        from gatehouse.mail.email_templates import jinja_environment, subject_of  # noqa: PLC0415 - brings Jinja

        if not is_mailable(to):
            raise NotMailable
        if values.keys() != template.needs:
            raise BadMessage(f"{template} needs {sorted(template.needs)}, not {sorted(values)}")
        known = mail_language(lang, self._languages())
        context = self._context(to, known, values, brand)
        file = f"{known}/{template}.jinja"
        texts = jinja_environment(escaping=False)
        text = texts.get_template(file)
        context["words"] = texts.get_template(f"{known}/words.jinja").module
        return Message(
            to=to,
            subject=subject_of(text, context),
            text=text.render(context | {"layout": "layout.txt"}),
            html=jinja_environment(escaping=True).get_template(file).render(context | {"layout": "layout.html"}),
            lang=known,
        )

    def _context(self, to: str, lang: str, values: Mapping[str, str], brand: MailBrand) -> dict[str, object]:
        context: dict[str, object] = {key: clean_line(value) for key, value in values.items() if key != "path"}
        if "path" in values:
            context["link"] = self._link(values["path"])
        return context | {
            "to": to,
            "lang": lang,
            "plural": partial(plural_form, lang),
            "name": brand.name,
            "theme": brand.theme,
            "base_url": self._base_url,
            "service": self._base_url.partition("://")[2],
            "when": datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y-%m-%d %H:%M UTC"),
        }

    def _link(self, path: str) -> str:
        if not PATH.fullmatch(path):
            raise BadMessage("the path does not belong to this service")
        return f"{self._base_url}{path}"


def mail_language(tag: str, languages: Sequence[str] = LANGUAGES) -> str:
    """Return the language to write in for a language tag: de for de-AT, the first one for unsupported ones."""
    primary = tag.replace("_", "-").partition("-")[0].lower()
    return primary if primary in languages else languages[0]


def plural_form(lang: str, count: str, /, **forms: str) -> str:
    """Return one of the forms: `plural(minutes, one="minute", other="minutes")`."""
    return forms[plural_category(lang, int(count))]


def clean_line(value: str) -> str:
    """Return one plain line without control or invisible characters, because names are untrusted input."""
    line = "".join(character if is_plain_line(character) else " " for character in nfc(value[: MAX_VALUE_LENGTH + 1]))
    return line if len(line) <= MAX_VALUE_LENGTH else f"{line[: MAX_VALUE_LENGTH - 1]}…"
