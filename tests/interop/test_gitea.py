"""Gitea, set up as its guide says."""

import pwd
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Final

import httpx2
import pytest

from tests.interop.conftest import WHOLE, GatehouseNode, RegisteredClient
from tests.interop.person import LOGIN, PersonInBrowser
from tests.interop.toolchains import CLIENTS, find_gitea
from tests.support.capabilities import Capability, require_program
from tests.support.guides import programs_for
from tests.support.nginx import wait_until_listening
from tests.support.postgres import make_server_directory, server_user
from tests.support.processes import LOOPBACK, WatchedProcess, free_port, inherited_environment

GITEA: Final = Capability(name="Gitea", find=cache(find_gitea), optional=True)
GUIDE: Final = "connect-gitea"
COMMANDS: Final = programs_for(__file__, GUIDE, "console")
(GITEA_SETTINGS,) = programs_for(__file__, GUIDE, "ini")
CONFIGURATION: Final = Template((CLIENTS / "gitea" / "app.ini").read_text())
TIMEOUT: Final = 60  # seconds for a command


@dataclass(frozen=True, slots=True, kw_only=True)
class GiteaInstallation:
    program: Path
    place: Path
    port: int

    @property
    def home(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def words_of_guide(self, command: str, gatehouse: GatehouseNode, secret: str = "") -> list[str]:
        """The command of the guide, with the addresses and the secret of the test."""
        (shown,) = (one for one in COMMANDS if one.startswith(f"$ {command} "))
        line = (
            shown.removeprefix(f"$ {command} ").replace("\\\n", " ").replace("https://git.studio.example", self.home)
        )
        line = line.replace("https://sso.studio.example", gatehouse.issuer)
        return shlex.split(line.replace("$OIDC_CLIENT_SECRET", secret))

    def set_up(self, gatehouse: GatehouseNode, secret: str) -> None:
        owner = server_user()
        settings = {
            "user": owner.pw_name if owner else pwd.getpwuid(self.place.stat().st_uid).pw_name,
            "place": self.place,
            "port": self.port,
            "home": self.home,
            "static": self.program.parent,
        }
        (self.place / "app.ini").write_text(CONFIGURATION.substitute(settings) + GITEA_SETTINGS)
        if owner is not None:
            shutil.chown(self.place / "app.ini", owner.pw_uid, owner.pw_gid)
        self.run("migrate")
        self.run("admin", *self.words_of_guide("gitea admin", gatehouse, secret))

    def command(self, *words: str) -> list[str]:
        return [str(self.program), "--config", str(self.place / "app.ini"), *words]

    @property
    def environment(self) -> dict[str, str]:
        return inherited_environment({"HOME": str(self.place)})

    def run(self, *words: str) -> None:
        owner = server_user()
        ended = subprocess.run(
            self.command(*words),
            env=self.environment,
            user=owner.pw_uid if owner else None,
            group=owner.pw_gid if owner else None,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.fixture
def gitea() -> Iterator[GiteaInstallation]:
    program, place = require_program(GITEA), make_server_directory()
    yield GiteaInstallation(program=program, place=place, port=free_port())
    shutil.rmtree(place)


@contextmanager
def serve_gitea(gitea: GiteaInstallation) -> Iterator[WatchedProcess]:
    with WatchedProcess(gitea.command("web"), environment=gitea.environment, user=server_user()) as process:
        wait_until_listening(gitea.port, process)
        yield process


def register(gitea: GiteaInstallation, gatehouse: GatehouseNode) -> RegisteredClient:
    client_id, _, _, *options = gitea.words_of_guide("gatehouse client create", gatehouse)
    return gatehouse.register(client_id, *options)


def settings_page(person: PersonInBrowser, gitea: GiteaInstallation) -> httpx2.Response:
    """The page with the person's account; someone who is not signed in is redirected."""
    return person.client.get(f"{gitea.home}/user/settings")


@pytest.mark.skipif(not WHOLE, reason="takes long: make interop runs it")
def test_gitea_creates_an_account_recognizes_it_logs_out_and_reports_a_wrong_secret(
    gitea: GiteaInstallation, gatehouse: GatehouseNode, person: PersonInBrowser
) -> None:
    gitea.set_up(gatehouse, register(gitea, gatehouse).client_secret)
    sign_in = f"{gitea.home}/user/oauth2/gatehouse"
    with serve_gitea(gitea) as process:
        assert settings_page(person, gitea).is_redirect
        assert person.open_address(sign_in).is_success, process.output()
        assert person.forms == ["password", "decision"]
        account = settings_page(person, gitea)
        assert account.is_success
        assert LOGIN in account.text

        gatehouse.sign_with_new_keys()
        person.client.cookies.delete("i_like_gitea")
        assert settings_page(person, gitea).is_redirect
        person.open_address(sign_in)
        assert LOGIN in settings_page(person, gitea).text
        assert person.forms == ["password", "decision"], "the person was asked to sign in again"

        assert str(person.open_address(f"{gitea.home}/user/logout").url) == f"{gitea.home}/"
        assert settings_page(person, gitea).is_redirect
        person.open_address(sign_in)
        assert LOGIN in settings_page(person, gitea).text
        assert person.forms == ["password", "decision", "sign-out", "password"], "the person was still signed in"

    gitea.run("admin", "auth", "update-oauth", "--id", "1", "--secret", "a secret of someone else")
    with serve_gitea(gitea):
        person.client.cookies.delete("i_like_gitea")
        assert "invalid_client" in person.open_address(sign_in).text
        assert settings_page(person, gitea).is_redirect
