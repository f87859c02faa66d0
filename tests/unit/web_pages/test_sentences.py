"""Audit records as sentences."""

from msgspec.structs import replace

from gatehouse.admin.activity import RecordNames
from gatehouse.audit.events import AuditEvent
from gatehouse.web.console.activity_sentences import sentence_of
from gatehouse.web.console.activity_text import detail_lines
from gatehouse.web.pages.translations import load_languages
from tests.support.builders import a_record

NAMES = RecordNames(
    people={"1": "Jonas <Weber>", "2": "Noor"}, applications={50001: "Sky Raiders"}, clients={"hub": "Raiders Hub"}
)


def sentence(event: AuditEvent, actor: str = "1", subject: str = "1", lang: str = "en", **details: str | int) -> str:
    record = replace(a_record(), event=event.value, actor=actor, subject=subject, details=details)
    return str(sentence_of(load_languages("console")[lang], record, NAMES, detail_lines(details)))


def test_every_event_has_a_sentence_in_every_language() -> None:
    for lang in load_languages("console"):
        t = load_languages("console")[lang]
        for event in AuditEvent:
            assert t(f"sentence.{event}", actor="a", subject="b", target="c", name="d"), (lang, event)


def test_sentences_name_people_applications_and_what_was_changed() -> None:
    jonas = "<bdi>Jonas &lt;Weber&gt;</bdi>"
    assert sentence(AuditEvent.SIGNED_IN) == f"{jonas} signed in"
    assert sentence(AuditEvent.LOGGED_IN, app_id=50001) == f"{jonas} signed in to <bdi>Sky Raiders</bdi>"
    assert sentence(AuditEvent.GRANT_MADE, client="hub") == f"{jonas} signed in to <bdi>Raiders Hub</bdi>"
    assert sentence(AuditEvent.USER_BLOCKED, subject="2") == f"{jonas} blocked <bdi>Noor</bdi>"
    assert sentence(AuditEvent.USER_ERASED) == f"{jonas} deleted their account"
    gained = {"application_id": 50001, "roles": "[] -> [{'name': 'moderator', 'expired': 0}]"}
    assert sentence(AuditEvent.USER_SCHEMA_SAVED, subject="2", **gained) == (
        f"{jonas} assigned the role <bdi>moderator</bdi> to <bdi>Noor</bdi> in <bdi>Sky Raiders</bdi>"
    )
    lost = {"application_id": 50001, "roles": "[{'name': 'a', 'expired': 0}, {'name': 'b', 'expired': 0}] -> []"}
    assert "removed the roles <bdi>a, b</bdi> from" in sentence(AuditEvent.USER_SCHEMA_SAVED, subject="2", **lost)
    assert "die Rollen <bdi>a, b</bdi>" in sentence(AuditEvent.USER_SCHEMA_SAVED, subject="2", lang="de", **lost)


def test_the_end_of_a_role_is_a_date_in_the_readers_language_with_the_time_as_its_title() -> None:
    ending = {"application_id": 50001, "roles": "[] -> [{'name': 'moderator', 'expired': 1796189730}]"}
    exact = 'datetime="2026-12-02T05:35:30Z" title="2. Dezember 2026, 05:35 Uhr UTC" data-exact-title data-day'
    said = sentence(AuditEvent.USER_SCHEMA_SAVED, subject="2", lang="de", **ending)
    assert f"<bdi>moderator bis <time {exact}>2. Dezember 2026</time></bdi>" in said
    assert ">December 2, 2026</time></bdi>" in sentence(AuditEvent.USER_SCHEMA_SAVED, subject="2", **ending)


def test_sentences_say_what_has_no_name_by_its_kind() -> None:
    assert sentence(AuditEvent.KEY_MADE, actor="service") == "<bdi>Gatehouse</bdi> created a signing key"
    assert sentence(AuditEvent.USER_BLOCKED, actor="cli:root", subject="999") == (
        "<bdi>The command line</bdi> blocked <bdi>account 999</bdi>"
    )
    assert "<bdi>project gone</bdi>" in sentence(AuditEvent.PROJECT_CHANGED, subject="project gone")


def test_a_client_as_actor_is_named_like_the_client() -> None:
    def revoked_by(actor: str) -> str:
        return sentence(AuditEvent.CLIENT_TOKENS_REVOKED, actor=actor, subject="hub")

    assert revoked_by("client:hub").startswith("<bdi>Raiders Hub</bdi> revoked")
    assert revoked_by("client:gone").startswith("<bdi>client gone</bdi> revoked")
    assert revoked_by("client:service").startswith("<bdi>client service</bdi> revoked"), "not the service itself"
