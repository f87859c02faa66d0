"""Commands, scripts and settings files of the guides, at a running service; longer guides have tests of their own."""

import asyncio
import json
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from gatehouse.kernel.graphics import Color
from gatehouse.settings.merge import load
from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.guides import programs_for, script_steps, session_steps, type_command
from tests.support.png import png
from tests.support.service import FAST_SETTINGS, PATIENCE, RunningService
from tests.support.studio import FACTOR, OTHER_USER, PROJECT, Studio, a_studio

SERVICE: Final = "https://sso.studio.example"  # of the guides
CONFIGURING: Final = [
    *("guests", "platform-login", "proof-of-work", "settings"),
    *("sign-in-providers", "sign-in-without-password", "terms"),
]
KICK: Final = {"user": {"kick": {"value": True}}}
SECRETS: Final = ("providers.steam.publisher_key", "providers.google.client_secret")  # the command asks for them
pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl, which the guides show")


@pytest.fixture
def gatehouse(installed_url: str, tmp_path: Path) -> CommandLine:
    """Commands on the installation that `service` serves."""
    return InstallationPaths(data=tmp_path, url=installed_url).command_line()


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


async def run_script(script: str, service: RunningService, **values: str) -> str:
    script = script.replace(SERVICE, service.base_url)
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", **values}
    process = await asyncio.create_subprocess_exec(
        "bash", "-euc", script, env=environment, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


async def test_settings_of_the_guides_are_stored_while_the_service_runs(
    service: RunningService, gatehouse: CommandLine
) -> None:
    commands = [
        command
        for guide in CONFIGURING
        for script in programs_for(__file__, guide, "sh")
        for command in script_steps(script)
        if command.startswith("gatehouse ")
    ]
    assert len(commands) == 10
    for command in commands:
        asks = command.endswith(SECRETS) or any(f"{name} " in command for name in SECRETS)
        words = f"{command} --password-stdin" if asks else command
        printed = await asyncio.to_thread(type_command, gatehouse, words, {}, stdin="a secret\n" if asks else "")
        assert printed.startswith(("Stored.", "languages.default removed")), command
    await service.services.core.live_settings.reload()
    settings = service.services.settings
    assert (settings.guests.enabled, settings.guests.applications) == (True, ("50010",))
    assert settings.providers["unity"].tickets == ("50001:upid:1234abcd-0000-0000-0000-000000000000",)
    assert (settings.sessions.idle_hours, settings.languages.default) == (24, "en")
    assert settings.terms.keys() == {"privacy", "privacyde"}


async def test_terms_of_the_guide_are_applied(
    service: RunningService, gatehouse: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "terms.yaml"
    file.write_text("".join(programs_for(__file__, "terms", "yaml")))
    await asyncio.to_thread(gatehouse, "apply", file)
    await service.services.core.live_settings.reload()
    assert service.services.settings.terms["privacy"].version == "2026-11"


@pytest.mark.parametrize("guide", ["branding", "connect-a-client", "protect-a-site", "sign-in-providers"])
def test_settings_files_of_the_guides_are_accepted(guide: str, tmp_path: Path) -> None:
    (shown,) = programs_for(__file__, guide, "toml")
    logo = png(64, 64, Color(red=1, green=2, blue=3))
    for name, content in {"logo.png": logo, "logo-on-dark.png": logo, "google.secret": b"a secret\n"}.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o600)
    (tmp_path / "gatehouse.toml").write_text(shown.replace("/etc/gatehouse/", f"{tmp_path}/"))
    loaded = load(data=tmp_path, config=None, dev=True, environment=FAST_SETTINGS, flags={})
    ((section, values),) = tomllib.loads(shown).items()
    given = {name for name in loaded.sources if name.startswith(f"{section}.") and loaded.is_locked(name)}
    assert given, values


async def test_guest_asks_for_the_challenge_of_the_guide(service: RunningService, gatehouse: CommandLine) -> None:
    turn_on, ask = programs_for(__file__, "guests", "sh")
    await asyncio.to_thread(type_command, gatehouse, turn_on, {})
    await service.services.core.live_settings.reload()
    answer = json.loads(await run_script(ask.replace("curl ", "curl -s "), service))
    assert answer.keys() == {"status", "challenge", "expires_in"}
    assert answer["status"] == "CHALLENGE"


async def test_ban_of_the_guide_keeps_a_person_out(studio: Studio) -> None:
    (ban,) = programs_for(__file__, "bans", "sh")
    script = ban.replace("curl ", "curl -s ").replace("50001", str(studio.shop.application_id))
    answer = json.loads(await run_script(script, studio.service, JWT=studio.owner.jwt, FACTOR=FACTOR))
    assert answer["status"] == "OK", answer
    assert answer["data"]["public_text"] == "Cheating in ranked games"
    banned = await studio.service.services.storage.accounts.user(OTHER_USER)
    assert banned.is_banned_anywhere(studio.service.clock.now())


async def test_change_stream_of_the_guide_tells_a_change(studio: Studio) -> None:
    [(command, printed)] = session_steps(*programs_for(__file__, "change-stream", "console"))
    words = command.replace("curl ", "exec curl -s ", 1).replace(SERVICE, studio.service.base_url)
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-euc",
        words,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "GATEHOUSE_KEY": await studio.access_key()},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert (await process.stdout.readline()).decode() == f"{printed.splitlines()[0]}\n" == "retry: 2000\n"
    assert (await process.stdout.readline()).startswith(b"id: ")
    ask = {"action": "save", "application_id": studio.shop.application_id}
    await studio.expect_ok(
        "meta/data", {**ask, "data": {"user_id": OTHER_USER, "private_data": KICK}}, studio.owner.headers
    )
    await studio.service.services.audit.sealer.seal_all()
    async with asyncio.timeout(PATIENCE):
        while b"user_schema.saved" not in (line := await process.stdout.readline()):
            assert line
    shown = json.loads(printed.splitlines()[-1].removeprefix("data: "))
    told: Mapping[str, object] = json.loads(line.removeprefix(b"data: "))
    assert told.keys() == shown.keys()
    assert (told["kind"], told["event"], told["user_id"]) == (shown["kind"], shown["event"], OTHER_USER)
    process.terminate()
    await process.wait()


async def test_commands_of_the_management_guide_change_roles_and_projects(
    studio: Studio, gatehouse: CommandLine
) -> None:
    (shown,) = programs_for(__file__, "management-api", "console")
    create, change, remove = [command for command, _ in session_steps(shown)]
    for command in (create, change, f"{remove} --yes"):
        await asyncio.to_thread(type_command, gatehouse, command, {})
    project = await studio.service.services.storage.projects.project(PROJECT)
    assert project.project.aliases == ("mg", "minds")
