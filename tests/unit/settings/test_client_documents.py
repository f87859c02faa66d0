"""Settings about clients with a metadata document, and about the certificates of outbound calls."""

from pathlib import Path

import pytest

from tests.unit.settings.installation import SOUND, TemporaryInstallation

HOSTS = "GATEHOUSE__OAUTH__CLIENT_DOCUMENT_HOSTS"
APP_URIS = "GATEHOUSE__OAUTH__CLIENT_DOCUMENT_APP_URIS"
CA_FILE = "GATEHOUSE__OUTBOUND__CA_FILE"


def test_documents_are_accepted_from_listed_hosts_only(installation: TemporaryInstallation) -> None:
    assert installation.load().settings.oauth.client_document_hosts == ()
    listed = ("client.example", "tools.example:8443", "*.tools.example", "*.desk.github.io")
    assert installation.load(SOUND | {HOSTS: ", ".join(listed)}).settings.oauth.client_document_hosts == listed


@pytest.mark.parametrize(
    "host",
    [
        *(
            "Client.example",
            "*.*.client.example",
            "*client.example",
            "*.example",
            "*.co.uk",
            "*.github.io",
            "*.localhost",
        ),
        *(
            "*.client.example:443",
            "*",
            "*.",
            "a.*.client.example",
            ".client.example",
            "client.example.",
            "10.0.0.1",
            "[::1]",
        ),
        *("https://client.example", "client.example/", "client.example:443", "client.example:0", "client.example:"),
        *("client.example:70000", "c\u043eient.example"),
    ],
)
def test_host_that_no_document_can_have_is_refused(installation: TemporaryInstallation, host: str) -> None:
    [problem] = installation.problems(SOUND | {HOSTS: f"client.example,{host}"})
    assert problem.startswith(HOSTS)


def test_private_scheme_is_listed_for_one_host_as_one_exact_uri(installation: TemporaryInstallation) -> None:
    listed = ("client.example=com.example.app:/back?a=b", "client.example=notes://back")
    loaded = installation.load(SOUND | {APP_URIS: ",".join(listed)})
    assert loaded.settings.oauth.client_document_app_uris == listed
    for wrong in (
        *("com.example.app:/back", "client.example", "client.example=", "*.client.example=notes://back"),
        *("client.example=https://evil.example/", "client.example=javascript:/x", "client.example=http://127.0.0.1/"),
        "client.example=ms-word:/x",
    ):
        [problem] = installation.problems(SOUND | {APP_URIS: wrong})
        assert problem.startswith(APP_URIS)


def test_ca_file_without_certificates_is_refused(installation: TemporaryInstallation, tmp_path: Path) -> None:
    missing, empty = tmp_path / "missing.pem", tmp_path / "empty.pem"
    empty.write_text("no certificate")
    assert "cannot read" in installation.problems(SOUND | {CA_FILE: str(missing)})[0]
    assert "no certificates" in installation.problems(SOUND | {CA_FILE: str(empty)})[0]
