"""An MCP server with one tool, protected by Gatehouse: its access tokens are verified offline."""

import asyncio
import os

import jwt
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer

ENVIRONMENT = os.environ  # noqa: TID251 - all that this program is given
ISSUER, RESOURCE = ENVIRONMENT["ISSUER"], ENVIRONMENT["RESOURCE"]
SCOPE = "notes.read"


class GatehouseVerifier:
    def __init__(self) -> None:
        self._keys = jwt.PyJWKClient(f"{ISSUER}/proxy/oauth/keys")

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            return await asyncio.to_thread(self._verify, token)
        except jwt.PyJWTError:
            return None

    def _verify(self, token: str) -> AccessToken | None:
        if jwt.get_unverified_header(token).get("typ") != "at+jwt":  # RFC 9068: no other token of the issuer
            return None
        key = self._keys.get_signing_key_from_jwt(token)
        claims = jwt.decode(token, key, algorithms=["RS256"], audience=RESOURCE, issuer=ISSUER)
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims["scope"].split(),
            expires_at=claims["exp"],
            resource=claims["aud"],
            subject=claims["sub"],
        )


server = MCPServer(
    "notes",
    token_verifier=GatehouseVerifier(),
    auth=AuthSettings(
        issuer_url=ISSUER, resource_server_url=RESOURCE, required_scopes=[SCOPE], validate_token_resource=True
    ),
)


@server.tool()
def whoami() -> str:
    """Return the user ID of the person who calls."""
    token = get_access_token()
    return "" if token is None or token.subject is None else token.subject


class ReadyServer(uvicorn.Server):
    async def startup(self, sockets: list | None = None) -> None:
        await super().startup(sockets)
        print("ready", flush=True)  # noqa: T201


config = uvicorn.Config(server.streamable_http_app(), port=int(ENVIRONMENT["PORT"]), log_level="error")
ReadyServer(config).run()
