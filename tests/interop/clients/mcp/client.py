"""An MCP client that is known by its client ID metadata document; it signs a person in and calls a tool."""

import asyncio
import json
import os
from urllib.parse import parse_qsl

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

ENVIRONMENT = os.environ  # noqa: TID251 - all that this program is given
SERVER, PORT = ENVIRONMENT["SERVER"], int(ENVIRONMENT["PORT"])
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone"


class MemoryStorage:
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def main() -> None:
    arrived: asyncio.Queue[dict[str, str]] = asyncio.Queue()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        arrived.put_nowait(dict(parse_qsl(target.partition("?")[2])))
        writer.write(RESPONSE)
        await writer.drain()
        writer.close()

    async def open_browser(address: str) -> None:
        print(f"open {address}", flush=True)  # noqa: T201

    async def wait_for_code() -> AuthorizationCodeResult:
        answer = await arrived.get()
        return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer["iss"])

    storage = MemoryStorage()
    auth = OAuthClientProvider(
        server_url=SERVER,
        client_metadata=OAuthClientMetadata(
            client_name="Notes",
            redirect_uris=[f"http://127.0.0.1:{PORT}/callback"],
            token_endpoint_auth_method="none",
        ),
        storage=storage,
        redirect_handler=open_browser,
        callback_handler=wait_for_code,
        client_metadata_url=ENVIRONMENT["CLIENT_ID"],
    )
    async with (
        await asyncio.start_server(receive, "127.0.0.1", PORT),
        httpx2.AsyncClient(auth=auth, timeout=30) as http,
        Client(streamable_http_client(SERVER, http_client=http)) as client,
    ):
        result = await client.call_tool("whoami", {})
        answer = {"text": result.content[0].text, "token": storage.tokens.access_token}
        print(f"result {json.dumps(answer)}", flush=True)  # noqa: T201
        if ENVIRONMENT.get("WRITES"):
            added = await client.call_tool("add_note", {"text": "milk"})
            answer = {"text": added.content[0].text, "token": storage.tokens.access_token}
            print(f"added {json.dumps(answer)}", flush=True)  # noqa: T201


asyncio.run(main())
