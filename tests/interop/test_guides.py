"""Programs of docs/guides/connect-a-client.md that need a library."""

import subprocess
from typing import Final

from tests.interop.conftest import GatehouseNode
from tests.interop.test_protected_pages import PYTHON
from tests.support.capabilities import require_program
from tests.support.guides import programs_for
from tests.support.processes import inherited_environment

TIMEOUT: Final = 60  # seconds
ASKS: Final = """
import asyncio
address = asyncio.run(oauth.gatehouse.create_authorization_url("http://localhost:3000/callback"))
print(address["url"])
"""


def test_authlib_is_configured_as_the_guide_says(gatehouse: GatehouseNode) -> None:
    (program,) = programs_for(__file__, "connect-a-client", "python")
    ended = subprocess.run(
        [str(require_program(PYTHON)), "-c", program.replace("https://sso.studio.example", gatehouse.issuer) + ASKS],
        env=inherited_environment({"OIDC_CLIENT_SECRET": "of no use here"}),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert ended.stdout.startswith(f"{gatehouse.issuer}/proxy/oauth/authorize?"), ended.stderr
    assert {"client_id=wiki", "code_challenge_method=S256"} <= set(ended.stdout.strip().partition("?")[2].split("&"))
