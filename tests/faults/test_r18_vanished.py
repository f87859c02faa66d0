"""A peer whose network is cut sends no FIN and no RST, and is still detected (R-18)."""

import asyncio
import sys
from typing import Final

import pytest

from gatehouse.web.server.server import TCP_KEEPALIVE_OPTIONS, serve_in_loop
from tests.faults.run_record import FULL_RUN
from tests.support.clock import MovableClock
from tests.support.echo import EchoApp, wait_until
from tests.support.namespaces import machine_network
from tests.support.processes import WatchedProcess

NOTICED_WITHIN: Final = 60  # seconds, with the values of a release
# With shorter intervals the kernel probes earlier; the socket options are the same.
SOONER: Final = {"TCP_KEEPIDLE": 1, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 2, "TCP_USER_TIMEOUT": 3_000}
GLANCE: Final = 0.05  # seconds
PATHS: Final = ("/echo", "/hold", "/big", "/write")
# A client with a response that stays connected, two that wait for theirs, and one that never reads its response.
PEER: Final = """
import signal, socket, sys
host, port, *paths = sys.argv[1:]
opened = [socket.create_connection((host, int(port))) for _ in paths]
for one, path in zip(opened, paths):
    one.sendall(f"GET {path} HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n".encode())
opened[0].recv(65536)
print("waiting", flush=True)
signal.pause()
"""


@pytest.fixture
def quick_keepalive(monkeypatch: pytest.MonkeyPatch) -> None:
    if not FULL_RUN:
        for name, value in SOONER.items():
            monkeypatch.setitem(TCP_KEEPALIVE_OPTIONS, name, value)


@pytest.mark.usefixtures("quick_keepalive")
async def test_r_18_a_peer_whose_network_is_gone_is_let_go_of_within_a_minute() -> None:
    """Our own timers are stopped here and would fire later: the kernel detects it."""
    echo = EchoApp()
    with machine_network(1) as net:
        [machine] = net.machines
        async with serve_in_loop(echo, host=net.here, clock=MovableClock(), stopping=echo.stopping) as server:
            command = [*machine.command, sys.executable, "-c", PEER, net.here, str(server.port), *PATHS]
            with WatchedProcess(command) as peer:
                await asyncio.to_thread(peer.wait_until_started, "^waiting$", peer.stdout)
                await wait_until(lambda: sorted(echo.started) == sorted(PATHS))
                machine.cut_link()
                async with asyncio.timeout(NOTICED_WITHIN):
                    while server.state.connections:  # noqa: ASYNC110 - the kernel notifies only the transport
                        await asyncio.sleep(GLANCE)
                assert peer.running  # and has closed nothing
            await wait_until(lambda: echo.left == ["/hold"])  # the application is notified in a later loop iteration
            echo.released.set()
