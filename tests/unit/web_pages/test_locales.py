"""The texts: complete, consistent in every language, and all in use."""

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from string import Formatter
from time import process_time

import msgspec
import pytest
from babel.core import Locale

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.field_checks import check_name, check_nick, check_username, check_zoneinfo
from gatehouse.accounts.model import SessionStrength, SignInMethod, check_login
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.second_factors.model import BadPasskeyName, Factor
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.head import ChainBreak, describe_break, missing_at_end_text, missing_text
from gatehouse.images import conversion
from gatehouse.kernel.errors import BadInput, GatehouseError
from gatehouse.languages import FALLBACK_LANG
from gatehouse.mail.model import Undelivered
from gatehouse.oauth.model import APPLICATION_SCOPES, SCOPES
from gatehouse.outbound.model import CallFailed
from gatehouse.permissions.errors import AdministratorsOnly, ApplicationTooLarge, ProtectedHeld
from gatehouse.permissions.model import central
from gatehouse.permissions.model.application import CHANGEABLE_APPLICATION_FIELDS
from gatehouse.permissions.model.group import ACCESS_FIELDS, SAVED_GROUP_FIELDS
from gatehouse.permissions.model.project import SAVED_PROJECT_FIELDS
from gatehouse.permissions.model.role import ROLE_FIELDS
from gatehouse.settings.entries import SECTIONS, TABLES, settings_of_section
from gatehouse.sign_in_flow.questions import NetworkNearness
from gatehouse.web.console.path_table import CONSOLE_PATHS
from gatehouse.web.http.parse import convert
from gatehouse.web.pages.forms import INPUT_PROBLEMS
from gatehouse.web.pages.translations import PLURAL_CATEGORIES, load_languages
from gatehouse.webhooks.model import NoSecret
from tests.support.find_programs import ROOT
from tests.support.pseudo_locale import LANG as PSEUDO
from tests.support.pseudo_locale import languages_with_pseudo
from tests.support.same_words import SAME_IN_GERMAN

LANGUAGES = load_languages()
ENGLISH = LANGUAGES[FALLBACK_LANG]
OTHERS = [lang for lang in LANGUAGES if lang != FALLBACK_LANG]
TAGS = re.compile(r"<(/?)(strong|bdi)>")

NEVER_ABOUT_A_PERSON = (
    *("installation.", "setup.", "key.", "provision.", "client.", "application.", "access_key.", "service_token."),
    *("service_account.", "schema.", "role.saved", "role.default_saved", "role.removed", "project.", "group."),
    "objects.",
    *("game_session.", "webhook.", "audit.", "token.machine_", "page."),
)


SETTING_NAMES = {
    one.path for section, sheet in (SECTIONS | TABLES).items() for one in settings_of_section(section, sheet)
}


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def plural_forms(texts: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The forms of each text by plural category; a text without a count has one, without a name."""
    forms: dict[str, dict[str, str]] = {}
    for key, text in texts.items():
        base, _, category = key.rpartition("_")
        base, category = (base, category) if category in PLURAL_CATEGORIES else (key, "")
        forms.setdefault(base, {})[category] = text
    return forms


@pytest.mark.parametrize("lang", list(LANGUAGES))
def test_every_language_has_every_text_and_every_plural_form(lang: str) -> None:
    """A form may leave the count out: "every day". Languages differ in which texts need forms."""
    spoken = load_languages("console")
    assert lang in spoken, "the console lacks it"
    english, forms = plural_forms(spoken[FALLBACK_LANG].texts), plural_forms(spoken[lang].texts)
    described = {f"setting.{name}" for name in SETTING_NAMES} if lang != FALLBACK_LANG else set()
    own = {key for key in english if key.startswith("setting.")}  # shorter than where they are declared
    assert set(forms) - described == set(english) - (own if described else set())
    assert described <= set(forms), "settings without a meaning in this language"
    for key in english:
        texts = forms[key]
        assert set(texts) in ({""}, {*Locale.parse(lang, sep="-").plural_form.tags, "other"}), key
        wanted = placeholders(english[key].get("other", english[key].get("", "")))
        for text in texts.values():
            assert placeholders(text) | {"count"} == wanted | {"count"}, key
        assert placeholders(texts.get("other", texts.get("", ""))) == wanted, key


def test_no_text_is_left_untranslated() -> None:
    """A text that is the same as in English was forgotten, or its word is in the reviewed list."""
    spoken = load_languages("console")
    english = spoken[FALLBACK_LANG].texts
    same = {text for key, text in spoken["de"].texts.items() if text == english.get(key) and has_words(text)}
    assert same == SAME_IN_GERMAN


def has_words(text: str) -> bool:
    return any(map(str.isalpha, re.sub(r"\{\w+\}", "", text)))


@pytest.mark.parametrize("lang", list(languages_with_pseudo()))
def test_texts_hold_no_markup_but_emphasis_and_isolation(lang: str) -> None:
    """They are inserted into pages and attributes unescaped: a quote or an ampersand would break out."""
    for key, text in languages_with_pseudo()[lang].texts.items():
        assert not set('"&<>') & set(TAGS.sub("", text)), key
        assert text.strip() == text != "", key
        opened = [name for closing, name in TAGS.findall(text) if not closing]
        closed = [name for closing, name in TAGS.findall(text) if closing]
        assert opened == closed[::-1], key


@pytest.mark.parametrize("lang", list(LANGUAGES))
def test_no_text_names_a_setting_by_its_key(lang: str) -> None:
    """Also not the meaning of a setting, which in English is where it is declared."""
    texts = load_languages("console")[lang].texts
    meanings = {
        f"setting.{section.partition('.')[0]}.{one.name}": one.field.help
        for section, sheet in (SECTIONS | TABLES).items()
        for one in settings_of_section(section, sheet)
    }
    keys = {name for name in SETTING_NAMES if "." in name}
    assert {name: text for name, text in {**meanings, **texts}.items() if any(key in text for key in keys)} == {}


def test_the_german_reader_is_addressed_as_sie() -> None:
    familiar = re.compile(r"\b([Dd]u|[Dd]ir|[Dd]ich|[Dd]ein(e[mnrs]?)?|[Ee]uer|[Ee]uch)\b")
    assert {key for key, text in LANGUAGES["de"].texts.items() if familiar.search(text)} == set()


def test_counts_choose_the_plural_form_and_have_the_separators_of_the_language() -> None:
    german = load_languages("console")["de"]
    assert german("time.minutes", count=1) == "1 Minute"
    assert german("time.minutes", count=0) == "0 Minuten"
    assert german("list.range", first=1, last=1_000, total=1_234_567) == "1 bis 1.000 von 1.234.567"
    assert ENGLISH("time.minutes", count=12_345) == "12,345 minutes"
    assert json.loads(german.forms("staging.review")) == {
        "one": "{count} Änderung prüfen",
        "other": "{count} Änderungen prüfen",
    }


POLISH_MINUTES = """\
minutes_one = "{count} minuta"
minutes_few = "{count} minuty"
minutes_many = "{count} minut"
minutes_other = "{count} minuty"
"""
POLISH_DAYS = 'plural(days, one="dzień", few="dni", many="dni", other="dnia")'
ASK_POLISH = """
import json
from gatehouse.languages import LANGUAGES
from gatehouse.mail.model import MailTemplate
from gatehouse.web.pages.translations import choose_language, load_languages
from tests.support.clock import MovableClock
from tests.support.mail import TO, a_composer

t = load_languages("console")["pl"]
composer = a_composer(MovableClock())
print(json.dumps({
    "languages": LANGUAGES,
    "chosen": choose_language(accept_language="pl-PL, en;q=0.5"),
    "minutes": [t("time.minutes", count=count) for count in (1, 3, 5, 22, 12345)],
    "mails": [
        composer.render(MailTemplate.INVITE, to=TO, lang="pl", path="/invite", days=days).text for days in ("1", "7")
    ],
}))
"""


def test_adding_a_language_is_adding_its_files(tmp_path: Path) -> None:
    """Polish has more plural forms than English. All other texts of it are English here."""
    package = tmp_path / "gatehouse"
    shutil.copytree(ROOT / "src" / "gatehouse", package, ignore=shutil.ignore_patterns("__pycache__", "static"))
    locales, templates = package / "web" / "locales", package / "mail" / "templates"
    for there in (locales / "console", templates):
        shutil.copytree(there / "en", there / "pl")
    texts = re.sub(
        r"^minutes_one = .*\nminutes_other = .*\n",
        POLISH_MINUTES,
        (locales / "en.toml").read_text(),
        flags=re.MULTILINE,
    )
    (locales / "pl.toml").write_text(texts)
    invite = templates / "pl" / "invite.jinja"
    invite.write_text(re.sub(r"plural\(.*?\)", POLISH_DAYS, invite.read_text()))
    answer = subprocess.run(
        [sys.executable, "-c", ASK_POLISH],
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
        capture_output=True,
    )
    found = json.loads(answer.stdout)
    assert found["languages"] == ["en", "de", "pl"]
    assert found["chosen"] == "pl"
    assert found["minutes"] == ["1 minuta", "3 minuty", "5 minut", "22 minuty", "12\xa0345 minut"]
    assert ["1 dzień" in found["mails"][0], "7 dni" in found["mails"][1]] == [True, True]


def test_placeholder_values_are_escaped_and_not_expanded_again() -> None:
    hostile = "<b>{nick}{0.__class__}{{7*7}}</b>"
    assert ENGLISH("already.continue", nick=hostile) == "Continue as &lt;b&gt;{nick}{0.__class__}{{7*7}}&lt;/b&gt;"


def test_an_unknown_text_and_a_missing_value_are_found_out() -> None:
    with pytest.raises(KeyError):
        ENGLISH("sign_in.titel")
    with pytest.raises(KeyError):
        ENGLISH("already.continue")


def refusals(kind: type[GatehouseError] = GatehouseError) -> Iterator[str]:
    yield kind.public
    for narrower in kind.__subclasses__():
        yield from refusals(narrower)


async def complaints() -> AsyncIterator[str]:
    checks = [(check_login, "no_one"), (check_nick, ""), (check_name, "x" * 200), (check_zoneinfo, "Moon/Base")]
    checks += [(check_username, wrong) for wrong in ("ab", "12345", "admin")]
    for check, wrong in checks:
        with pytest.raises(BadAccount) as raised:
            check(wrong)
        yield raised.value.detail
    for password in ("short", "long" * 1_000):
        with pytest.raises(BadAccount) as raised:
            await PasswordRules().check(password)
        yield raised.value.detail
    for text in (
        *(conversion.WRONG_FORMAT, conversion.TOO_LARGE),
        *(conversion.TOO_MANY_PIXELS, conversion.UNREADABLE),
    ):
        yield text


async def test_the_refusals_that_are_translated_are_those_the_rooms_make() -> None:
    import_module("gatehouse.app.endpoints")  # imports every package, and with it every error class
    texts = {text for key, text in ENGLISH.texts.items() if key.startswith("said.")}
    assert texts - {*refusals(), *[complaint async for complaint in complaints()]} == set()


def test_exactly_the_errors_that_exist_have_a_text_on_screens() -> None:
    for section in CONSOLE_PATHS:
        import_module(f"gatehouse.app.console.{section}")
    texts = load_languages("console")[FALLBACK_LANG].texts
    keys = {key.removeprefix("problem.") for key in texts if key.startswith("problem.")}
    sources = "".join(file.read_text() for file in (ROOT / "src" / "gatehouse").rglob("*.py"))
    named = set(re.findall(r'\.on_screen\(\s*"(\w+)"', sources))
    assert len(named) > 100
    assert named <= keys
    assert keys - named <= error_names()


def error_names(kind: type[GatehouseError] = GatehouseError) -> set[str]:
    return {kind.__name__}.union(*map(error_names, kind.__subclasses__()))


def test_a_refusal_is_said_in_the_readers_language_when_there_are_words_for_it() -> None:
    english = "An account with this email already exists."
    assert LANGUAGES.translate_message("en", english) == english
    assert LANGUAGES.translate_message("de", english) == "Ein Konto mit dieser E-Mail-Adresse besteht bereits."
    assert LANGUAGES.translate_message("en", "Something new.") == "Something new."
    assert LANGUAGES.translate_message("de", "Something new.") is None


# Errors are seen by the console unless they are of these: their pages have texts for each class, or there is no page.
NO_SCREEN = (
    *("cli/", "demo/", "provision/", "storage/", "web/api/", "oauth/authorize/", "accounts/guests/"),
    *("oauth/logout.py", "oauth/game_id_tokens.py", "providers/tickets.py", "accounts/importing/vendors.py"),
    *("accounts/importing/keycloak.py", "accounts/importing/auth0.py", "accounts/importing/firebase.py"),
    *("oauth/backchannel_logout.py", "permissions/questions/batches.py"),
    *("web/http/parse.py", "web/http/parse_json.py", "permissions/changes/", "permissions/questions/check.py"),
    "permissions/questions/user_record_views.py",
    *("permissions/commands/objects.py", "permissions/questions/allowed_objects.py"),
)
API_ONLY = {
    "7: text",
    "data.user_id: use `users` to save",
    "data.user_id: whose?",
    "factor: this is the text of a code sample; call device_factor, which makes one per device",
}
DETAIL_SHOWN = (BadInput, ProtectedHeld, AdministratorsOnly, ApplicationTooLarge)
PASSED_ON = {"7: 7", "7 is 7; at most 7 is accepted"}  # the words of others
PATTERN_CALLS = {"_match_pattern": "7", "_refuse_above": "7 is 7; at most 7 is accepted"}  # given their words


@cache
def parse_source(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def details_on_screens() -> Iterator[str]:
    """Yield the details of errors that name no text of their own for screens, with 7 for each value in them."""
    own_texts = {kind.__name__ for kind in (*INPUT_PROBLEMS, BadPasskeyName)}
    shown = {name for kind in DETAIL_SHOWN for name in error_names(kind)} - own_texts
    source = ROOT / "src" / "gatehouse"
    for file in source.rglob("*.py"):
        if not str(file.relative_to(source)).startswith(NO_SCREEN):
            nodes = list(ast.walk(parse_source(file)))
            keyed = set(map(id, keyed_errors(nodes)))
            for node in nodes:
                if isinstance(node, ast.Call) and called_name(node) in shown and id(node) not in keyed and node.args:
                    yield sentence_of(node.args[0])
                elif isinstance(node, ast.Call) and called_name(node) in PATTERN_CALLS:
                    texts = filter(None, map(sentence_of, node.args))
                    sentences = (text for text in texts if " " in text)
                    yield from (PATTERN_CALLS[called_name(node)].replace("7", text, 1) for text in sentences)
                elif file.name == "grammar.py" and getattr(getattr(node, "targets", [None])[0], "id", "") == "words":
                    yield sentence_of(node.value)
    for node in ast.walk(parse_source(source / "accounts/importing/checks.py")):
        if isinstance(node, ast.Call) and called_name(node) in {"append", "join"}:  # joined reasons of one row
            yield from map(sentence_of, getattr(node.args[0], "elts", node.args))


def keyed_errors(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield the calls on whose error, at once or by its name, `on_screen` is called."""
    named = [one.value for one in nodes if isinstance(one, ast.Attribute) and one.attr == "on_screen"]
    names = {getattr(one, "id", "") for one in named} - {""}
    yield from named
    for one in nodes:
        if isinstance(one, ast.Assign) and getattr(one.targets[0], "id", "") in names:
            yield one.value


def json_errors() -> Iterator[str]:
    broken = ["{", "abc", "{1:2}", '{"a":1,}', '{"a":[1,]}', '{"a":1}x', '{"a":1 "b":2}', '{"a":[1 2]}', '{"a" 1}']
    for text in [*broken, '{"a":"\\q"}', '{"a":01}', '{"a":1e999}', "[1]", '{"a":{}}']:
        for kind in (dict[str, object], dict[str, str]):
            try:
                msgspec.json.decode(text, type=kind)
            except msgspec.DecodeError as error:
                yield str(error)
                yield from re.findall(r"JSON is malformed: (.+) \(byte \d+\)", str(error))


def form_errors() -> Iterator[str]:
    class Sample(msgspec.Struct, forbid_unknown_fields=True):
        number: int
        role: AuditEvent = AuditEvent.USER_IMPORTED

    for given in ({}, {"number": "7"}, {"number": 7, "role": "?"}, {"number": 7, "other": 7}):
        try:
            convert(given, Sample)
        except BadInput as error:
            yield error.detail


@cache
def errors_on_screens() -> frozenset[str]:
    return frozenset({*filter(None, details_on_screens()), *json_errors(), *form_errors()} - API_ONLY - PASSED_ON)


@pytest.mark.parametrize("lang", OTHERS)
def test_every_error_on_a_screen_is_translated(lang: str) -> None:
    spoken = load_languages("console")
    details = errors_on_screens()
    assert len(details) > 100
    texts = {text: spoken.translate_reason(lang, text) for text in details}
    assert {text for text, translated in texts.items() if translated is None} == set()
    left_english = {text: set(runs_of_words(text)) & set(runs_of_words(texts[text] or "")) for text in texts}
    assert {text for text, runs in left_english.items() if runs} == set()


def runs_of_words(text: str) -> Iterator[tuple[str, ...]]:
    words = re.findall(r"[a-z]{2,}", re.sub(r"https://\S+", "", MEMBER_PLACE.sub("", text, count=1)))
    yield from zip(words, words[1:], words[2:], strict=False)


# Reasons that are stored or computed in English: by the function that gets them, and by the files that say them.
REASON_CALLS = {"violation", "_fail", "_deny", "end_refusal", "LoginDenied", "Undelivered", "CheckResult", "add"}
REASON_CALLS |= {
    "BadClient",
    "BadPublicKey",
    "BadImportFile",
    "BadAccount",
    "FileRow",
    "RefusedRow",
    "refusal_verdict",
    "WorkloadRefused",
}
REASON_FILES = (
    *("gamesessions/*.py", "oauth/game_id_tokens.py", "oauth/client_auth.py", "accounts/login_result.py"),
    *(
        "accounts/fixed_ips.py",
        "oauth/client_assertions.py",
        "oauth/backchannel_logout.py",
        "keys/rsa_public_keys.py",
    ),
    *("keys/key_objects.py", "webhooks/head_publisher.py", "oauth/client_commands.py"),
    *("mail/outbox.py", "webhooks/delivery.py", "web/api/health.py", "app/readiness.py"),
    *("oauth/clients.py", "oauth/private_key_jwt.py", "keys/encoding.py", "web/console/people_import.py"),
    *("oauth/workloads/assertions.py", "oauth/workloads/checks.py"),
    *(f"accounts/importing/{name}.py" for name in ("lines", "importer", "model")),
)
CLIENT_FILES = ("oauth/clients.py", "oauth/workloads/checks.py", "fields/model.py")
LINES_FILE = "accounts/importing/lines.py"
RETURNED_REASONS = ("gamesessions/proof.py", "accounts/importing/model.py")
CHAIN_FILES = ("audit/chain.py", "audit/head.py", "audit/verification.py", "audit/continuous_verification.py")
EXPORTED_HEADS = ("stored head", "this head was not created")  # only `audit verify` compares them


def english_reasons() -> Iterator[str]:
    source = ROOT / "src" / "gatehouse"
    for file in (file for pattern in REASON_FILES for file in source.glob(pattern)):
        for node in ast.walk(parse_source(file)):
            yield from filter(None, map(sentence_of, said_in(node)))
    for node in (node for file in RETURNED_REASONS for node in ast.walk(parse_source(source / file))):
        if isinstance(node, ast.Return | ast.IfExp):
            yield from filter(None, map(sentence_of, (getattr(node, "value", None), getattr(node, "orelse", None))))
    yield from line_problems(parse_source(source / LINES_FILE))
    for name in CHAIN_FILES:
        yield from (text for node in ast.walk(parse_source(source / name)) for text in chain_problems(node))
    for file in (source / name for name in CLIENT_FILES):
        for function in ast.walk(parse_source(file)):
            if isinstance(function, ast.FunctionDef) and function.name.endswith(("_check", "_checks", "_problem")):
                yield from client_problems(function)
    for kind in (CallFailed, *CallFailed.__subclasses__(), Undelivered, NoSecret):
        yield kind.public


def said_in(node: ast.AST) -> list[ast.expr | None]:
    """Return what may be a reason: arguments of a call, a default, the value of a name."""
    if isinstance(node, ast.Call) and called_name(node) in REASON_CALLS:
        return [*node.args, *(one.value for one in node.keywords if one.arg in {"reason", "detail"})]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = [*node.args.args, *node.args.kwonlyargs]
        defaults = [*node.args.defaults, *node.args.kw_defaults]
        return defaults if any(one.arg == "reason" for one in arguments) else []
    targets = (
        node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    )
    is_reason = any(getattr(target, "id", "") in {"reason", "trouble", "GUEST_GONE"} for target in targets)
    return [node.value] if isinstance(node, ast.Assign | ast.AnnAssign) and is_reason else []


def line_problems(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple) and len(node.elts) == 3:  # a line: number, text, problem
            yield from (text for text in [sentence_of(node.elts[-1])] if " " in text)
        elif isinstance(node, ast.IfExp) and isinstance(node.body, ast.JoinedStr):
            yield sentence_of(node.body)


def client_problems(function: ast.FunctionDef) -> Iterator[str]:
    """Return the sentences in a function, without its docstring and the parts of formatted texts."""
    parts = {id(part) for node in ast.walk(function) if isinstance(node, ast.JoinedStr) for part in node.values}
    texts = (sentence_of(node) for node in ast.walk(function) if id(node) not in parts and not is_choice(node))
    yield from (text for text in texts if " " in text and text.strip(", ") and text != ast.get_docstring(function))


def is_choice(node: ast.AST) -> bool:
    return isinstance(node, ast.BoolOp | ast.IfExp)  # its parts are seen by themselves


def called_name(call: ast.Call) -> str:
    return getattr(call.func, "attr", "") or getattr(call.func, "id", "")


def sentence_of(node: ast.AST | None) -> str:
    """Return a literal text, with 7 for each value in it; "" for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BoolOp | ast.IfExp):  # a or "text"; "" if a else "text"
        return sentence_of(node.values[-1] if isinstance(node, ast.BoolOp) else node.orelse)
    parts = node.values if isinstance(node, ast.JoinedStr) else ()
    return "".join(sentence_of(part) if isinstance(part, ast.Constant) else "7" for part in parts)


MEMBER_PLACE = re.compile(r"(?:data\.)?[\w.]+(?:\[7\])?: ")


def chain_problems(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Yield) or (isinstance(node, ast.Call) and called_name(node) == "append"):
        for given in [node.value] if isinstance(node, ast.Yield) else node.args:
            text = sentence_of(given)
            if text and not any(mark in text for mark in EXPORTED_HEADS):
                yield text.replace("7 (7)", "record 7 (7)")
    elif isinstance(node, ast.List):
        yield from filter(None, map(sentence_of, node.elts))


@pytest.mark.parametrize("lang", OTHERS)
def test_every_stored_reason_is_translated(lang: str) -> None:
    spoken = load_languages("console")
    reasons = {
        *english_reasons(),
        *(
            describe_break(ChainBreak(at=1, expected=expected, sealed=2, recorded=3, place=4, link=b""))
            for expected in (None, 5)
        ),
        *(text(first, last) for text in (missing_text, missing_at_end_text) for first, last in ((1, 1), (1, 2))),
        "closed by an administrator: no reason given",
        "not sealed yet (7) was changed",
        "not sealed yet (7): its personal part was changed",
    }
    assert len(reasons) > 50
    assert {text for text in reasons if spoken.translate_reason(lang, text) is None} == set()
    reasons |= {MEMBER_PLACE.sub("", text, count=1) for text in errors_on_screens()} | errors_on_screens()
    known = {text for key, text in spoken[FALLBACK_LANG].texts.items() if key.startswith("reason.")}
    patterns = {text: re.compile(re.sub(r"\\{\w+\\}", ".+", re.escape(text))) for text in known}
    assert {text for text, one in patterns.items() if not any(map(one.fullmatch, reasons))} == set()


# Details of other things than audit records: requests that are stored, and output of the command line.
OTHER_DETAILS = ("storage/", "providers/sign_in.py", "webhooks/messages.py", "cli/audit.py")
OTHER_DETAILS += ("webhooks/message_body.py", "webhooks/head_publisher.py")
DETAIL_CHOICES = {"strength": SessionStrength, "network": NetworkNearness}
DETAIL_BUILDERS = ("_details", "_audit_fields", "_changes", "access_document", "settings_document", "role_document")
DETAIL_BUILDERS += ("record_document", "holdings_document", "text_fields")
DETAIL_FIELDS = (CHANGEABLE_APPLICATION_FIELDS, ACCESS_FIELDS, SAVED_GROUP_FIELDS, ROLE_FIELDS, SAVED_PROJECT_FIELDS)
RECORDERS = {"self._notifier.record", "self.record"}
FIXED_DETAILS = {"reason_idle guest", "source_metadata document", "until_0"}


def detail_names() -> Iterator[str]:
    """Yield the names in the details of audit records, from the sources."""
    source = ROOT / "src" / "gatehouse"
    for file in source.rglob("*.py"):
        if str(file.relative_to(source)).startswith(OTHER_DETAILS):
            continue
        for node in ast.walk(parse_source(file)):
            for inner in ast.walk(value) if (value := details_in(node)) else ():
                if isinstance(inner, ast.Dict):
                    yield from (one.value for one in inner.keys if isinstance(one, ast.Constant))
            if isinstance(node, ast.Call) and called_name(node) == "record" and ast.unparse(node.func) in RECORDERS:
                yield from (one.arg for one in node.keywords if one.arg)


def details_in(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.keyword) and node.arg == "details":
        return node.value
    if isinstance(node, ast.Assign | ast.AnnAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        return node.value if getattr(target, "id", "") == "details" else None
    return node if isinstance(node, ast.FunctionDef) and node.name.endswith(DETAIL_BUILDERS) else None


def test_exactly_the_names_and_choices_in_details_have_texts() -> None:
    texts = load_languages("console")[FALLBACK_LANG].texts
    names = set(detail_names()) - {"subject", "details", "personal"}
    names |= {field.entry_name for fields in DETAIL_FIELDS for field in fields}
    assert len(names) > 50
    assert {name for name in names if f"detail.{name}" not in texts and f"field.{name}" not in texts} == set()
    assert {key.removeprefix("detail.") for key in texts if key.startswith("detail.")} <= names
    assert {f"signed_in_with.{one}" for one in SignInMethod} | {f"method.{one}" for one in Factor} <= texts.keys()
    choices = {f"{name}_{one}" for name, values in DETAIL_CHOICES.items() for one in values}
    known = {key.removeprefix("detail_value.") for key in texts if key.startswith("detail_value.")}
    assert known == choices | FIXED_DETAILS


def test_exactly_the_built_in_descriptions_have_texts() -> None:
    leaves = [
        *central.ROOT_RULES.values(),
        *(text for area in central.GENERIC_RULES.values() for text in area.values()),
    ]
    stored = {central.application(0).description, *(role.description for role in central.roles()), *leaves}
    texts = load_languages("console")[FALLBACK_LANG].texts
    assert {text for key, text in texts.items() if key.startswith("built_in.")} == stored


def test_values_of_a_stored_reason_are_kept_and_escaped() -> None:
    spoken = load_languages("console")
    assert (
        spoken.translate_reason("de", "closed by an administrator: <b>")
        == "Von der Administration beendet: &lt;b&gt;"
    )
    assert spoken.translate_reason("de", "records 1 to 2 are missing at the end") == (
        "Die Einträge 1 bis 2 fehlen am Ende."
    )
    assert spoken.translate_reason("de", "550 mailbox full") is None
    assert spoken.translate_reason(
        "de", "the file is larger than 5,000,000 bytes; use gatehouse import for larger ones"
    )
    assert spoken.translate_reason("de", "username: this user name is reserved; nick: required") == (
        "username: Dieser Benutzername ist reserviert; nick: Erforderlich."
    )
    assert spoken.translate_reason("de", "imported without identity at <i>: no such provider is configured") == (
        "importiert ohne Identität bei &lt;i&gt;: Der Anbieter ist nicht eingerichtet"
    )
    assert spoken.translate_reason("de", "closed by an administrator: ") is None  # a value is never empty
    assert spoken.translate_reason("de", "records  to  to  to  are missing") == "Die Einträge  to  bis  to  fehlen."


def test_long_reasons_full_of_separators_are_read_in_linear_time() -> None:
    spoken = load_languages("console")
    separators = " must be 7 to " * 280
    started = process_time()
    assert spoken.translate_reason("de", f"x{separators}?") is not None
    assert spoken.translate_reason("de", f"x{separators}7\nvisible?") is not None
    assert spoken.translate_reason("de", "too old; " * 8_000) is None
    assert process_time() - started < 0.5  # a pattern with three values took seconds


def test_exactly_the_events_about_a_person_have_texts() -> None:
    """A new kind of event needs texts, or its family is added to those that are never about a person."""
    described_events = {key.removeprefix("event.") for key in ENGLISH.texts if key.startswith("event.")}
    assert described_events == {event.value for event in AuditEvent if not event.startswith(NEVER_ABOUT_A_PERSON)}


def test_exactly_the_known_scopes_have_texts() -> None:
    assert {key.removeprefix("scope.") for key in ENGLISH.texts if key.startswith("scope.")} == {
        *SCOPES,
        "api",
        *(f"api_{scope}" for scope in APPLICATION_SCOPES),
    }


def test_the_pseudo_locale_is_longer_marked_and_fills_in_the_same() -> None:
    words = languages_with_pseudo()[PSEUDO]
    text = words("sign_in.to", application="Atlas")
    assert text == "[!! ţö çöñţîñûé ţö <strong><bdi>Atlas</bdi></strong> ~ ~ !!]"
    assert PSEUDO not in set(load_languages())
