"""The mail section: complete, encrypted, and empty by default."""

import pytest

from tests.unit.settings.installation import SOUND, TemporaryInstallation

SERVER = {"GATEHOUSE__MAIL__HOST": "smtp.studio.example", "GATEHOUSE__MAIL__FROM_ADDRESS": "login@studio.example"}


def test_no_mail_server_is_needed(installation: TemporaryInstallation) -> None:
    mail = installation.load().settings.mail
    assert (mail.host, mail.port, mail.security, mail.from_name) == ("", 587, "starttls", "Gatehouse")


def test_a_mail_server_and_a_sender_are_enough(installation: TemporaryInstallation) -> None:
    mail = installation.load(SOUND | SERVER).settings.mail
    assert (mail.host, mail.from_address) == ("smtp.studio.example", "login@studio.example")


def test_a_mail_server_needs_a_sender(installation: TemporaryInstallation) -> None:
    [problem] = installation.problems(SOUND | {"GATEHOUSE__MAIL__HOST": "smtp.studio.example"})
    assert problem.startswith("mail.from_address: is missing")


@pytest.mark.parametrize("host", ["smtp.studio.example", "192.0.2.7", "localhost.studio.example"])
def test_mail_in_the_clear_stays_on_this_machine(installation: TemporaryInstallation, host: str) -> None:
    unsafe = SOUND | SERVER | {"GATEHOUSE__MAIL__HOST": host, "GATEHOUSE__MAIL__SECURITY": "none"}
    [problem] = installation.problems(unsafe)
    assert problem.startswith(f"GATEHOUSE__MAIL__SECURITY: must not be none for {host}")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.2", "::1"])
def test_a_server_on_this_machine_may_take_mail_in_the_clear(installation: TemporaryInstallation, host: str) -> None:
    local = SOUND | SERVER | {"GATEHOUSE__MAIL__HOST": host, "GATEHOUSE__MAIL__SECURITY": "none"}
    assert installation.load(local).settings.mail.security == "none"


@pytest.mark.parametrize("given", [("USERNAME", "gatehouse"), ("PASSWORD", "of the mail server")])
def test_a_sign_in_is_whole_or_none(installation: TemporaryInstallation, given: tuple[str, str]) -> None:
    [problem] = installation.problems(SOUND | SERVER | {f"GATEHOUSE__MAIL__{given[0]}": given[1]})
    assert "set both or neither" in problem
    assert "of the mail server" not in problem


@pytest.mark.parametrize(
    "address", ["gatehouse", "login@", "Login <login@studio.example>", "a@b, c@d", "jörg@studio.example"]
)
def test_the_sender_is_one_plain_address(installation: TemporaryInstallation, address: str) -> None:
    [problem] = installation.problems(SOUND | SERVER | {"GATEHOUSE__MAIL__FROM_ADDRESS": address})
    assert "must be an email address" in problem


def test_a_name_cannot_break_out_of_its_header(installation: TemporaryInstallation) -> None:
    [problem] = installation.problems(SOUND | SERVER, toml='mail.from_name = "Studio\\r\\nBcc: eve@evil.example"')
    assert "line break" in problem
