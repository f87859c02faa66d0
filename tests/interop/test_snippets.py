"""Programs that the console shows under Connect sign a person in, with the values that it fills in.

Games, nginx and Caddy have their tests elsewhere: `RUN_ELSEWHERE` says where.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from gatehouse.oauth.model import Client, ClientProfile
from gatehouse.web.console.applications.snippets import (
    BY_NAME,
    SNIPPETS,
    client_environment,
    environment_file,
    render_snippet,
)
from tests.interop.conftest import WHOLE, GatehouseNode
from tests.interop.person import PersonInBrowser
from tests.interop.programs import NODE, PYTHON, SPRING
from tests.interop.test_oauth2_proxy import PROXY
from tests.interop.test_protected_pages import PYTHON as PYTHON_PAGES
from tests.interop.test_protected_pages import node
from tests.interop.toolchains import GO_SOURCE
from tests.support.capabilities import Capability, require_program
from tests.support.nginx import wait_until_listening
from tests.support.processes import LOOPBACK, WatchedProcess, free_port, inherited_environment

BUILD_TIMEOUT: Final = 180  # seconds
RUN_ELSEWHERE: Final = {
    "nginx": "tests/unit/web_pages/test_snippets.py",  # the same text as in the guide, which test_proxies.py runs
    "caddy": "tests/unit/web_pages/test_snippets.py",
    "gitea": "tests/unit/web_pages/test_snippets.py",  # the same command as in the guide, which test_gitea.py runs
    "permissions": "tests/unit/web_pages/test_snippets.py",
    "check": "tests/wire/console/test_connect.py",
    "shell": "tests/unit/web_pages/test_snippets.py",
    "native": "tests/unit/web_pages/test_snippets.py",
    **dict.fromkeys((name for name in BY_NAME if name.startswith("game-")), "tests/game_clients/test_snippets.py"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SnippetProgram:
    """How the files of a snippet are made to run, beyond what its own commands say."""

    name: str
    needs: Capability
    command: Callable[[Path, Path, int], Sequence[str]]  # from the program, the folder of the files and the port
    subject: str  # what the page says about the person
    started: str = ""  # the line it prints, if there is one
    host: str = LOOPBACK
    is_slow: bool = False


def flask(python: Path, _: Path, port: int) -> Sequence[str]:
    return (str(python), "-m", "flask", "--app", "app", "run", "--port", str(port))


def uvicorn(python: Path, _: Path, port: int) -> Sequence[str]:
    return (str(python), "-m", "uvicorn", "app:app", "--port", str(port))


def express(_: Path, home: Path, __: int) -> Sequence[str]:
    return (node(), f"--env-file={home / '.env'}", "app.mjs")


def django(python: Path, home: Path, port: int) -> Sequence[str]:
    """A new project, with the first file at the end of its settings."""
    added, urls = (home / "settings.py").read_text(), (home / "urls.py").read_text()
    run([str(python), "-m", "django", "startproject", "site_of_test", str(home)], home)
    with (home / "site_of_test" / "settings.py").open("a") as settings:
        settings.write(added)
    (home / "site_of_test" / "urls.py").write_text(urls)
    run([str(python), "manage.py", "migrate", "-v", "0"], home, {"OIDC_CLIENT_SECRET": "of no use here"})
    return (str(python), "manage.py", "runserver", "--noreload", f"{LOOPBACK}:{port}")


def go(_: Path, home: Path, __: int) -> Sequence[str]:
    for file in ("go.mod", "go.sum"):
        shutil.copy(GO_SOURCE / file, home / file)
    run(["go", "build", "-o", "program", "."], home, {"GOFLAGS": "-mod=mod", "GOPROXY": "off"})
    return ("./program",)


def spring(program: Path, home: Path, _: int) -> Sequence[str]:
    jars = f"{program}/jars/*"
    run(["javac", "-parameters", "-cp", jars, "-d", "classes", "Application.java"], home)
    shutil.move(home / "application.yml", home / "classes" / "application.yml")
    return ("java", "-XX:TieredStopAtLevel=1", "-cp", f"classes:{jars}", "example.Application")


def oauth2_proxy(program: Path, home: Path, port: int) -> Sequence[str]:
    """Its own page stands behind it; the email address of the test is not verified."""
    file = home / "oauth2-proxy.cfg"
    text = file.read_text().replace('["http://127.0.0.1:3000/"]', '["static://200"]')
    file.write_text(text.replace(":4180", f":{port}") + "insecure_oidc_allow_unverified_email = true\n")
    words = (home / "run.sh").read_text().replace("oauth2-proxy --config", f"exec {program} --config")
    return ("sh", "-euc", words)


def find_go_modules() -> Path | None:
    """The sources of go-oidc in the version of the lock: those that `make test-deps` has built from."""
    program = shutil.which("go")
    if program is None:
        return None
    places = subprocess.run([program, "env", "GOMODCACHE"], capture_output=True, text=True, check=True).stdout
    (version,) = re.findall(r"coreos/go-oidc/v3 (v\S+)", (GO_SOURCE / "go.mod").read_text())
    found = Path(places.strip()) / "github.com" / "coreos" / "go-oidc" / f"v3@{version}"
    return found if found.is_dir() else None


GO_MODULES: Final = Capability(name="the Go modules of go-oidc", find=cache(find_go_modules), optional=True)
PROGRAMS: Final = (
    SnippetProgram(name="flask", needs=PYTHON_PAGES, command=flask, started="Running on", subject="sub"),
    SnippetProgram(name="express", needs=NODE, command=express, started="Running on", subject="sub"),
    SnippetProgram(name="fastapi", needs=PYTHON_PAGES, command=uvicorn, started="running on", subject="sub"),
    SnippetProgram(
        name="django", needs=PYTHON, command=django, started="Quit the server", subject="email", is_slow=True
    ),
    SnippetProgram(name="go", needs=GO_MODULES, command=go, started="Running on", subject="sub", is_slow=True),
    SnippetProgram(name="spring", needs=SPRING, command=spring, started="Started", subject="sub", is_slow=True),
    SnippetProgram(name="oauth2-proxy", needs=PROXY, command=oauth2_proxy, subject="", is_slow=True),
)


def run(command: Sequence[str], home: Path, environment: Mapping[str, str] | None = None) -> None:
    ended = subprocess.run(
        command,
        cwd=home,
        env=inherited_environment(environment or {}),
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_snippet_that_claims_a_test_has_one() -> None:
    run_here = {program.name for program in PROGRAMS}
    assert run_here | RUN_ELSEWHERE.keys() == {snippet.name for snippet in SNIPPETS if snippet.is_tested}
    assert not run_here & RUN_ELSEWHERE.keys()


@contextmanager
def run_snippet(program: SnippetProgram, gatehouse: GatehouseNode) -> Iterator[str]:
    """Write its files and a .env file as the console shows them, start it, and yield its base URL."""
    found, snippet, port = require_program(program.needs), BY_NAME[program.name], free_port()
    home_url = f"http://{program.host}:{port}"
    redirect = home_url + (snippet.callback or "/callback")
    registered = gatehouse.register(f"snippet-{program.name}", "--redirect-uri", redirect)
    client = Client(
        client_id=registered.client_id,
        name=program.name,
        profile=ClientProfile.OIDC,
        redirect_uris=(redirect,),
        scopes=("openid", "email", "profile"),
        created_at=0,
    )
    # Node finds packages in the directories above a program.
    with tempfile.TemporaryDirectory(dir=found if program.needs is NODE else None, prefix="snippet-") as place:
        home = Path(place)
        for file in render_snippet(snippet, client, application_id=1, base_url=gatehouse.issuer):
            (home / file.name).write_text(file.text + "\n")
        values = client_environment(client, registered.client_secret, base_url=gatehouse.issuer)
        (home / ".env").write_text(environment_file(values))
        words = program.command(found, home, port)
        with WatchedProcess(
            ["sh", "-c", 'exec "$@" 2>&1', "sh", *words],
            cwd=home,
            environment={**values, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"},
        ) as process:
            if program.started:
                process.wait_until_started(program.started, process.stdout)
            else:
                wait_until_listening(port, process)
            yield home_url


@pytest.mark.parametrize("program", [pytest.param(one, id=one.name) for one in PROGRAMS if WHOLE or not one.is_slow])
def test_a_snippet_signs_a_person_in(
    program: SnippetProgram, gatehouse: GatehouseNode, person: PersonInBrowser
) -> None:
    with run_snippet(program, gatehouse) as home:
        start = f"{home}/login" if program.name == "go" else f"{home}/"
        page = person.open_address(start)
        assert page.status_code == 200, page.text
        assert person.forms == ["password", "decision"]
        if not program.subject:
            assert page.text == "Authenticated"
        elif program.subject == "sub":
            assert page.json()["sub"] == gatehouse.user_id
        else:
            assert re.fullmatch(r"[^@]+@studio\.example", page.json()[program.subject])
