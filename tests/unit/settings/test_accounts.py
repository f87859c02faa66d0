"""Settings about who may have an account, and about forbidden passwords."""

import pytest

from tests.unit.settings.installation import SOUND, TemporaryInstallation

DOMAINS = "GATEHOUSE__ACCOUNTS__ALLOWED_DOMAINS"
REGISTRATION = "GATEHOUSE__ACCOUNTS__REGISTRATION"
BREACHED = "GATEHOUSE__ACCOUNTS__BREACHED_PASSWORDS"


def test_registration_is_closed_unless_it_is_opened_or_developed(installation: TemporaryInstallation) -> None:
    assert not installation.load().settings.accounts.registration
    assert installation.load(SOUND | {REGISTRATION: "true"}).settings.accounts.registration
    assert installation.load({}, dev=True).settings.accounts.registration
    assert not installation.load({REGISTRATION: "false"}, dev=True).settings.accounts.registration


def test_domains_are_a_list(installation: TemporaryInstallation) -> None:
    loaded = installation.load(SOUND | {DOMAINS: "studio.example, partner.example"})
    assert loaded.settings.accounts.allowed_domains == ("studio.example", "partner.example")
    toml = '[accounts]\nallowed_domains = ["studio.example"]\n'
    assert installation.load(toml=toml).settings.accounts.allowed_domains == ("studio.example",)
    assert installation.load(toml="").settings.accounts.allowed_domains == ()


@pytest.mark.parametrize("domain", ["Studio.example", "@studio.example", "*.example", "studio.example.", "a b", "10"])
def test_domain_that_cannot_match_an_email_is_refused(installation: TemporaryInstallation, domain: str) -> None:
    [problem] = installation.problems(SOUND | {DOMAINS: f"partner.example,{domain}"})
    assert problem.startswith(f"{DOMAINS}: must be a domain like studio.example")


def test_the_list_of_stolen_passwords_must_be_one(installation: TemporaryInstallation) -> None:
    right = installation.write("breached.txt", f"{'0' * 40}:1\n")
    assert installation.load(SOUND | {BREACHED: str(right)}).settings.accounts.breached_passwords == str(right)
    wrong = installation.write("words.txt", "password\nletmein\n")
    none = installation.data / "none.txt"
    for path, words in ((wrong, f"{wrong} does not start with"), (none, f"cannot read {none}")):
        [problem] = installation.problems(SOUND | {BREACHED: str(path)})
        assert problem.startswith(f"{BREACHED}: {words}")
    [relative] = installation.problems(SOUND | {BREACHED: "breached.txt"})
    assert "must be an absolute path" in relative
