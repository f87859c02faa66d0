"""Sign-in providers in the settings file and the environment: a table for each."""

from pathlib import Path

import pytest

from gatehouse.settings.merge import LoadedSettings, SettingsRefused, load

FILE = """
[providers.google]
kind = "google"
client_id = "1234"
allowed_domains = ["studio.example"]
"""
SECRET = {"GATEHOUSE__PROVIDERS__GOOGLE__CLIENT_SECRET": "s3cret-of-google"}

STEAM = {**SECRET, "GATEHOUSE__PROVIDERS__STEAM__KIND": "steam"}
HUB = {
    **SECRET,
    "GATEHOUSE__PROVIDERS__HUB__KIND": "github",
    "GATEHOUSE__PROVIDERS__HUB__CLIENT_ID": "1",
    "GATEHOUSE__PROVIDERS__HUB__CLIENT_SECRET": "s3cret-of-the-hub",
}


def load_with(data: Path, environment: dict[str, str], file: str = FILE) -> LoadedSettings:
    (data / "gatehouse.toml").write_text(file)
    return load(data=data, config=None, dev=True, environment=environment, flags={})


def test_provider_is_read_from_the_file_and_the_environment_together(tmp_path: Path) -> None:
    loaded = load_with(tmp_path, SECRET)
    (provider,) = loaded.settings.providers.values()
    assert (provider.kind, provider.client_id, provider.allowed_domains) == ("google", "1234", ("studio.example",))
    assert provider.client_secret.reveal() == "s3cret-of-google"
    assert "s3cret" not in repr(loaded)
    assert loaded.is_locked("providers.google.client_id")
    assert not loaded.is_locked("providers.google.name")  # the database may give it


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({}, "providers.google.client_secret: is missing"),
        ({**SECRET, "GATEHOUSE__PROVIDERS__GOOGLE__CLIENTID": "x"}, "did you mean"),
        ({**SECRET, "GATEHOUSE__PROVIDERS__GUEST__KIND": "steam"}, "unknown setting"),
        ({**SECRET, "GATEHOUSE__PROVIDERS__ACME__ISSUER": "ftp://acme.example"}, "must be a URL"),
        ({**SECRET, "GATEHOUSE__PROVIDERS__ACME__KIND": "myspace"}, "must be one of oidc, google"),
        ({**SECRET, "GATEHOUSE__PROVIDERS__GOOGLE__TAGS": "hd=x:2step"}, "managed automatically"),
        ({**SECRET, "GATEHOUSE__PROVIDERS__GOOGLE__TICKETS": "game"}, "must be APPLICATION:AUDIENCE"),
        ({**STEAM, "GATEHOUSE__PROVIDERS__STEAM__TICKETS": "7:480"}, "providers.steam.publisher_key: is missing"),
        ({**STEAM, "GATEHOUSE__PROVIDERS__STEAM__TICKETS": "7:portal"}, "app ID, which is a number"),
        ({**HUB, "GATEHOUSE__PROVIDERS__HUB__TICKETS": "7:game"}, "kind github has no tickets"),
        ({**SECRET, "GATEHOUSE__PROVIDERS__PSN__KIND": "jwt"}, "providers.psn.keys_url: is missing"),
    ],
)
def test_incomplete_misspelled_and_reserved_providers_prevent_a_start(
    tmp_path: Path, environment: dict[str, str], problem: str
) -> None:
    with pytest.raises(SettingsRefused, match=problem):
        load_with(tmp_path, environment)


@pytest.mark.parametrize("file", ["[providers]\nx = 3\n", '[providers.Big]\nkind = "steam"\n'])
def test_malformed_table_of_a_provider_is_named(tmp_path: Path, file: str) -> None:
    with pytest.raises(SettingsRefused, match=r"providers\.(x|Big)"):
        load_with(tmp_path, {}, file)


def test_incomplete_provider_may_be_turned_off(tmp_path: Path) -> None:
    loaded = load_with(tmp_path, {"GATEHOUSE__PROVIDERS__GOOGLE__ENABLED": "false"})
    assert not loaded.settings.providers["google"].enabled
