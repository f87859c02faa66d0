"""Every message in every language, without content that another person could inject."""

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis.strategies import from_regex

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.model import DOMAIN, LOCAL_PART, check_login
from gatehouse.accounts.second_factors.model import Factor
from gatehouse.kernel.graphics import Color
from gatehouse.languages import LANGUAGES
from gatehouse.mail import composer as composer_module
from gatehouse.mail.composer import MAX_VALUE_LENGTH, mail_brand, mail_language, theme_for_accent
from gatehouse.mail.model import (
    TEST_MESSAGE,
    TEXT_MESSAGE,
    BadMessage,
    MailTemplate,
    Message,
    NotMailable,
    is_mailable,
    mail_sealing_purpose,
)
from tests.support.clock import MovableClock
from tests.support.keys import master_keys
from tests.support.mail import BASE_URL, TO, VALUES, a_composer, a_message, values_of

LINK = f"{BASE_URL}{VALUES['path']}"
CAUSED_BY_STRANGERS = (
    MailTemplate.VERIFY,
    MailTemplate.ALREADY_REGISTERED,
    MailTemplate.RESET,
    MailTemplate.ACCOUNT_LOCKED,
)
EVERY_MESSAGE = pytest.mark.parametrize("template", MailTemplate)
EVERY_LANGUAGE = pytest.mark.parametrize("lang", LANGUAGES)


class Page(HTMLParser):
    """The words and URLs of an HTML message."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.addresses: list[str] = []
        self.tags: set[str] = set()
        self._styling = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._styling = tag in {"style", "title"}
        self.addresses += [value or "" for name, value in attrs if name in {"href", "src", "action", "background"}]

    def handle_endtag(self, _tag: str) -> None:
        self._styling = False

    def handle_data(self, data: str) -> None:
        if not self._styling:
            self.words += data.split()


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@EVERY_MESSAGE
@EVERY_LANGUAGE
def test_every_message_can_be_composed_in_every_language(
    clock: MovableClock, template: MailTemplate, lang: str
) -> None:
    message = a_message(clock, template, lang=lang)
    assert message.lang == lang
    assert message.subject
    assert "\n" not in message.subject
    assert f'<html lang="{lang}">' in message.html
    assert not re.search(r"[{}]{2}|Undefined|None", message.text)


@EVERY_MESSAGE
def test_the_german_letter_is_not_the_english_one(clock: MovableClock, template: MailTemplate) -> None:
    english, german = (a_message(clock, template, lang=lang) for lang in ("en", "de"))
    assert german.subject != english.subject
    shared = set(english.text.splitlines()) & set(german.text.splitlines())
    own = {"", "--", f"Gatehouse, {BASE_URL}", LINK, f"    {VALUES['code']}"}
    assert shared <= own, "not translated"


def test_every_language_has_exactly_the_known_message_templates() -> None:
    templates = Path(composer_module.__file__).parent / "templates"
    texts = {f"{template}.txt" for template in (TEXT_MESSAGE, TEST_MESSAGE)}
    wanted = {f"{template}.jinja" for template in MailTemplate} | {"words.jinja"} | texts
    assert {path.name for path in templates.iterdir() if path.is_dir()} == set(LANGUAGES)
    for lang in LANGUAGES:
        assert {path.name for path in (templates / lang).iterdir()} == wanted


@EVERY_MESSAGE
@EVERY_LANGUAGE
def test_text_and_html_of_a_message_have_the_same_words(
    clock: MovableClock, template: MailTemplate, lang: str
) -> None:
    message = a_message(clock, template, lang=lang)
    page = Page(message.html)
    for word in message.text.replace("--\n", "").split():
        assert word in page.words or word.removesuffix(":") in page.words, word


@EVERY_MESSAGE
@EVERY_LANGUAGE
def test_a_letter_fetches_nothing_and_leads_only_to_this_service(
    clock: MovableClock, template: MailTemplate, lang: str
) -> None:
    page = Page(a_message(clock, template, lang=lang).html)
    assert set(page.addresses) <= {BASE_URL, LINK}
    assert not page.tags & {"img", "script", "link", "iframe", "table", "form", "object", "video"}
    assert "url(" not in a_message(clock, template, lang=lang).html


@EVERY_MESSAGE
@EVERY_LANGUAGE
def test_a_letter_says_whose_it_is_and_what_to_do_about_it(
    clock: MovableClock, template: MailTemplate, lang: str
) -> None:
    text = a_message(clock, template, lang=lang).text
    own = {name: value for name, value in values_of(template).items() if name not in {"path", "factor", "ended"}}
    assert all(value in text for value in own.values())
    assert "login.studio.example" in text.partition("--\n")[0]
    assert TO in text.partition("--\n")[2]


@pytest.mark.parametrize("template", [one for one in MailTemplate if "path" in one.needs])
@EVERY_LANGUAGE
def test_the_link_stands_there_to_be_read_as_well(clock: MovableClock, template: MailTemplate, lang: str) -> None:
    message = a_message(clock, template, lang=lang)
    assert f"\n{LINK}\n" in message.text
    assert LINK in Page(message.html).words


@EVERY_LANGUAGE
@pytest.mark.parametrize("factor", Factor)
def test_every_factor_has_its_own_wording(clock: MovableClock, lang: str, factor: Factor) -> None:
    for template in (MailTemplate.FACTOR_ADDED, MailTemplate.FACTOR_REMOVED):
        other = next(one for one in Factor if one is not factor)
        assert (
            a_message(clock, template, lang=lang, factor=factor).text
            != a_message(clock, template, lang=lang, factor=other).text
        )


@EVERY_LANGUAGE
def test_the_last_recovery_codes_are_told_apart(clock: MovableClock, lang: str) -> None:
    messages = {
        a_message(clock, MailTemplate.RECOVERY_CODE_USED, lang=lang, left=left).text for left in ("0", "1", "2")
    }
    assert len(messages) == 3


@EVERY_LANGUAGE
def test_unknown_device_and_address_are_left_out(clock: MovableClock, lang: str) -> None:
    known = a_message(clock, MailTemplate.NEW_DEVICE, lang=lang)
    unknown = a_message(clock, MailTemplate.NEW_DEVICE, lang=lang, device="", address="")
    assert len(known.text.splitlines()) == len(unknown.text.splitlines()) + 2
    assert "2027-01-15 08:00 UTC" in unknown.text


@pytest.mark.parametrize(
    ("tag", "lang"), [("de", "de"), ("de-AT", "de"), ("DE_de", "de"), ("en-GB", "en"), ("fr", "en"), ("", "en")]
)
def test_people_are_written_to_in_their_language_or_in_english(tag: str, lang: str) -> None:
    assert mail_language(tag) == lang


def test_a_letter_is_kept_sealed_and_opens_under_its_own_name_only(clock: MovableClock) -> None:
    first, second = (
        a_composer(clock).compose(MailTemplate.RESET, to=TO, lang="en", **values_of(MailTemplate.RESET))
        for _ in range(2)
    )
    assert first.mail_id != second.mail_id
    assert (first.template, first.created_at) == ("reset", clock.now())
    assert b"token" not in first.sealed
    opened = msgspec.json.decode(
        master_keys().open(first.sealed, purpose=mail_sealing_purpose(first.mail_id)), type=Message
    )
    assert opened == a_message(clock, MailTemplate.RESET)
    with pytest.raises(Exception, match="authentication failed"):
        master_keys().open(first.sealed, purpose=mail_sealing_purpose(second.mail_id))


def test_markup_in_a_value_is_only_text(clock: MovableClock) -> None:
    message = a_message(clock, MailTemplate.NEW_DEVICE, device='<a href="https://evil.example">x</a>{{ 7 * 7 }}')
    assert "evil.example" not in "".join(Page(message.html).addresses)
    assert '<a href="https://evil.example">x</a>{{ 7 * 7 }}' in message.text.replace("\n", " ")


def test_a_value_is_one_line_of_bounded_length(clock: MovableClock) -> None:
    broken = a_message(clock, MailTemplate.NEW_DEVICE, device="Firefox\r\nBcc: eve@evil.example\x1b[31m\u202e")
    assert "Device: Firefox Bcc: eve@evil.example [31m" in re.sub(r" +", " ", broken.text)
    long = a_message(clock, MailTemplate.NEW_DEVICE, device="x" * 10_000)
    assert f"Device:\n{'x' * (MAX_VALUE_LENGTH - 1)}…\n" in long.text


@pytest.mark.parametrize(
    "to",
    [
        "anna@studio.example\r\nBcc: eve@evil.example",
        "anna@studio.example\n",
        "anna@studio.example, eve@evil.example",
        "Anna <anna@studio.example>",
        "anna@studio.example> SIZE=1",
        '"a b"@studio.example',
        "anna@studio.example\u2028",
        "an\u202ena@studio.example",
        "an\x00na@studio.example",
        "anna@",
        "@studio.example",
        "anna",
        "",
        f"{'a' * 250}@studio.example",
    ],
)
def test_only_a_single_plain_address_is_mailable(clock: MovableClock, to: str) -> None:
    assert not is_mailable(to)
    with pytest.raises(NotMailable):
        a_composer(clock).compose(MailTemplate.TEST, to=to, lang="en")


@pytest.mark.parametrize("to", [TO, "jörg@studio.example", "o'brien+games@mail.studio.example", "root@localhost"])
def test_ordinary_addresses_are_written_to(clock: MovableClock, to: str) -> None:
    assert a_composer(clock).render(MailTemplate.TEST, to=to, lang="en").to == to


@given(local=from_regex(LOCAL_PART, fullmatch=True), domain=from_regex(DOMAIN, fullmatch=True))
def test_every_valid_login_is_mailable(local: str, domain: str) -> None:
    try:
        login = check_login(f"{local}@{domain}")
    except BadAccount:
        return
    assert is_mailable(login)


@pytest.mark.parametrize(
    "path",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example/",
        "reset?token=x",
        "@evil.example/",
        ".evil.example/",
        "/reset?token=x\nhttps://evil.example",
        '/reset"onclick=',
        "/reset x",
        f"/{'x' * 1_000}",
        "",
    ],
)
def test_a_link_leads_to_this_service_or_there_is_no_letter(clock: MovableClock, path: str) -> None:
    with pytest.raises(BadMessage):
        a_message(clock, MailTemplate.RESET, path=path)


def test_a_letter_is_filled_with_exactly_what_it_needs(clock: MovableClock) -> None:
    composer = a_composer(clock)
    with pytest.raises(BadMessage, match="reset needs"):
        composer.compose(MailTemplate.RESET, to=TO, lang="en", path="/reset?token=x")
    with pytest.raises(BadMessage, match="test needs"):
        composer.compose(MailTemplate.TEST, to=TO, lang="en", nick="Anna")


def test_a_stranger_cannot_put_words_into_a_letter_to_someone_else() -> None:
    for template in CAUSED_BY_STRANGERS:
        assert template.needs <= {"path", "minutes", "address"}


def test_letters_wear_the_name_and_the_colour_of_the_installation(clock: MovableClock) -> None:
    theme = theme_for_accent(Color.parse("#ffd400"))
    composer = composer_module.Composer(
        sealer=master_keys(), base_url=BASE_URL, clock=clock, brand=lambda: mail_brand("Sky Studio", "#ffd400")
    )
    message = composer.render(MailTemplate.RESET, to=TO, lang="en", **values_of(MailTemplate.RESET))
    assert f"background:{theme.button};" in message.html
    assert f"color: {theme.link_dark} !important" in message.html
    assert message.html.count(f'style="color:{theme.link};"') == 2
    assert "Sky Studio" in message.html
    assert "Sky Studio" in message.text
