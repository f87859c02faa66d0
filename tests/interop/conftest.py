"""One service on SQLite for all clients of a test process, started from the command line."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2
import pytest

from tests.interop.person import LOGIN, NICK, PASSWORD, PersonInBrowser
from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.processes import Node
from tests.support.tls import NO_TRUST_STORE

WHOLE: Final = "INTEROP_WHOLE" in os.environ  # noqa: TID251 - set by `make interop`
TRIES: Final = 1_000  # far more than fit into the half second until the service notices a command's change


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredClient:
    client_id: str
    client_secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GatehouseNode:
    issuer: str
    commands: CommandLine
    user_id: str

    def register(self, client_id: str, *options: str) -> RegisteredClient:
        words = ("client", "create", client_id, "--name", client_id, *options)
        created = self.commands.json(*words)
        return RegisteredClient(client_id=client_id, client_secret=created["client_secret"] or "")

    def publish_new_keys(self) -> None:
        """Publish new keys, the first half of a planned rotation: verifiers have an hour to fetch them."""
        kids = {key["kid"] for key in self.commands.json("key", "rotate", "--purpose", "tokens")}
        with httpx2.Client(base_url=self.issuer, verify=NO_TRUST_STORE) as client:
            for _ in range(TRIES):
                if kids <= {key["kid"] for key in client.get("/proxy/oauth/keys").json()["keys"]}:
                    return
        raise AssertionError("the service did not load its new keys")

    def sign_with_new_keys(self) -> None:
        """Sign with new keys, the second half of a rotation, or all of it; the service notices within a second."""
        self.commands("key", "rotate", "--purpose", "tokens", "--now")


@pytest.fixture(scope="session")
def gatehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatehouseNode]:
    home: Path = tmp_path_factory.mktemp("gatehouse")
    installation = InstallationPaths(data=home / "data", url=f"sqlite:///{home / 'gatehouse.db'}")
    with Node(data=installation.data, environment=installation.settings) as node:
        commands = installation.command_line()
        words = ("user", "create", "--login", LOGIN, "--nick", NICK, "--password-stdin")
        user_id = commands(*words, stdin=PASSWORD).strip()
        yield GatehouseNode(issuer=node.base_url, commands=commands, user_id=user_id)


@pytest.fixture
def person(gatehouse: GatehouseNode) -> Iterator[PersonInBrowser]:
    someone = PersonInBrowser(gatehouse.issuer)
    yield someone
    someone.client.close()
