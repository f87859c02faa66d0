"""Settings about clients with a metadata document, and about the certificates of outbound calls."""

from pathlib import Path

import pytest

from tests.unit.settings.installation import SOUND, TemporaryInstallation

HOSTS = "GATEHOUSE__OAUTH__CLIENT_DOCUMENT_HOSTS"
CA_FILE = "GATEHOUSE__OUTBOUND__CA_FILE"


def test_documents_are_accepted_from_listed_hosts_only(installation: TemporaryInstallation) -> None:
    assert installation.load().settings.oauth.client_document_hosts == ()
    loaded = installation.load(SOUND | {HOSTS: "client.example, tools.example:8443"})
    assert loaded.settings.oauth.client_document_hosts == ("client.example", "tools.example:8443")


@pytest.mark.parametrize(
    "host",
    [
        *("Client.example", "*.client.example", ".client.example", "client.example.", "10.0.0.1", "[::1]"),
        *("https://client.example", "client.example/", "client.example:443", "client.example:0", "client.example:"),
        *("client.example:70000", "c\u043eient.example"),
    ],
)
def test_host_that_no_document_can_have_is_refused(installation: TemporaryInstallation, host: str) -> None:
    [problem] = installation.problems(SOUND | {HOSTS: f"client.example,{host}"})
    assert problem.startswith(HOSTS)


def test_ca_file_without_certificates_is_refused(installation: TemporaryInstallation, tmp_path: Path) -> None:
    missing, empty = tmp_path / "missing.pem", tmp_path / "empty.pem"
    empty.write_text("no certificate")
    assert "cannot read" in installation.problems(SOUND | {CA_FILE: str(missing)})[0]
    assert "no certificates" in installation.problems(SOUND | {CA_FILE: str(empty)})[0]
