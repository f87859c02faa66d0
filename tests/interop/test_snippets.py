"""Programs that the console shows under Connect sign a person in, with the values that it fills in.

Games, nginx and Caddy have their tests elsewhere: `RUN_ELSEWHERE` says where.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Final

import pytest

from gatehouse.oauth.model import Client, ClientProfile, new_token_settings
from gatehouse.web.console.applications.environment import client_environment, environment_file
from gatehouse.web.console.applications.snippets import BY_NAME, SNIPPETS, render_snippet
from tests.interop.conftest import WHOLE, GatehouseNode, RegisteredClient
from tests.interop.person import NICK, PersonInBrowser
from tests.interop.programs import NODE, PYTHON, SPRING
from tests.interop.test_apache import CONFIGURATION
from tests.interop.test_apache import MODULE as APACHE_MODULE
from tests.interop.test_oauth2_proxy import PROXY
from tests.interop.test_protected_pages import COMPILE_TIMEOUT, NEXTJS, node, node_package
from tests.interop.test_protected_pages import PYTHON as PYTHON_PAGES
from tests.interop.test_single_page import LIBRARY, serve_page, sign_in
from tests.interop.toolchains import APACHE, APACHE_MODULES, GO_MODULES, GO_SOURCE, find_go_client
from tests.support.browser import hidden_fields
from tests.support.capabilities import Capability, require_program
from tests.support.chromium import launch_browser_sync
from tests.support.nginx import wait_until_listening
from tests.support.postgres import server_user
from tests.support.processes import LOOPBACK, WatchedProcess, free_port, inherited_environment

BUILD_TIMEOUT: Final = 180  # seconds
NEXTJS_LAYOUT: Final = """\
export default function Layout({ children }: { children: React.ReactNode }) {
  return <html lang="en"><body>{children}</body></html>;
}
"""
NEXTJS_CONFIGURATION: Final = """\
{"compilerOptions": {"jsx": "preserve", "module": "esnext", "moduleResolution": "bundler", "paths": {"@/*": ["./*"]}}}
"""
APACHE_CONFIGURATION: Final = Template(
    CONFIGURATION.template.partition("\nOIDC")[0]
    + """
Include "$place/site.conf"
Header set X-Sub "expr=%{reqenv:OIDC_CLAIM_sub}"
"""
)
SINGLE_PAGE: Final = """\
<!doctype html>
<script type="importmap">
{"imports": {"oidc-client-ts": "/oidc-client-ts.js", "jwt-decode": "/jwt-decode.js"}}
</script>
<body><script type="module" src="/main.js"></script></body>
"""
ENVIRONMENT: Final = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", "NEXT_TELEMETRY_DISABLED": "1"}
RUN_ELSEWHERE: Final = {
    "nginx": "tests/unit/web_pages/test_snippets.py",  # the same text as in the guide, which test_proxies.py runs
    "caddy": "tests/unit/web_pages/test_snippets.py",
    "gitea": "tests/unit/web_pages/test_snippets.py",  # the same command as in the guide, which test_gitea.py runs
    "permissions": "tests/unit/web_pages/test_snippets.py",
    "check": "tests/wire/console/test_connect.py",
    **dict.fromkeys(("machine", "verify-node", "verify-go", "verify-csharp"), "tests/wire/console/test_connect.py"),
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


def go(modules: Path, home: Path, __: int) -> Sequence[str]:
    for file in ("go.mod", "go.sum"):
        shutil.copy(GO_SOURCE / file, home / file)
    (home / "vendor").symlink_to(modules)
    run(["go", "build", "-mod=vendor", "-o", "program", "."], home)
    return ("./program",)


def nextjs(program: Path, home: Path, port: int) -> Sequence[str]:
    """A new project has a layout, and the root as `@`."""
    places = {"route.ts": "app/api/auth/[...nextauth]/route.ts", "page.tsx": "app/page.tsx"}
    for file, place in places.items():
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        (home / file).rename(home / place)
    (home / "app/layout.tsx").write_text(NEXTJS_LAYOUT)
    (home / "tsconfig.json").write_text(NEXTJS_CONFIGURATION)
    words = (home / "install.sh").read_text().splitlines()[-1].split()
    assert words[-1] == str(port)
    return node_package(program, words)


def apache(_: Path, home: Path, port: int) -> Sequence[str]:
    (home / "apache.conf").write_text(APACHE_CONFIGURATION.substitute(place=home, modules=APACHE_MODULES, port=port))
    (home / "page").write_text("the page")
    return (str(APACHE), "-DFOREGROUND", "-f", str(home / "apache.conf"))


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
    return GO_MODULES if shutil.which("go") and find_go_client() else None


GO: Final = Capability(name="Go with the modules of go-oidc", find=cache(find_go_modules), optional=True)
PROGRAMS: Final = (
    SnippetProgram(name="flask", needs=PYTHON_PAGES, command=flask, started="Running on", subject="sub"),
    SnippetProgram(name="express", needs=NODE, command=express, started="Running on", subject="sub"),
    SnippetProgram(name="fastapi", needs=PYTHON_PAGES, command=uvicorn, started="running on", subject="sub"),
    SnippetProgram(
        name="django", needs=PYTHON, command=django, started="Quit the server", subject="email", is_slow=True
    ),
    SnippetProgram(name="go", needs=GO, command=go, started="Running on", subject="sub", is_slow=True),
    SnippetProgram(name="spring", needs=SPRING, command=spring, started="Started", subject="sub", is_slow=True),
    SnippetProgram(
        name="nextjs",
        needs=NEXTJS,
        command=nextjs,
        started="Ready in",
        subject="name",
        host="localhost",
        is_slow=True,
    ),
    SnippetProgram(
        name="apache", needs=APACHE_MODULE, command=apache, started="resuming normal operations", subject="header"
    ),
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
    run_here = {program.name for program in PROGRAMS} | {"spa"}
    assert run_here | RUN_ELSEWHERE.keys() == {snippet.name for snippet in SNIPPETS if snippet.is_tested}
    assert not run_here & RUN_ELSEWHERE.keys()


def snippet_client(registered: RegisteredClient, redirect: str, *, public: bool = False) -> Client:
    return Client(
        client_id=registered.client_id,
        name="Snippet",
        profile=ClientProfile.OIDC,
        redirect_uris=(redirect,),
        scopes=("openid", "email", "profile"),
        public=public,
        token_settings=new_token_settings(ClientProfile.OIDC),
        created_at=0,
    )


@contextmanager
def make_home(program: SnippetProgram, found: Path) -> Iterator[Path]:
    """A directory where it finds its packages, and which its user can enter."""
    parent = found if program.needs in (NODE, NEXTJS) else None  # Node finds packages in the directories above
    with tempfile.TemporaryDirectory(dir=parent, prefix="snippet-") as place:
        user = server_user()
        if user is not None and program.needs is APACHE_MODULE:
            os.chown(place, user.pw_uid, user.pw_gid)
        yield Path(place)


@contextmanager
def run_snippet(program: SnippetProgram, gatehouse: GatehouseNode) -> Iterator[str]:
    """Write its files and a .env file as the console shows them, start it, and yield its base URL."""
    found, snippet, port = require_program(program.needs), BY_NAME[program.name], free_port()
    home_url = f"http://{program.host}:{port}"
    redirect = home_url + (snippet.callback or "/callback")
    registered = gatehouse.register(f"snippet-{program.name}", "--redirect-uri", redirect)
    client = snippet_client(registered, redirect)
    with make_home(program, found) as home:
        for file in render_snippet(snippet, client, application_id=1, base_url=gatehouse.issuer):
            (home / file.name).write_text(file.text + "\n")
        values = client_environment(client, registered.client_secret, base_url=gatehouse.issuer)
        (home / ".env").write_text(environment_file(values))
        words = program.command(found, home, port)
        with WatchedProcess(
            ["sh", "-c", 'exec "$@" 2>&1', "sh", *words],
            cwd=home,
            environment={**values, **ENVIRONMENT},
            user=server_user() if program.needs is APACHE_MODULE else None,
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
        page = person.open_address(start_of(program, home, person))
        assert page.status_code == 200, page.text
        assert person.forms == ["password", "decision"]
        match program.subject:
            case "":
                assert page.text == "Authenticated"
            case "header":
                assert (page.text, page.headers["x-sub"]) == ("the page", gatehouse.user_id)
            case "name":
                assert re.search(rf"Hello, (?:<!-- -->)?{NICK}<", page.text)
            case "sub":
                assert page.json()["sub"] == gatehouse.user_id
                assert page.json().get("name", NICK) == NICK, "from userinfo"
            case _:
                assert re.fullmatch(r"[^@]+@studio\.example", page.json()[program.subject])


def start_of(program: SnippetProgram, home: str, person: PersonInBrowser) -> str:
    """Where the sign-in starts; Next.js has a button for that."""
    if program.name != "nextjs":
        return f"{home}/{ {'go': 'login', 'apache': 'page'}.get(program.name, '') }"
    person.client.timeout = COMPILE_TIMEOUT
    fields = hidden_fields(person.client.get(f"{home}/").text)
    pressed = person.client.post(f"{home}/", files={name: (None, value) for name, value in fields.items()})
    assert pressed.status_code == 303, pressed.text
    return str(pressed.headers["location"])


@pytest.mark.skipif(not WHOLE, reason="takes long: make interop runs it")
def test_the_snippet_of_a_single_page_application_signs_a_person_in(gatehouse: GatehouseNode, tmp_path: Path) -> None:
    packages, script = require_program(LIBRARY).parents[3], tmp_path / "main.js"
    scripts = {
        "/oidc-client-ts.js": packages / "oidc-client-ts/dist/esm/oidc-client-ts.js",
        "/jwt-decode.js": packages / "jwt-decode/build/esm/index.js",
        "/main.js": script,
    }
    with serve_page(SINGLE_PAGE, scripts) as home, launch_browser_sync() as browser:
        redirect = f"{home}/callback"
        registered = gatehouse.register("snippet-spa", "--public", "--origin", home, "--redirect-uri", redirect)
        client = snippet_client(registered, redirect, public=True)
        (shown, _) = render_snippet(BY_NAME["spa"], client, application_id=1, base_url=gatehouse.issuer)
        script.write_text(shown.text)
        page = browser.new_page()
        page.goto(home)
        sign_in(page)
        page.locator('button[name="decision"][value="allow"]').click()
        page.get_by_text(f"Signed in: {gatehouse.user_id}").wait_for()
