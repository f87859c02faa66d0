"""Checklist OP-01 and OP-02: an unsafe or unclear installation does not start, and says why."""

from pathlib import Path

import pytest

from gatehouse.settings.checks import LoadPurpose
from tests.unit.settings.installation import (
    BASE_URL,
    MASTER,
    MASTER_KEY,
    OTHER_MASTER_KEY,
    SOUND,
    TemporaryInstallation,
)

TOKEN = "GATEHOUSE__OPERATIONS__TOKEN"


@pytest.fixture
def installation(tmp_path: Path) -> TemporaryInstallation:
    return TemporaryInstallation(tmp_path)


def test_op_01_a_sound_installation_starts(installation: TemporaryInstallation) -> None:
    assert installation.load(SOUND, purpose=LoadPurpose.SERVE).settings.server.base_url == SOUND[BASE_URL]


@pytest.mark.parametrize("host", ["login.studio.example", "localhost", "127.0.0.1:8080"])
def test_op_01_an_http_base_url_refuses_to_start(installation: TemporaryInstallation, host: str) -> None:
    assert installation.problems(SOUND | {BASE_URL: f"http://{host}"}) == (
        f"{BASE_URL}: must be https: passwords and tokens would be sent unencrypted",
    )


@pytest.mark.parametrize("url", ["http://localhost:8080", "http://127.0.0.5", "http://[::1]:8080"])
def test_op_01_dev_allows_http_on_this_machine(installation: TemporaryInstallation, url: str) -> None:
    assert installation.load({BASE_URL: url}, dev=True).settings.server.base_url == url


@pytest.mark.parametrize("url", ["http://login.studio.example", "https://login.studio.example", "http://10.0.0.1"])
def test_op_01_dev_refuses_an_address_beyond_this_machine(installation: TemporaryInstallation, url: str) -> None:
    [problem] = installation.problems({BASE_URL: url}, dev=True)
    assert problem.startswith(f"{BASE_URL}: must be on localhost, 127.0.0.0/8 or [::1] with --dev")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "login.studio.example"])  # noqa: S104
def test_op_01_dev_refuses_to_listen_beyond_this_machine(installation: TemporaryInstallation, host: str) -> None:
    assert installation.problems({}, flags={"server.host": host}, dev=True) == (
        f"--host: must be localhost, in 127.0.0.0/8 or ::1 with --dev, not {host}",
    )


@pytest.mark.parametrize("environment", [{}, {MASTER: ""}])
def test_op_01_a_missing_master_key_refuses_to_start(
    installation: TemporaryInstallation, environment: dict[str, str]
) -> None:
    [problem] = installation.problems(environment)
    assert "is missing; create a key file with `gatehouse key init`" in problem


@pytest.mark.parametrize("key", ["x", "short", MASTER_KEY[:-1], MASTER_KEY[:22], OTHER_MASTER_KEY[:-2]])
@pytest.mark.parametrize("dev", [False, True])
def test_op_01_a_short_master_key_refuses_to_start(
    installation: TemporaryInstallation, key: str, *, dev: bool
) -> None:
    environment = {MASTER: key}
    [problem] = installation.problems(environment, dev=dev)
    assert problem == f"{MASTER}: the master key must be 32 bytes in base64url, base64 or hex"


@pytest.mark.parametrize("key", ["A" * 43, "0" * 64, "00112233" * 8, b"change-me-change-me-change-me-!!".hex()])
def test_op_01_an_example_master_key_refuses_to_start(installation: TemporaryInstallation, key: str) -> None:
    [problem] = installation.problems(SOUND | {MASTER: key})
    assert problem.startswith(f"{MASTER}: the master key is an example")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o666])
def test_op_01_a_key_file_others_can_read_refuses_to_start(installation: TemporaryInstallation, mode: int) -> None:
    path = installation.write("master.key", MASTER_KEY, mode=mode)
    assert installation.problems({f"{MASTER}__FILE": str(path)}) == (
        f"{MASTER}__FILE: {path} is accessible to other users (mode {mode:04o}): run chmod 600",
    )


def test_op_01_a_key_file_named_in_toml_that_others_can_read_refuses_to_start(
    installation: TemporaryInstallation,
) -> None:
    installation.write("master.key", MASTER_KEY, mode=0o644)
    [problem] = installation.problems({}, toml='security.master_key = { file = "master.key" }')
    assert "master.key is accessible to other users (mode 0644)" in problem


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_op_01_a_key_file_only_its_owner_can_read_starts(installation: TemporaryInstallation, mode: int) -> None:
    path = installation.write("master.key", MASTER_KEY, mode=mode)
    assert installation.load({f"{MASTER}__FILE": str(path)}).settings.security.master_key.reveal() == MASTER_KEY


@pytest.mark.parametrize(
    "line",
    [
        f'security.master_key = "{MASTER_KEY}"',
        f'security.previous_master_keys = ["{MASTER_KEY}"]',
        'database.url = "postgresql://gate:swordfish@db/gate"',
    ],
)
def test_op_01_a_secret_in_a_settings_file_others_can_read_refuses_to_start(
    installation: TemporaryInstallation, line: str
) -> None:
    path = installation.write("open.toml", line, mode=0o644)
    [problem] = installation.problems({MASTER: MASTER_KEY} if "_key =" not in line else {}, config=path)
    assert f"is an unencrypted secret, and {path} is accessible to other users (mode 0644)" in problem


def test_op_01_a_settings_file_without_secrets_may_be_read_by_all(installation: TemporaryInstallation) -> None:
    path = installation.write("open.toml", 'database.url = "postgresql://gate@db/gate"', mode=0o644)
    assert installation.load(config=path).settings.database.url.reveal() == "postgresql://gate@db/gate"


def test_op_01_a_data_directory_made_with_dev_is_refused_with_the_way_out(
    installation: TemporaryInstallation,
) -> None:
    installation.load({}, dev=True)
    [problem] = installation.problems(SOUND)
    assert problem.startswith(
        f"--data: {installation.data}/dev.key shows that this data directory was created with --dev"
    )
    assert problem.index("`gatehouse key init`") < problem.index("`gatehouse key rewrap`")


@pytest.mark.parametrize("name", [TOKEN, "GATEHOUSE__SECURITY__PASSWORD_PEPPER"])
@pytest.mark.parametrize(
    ("secret", "complaint"),
    [
        ("tooshort", "is shorter than 32 characters"),
        ("a" * 40, "looks like an example; generate a random value"),
        ("change-me-Zq8vK2mX4tR9wLp6sYb3nHc7dJf5", "looks like an example; generate a random value"),
    ],
)
def test_op_01_a_short_or_example_secret_refuses_to_start(
    installation: TemporaryInstallation, name: str, secret: str, complaint: str
) -> None:
    assert installation.problems(SOUND | {name: secret}) == (f"{name}: {complaint}",)


def test_op_01_no_complaint_repeats_a_secret(installation: TemporaryInstallation) -> None:
    secret = "swordfish"
    problems = installation.problems(
        {
            MASTER: secret,
            TOKEN: secret,
            "GATEHOUSE__DATABASE__URL": f"mysql://gate:{secret}@db/gate",
            "GATEHOUSE__SECURITY__PASSWORD_PEPPER": f"{secret}\n",
            "GATEHOUSE__SECURITY__PREVIOUS_MASTER_KEYS": secret,
        },
        toml=f'operations.token = ["{secret}"]\nsecurity.master_key = {{ {secret} = "{secret}" }}',
    )
    assert len(problems) == 6
    assert not any(secret in problem for problem in problems)


@pytest.mark.parametrize("break_", ["\r\nSet-Cookie: a=b", "\n", "\r", "\x00", "\u2028"])
@pytest.mark.parametrize(
    "name",
    [BASE_URL, "GATEHOUSE__SERVER__WS_URL", "GATEHOUSE__SERVER__HOST", "GATEHOUSE__OPERATIONS__BIND", TOKEN],
)
def test_op_02_a_line_break_in_a_value_refuses_to_start(
    installation: TemporaryInstallation, name: str, break_: str
) -> None:
    assert installation.problems(SOUND | {name: f"https://x.example{break_}"}) == (
        f"{name}: contains a line break or another invisible character",
    )


def test_op_02_a_line_break_between_the_members_of_a_list_refuses_to_start(
    installation: TemporaryInstallation,
) -> None:
    [problem] = installation.problems(SOUND | {"GATEHOUSE__SERVER__TRUSTED_PROXIES": "10.0.0.0/8,\n::1/128"})
    assert problem.endswith("TRUSTED_PROXIES: contains a line break or another invisible character")


def test_op_02_a_line_break_in_the_file_refuses_to_start(installation: TemporaryInstallation) -> None:
    [problem] = installation.problems(toml=r'accounts.vendor_nick_field = "nick\r\nX-Evil: 1"')
    assert problem.endswith("accounts.vendor_nick_field: contains a line break or another invisible character")


def test_op_02_a_line_break_in_a_secret_file_refuses_to_start(installation: TemporaryInstallation) -> None:
    path = installation.write("master.key", f"{MASTER_KEY}\n\n")
    [problem] = installation.problems({f"{MASTER}__FILE": str(path)})
    assert problem == f"{MASTER}__FILE: contains a line break or another invisible character"


@pytest.mark.parametrize(
    "line",
    [
        'server.port = "8080"',
        "server.port = 80.5",
        "server.port = true",
        "server.base_url = 1",
        'server.trusted_proxies = "10.0.0.0/8"',
        "server.trusted_proxies = [10]",
        'rates.enabled = "true"',
        "rates.enabled = 1",
        'keys.rsa_bits = "2048"',
        "log.level = 2",
        "oauth.code_seconds = 1979-05-27",
        "[[server]]\nport = 1",
        "server.host = { name = 'localhost' }",
    ],
)
def test_op_02_a_value_of_the_wrong_type_refuses_to_start(installation: TemporaryInstallation, line: str) -> None:
    assert len(installation.problems(toml=line)) == 1


@pytest.mark.parametrize("line", ["[server]\nbaseurl = 'x'", "[sevrer]", "debug = true", "server.port.x = 1"])
def test_op_02_an_unknown_key_in_the_file_refuses_to_start(installation: TemporaryInstallation, line: str) -> None:
    assert len(installation.problems(toml=line)) == 1


def test_op_02_an_unknown_variable_refuses_to_start(installation: TemporaryInstallation) -> None:
    assert installation.problems(SOUND | {"GATEHOUSE__SERVER__BASEURL": "https://x.example"}) == (
        "GATEHOUSE__SERVER__BASEURL: unknown setting, did you mean GATEHOUSE__SERVER__BASE_URL?",
    )
