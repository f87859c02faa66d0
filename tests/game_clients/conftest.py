"""A game in each language, and a desktop that opens its links."""

import ipaddress
import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.game_clients.support.desktop import Desktop
from tests.game_clients.support.games import BUILT, GAMES, Game
from tests.game_clients.support.player import LOGIN, NICK, PASSWORD
from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.processes import Node

WHOLE: Final = "INTEROP_WHOLE" in os.environ  # noqa: TID251 - set by `make interop`
TRIES: Final = 1_000  # far more than fit into that second
# These start quickly: `make test` runs every test with them, and with the others only the sample.
QUICK_GAMES: Final = ("python", "cpp")
SAMPLE: Final = (
    "test_a_client_polls_as_the_rules_say",
    "test_a_client_keeps_tokens_to_itself",
    "test_a_client_tells_a_banned_player_why_and_until_when",
    "test_a_client_talks_over_tls_or_to_its_own_machine",
    "test_a_player_confirms_in_the_browser_and_is_signed_in",
    "test_a_game_that_cancels_takes_its_link_with_it",
    "test_an_address_that_is_none_is_not_opened",
    "test_ticket_is_sent_and_every_answer_understood",
    "test_guest_signs_the_challenge_and_solves_the_puzzle",
    "test_guest_comes_back_and_gets_an_account",
    "test_id_token_for_the_back_end_of_the_guide_is_in_the_login_data",
    "test_a_json_reader_of_our_own_takes_nothing_but_json",
)


def is_in_sample(item: pytest.Item) -> bool:
    """Whether `make test` runs this test."""
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return True
    return item.callspec.params.get("game", "python") in QUICK_GAMES or item.originalname in SAMPLE


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if WHOLE:
        return
    config.hook.pytest_deselected(items=[item for item in items if not is_in_sample(item)])
    items[:] = [item for item in items if is_in_sample(item)]


@pytest.fixture(scope="session", params=GAMES)
def game(request: pytest.FixtureRequest) -> Game:
    """A game, rebuilt when its sources have changed."""
    language: str = request.param
    return GAMES[language](BUILT / language)


@dataclass(frozen=True, slots=True, kw_only=True)
class GameStudio:
    """The running service, set up for a game."""

    base_url: str
    commands: CommandLine
    user_id: str
    application_id: int

    def info(self, link: str) -> dict[str, Any]:
        """Session info for the session of a link."""
        body = {"gsid": link.partition("gsid=")[2]}
        answer = httpx2.post(f"{self.base_url}/proxy/api/gameSession/info", json=body)
        session: dict[str, Any] = answer.raise_for_status().json()["session"]
        return session

    def record(self, record_id: str) -> str:
        """The audit record of an error id that a game received."""
        return self.commands("audit", "show", "--record", record_id)


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GameStudio]:
    """One service for all games of a test process, started from the command line."""
    home = tmp_path_factory.mktemp("studio")
    installation = InstallationPaths(data=home / "data", url=f"sqlite:///{home / 'gatehouse.db'}")
    with Node(data=installation.data, environment=installation.settings) as node:
        commands = installation.command_line()
        described = home / "game.yaml"
        described.write_text("applications: [{application_id: 50010, name: Sky Raiders}]")
        commands("apply", described)
        words = ("user", "create", "--login", LOGIN, "--nick", NICK, "--password-stdin")
        user_id = commands(*words, stdin=PASSWORD).strip()
        yield GameStudio(base_url=node.base_url, commands=commands, user_id=user_id, application_id=50010)


def turn_guests_on(studio: GameStudio) -> GameStudio:
    """Let guests sign in; the service notices within a second."""
    studio.commands("config", "set", "guests.enabled=true")
    for _ in range(TRIES):
        if httpx2.post(f"{studio.base_url}/proxy/api/guest", json={}).is_success:
            return studio
    raise AssertionError("the service did not notice the setting")


@pytest.fixture
def desktop(tmp_path: Path) -> Iterator[Desktop]:
    new_desktop = Desktop(tmp_path)
    yield new_desktop
    new_desktop.close()


@pytest.fixture(scope="session")
def self_signed(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """A server context with a certificate for this machine that is valid except for its issuer."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    start = datetime(2026, 1, 1, tzinfo=UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=36_500))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path_factory.mktemp("tls") / "both.pem"
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    pem.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, form, plain)
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context
