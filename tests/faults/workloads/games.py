"""W2: games that wait for their players; each answer is delivered once, and none is lost."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Final

import httpx2

from tests.faults.clients import CheckedRequest, ClientPool, FaultClient, JudgedAnswer, error_of, repeat_until_over
from tests.faults.fault_setup import FaultSetup, with_password
from tests.faults.history import Act, History, Result
from tests.faults.invariants.once import i4_an_answer_is_delivered_once_and_never_lost
from tests.faults.workloads.signing_in import sign_in
from tests.support.browser import hidden_fields
from tests.support.database_contents import Rows
from tests.support.game import GET_GSID

CLIENTS: Final = 2
POLLS: Final = 3  # of one game at a time, at any node
CONFIRM: Final = "/sign-in/confirm"
STEPS_MOST: Final = 5
TRIES: Final = 4


class Games:
    async def prepare(self, setup: FaultSetup) -> None:
        self._logins = [(await with_password(setup.services, f"plays{n}")).login or "" for n in range(CLIENTS)]

    def clients(self, pool: ClientPool) -> Sequence[Coroutine[Any, Any, None]]:
        return [self._work(pool.client(f"games {n}"), login) for n, login in enumerate(self._logins)]

    async def _work(self, client: FaultClient, login: str) -> None:
        await sign_in(client, login)
        await repeat_until_over(client, self._play)

    async def _play(self, client: FaultClient) -> None:
        """Hold polls, let the player approve, and check that one poll gets the answer, or else the next poll."""
        registered = await register_game(client)
        if registered is None:
            return
        gsid, ask = registered
        polls = [asyncio.create_task(client.ask(ask)) for _ in range(POLLS)]
        approved = await approve_game(client, gsid)
        if not approved:
            for poll in polls:
                poll.cancel()  # they would be held for half a minute
            await asyncio.gather(*polls, return_exceptions=True)
            return
        replies = list(await asyncio.gather(*polls))
        for _ in range(TRIES):
            if any(reply.ok for reply in replies):
                return
            replies.append(await client.ask(ask))

    async def finish(self, pool: ClientPool) -> None:
        """Do nothing: a session lives for two minutes, and each game polled until it was answered."""

    def problems(self, history: History, rows: Rows) -> list[str]:  # noqa: ARG002 - history tells it all
        return i4_an_answer_is_delivered_once_and_never_lost(history)


async def register_game(client: FaultClient) -> tuple[str, CheckedRequest] | None:
    """Register a game; return the gsid and the poll request."""
    created = await client.ask(CheckedRequest(op=Act.READ, key="", path=GET_GSID, request={"json": {"factor": "f"}}))
    if not created.ok or created.answer is None:
        return None
    gsid, location = str(created.json["gsid"]), created.answer.headers["location"]
    return gsid, poll_request(gsid, location)


def poll_request(gsid: str, location: str) -> CheckedRequest:
    request = {"json": {"gsid": gsid}, "timeout": 60}
    return CheckedRequest(op=Act.DELIVER, key=gsid, path=location, request=request, judge=judge_delivery)


def judge_delivery(response: httpx2.Response) -> JudgedAnswer:
    if response.is_success and response.json()["status"] == "OK":
        return JudgedAnswer(result=Result.OK)
    return JudgedAnswer(
        result=Result.FAIL, note=response.json()["status"] if response.is_success else error_of(response)
    )


async def approve_game(client: FaultClient, gsid: str) -> bool:
    """Approve on the pages: the link, and the form that a signed-in person gets."""
    page = await client.ask(CheckedRequest(op=Act.READ, key="", path=f"/?gsid={gsid}", method="GET", request={}))
    for _ in range(STEPS_MOST):
        if page.answer is None or not page.answer.is_redirect:
            break
        path = page.answer.headers["location"]
        page = await client.ask(CheckedRequest(op=Act.READ, key="", path=path, method="GET", request={}))
    if page.answer is None or page.answer.url.path != CONFIRM or not page.answer.is_success:
        return False
    fields = {**hidden_fields(page.answer.text), "decision": "confirm"}
    ask = CheckedRequest(
        op=Act.APPROVE,
        key=gsid,
        path=CONFIRM,
        event="game.confirmed",
        request={"data": fields},
        repeatable=False,  # a repeated submit finds a different page
    )
    return (await client.ask(ask)).ok
