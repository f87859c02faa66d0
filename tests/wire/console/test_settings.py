"""Settings in the console: values in effect, their sources, and key rotation."""

import re
from html import unescape
from typing import Any, Final

import pytest

from gatehouse.audit.model import AuditOrigin
from gatehouse.keys.model import Algorithm, KeyLine, KeyPurpose, KeyState, key_state
from gatehouse.storage.migrations import HEAD
from gatehouse.web.pages.translations import load_languages
from tests.support.browser import form_to, hidden_fields
from tests.support.console import ADA, OLGA, PIA, SHOP, ConsoleBrowsers, post_form
from tests.support.service import RunningService
from tests.support.studio import FACTOR

HERE = "/console/settings"
ROTATE = f"{HERE}/keys/rotate"
ORIGIN = AuditOrigin(actor="test")
LINE = KeyLine(KeyPurpose.TOKENS, Algorithm.ES256)


async def states(studio: RunningService, line: KeyLine) -> list[KeyState]:
    keys = (await studio.services.storage.keys.load_keys()).keys
    return sorted(key_state(key, studio.clock.now()) for key in keys if key.line == line)


async def read_settings(studio: RunningService, data: dict[str, object]) -> Any:
    """Read settings over the API as Ada."""
    user = await studio.services.storage.accounts.user(ADA)
    jwt = await studio.services.accounts.user_tokens.issue(user, auth="login", factor=FACTOR)
    headers = {"Authorization": f"Bearer {jwt}", "Factor": FACTOR}
    ask = {"action": "get", "data": data}
    response = await studio.client.post("/api/permissions/settings", json=ask, headers=headers)
    return response.json()["data"]


def is_refused_at(field: str, page: str) -> bool:
    return re.search(rf'name="{field}"[^>]*aria-invalid="true"', page) is not None


async def test_keys_are_drawn_and_rotated_in_three_manners(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    page = (await ada.get(f"{HERE}/keys")).text
    assert page.count('class="strip"') == 5
    await ada.get(f"{ROTATE}?purpose=tokens&alg=ES256")
    await ada.post(ROTATE, manner="planned")
    assert "starts signing as scheduled" in (await ada.follow()).text
    assert await states(studio, LINE) == [KeyState.NEXT, KeyState.SIGNING]
    page = (await ada.get(f"{ROTATE}?purpose=tokens&alg=ES256")).text
    assert 'value="planned"' not in page  # one is planned already
    assert (await ada.post(ROTATE, manner="planned")).status_code == 409
    await ada.get(f"{ROTATE}?purpose=tokens&alg=ES256")
    await ada.post(ROTATE, manner="at_once")
    assert await states(studio, LINE) == [KeyState.SIGNING, KeyState.VERIFYING]
    await ada.get(f"{ROTATE}?purpose=tokens&alg=ES256")
    await ada.post(ROTATE, manner="distrust")
    assert await states(studio, LINE) == [KeyState.RETIRED, KeyState.RETIRED, KeyState.SIGNING]
    lines = {
        (line["purpose"], line["alg"]): line["keys"]
        for line in (await read_settings(studio, {"part": "keys"}))["lines"]
    }
    assert sorted(key["state"] for key in lines["tokens", "ES256"]) == ["retired", "retired", "signing"]
    assert len(lines) == 5
    keys = (await studio.services.storage.keys.load_keys()).keys
    signing = [key.kid for key in keys if key.line == LINE and key_state(key, studio.clock.now()) is KeyState.SIGNING]
    served = (await studio.client.get("/proxy/oauth/keys")).json()["keys"]
    assert [key["kid"] for key in served if key["alg"] == "ES256"] == signing  # immediately, on this node

    assert 'value="distrust"' not in (await ada.get(f"{ROTATE}?purpose=audit&alg=EdDSA")).text
    assert (await ada.post(ROTATE, manner="distrust")).status_code == 400
    assert (await ada.get(f"{ROTATE}?purpose=audit&alg=none")).status_code == 404
    await studio.clock.advance(601)
    assert (await ada.get(f"{ROTATE}?purpose=tokens&alg=ES256")).headers["location"].startswith("/confirm?next=")


async def test_the_configuration_is_shown_as_loaded_and_its_secrets_are_not(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    page = (await ada.get(f"{HERE}/configuration")).text
    assert "security.master_key" in page
    assert studio.services.settings.security.master_key.reveal() not in page
    file = (await ada.get(f"{HERE}/configuration?format=csv")).text.splitlines()
    assert "passwords.memory_kib,19456,KiB,environment" in file
    assert "sessions.idle_hours,72,hours,default" in file
    assert any(line.startswith("server.port,") and line.endswith(",flag") for line in file)
    page_text = (await ada.get(f"{HERE}/configuration?q=IDLE_hours")).text
    assert "<code>sessions.idle_hours</code>" in page_text
    assert "<code>passwords.memory_kib</code>" not in page_text
    settings_by_name = {
        setting["name"]: setting for setting in (await read_settings(studio, {"part": "configuration"}))["settings"]
    }
    assert (settings_by_name["sessions.idle_hours"]["value"], settings_by_name["sessions.idle_hours"]["source"]) == (
        "72",
        "default",
    )
    assert settings_by_name["security.master_key"]["value"] == "********"
    assert len(settings_by_name) == len(file) - 1
    await ada.get(f"{HERE}/risks")
    assert "Development mode" in (await ada.follow()).text


async def test_mail_and_health_say_how_it_is(studio: RunningService, console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    await ada.get("/console/people/new")
    await ada.post("/console/people/new", login="nora@studio.example", entrance="invite")
    page = (await ada.get(f"{HERE}/email")).text
    assert "1 queued" in page
    assert "Invitation" in page
    assert "nora@" not in page  # the recipient of a message stays sealed
    await ada.get("/console/people/new")
    await ada.post("/console/people/new", login="otto@studio.example", entrance="invite")
    pages_of_mails = [
        (await read_settings(studio, {"part": "email", "limit": 1, "page": page}))["letters"] for page in (1, 2, 3)
    ]
    assert [[(one["letter"], one["tries"]) for one in each] for each in pages_of_mails] == [[("invite", 0)]] * 2 + [
        []
    ]
    assert pages_of_mails[0] != pages_of_mails[1]
    assert "@studio" not in str(pages_of_mails)
    assert "/invite" not in str(pages_of_mails)
    await ada.get(f"{HERE}/email")
    await ada.post(f"{HERE}/email/test")
    assert "Test email sent" in (await ada.follow()).text
    await studio.services.audit.sealer.seal_all()
    page = (await ada.get(f"{HERE}/health")).text
    kind = "SQLite" if studio.services.settings.database.url.is_sqlite else "PostgreSQL"
    assert f"{kind} " in page
    assert f"schema revision {HEAD}, {HEAD} is required" in page
    assert " records, <time" in page


async def test_setting_values_are_shown_in_words(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    table = (await ada.get(f"{HERE}/configuration")).text.partition("<table")[2].partition("</table>")[0]
    assert ("1 second<" in table, "1 seconds" in table, "`" in table) == (True, False, False)


async def test_settings_are_changed_in_a_form_and_errors_keep_what_was_typed(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    page = (await ada.get(f"{HERE}/branding")).text
    assert 'name="branding__name" value="Gatehouse"' in page
    refused = await ada.post(f"{HERE}/branding", branding__name="Sky Studio", branding__accent="red")
    assert refused.status_code == 400
    assert 'value="Sky Studio"' in refused.text
    wrong = refused.text.partition('id="branding__accent-problem"')[2].partition("</div>")[0]
    assert "Enter a color" in wrong
    assert studio.services.settings.branding.name == "Gatehouse"
    await ada.post(f"{HERE}/branding", branding__name="Sky Studio", branding__accent="#aa3311")
    assert "Settings saved." in (await ada.follow()).text
    assert "Sky Studio" in (await ada.get(f"{HERE}/branding")).text
    assert set(await studio.services.storage.settings.read_all()) == {"branding.name", "branding.accent"}

    await ada.get(f"{HERE}/sign-in")
    await ada.post(f"{HERE}/sign-in", accounts__allowed_domains="sky.example\nstudio.example")
    assert studio.services.settings.accounts.allowed_domains == ("sky.example", "studio.example")
    assert "studio.example</textarea>" in (await ada.get(f"{HERE}/sign-in")).text
    assert (await ada.get(f"{HERE}/change?part=branding")).status_code == 404


REFUSED: Final = re.compile(
    r'id="[a-z_]+-problem" class="wrong">.*?<span>([^<]*)</span>|class="problem">(.*?)</p>', re.DOTALL
)
REFUSED_VALUES: Final[dict[str, dict[str, str]]] = {
    f"{HERE}/branding": {
        "branding__name": "x" * 41,
        "branding__accent": "red",
        "branding__wordmark": "maybe",
    },
    HERE: {"sessions__history_days": "0", "guests__idle_days": "many"},
    f"{HERE}/email": {"mail__host": "?", "mail__from_address": "sky", "mail__security": "weak"},
    f"{HERE}/sign-in": {"accounts__allowed_domains": "?", "guests__applications": "Atlas"},
    f"{HERE}/languages": {"languages__offered": "xx"},
    f"{HERE}/change?part=providers.google": {
        "provider__name": "x" * 41,
        "provider__scopes": '"',
        "provider__tickets": "480",
        "provider__tags": "artist\nteam=art:guest",
    },
    f"{HERE}/change?part=terms.privacy": {
        "document__title": "x" * 81,
        "document__url": "here",
        "document__version": "first one",
        "document__countries": "Germany",
        "document__replaces": "?",
    },
}
REFUSED_TOGETHER: Final[dict[str, dict[str, str]]] = {
    f"{HERE}/branding": {"branding__wordmark": "true"},
    f"{HERE}/email": {"mail__host": "mail.sky.example", "mail__security": "none", "mail__username": "mailer"},
    f"{HERE}/sign-in": {"accounts__password_optional": "true"},
    f"{HERE}/languages": {"languages__default": "de", "languages__offered": "en"},
    f"{HERE}/change?part=providers.google": {"provider__enabled": "true"},
    f"{HERE}/change?part=terms.privacy": {"document__enabled": "true"},
}


async def test_german_forms_say_in_german_why_a_setting_is_refused(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    await ada.get(f"{HERE}/providers?lang=de")
    await ada.post(f"{HERE}/providers", provider="google", kind="google")
    await ada.get(f"{HERE}/terms")
    await ada.post(f"{HERE}/terms", document="privacy", title="Datenschutz")
    texts = load_languages("console")["de"].texts
    german = re.compile(
        "|".join(
            re.sub(r"\\\{\w+\\\}", ".+", re.escape(text))
            for key, text in texts.items()
            if key.startswith("problem.") or key == "settings.check_fields"
        )
    )
    for refused_values in (REFUSED_VALUES, REFUSED_TOGETHER):
        for path, values in refused_values.items():
            await ada.get(path)
            address, _, part = path.partition("?part=")
            refused = await ada.post(address, **values, **({"part": part} if part else {}))
            assert refused.status_code == 400, path
            said = [(at_field, *above.split("<br>")) for at_field, above in REFUSED.findall(refused.text)]
            lines = [re.sub(r"^[a-z_.]+: ", "", unescape(line)) for each in said for line in each if line]
            assert len(lines) >= 2, path
            assert [line for line in lines if not german.fullmatch(line)] == [], path


async def test_every_tab_saves_its_settings_and_shows_what_is_locked(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, settings = await console_browsers(ADA), studio.services.core.live_settings
    tabs = {
        HERE: {"sessions__history_days": "30"},
        f"{HERE}/sign-in": {"sessions__new_device_email": "false"},
        f"{HERE}/sessions": {"sessions__idle_hours": "5", "tokens__user_jwt_days": "7", "oauth__code_seconds": "30"},
        f"{HERE}/languages": {"languages__default": "de"},
    }
    for path, fields in tabs.items():
        await ada.get(path)
        await ada.post(path, **fields)
        assert "Settings saved." in (await ada.follow()).text, path
    current = settings.current.settings
    assert (current.sessions.history_days, current.sessions.new_device_email) == (30, False)
    assert (current.sessions.idle_hours, current.tokens.user_jwt_days, current.oauth.code_seconds) == (5, 7, 30)
    assert 'lang="de"' in (await studio.client.get("/sign-in")).text
    general = (await ada.get(HERE)).text
    address = re.search(r'<input id="server__base_url"[^>]*>', general)
    assert address is not None
    assert "disabled" in address[0]
    assert "Set server.base_url in a file or the environment." in general
    await ada.get(HERE)
    assert (await ada.post(HERE, sessions__history_days="0")).status_code == 400


async def test_mail_server_is_set_up_in_the_form_and_its_password_is_not_shown(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    await ada.get(f"{HERE}/email")
    incomplete = await ada.post(f"{HERE}/email", mail__host="127.0.0.1")
    assert (incomplete.status_code, 'id="mail__from_address-problem"' in incomplete.text) == (400, True)
    fields = {
        "mail__host": "127.0.0.1",
        "mail__port": "9",
        "mail__security": "none",
        "mail__username": "mailer",
        "mail__password": "s3cret-of-the-mail-server",
        "mail__from_address": "id@sky.example",
    }
    await ada.post(f"{HERE}/email", **fields)
    page = (await ada.follow()).text
    assert ('value="mailer"' in page, "s3cret" in page) == (True, False)
    failed = await ada.post(f"{HERE}/email/test")  # nothing listens there
    assert failed.status_code == 502
    assert 'role="alert"' in failed.text
    kept = await ada.post(f"{HERE}/email", **{**fields, "mail__password": "", "mail__from_name": "Sky"})
    assert kept.status_code == 303
    await ada.follow()
    refused = await ada.post(f"{HERE}/email", **{**fields, "mail__password": "", "mail__host": "localhost"})
    assert (refused.status_code, "Enter it again: it would be sent to another server." in refused.text) == (400, True)
    mail = studio.services.settings.mail
    assert (mail.host, mail.password.reveal()) == ("127.0.0.1", "s3cret-of-the-mail-server")
    await ada.post(f"{HERE}/email", **{**fields, "mail__host": "localhost"})
    mail = studio.services.settings.mail
    assert (mail.host, mail.password.reveal()) == ("localhost", "s3cret-of-the-mail-server")


async def test_previews_show_the_typed_brand_in_frames_without_scripts_or_forms(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, olga = await console_browsers(ADA), await console_browsers(OLGA)
    assert "frame-src 'self'" in (await ada.get(f"{HERE}/branding")).headers["content-security-policy"]
    typed = "branding__name=Sky+Studio&branding__accent=%23aa3311"
    for screen in ("sign_in", "consent", "game", "colors"):
        page = await ada.get(f"{HERE}/branding/preview?screen={screen}&theme=dark&{typed}")
        policy = page.headers["content-security-policy"]
        assert ("Sky Studio" in page.text, 'data-theme="dark"' in page.text) == (True, True)
        assert all(part in policy for part in ("script-src 'none'", "form-action 'none'", "frame-ancestors 'self'"))
        assert page.headers["x-frame-options"] == "SAMEORIGIN"
    style = re.search(r'href="([^"]*accent\.css[^"]*)"', page.text)
    assert style is not None
    assert "#aa3311" in (await ada.get(unescape(style[1]))).text
    email = await ada.get(f"{HERE}/branding/preview?screen=email&{typed}")
    assert ("Sky Studio" in email.text, "unsafe-inline" in email.headers["content-security-policy"]) == (True, False)
    assert "sandbox" in email.headers["content-security-policy"]
    form = form_to(f"{HERE}/branding", (await ada.get(f"{HERE}/branding")).text)
    typed_fields = {**hidden_fields(form), "branding__name": "Typed & posted", "screen": "game", "theme": "dark"}
    posted = await ada.client.post(f"{HERE}/branding/preview", data=typed_fields)
    assert "Typed &amp; posted" in posted.text
    assert (await ada.get(f"{HERE}/branding/preview?screen=other")).status_code == 404
    assert (await olga.get(f"{HERE}/branding/preview")).status_code == 403
    assert studio.services.settings.branding.name == "Gatehouse"


async def test_tickets_of_a_platform_are_set_up_in_the_form_of_its_provider(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    await ada.get(f"{HERE}/providers")
    await ada.post(f"{HERE}/providers", provider="steam", kind="steam")
    form = f"{HERE}/change?part=providers.steam"
    entered = {
        "part": "providers.steam",
        "provider__enabled": "true",
        "provider__tickets__application": [str(SHOP), str(SHOP), ""],
        "provider__tickets__audience": ["480", "570", ""],
        "provider__tags__claim": ["vacbanned", "", "team"],
        "provider__tags__value": ["true", "", "art"],
        "provider__tags__tag": ["vac_banned", "", "artist"],
        "provider__tags__keep": ["keep", "", ""],
    }
    await ada.get(form)
    incomplete = await post_form(ada, f"{HERE}/change", **entered)
    assert (incomplete.status_code, is_refused_at("provider__publisher_key", incomplete.text)) == (400, True)
    assert f'<option value="{SHOP}" selected>Shop</option>' in incomplete.text
    await ada.get(form)
    entered["provider__publisher_key"] = "key-of-the-publisher"
    half = {**entered, "provider__tickets__audience": ["480", "", ""]}
    assert (await post_form(ada, f"{HERE}/change", **half)).status_code == 400  # an application without its app ID
    await ada.get(form)
    await post_form(ada, f"{HERE}/change", **entered)
    page = (await ada.get(form)).text
    assert all(text not in page for text in ("APPLICATION:AUDIENCE", "CLAIM=", "key-of-the-publisher"))
    assert "/callback" in page
    assert (page.count('value="480"'), page.count('<option value="keep" selected>')) == (1, 1)
    (provider,) = studio.services.sign_in.providers.all_providers().values()
    assert provider.audiences == {50_001: ("480", "570")}
    assert studio.services.settings.providers["steam"].tags == ("vacbanned=true:vac_banned:keep", "team=art:artist")
    await ada.get(f"{HERE}/providers")
    await ada.post(f"{HERE}/providers", provider="unity", kind="unity")
    page = (await ada.get(f"{HERE}/change?part=providers.unity")).text
    assert ("provider__tickets" in page, "provider__client_id" in page, "/callback" in page) == (True, False, False)


async def test_provider_is_added_filled_in_enabled_and_removed(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    await ada.get(f"{HERE}/providers")
    refused = await ada.post(f"{HERE}/providers", provider="Big G", kind="google")
    assert refused.status_code == 400
    assert 'value="Big G"' in refused.text
    await ada.get(f"{HERE}/providers")
    await ada.post(f"{HERE}/providers", provider="google", kind="google")
    form = f"{HERE}/change?part=providers.google"
    page = (await ada.follow()).text
    assert "Provider added" in page
    assert studio.services.sign_in.providers.all_providers() == {}  # turned off until it is complete
    incomplete = await ada.post(f"{HERE}/change", part="providers.google", provider__enabled="true")
    assert incomplete.status_code == 400
    assert is_refused_at("provider__client_id", incomplete.text)
    assert "providers.google.client_id" not in incomplete.text
    await ada.get(form)
    page = (await ada.get(form)).text
    assert ("Save and enable" in page, "/sign-in/with/google/callback" in page) == (True, True)
    await ada.post(
        f"{HERE}/change",
        part="providers.google",
        enable="1",
        provider__client_id="id-1",
        provider__client_secret="s3cret-of-google",
        provider__applications=["", str(SHOP)],
    )
    page = (await ada.follow()).text
    assert ("Provider enabled" in page, "Test sign-in" in page) == (True, True)
    assert f'value="{SHOP}" checked' in page
    assert "s3cret" not in (await ada.get(form)).text
    (provider,) = studio.services.sign_in.providers.all_providers().values()
    assert (provider.name, provider.client_secret) == ("Google", "s3cret-of-google")
    await ada.get(f"{HERE}/providers/google/remove")
    await ada.post(f"{HERE}/providers/google/remove")
    assert "Provider deleted" in (await ada.follow()).text
    assert studio.services.settings.providers == {}


async def test_provider_with_an_issuer_is_added_in_the_form_and_keeps_it(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    await ada.get(f"{HERE}/providers")
    await ada.post(f"{HERE}/providers", provider="corp", kind="oidc")
    for issuer, status in (("https://login.example", 303), ("https://other.example", 400)):
        await ada.get(f"{HERE}/change?part=providers.corp")
        entered = {"part": "providers.corp", "provider__issuer": issuer, "provider__client_id": "id-1"}
        assert (await ada.post(f"{HERE}/change", **entered)).status_code == status
    assert studio.services.settings.providers["corp"].issuer == "https://login.example"


async def test_provider_form_warns_of_an_address_that_is_not_called(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    entered = {"providers.corp.enabled": False, "providers.corp.client_id": "id-1"}
    not_called = "Gatehouse will not call 10.1.2.3:"
    for issuer, warning in {
        "https://10.1.2.3/realms/sky": f"{not_called} 10.1.2.3 is not a public address. To permit it,",
        "http://10.1.2.3": f"{not_called} http is not encrypted.",
        "http://localhost:8081": "",  # with --dev
        "https://93.184.215.14": "",
    }.items():
        await studio.services.settings_editor.save({**entered, "providers.corp.issuer": issuer}, ORIGIN)
        page = (await ada.get(f"{HERE}/change?part=providers.corp")).text
        assert warning in page
        assert ("Gatehouse will not call" in page) == bool(warning), issuer
        await studio.services.settings_editor.save(dict.fromkeys((*entered, "providers.corp.issuer"), None), ORIGIN)


async def test_document_is_added_filled_in_enabled_and_removed(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    await ada.get(f"{HERE}/terms")
    refused = await ada.post(f"{HERE}/terms", document="age", title="Age")
    assert (refused.status_code, 'value="age"' in refused.text) == (400, True)
    await ada.get(f"{HERE}/terms")
    await ada.post(f"{HERE}/terms", document="privacy", title="Privacy policy")
    assert "Document added" in (await ada.follow()).text
    incomplete = await ada.post(f"{HERE}/change", part="terms.privacy", document__enabled="true")
    assert (incomplete.status_code, "terms.privacy.url" in incomplete.text) == (400, False)
    assert is_refused_at("document__url", incomplete.text)
    await ada.get(f"{HERE}/change?part=terms.privacy")
    filled = {
        "document__enabled": "true",
        "document__url": "https://studio.example/privacy",
        "document__version": "3",
    }
    more = {"document__countries": "DE\nAT", "document__minimum_age": "16"}
    await ada.post(f"{HERE}/change", part="terms.privacy", **filled, **more)
    page = (await ada.follow()).text
    assert all(text in page for text in ("Settings saved.", "Privacy policy", "DE, AT"))
    document = studio.services.settings.terms["privacy"]
    assert (document.version, document.countries, document.minimum_age) == ("3", ("DE", "AT"), 16)
    await ada.get(f"{HERE}/terms/privacy/remove")
    await ada.post(f"{HERE}/terms/privacy/remove")
    assert "Document deleted" in (await ada.follow()).text
    assert studio.services.settings.terms == {}


async def test_only_administrators_learn_that_emails_are_printed(console_browsers: ConsoleBrowsers) -> None:
    ada, pia = await console_browsers(ADA), await console_browsers(PIA)
    assert "server log" in (await ada.get("/account")).text
    assert "server log" not in (await pia.get("/account")).text


@pytest.mark.both_databases
async def test_phone_tab_counts_text_messages_and_sends_a_test(
    studio: RunningService, console_browsers: ConsoleBrowsers, capsys: pytest.CaptureFixture[str]
) -> None:
    """In development mode the text is printed."""
    ada = await console_browsers(ADA)
    await ada.get(f"{HERE}/phone")
    off = await ada.post(f"{HERE}/phone/test", phone="+4915123456789")
    assert (off.status_code, "Phone numbers cannot be verified here." in off.text) == (400, True)
    await ada.get(f"{HERE}/phone")
    limits = {"phone__message_cents": "50", "phone__cost_a_day": "100"}
    await ada.post(f"{HERE}/phone", phone__countries="DE", phone__confirm_sign_in="true", **limits)
    assert "0 of 2 in the last 24 hours" in (await ada.follow()).text
    assert studio.services.settings.phone.confirm_sign_in
    assert (await ada.post(f"{HERE}/phone/test", phone="+33612345678")).status_code == 400
    for sent in (1, 2):
        await ada.get(f"{HERE}/phone")
        await ada.post(f"{HERE}/phone/test", phone="+49 151 23456789")
        page = (await ada.follow()).text
        assert ("Test message sent" in page, f"{sent} of 2 in the last 24 hours" in page) == (True, True)
    assert capsys.readouterr().err.count("Text message (phone_test) to +4915123456789") == 2
    await ada.get(f"{HERE}/phone")
    assert (await ada.post(f"{HERE}/phone/test", phone="+4915123456789")).status_code == 429
