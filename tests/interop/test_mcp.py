"""MCP servers of docs/guides/protect-an-mcp-server.md and clients of the official SDKs.

The client finds the service by the metadata of the server (RFC 9728), is known by its client ID metadata document,
signs a person in through the real pages and calls a tool. A token for another server is refused.
"""

import json
import re
import ssl
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from tests.interop.conftest import WHOLE
from tests.interop.person import LOGIN, NICK, PASSWORD, PersonInBrowser
from tests.interop.toolchains import MCP_PROGRAMS, find_mcp_for_node, find_mcp_for_python, find_node
from tests.support.capabilities import Capability, require_program
from tests.support.client_documents import HOST
from tests.support.command_line import InstallationPaths
from tests.support.guides import programs_for
from tests.support.oauth import claims_of
from tests.support.processes import LOOPBACK, Node, WatchedProcess, free_port
from tests.support.stub_server import tls_contexts_for
from tests.support.tls import NO_TRUST_STORE

PYTHON: Final = Capability(name="MCP for Python", find=cache(find_mcp_for_python))
NODE: Final = Capability(name="MCP for Node", find=cache(find_mcp_for_node))
PAIRS: Final = [("python", "python"), ("node", "node"), ("python", "node"), ("node", "python")]
DOCUMENT: Final = "/oauth/client.json"
PUBLIC_RESOURCE: Final = "https://notes.studio.example/mcp"  # of the guide
GUIDE: Final = "protect-an-mcp-server"
(APPLICATION,) = programs_for(__file__, GUIDE, "yaml")
(SETTINGS,) = programs_for(__file__, GUIDE, "toml")
START_PYTHON, START_NODE = programs_for(__file__, GUIDE, "sh")
(PYTHON_SERVER,) = programs_for(__file__, GUIDE, "python")
(NODE_SERVER,) = programs_for(__file__, GUIDE, "js")


def client_command(language: str) -> Sequence[str]:
    if language == "python":
        return (str(require_program(PYTHON)), str(MCP_PROGRAMS / "client.py"))
    links = ("--preserve-symlinks", "--preserve-symlinks-main", "--no-deprecation")
    return (node(), *links, str(require_program(NODE) / "programs" / "client.mjs"))


def node() -> str:
    node_and_npm = find_node()
    assert node_and_npm is not None
    return node_and_npm[0]


@contextmanager
def write_server(language: str) -> Iterator[tuple[Path, str]]:
    """Write the server of the guide; yield its directory and the command that starts it there."""
    if language == "python":
        parent, file, text, start = None, "server.py", PYTHON_SERVER, START_PYTHON
        program = str(require_program(PYTHON))
    else:  # Node finds packages in the directories above a program
        parent, file, text, start = require_program(NODE), "server.mjs", NODE_SERVER, START_NODE
        program = node()
    with tempfile.TemporaryDirectory(dir=parent, prefix="server-") as place:
        (Path(place) / file).write_text(text)
        yield Path(place), re.sub(rf"\b(python|node) {file}", f"exec {program} {file} 2>&1", start)


@contextmanager
def serve_document(directory: Path) -> Iterator[str]:
    """Serve the client's document by TLS; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            redirects = [f"http://{LOOPBACK}/callback"]
            body = json.dumps({"client_id": url, "client_name": "Notes", "redirect_uris": redirects}).encode()
            self.send_response(200 if self.path == DOCUMENT else 404)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    tls: ssl.SSLContext = tls_contexts_for(directory, HOST).server
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    url = f"https://{HOST}:{server.server_port}{DOCUMENT}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield url
    server.shutdown()
    server.server_close()
    thread.join()


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSetup:
    issuer: str
    client_id: str
    user_id: str
    home: Path
    installation: InstallationPaths

    def declare_api(self, name: str, resource: str) -> None:
        file = self.home / f"{name}.yaml"
        file.write_text(APPLICATION.replace("Notes", name).replace(PUBLIC_RESOURCE, resource))
        self.installation.command_line()("apply", file)


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpSetup]:
    home = tmp_path_factory.mktemp("mcp")
    installation = InstallationPaths(data=home / "data", url=f"sqlite:///{home / 'gatehouse.db'}")
    with serve_document(home) as client_id:
        installation.data.mkdir()
        (installation.data / "gatehouse.toml").write_text(SETTINGS.replace("client.example", client_id.split("/")[2]))
        settings = {
            "GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8,::1/128",
            "GATEHOUSE__OUTBOUND__CA_FILE": str(home / f"{HOST}.pem"),
        }
        with Node(data=installation.data, environment={**installation.settings, **settings}) as node:
            words = ("user", "create", "--login", LOGIN, "--nick", NICK, "--password-stdin")
            user_id = installation.command_line()(*words, stdin=PASSWORD).strip()
            yield McpSetup(
                issuer=node.base_url, client_id=client_id, user_id=user_id, home=home, installation=installation
            )


@contextmanager
def run_server(setup: McpSetup, language: str, name: str) -> Iterator[str]:
    """Declare the server's API and run it; yield its URL."""
    port = free_port()
    url = f"http://{LOOPBACK}:{port}/mcp"
    setup.declare_api(name, url)
    with write_server(language) as (place, start):
        words = start.replace(PUBLIC_RESOURCE, url).replace("https://sso.studio.example", setup.issuer)
        with WatchedProcess(["sh", "-c", words], cwd=place, environment={"PORT": str(port)}) as process:
            process.wait_until_started("unning on", process.stdout)
            yield url


def call_tool(setup: McpSetup, language: str, url: str, person: PersonInBrowser) -> Mapping[str, Any]:
    """Run the client until it has called the tool; the person signs in when it asks for that."""
    environment = {"SERVER": url, "CLIENT_ID": setup.client_id, "PORT": str(free_port())}
    with WatchedProcess(client_command(language), environment=environment) as process:
        address = process.wait_for_line("^open (.*)", process.stdout)[1]
        assert person.open_address(address).text == "done"
        answer: Mapping[str, Any] = json.loads(process.wait_for_line("^result (.*)", process.stdout)[1])
        return answer


@pytest.mark.parametrize(("server", "client"), PAIRS if WHOLE else PAIRS[:1])
def test_client_signs_in_by_its_document_and_calls_a_tool(setup: McpSetup, server: str, client: str) -> None:
    person = PersonInBrowser(setup.issuer)
    with (
        run_server(setup, server, f"{server}_{client}") as url,
        run_server(setup, server, f"{server}_{client}_other") as other,
    ):
        answer = call_tool(setup, client, url, person)
        assert person.forms == ["password", "decision"]
        assert answer["text"] == setup.user_id
        claims = claims_of(answer["token"])
        assert (claims["aud"], claims["client_id"], claims["sub"]) == (url, setup.client_id, setup.user_id)
        assert "notes.read" in claims["scope"].split()
        elsewhere = call_tool(setup, client, other, person)
        assert call_status(url, answer["token"]) == 200
        assert call_status(url, elsewhere["token"]) == 401
        assert call_status(url, "") == 401
    person.client.close()


def test_client_asks_for_another_scope_when_a_tool_needs_it(setup: McpSetup) -> None:
    """The server answers 403 with insufficient_scope and the scope; the SDK asks the person and calls again."""
    person = PersonInBrowser(setup.issuer)
    with run_server(setup, "python", "stepping_up") as url:
        environment = {"SERVER": url, "CLIENT_ID": setup.client_id, "PORT": str(free_port()), "WRITES": "1"}
        with WatchedProcess(client_command("python"), environment=environment) as process:
            address = process.wait_for_line("^open (.*)", process.stdout)[1]
            assert person.open_address(address).text == "done"
            first = json.loads(process.wait_for_line("^result (.*)", process.stdout)[1])
            again = process.wait_for_line("^open (.*notes.write.*)", process.stdout)[1]
            assert person.open_address(again).text == "done"
            added = json.loads(process.wait_for_line("^added (.*)", process.stdout)[1])
    assert person.forms == ["password", "decision", "decision"]
    assert added["text"] == "added milk"
    before, after = (claims_of(answer["token"])["scope"].split() for answer in (first, added))
    assert "notes.write" not in before
    assert {"notes.read", "notes.write"} <= set(after)
    person.client.close()


def call_status(url: str, token: str) -> int:
    """Return the status of a request to the server with this token."""
    protocol = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": protocol}
    headers = {
        "Accept": "application/json, text/event-stream",
        **({"Authorization": f"Bearer {token}"} if token else {}),
    }
    with httpx2.Client(verify=NO_TRUST_STORE, timeout=20) as client:
        return client.post(url, json=message, headers=headers).status_code
