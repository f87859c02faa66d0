"""A web server with client ID metadata documents, and the settings of a service that accepts them."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.support.stub_server import ReceivedRequest, StubServer, http_response, run_stub_server, tls_contexts_for

HOST: Final = "localhost"  # the only name that leads to the test's machine everywhere
LOOPBACK_REDIRECT: Final = "http://127.0.0.1:8123/callback"
NOT_FOUND: Final = http_response(b"{}", "404 Not Found", Content_Type="application/json")


@dataclass(slots=True, kw_only=True)
class DocumentServer:
    """Serves what `documents` has at a path: a document, or a whole response in bytes."""

    server: StubServer
    certificate: Path
    documents: dict[str, Mapping[str, Any] | bytes] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return f"{HOST}:{self.server.port}"

    @property
    def fetches(self) -> list[str]:
        return [request.line.split(" ")[1] for request in self.server.received]

    @property
    def settings(self) -> dict[str, str]:
        return {
            "GATEHOUSE__OAUTH__CLIENT_DOCUMENT_HOSTS": self.host,
            "GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8,::1/128",
            "GATEHOUSE__OUTBOUND__CA_FILE": str(self.certificate),
        }

    def url(self, path: str) -> str:
        return f"https://{self.host}{path}"

    def publish(self, path: str = "/client.json", **members: object) -> str:
        """Publish a document of a public client; return its client_id. A member of None is left out."""
        document = {
            "client_id": self.url(path),
            "client_name": "Notes",
            "redirect_uris": [LOOPBACK_REDIRECT],
            "token_endpoint_auth_method": "none",
            **members,
        }
        self.documents[path] = {name: value for name, value in document.items() if value is not None}
        return self.url(path)

    def respond(self, request: ReceivedRequest) -> bytes:
        method, path, _ = request.line.split(" ")
        assert method == "GET"
        found = self.documents.get(path, NOT_FOUND)
        if isinstance(found, bytes):
            return found
        return http_response(json.dumps(found).encode(), **{"Content_Type": "application/json", **self.headers})


@asynccontextmanager
async def run_document_server(directory: Path) -> AsyncIterator[DocumentServer]:
    stub = StubServer()
    documents = DocumentServer(server=stub, certificate=directory / f"{HOST}.pem")
    stub.respond = documents.respond
    async with run_stub_server(stub, tls=tls_contexts_for(directory, HOST).server):
        yield documents
