"""Run the programs of docs/guides/protect-a-page.md: a page that needs a permission, in four frameworks.

The person is sent to sign in, gets a 403 without the permission, and sees the page after the next sign-in with it.
"""

import os
import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs

import pytest

from tests.interop.conftest import GatehouseNode, RegisteredClient
from tests.interop.person import PersonInBrowser
from tests.interop.programs import NODE
from tests.interop.toolchains import find_flask_and_fastapi, find_nextjs, find_node
from tests.support.capabilities import Capability, require_program
from tests.support.guides import programs_for
from tests.support.processes import WatchedProcess, free_port

WHOLE: Final = "INTEROP_WHOLE" in os.environ  # noqa: TID251 - set by `make interop`
GUIDE: Final = "protect-a-page"
PORT: Final = "3000"  # of the guide
APPLICATION: Final = "50040"
ENVIRONMENT: Final = {"PYTHONDONTWRITEBYTECODE": "1", "NEXT_TELEMETRY_DISABLED": "1"}
COMPILE_TIMEOUT: Final = 120.0  # seconds; Next.js compiles a page at its first request
PYTHON: Final = Capability(name="Flask and FastAPI", find=cache(find_flask_and_fastapi))
NEXTJS: Final = Capability(name="Next.js", find=cache(find_nextjs), optional=True)
NEXTJS_FILES: Final = (
    *("gatehouse.js", "app/login/route.js", "app/callback/route.js"),
    *("app/reports/page.js", "app/layout.js", "next.config.mjs"),
)


def python_module(interpreter: Path, words: Sequence[str]) -> Sequence[str]:
    return (str(interpreter), "-m", *words)


def node_program(_: Path, words: Sequence[str]) -> Sequence[str]:
    return (node(), *words[1:])


def node_package(home: Path, words: Sequence[str]) -> Sequence[str]:
    """The command of `npx`, without npm."""
    return (node(), str(home / "node_modules" / words[1] / "dist" / "bin" / words[1]), *words[2:])


def node() -> str:
    node_and_npm = find_node()
    assert node_and_npm is not None
    return node_and_npm[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    name: str  # also the heading in the guide
    needs: Capability
    files: Sequence[str]
    command: Callable[[Path, Sequence[str]], Sequence[str]]  # from the program's path and the words of the guide
    started: str  # the line it prints

    def write_files(self, home: Path, port: str) -> Sequence[str]:
        """Write the files that the guide shows; return the words of the command that starts them."""
        shown = [*blocks("python", self.name), *blocks("js", self.name)]
        for file, text in zip(self.files, shown, strict=True):
            (home / file).parent.mkdir(parents=True, exist_ok=True)
            (home / file).write_text(text.replace(PORT, port), encoding="utf-8")
        (command,) = blocks("sh", self.name)
        return shlex.split(command.replace(PORT, port))


FLASK: Final = Framework(
    name="Flask", needs=PYTHON, files=("reports.py",), command=python_module, started="Running on"
)
FASTAPI: Final = Framework(
    name="FastAPI", needs=PYTHON, files=("reports.py",), command=python_module, started="running on"
)
EXPRESS: Final = Framework(
    name="Express", needs=NODE, files=("reports.mjs",), command=node_program, started="Running on"
)
NEXT: Final = Framework(name="Next.js", needs=NEXTJS, files=NEXTJS_FILES, command=node_package, started="Ready in")
FRAMEWORKS: Final = (FLASK, EXPRESS, FASTAPI, NEXT) if WHOLE else (FLASK, EXPRESS)


def blocks(kind: str, section: str = "") -> list[str]:
    return programs_for(__file__, GUIDE, kind, section=section)


@pytest.fixture(scope="module")
def application(gatehouse: GatehouseNode, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the guide, applied as it says."""
    file = tmp_path_factory.mktemp("reports") / "reports.yaml"
    file.write_text(blocks("yaml")[0], encoding="utf-8")
    command, *answer = blocks("console")[0].splitlines()
    assert command == "$ gatehouse apply reports.yaml"
    assert gatehouse.commands("apply", file).splitlines() == answer
    return file


def assign_role(gatehouse: GatehouseNode, application: Path, *roles: str) -> None:
    file = application.with_name("people.yaml")
    holder = f'{{"{gatehouse.user_id}": {{roles: [{", ".join(roles)}]}}}}'
    file.write_text(f"applications: [{{application_id: {APPLICATION}, users: {holder}}}]", encoding="utf-8")
    gatehouse.commands("apply", file)


def create_client(gatehouse: GatehouseNode, port: str) -> RegisteredClient:
    """Create the client with the command of the guide, for this port."""
    words = blocks("console")[1].replace(PORT, port).removeprefix("$ gatehouse ")
    client_id = f"reports-{port}"
    created = gatehouse.commands.json(*shlex.split(words.replace("create reports ", f"create {client_id} ")))
    return RegisteredClient(client_id=client_id, client_secret=created["client_secret"])


@contextmanager
def run_program(framework: Framework, exports: str, port: str) -> Iterator[None]:
    program = require_program(framework.needs)
    # Node finds packages in the directories above a program.
    parent = program if program.is_dir() else None
    with tempfile.TemporaryDirectory(dir=parent, prefix="reports-") as home:
        words = framework.command(program, framework.write_files(Path(home), port))
        with WatchedProcess(
            ["sh", "-c", f'{exports}exec "$@" 2>&1', "sh", *words], cwd=Path(home), environment=ENVIRONMENT
        ) as process:
            process.wait_until_started(framework.started, process.stdout)
            yield


@pytest.mark.parametrize("framework", [pytest.param(framework, id=framework.name) for framework in FRAMEWORKS])
def test_page_is_shown_to_people_with_the_permission_only(
    framework: Framework, gatehouse: GatehouseNode, person: PersonInBrowser, application: Path
) -> None:
    require_program(framework.needs)
    port = str(free_port())
    registered = create_client(gatehouse, port)
    app_url = f"http://localhost:{port}"
    (exports,) = blocks("sh", "Create the permission and the client")
    exports = exports.replace("https://sso.studio.example", gatehouse.issuer).replace(PORT, port)
    exports = exports.replace("=reports ", f"={registered.client_id} ").replace("…", registered.client_secret)
    person.client.timeout = COMPILE_TIMEOUT
    assign_role(gatehouse, application)
    with run_program(framework, exports, port):
        redirect = person.open_address(f"{app_url}/reports", until=gatehouse.issuer)
        query = parse_qs(redirect.headers["location"].partition("?")[2])
        assert query["code_challenge_method"] == ["S256"]
        assert query["scope"] == ["openid roles permissions"]
        assert person.client.get(f"{app_url}/callback?error=access_denied").status_code == 403

        assert person.open_address(f"{app_url}/reports").status_code == 403
        assert person.forms == ["password", "decision"]

        assign_role(gatehouse, application, "analyst")
        assert person.open_address(f"{app_url}/reports").status_code == 403, "the session has the old permissions"
        page = person.open_address(f"{app_url}/login")
        assert (page.status_code, str(page.url)) == (200, f"{app_url}/reports")
        assert f"Reports for {gatehouse.user_id}" in page.text
        assert person.forms == ["password", "decision"], "the person was asked to sign in again"
