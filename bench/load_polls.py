"""Games that poll, and a person who confirms some of them, in a process of their own.

    python -m bench.load_polls PORT POLLS SECONDS CONFIRM_PORT LOGIN PASSWORD

Registers POLLS sessions at PORT and starts their polls within SECONDS: prints `half` after half of them, and after a
line on stdin starts the others and prints `held`. After the next line it signs in at CONFIRM_PORT, confirms some of
the sessions whose polls are held, one after the other, and prints the milliseconds from each confirmation to the
response of its poll, as JSON. After RETRY a session polls again with the delay of the response.
"""

import asyncio
import json
import sys
import time
from typing import Final, cast

import httpx2
import uvloop
from bench.load_sockets import HEAD_ENDS, LOOPBACK, signal_and_wait
from tests.support.browser import hidden_fields

AT_ONCE: Final = 50
SAMPLE: Final = 150
HELD_SECONDS: Final = 25.0  # of the 30 for which a poll is held
REGISTER: Final = (
    b"POST /proxy/api/gameSession/getGsid HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b'Content-Length: 14\r\nConnection: close\r\n\r\n{"factor":"f"}'
)
POLL: Final = "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"


class Poller(asyncio.Protocol):
    def __init__(self, gsid: str, location: str) -> None:
        body = json.dumps({"gsid": gsid})
        self.gsid = gsid
        self._request = (POLL % (location, len(body), body)).encode()
        self._response = b""
        self.answered: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._poll()

    def is_held(self) -> bool:
        """Whether it is held, and for some seconds more."""
        return time.perf_counter() - self._polled_at < HELD_SECONDS

    def _poll(self) -> None:
        self._polled_at = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._response += data
        head, ends, body = self._response.partition(HEAD_ENDS)
        if not ends or not body.endswith(b"}"):
            return
        self._response = b""
        result = json.loads(body)
        if result["status"] == "RETRY":
            asyncio.get_running_loop().call_later(result["delay"], self._poll)
        elif result["status"] == "OK":
            self.answered.set_result(time.perf_counter())
        else:
            self.answered.set_exception(ConnectionError(f"{head!r} {body!r}"))

    def connection_lost(self, _: Exception | None) -> None:
        if not self.answered.done():
            self.answered.set_exception(ConnectionError("the server closed a poll"))


class ConfirmingPerson:
    """A person who is signed in and confirms sessions."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def sign_in(self, login: str, password: str) -> None:
        page = await self._client.get("/sign-in")
        form = {**hidden_fields(page.text), "login": login, "password": password}
        (await self._client.post("/sign-in", data=form)).raise_for_status()

    async def confirm(self, poller: Poller) -> float:
        """Milliseconds from the confirmation to the response of the poll."""
        page = await self._client.get("/", params={"gsid": poller.gsid})
        form = {**hidden_fields(page.text), "decision": "confirm"}
        began = time.perf_counter()
        await self._client.post("/sign-in/confirm", data=form)
        return (await poller.answered - began) * 1_000


async def register(port: int) -> tuple[str, str]:
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    writer.write(REGISTER)
    head, _, body = (await reader.read()).partition(HEAD_ENDS)
    writer.close()
    location = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"location: "))
    return json.loads(body)["gsid"], location.decode().partition(": ")[2]


async def poll(port: int, gsid: str, location: str) -> Poller:
    _, poller = await asyncio.get_running_loop().create_connection(lambda: Poller(gsid, location), LOOPBACK, port)
    return poller


async def start_polls(port: int, sessions: list[tuple[str, str]], seconds: float) -> list[Poller]:
    """Start them evenly over the seconds."""
    pollers = []
    for start in range(0, len(sessions), AT_ONCE):
        await asyncio.sleep(AT_ONCE / len(sessions) * seconds)
        pollers += await asyncio.gather(*(poll(port, *one) for one in sessions[start : start + AT_ONCE]))
    return pollers


async def run(port: int, polls: int, seconds: int, confirm_port: int, *account: str) -> None:
    sessions = []
    for _ in range(0, polls, AT_ONCE):
        sessions += await asyncio.gather(*(register(port) for _ in range(AT_ONCE)))
    await start_polls(port, sessions[: polls // 2], seconds / 2)
    await signal_and_wait("half")
    pollers = await start_polls(port, sessions[polls // 2 :], seconds / 2)
    await signal_and_wait("held")
    address = f"http://{LOOPBACK}:{confirm_port}"
    async with httpx2.AsyncClient(base_url=address, follow_redirects=True, timeout=30) as client:
        person = ConfirmingPerson(client)
        await person.sign_in(*account)
        print(json.dumps([await person.confirm(poller) for poller in pollers[-SAMPLE:] if poller.is_held()]))


if __name__ == "__main__":
    port, polls, seconds, confirm_port = map(int, sys.argv[1:5])
    uvloop.run(run(port, polls, seconds, confirm_port, *sys.argv[5:]))
