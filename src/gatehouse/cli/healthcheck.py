"""`gatehouse healthcheck`: whether the service on this machine is ready, for container health checks."""

from http.client import HTTPConnection, HTTPException
from typing import Final

import click

from gatehouse.cli.common import Invocation, common_options, json_option, load_settings, print_json

TIMEOUT_SECONDS: Final = 4.0  # seconds
OK: Final = 200
ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - asked, not listened on


@click.command()
@common_options
@json_option
@click.option("--host", help="Address the service listens on.  [default: server.host]")
@click.option("--port", help="Port it listens on.  [default: server.port]")
def healthcheck(invocation: Invocation, *, host: str | None, port: str | None, as_json: bool) -> None:
    """Check whether the service on this machine is ready; exit 1 if not."""
    given = {"server.host": host, "server.port": port}
    flags = {name: value for name, value in given.items() if value is not None}
    server = load_settings(invocation, flags).settings.server
    ready, answer = ask_readiness(ANY_ADDRESS.get(server.host, server.host), server.port)
    if as_json:
        print_json({"ready": ready, "answer": answer})
    else:
        click.echo(answer, err=not ready)
    if not ready:
        raise SystemExit(1)


def ask_readiness(host: str, port: int) -> tuple[bool, str]:
    connection = HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/readyz")
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        return False, f"no answer from {host} port {port}: {error}"
    finally:
        connection.close()
    return status == OK, "ready" if status == OK else f"not ready: HTTP {status}"
