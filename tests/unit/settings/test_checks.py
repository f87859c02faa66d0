import pytest

from gatehouse.settings.checks import LoadPurpose
from tests.unit.settings.installation import BASE_URL, MASTER, MASTER_KEY, SOUND, TemporaryInstallation

LISTEN_URL = "GATEHOUSE__DATABASE__LISTEN_URL"
POSTGRES = "postgresql://gate@db/gate"


def test_websockets_are_found_where_pages_are(installation: TemporaryInstallation) -> None:
    assert installation.load().settings.server.ws_url == "wss://login.studio.example"


def test_websockets_may_be_elsewhere(installation: TemporaryInstallation) -> None:
    loaded = installation.load(SOUND | {"GATEHOUSE__SERVER__WS_URL": "wss://ws.studio.example"})
    assert loaded.settings.server.ws_url == "wss://ws.studio.example"


def test_websockets_in_the_clear_are_refused(installation: TemporaryInstallation) -> None:
    [problem] = installation.problems(SOUND | {"GATEHOUSE__SERVER__WS_URL": "ws://ws.studio.example"})
    assert problem.startswith("GATEHOUSE__SERVER__WS_URL: must be wss")


def test_serving_needs_to_be_told_its_address(installation: TemporaryInstallation) -> None:
    [problem] = installation.problems({MASTER: MASTER_KEY}, purpose=LoadPurpose.SERVE)
    assert problem.startswith("server.base_url: is missing")


def test_other_commands_use_the_address_the_database_remembers(installation: TemporaryInstallation) -> None:
    loaded = installation.load({MASTER: MASTER_KEY}).with_stored_base_url("https://kept.example")
    assert loaded.settings.server.base_url == "https://kept.example"
    assert loaded.settings.server.ws_url == "wss://kept.example"
    assert loaded.sources["server.base_url"] == "database"


def test_the_address_implied_by_dev_gives_way_to_the_remembered_one(installation: TemporaryInstallation) -> None:
    loaded = installation.load({}, dev=True).with_stored_base_url("http://localhost:9999")
    assert loaded.settings.server.base_url == "http://localhost:9999"


def test_a_remembered_address_leaves_a_given_one_alone(installation: TemporaryInstallation) -> None:
    loaded = installation.load(SOUND | {"GATEHOUSE__SERVER__WS_URL": "wss://ws.studio.example"})
    assert loaded.with_stored_base_url("https://kept.example") == loaded


def test_a_remembered_address_leaves_given_websockets_alone(installation: TemporaryInstallation) -> None:
    environment = {MASTER: MASTER_KEY, "GATEHOUSE__SERVER__WS_URL": "wss://ws.studio.example"}
    loaded = installation.load(environment).with_stored_base_url("https://kept.example")
    assert loaded.settings.server.ws_url == "wss://ws.studio.example"


def test_sqlite_is_served_by_one_process(installation: TemporaryInstallation) -> None:
    assert installation.problems(flags={"server.workers": "2"}) == (
        "--workers: must be 1 with SQLite; more processes need PostgreSQL",
    )


def test_postgresql_may_be_served_by_many(installation: TemporaryInstallation) -> None:
    loaded = installation.load(SOUND | {"GATEHOUSE__DATABASE__URL": POSTGRES}, flags={"server.workers": "2"})
    assert loaded.settings.server.workers == 2


def test_a_listen_address_without_postgresql_is_refused(installation: TemporaryInstallation) -> None:
    [problem] = installation.problems(SOUND | {LISTEN_URL: POSTGRES})
    assert problem == f"{LISTEN_URL}: has no effect with SQLite; remove it, or set database.url"


def test_a_listen_address_is_never_sqlite(installation: TemporaryInstallation) -> None:
    [problem] = installation.problems(SOUND | {LISTEN_URL: "sqlite:///x.db"})
    assert problem == f"{LISTEN_URL}: must be postgresql://USER@HOST/DATABASE"


def test_a_pool_is_not_smaller_than_what_it_keeps_open(installation: TemporaryInstallation) -> None:
    [problem] = installation.problems(SOUND | {"GATEHOUSE__DATABASE__POOL_MIN": "11"})
    assert problem.endswith("must not be above database.pool_max, which is 10")


def test_the_directory_of_application_keys_exists(installation: TemporaryInstallation) -> None:
    missing = installation.data / "keys"
    environment = SOUND | {"GATEHOUSE__APPLICATIONS__KEYS_DIR": str(missing)}
    assert installation.problems(environment) == (f"GATEHOUSE__APPLICATIONS__KEYS_DIR: {missing} is not a directory",)
    missing.mkdir()
    assert installation.load(environment).settings.applications.keys_dir == str(missing)


def test_the_directory_of_application_keys_is_absolute(installation: TemporaryInstallation) -> None:
    [problem] = installation.problems(SOUND | {"GATEHOUSE__APPLICATIONS__KEYS_DIR": "keys"})
    assert problem.endswith("must be an absolute path, not 'keys'")


def test_a_strong_token_and_pepper_are_accepted(installation: TemporaryInstallation) -> None:
    strong = "Zq8vK2mX4tR9wLp6sYb3nHc7dJf5gTaU"
    loaded = installation.load(
        SOUND | {"GATEHOUSE__OPERATIONS__TOKEN": strong, "GATEHOUSE__SECURITY__PASSWORD_PEPPER": strong}
    )
    assert loaded.settings.operations.token.reveal() == strong
    assert loaded.settings.security.password_pepper.reveal() == strong


@pytest.mark.parametrize(
    ("flags", "address"),
    [
        ({}, "http://localhost:8080"),
        ({"server.port": "9000"}, "http://localhost:9000"),
        ({"server.port": "80"}, "http://localhost"),
        ({"server.host": "127.0.0.7", "server.port": "9000"}, "http://127.0.0.7:9000"),
        ({"server.host": "::1"}, "http://[::1]:8080"),
    ],
)
def test_dev_base_url_follows_host_and_port(
    installation: TemporaryInstallation, flags: dict[str, str], address: str
) -> None:
    loaded = installation.load({}, flags=flags, dev=True, purpose=LoadPurpose.SERVE)
    assert loaded.settings.server.base_url == address
    assert loaded.settings.server.ws_url == address.replace("http", "ws")
    assert loaded.sources["server.base_url"] == "dev"


def test_dev_mode_allows_session_info_from_this_machine(installation: TemporaryInstallation) -> None:
    loaded = installation.load({}, dev=True)
    assert [str(network) for network in loaded.settings.game.session_info_allow] == ["127.0.0.0/8", "::1/128"]
    assert loaded.sources["game.session_info_allow"] == "dev"


def test_dev_never_opens_outbound_requests(installation: TemporaryInstallation) -> None:
    assert installation.load({}, dev=True).settings.outbound.allow == ()


def test_dev_implies_nothing_that_was_given(installation: TemporaryInstallation) -> None:
    loaded = installation.load({}, toml='log.format = "json"\ngame.session_info_allow = []', dev=True)
    assert loaded.settings.log.format == "json"
    assert loaded.settings.game.session_info_allow == ()


def test_dev_mode_accepts_https_on_localhost(installation: TemporaryInstallation) -> None:
    loaded = installation.load({BASE_URL: "https://localhost:8443"}, dev=True)
    assert loaded.settings.server.base_url == "https://localhost:8443"
