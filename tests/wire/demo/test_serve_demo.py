"""`serve --demo` and the first steps of an ordinary installation, with real processes."""

import re
import shlex
import stat
import subprocess
from collections.abc import Mapping
from html import unescape
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner

from gatehouse.cli import main
from tests.support.command_line import CommandLine
from tests.support.guides import programs_for, session_steps, type_command
from tests.support.processes import LOOPBACK, Node, WatchedProcess, free_port
from tests.support.service import FAST_SETTINGS
from tests.support.setup_link import FORM, setup_token
from tests.wire.demo.person import DemoPerson, rules_on

ACCOUNT = re.compile(r"^(.+?) {2,}(\S+@\S+) +([a-z2-9-]{19})$")
SAMPLE_APP = r"^Sample app  (http://localhost:\d+/)$"
LINK = r"^Open this link to sign in: (.+)$"
BASE_URL = "GATEHOUSE__SERVER__BASE_URL"
NOOR, LUCAS, RICK = "noor.haddad@mail.example", "lucas.ferreira@northgate-qa.example", "rick.barlow@post.example"


def accounts_in(lines: list[str]) -> dict[str, str]:
    return {match[2]: match[3] for line in lines if (match := ACCOUNT.match(line.rstrip()))}


def login_status(node: Node, login: str, password: str) -> str:
    body = {"login": login, "password": password}
    status: str = httpx2.post(f"{node.address}/proxy/api/login", data=body).json()["status"]
    return status


def play_game(command: list[str], person: DemoPerson, factor_file: Path) -> str:
    """Run the game while the person signs in; return its last line."""
    with WatchedProcess([*command, "--plain", "--no-browser", "--factor-file", str(factor_file)]) as playing:
        person.confirm(playing.wait_for_line(LINK, playing.stdout)[1])
        assert playing.wait() == 0, playing.output()
    return playing.stdout[-1]


def test_a_demo_is_made_once_told_once_and_can_be_walked_through(tmp_path: Path) -> None:
    data = tmp_path / "demo"
    node = Node(data=data, flags=("--demo",), environment=FAST_SETTINGS)
    with node:
        accounts = accounts_in(node.process.stdout)
        assert len(accounts) == len(set(accounts.values())) == 10
        refused_logins = {
            login for login, password in accounts.items() if login_status(node, login, password) != "OK"
        }
        assert refused_logins == {RICK}  # blocked by the administrator
        accounts_file = data / "demo-accounts.txt"
        assert accounts_in(accounts_file.read_text().splitlines()) == accounts
        assert stat.S_IMODE(accounts_file.stat().st_mode) == 0o600
        assert ">Demo<" in httpx2.get(f"{node.address}/sign-in").text
        sample_app = node.process.wait_for_line(SAMPLE_APP, node.process.stdout)[1]
        use_demo(node, sample_app, accounts, tmp_path)
        follow_guide(data, tmp_path)

        node.restart()
        output = "".join(node.process.stdout)
        assert not any(password in output for password in accounts.values())
        assert str(accounts_file) in output
        assert login_status(node, NOOR, accounts[NOOR]) == "OK"
        with DemoPerson(NOOR, accounts[NOOR]) as noor:
            assert "Hello, Noor Haddad" in noor.sign_in_to(sample_app)
        assert node.terminate() == 0
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(sample_app)  # ended with the service


def use_demo(node: Node, sample_app: str, accounts: Mapping[str, str], tmp_path: Path) -> None:
    command = node.process.wait_for_line(r"^Game        (.+)$", node.process.stdout)[1]
    with DemoPerson(NOOR, accounts[NOOR]) as noor, DemoPerson(LUCAS, accounts[LUCAS]) as lucas:
        page = noor.sign_in_to(sample_app)
        assert "Hello, Noor Haddad" in page
        assert len(rules_on(page)) == 16
        assert rules_on(page)["post.hide"]
        assert not rules_on(page)["store.refund"]
        assert not rules_on(lucas.sign_in_to(sample_app))["post.hide"]
        assert play_game(shlex.split(command), noor, tmp_path / "factor") == "Welcome aboard, Noor Haddad!\n"
        assert "<h1>Welcome</h1>" in noor.sign_out_of(sample_app).text
        assert 'name="password"' in noor.browser.get(f"{node.base_url}/").text  # signed out there too


def follow_guide(data: Path, home: Path) -> None:
    """Type the commands of docs/guides/demo.md, without --dev: they see what kind of installation it is."""
    gatehouse, file = CommandLine(()), home / "lucas.yaml"
    steps = [step for program in programs_for(__file__, "demo", "console") for step in session_steps(program)]
    (write, _), (audit, _) = steps[0], steps[-1]
    subprocess.run(["sh", "-euc", write], check=True, cwd=home)
    for command, printed in steps[1:-1]:
        assert type_command(gatehouse, command, {"demo-data": data, "lucas.yaml": file}) == printed
    assert "role.saved" in type_command(gatehouse, audit, {"demo-data": data})


@pytest.mark.parametrize(
    ("flags", "environment", "message"),
    [
        (["--host", "0.0.0.0"], {}, "--host: must be localhost"),  # noqa: S104 - refused
        ([], {BASE_URL: "http://sso.studio.example"}, f"{BASE_URL}: must be on localhost"),
        ([], {BASE_URL: "https://localhost"}, "server.base_url: must be http on localhost"),
    ],
)
def test_a_demo_that_others_could_reach_is_refused_and_told_why(
    tmp_path: Path, flags: list[str], environment: Mapping[str, str], message: str
) -> None:
    refusal = CliRunner().invoke(main, ["serve", "--demo", "--data", str(tmp_path), *flags], env=environment)
    assert refusal.exit_code == 78
    assert message in refusal.output
    assert "--demo is only for this machine" in refusal.output
    assert not (tmp_path / "gatehouse.db").exists()


def test_the_first_five_minutes_lead_from_the_setup_link_to_a_sample_application_and_a_game(tmp_path: Path) -> None:
    with Node(data=tmp_path / "data", environment=FAST_SETTINGS) as node:
        done = httpx2.post(f"{node.address}/setup", data={**FORM, "token": setup_token(node)}).text
        assert ">Demo<" not in done
        assert 'href="/console"' in done
        app, game = (shlex.split(unescape(command)) for command in re.findall(r"<pre[^>]*><code>(.+?)</code>", done))
        port = free_port()
        with (
            DemoPerson(FORM["login"], FORM["password"]) as anna,
            WatchedProcess([*app, "--port", str(port)]) as sample,
        ):
            address = sample.wait_for_line(r"^Open (\S+) and sign in", sample.stdout)[1]
            wait_until_served(port)
            page = anna.sign_in_to(address)
            assert "Hello, Anna" in page
            assert rules_on(page) == {
                "note.read": True,
                "note.write": False,
                "note.delete": False,
                "report.open": False,
            }
            for _ in range(2):  # the second time the application exists
                assert play_game(game, anna, tmp_path / "factor") == "Welcome aboard, Anna!\n"


def wait_until_served(port: int) -> None:
    """Wait until the server responds: the line comes just before."""
    transport = httpx2.HTTPTransport(retries=8)
    with httpx2.Client(transport=transport) as waiting:
        assert waiting.get(f"http://{LOOPBACK}:{port}/").is_success
