"""uvicorn with an application that answers an empty 200: the minimum cost of a response (goal P0).

    python -m bench.bare_uvicorn PORT

The event loop, the HTTP parser and the settings are those of our own server, without its protocol class.
"""

import sys

import uvicorn
from bench.load import LOOPBACK
from starlette.types import Receive, Scope, Send


async def answer(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})


def main(port: int) -> None:
    uvicorn.run(
        answer,
        host=LOOPBACK,
        port=port,
        interface="asgi3",
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
