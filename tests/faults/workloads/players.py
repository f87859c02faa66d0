"""W8: guests, their ends and what works once: challenges, puzzles, tickets, answers of providers, acceptances."""

from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final
from urllib.parse import urlencode

import httpx2

from gatehouse.accounts.guests.model import GUEST_ISSUER, read_device_key
from gatehouse.accounts.model import GUEST_PROVIDER
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.errors import Unavailable
from gatehouse.kernel.times import DAY
from tests.faults.clients import (
    CheckedRequest,
    ClientPool,
    FaultClient,
    JudgedAnswer,
    ask_nodes_together,
    error_of,
    repeat_until_over,
)
from tests.faults.fault_setup import FaultSetup, create_project_application, with_password
from tests.faults.history import Act, History, Result
from tests.faults.invariants.lasting import i3_what_was_ended_stays_ended, i11_what_was_not_ended_goes_on
from tests.faults.invariants.once import a_secret_is_spent_at_most_once
from tests.faults.invariants.sets import i7_every_acknowledged_element_is_there
from tests.faults.workloads.signing_in import SIGN_IN, digest_name
from tests.support.browser import PASSWORD, hidden_fields
from tests.support.builders import ORIGIN, a_user, an_identity
from tests.support.database_contents import Rows, open_services_on
from tests.support.game import GET_GSID
from tests.support.guests import GUEST, Device
from tests.support.platforms import SteamWebApi, run_steam
from tests.support.vendors import Vendor, run_vendor
from tests.wire.accounts.test_proof_of_work import solve

CLIENTS: Final = 3
IDLE_GUESTS: Final = 200
MAX_REFUSED_TICKETS: Final = 80  # more would block their source
DIFFICULTY: Final = 8  # the lowest
SWEEP_SECONDS: Final = 0.5  # between sweeps
CALLBACK: Final = "/sign-in/with/vendor/callback"
CONFIRM: Final = "/sign-in/confirm"
STEPS_MOST: Final = 4
IDLE, ACCEPTED = "idle", "accepted"
SETTINGS: Final = {"GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}
USED_UP: Final = "invalid_grant (told as {})"  # a used value is refused like a wrong one


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestDevice:
    key: str  # in the history
    device: Device = field(default_factory=Device)


class Players:
    def __init__(self) -> None:
        self._numbers = count()
        self._stack = AsyncExitStack()  # of the stubs; left in `finish`
        self._guests: list[GuestDevice] = []
        self._refused_tickets = 0

    async def prepare(self, setup: FaultSetup) -> None:
        self._setup = setup
        services = setup.services
        self._logins = [(await with_password(services, f"keeps{n}")).login or "" for n in range(CLIENTS)]
        self._game = await create_project_application(services, "Sky Raiders")  # with terms
        self._other = await create_project_application(services, "Sea Raiders")
        self._steam: SteamWebApi = await self._stack.enter_async_context(run_steam())
        self._vendor: Vendor = await self._stack.enter_async_context(run_vendor("oidc", services.clock))  # type: ignore[arg-type]
        terms = {"title": "Terms", "url": "https://studio.example/terms", "version": "1"}
        wanted = {
            "guests.enabled": True,
            "guests.created_per_hour": 1_000_000,
            "guests.idle_days": 30,
            "protection.proof_of_work": "on",
            "protection.difficulty": DIFFICULTY,
            **{f"terms.terms.{name}": text for name, text in terms.items()},
            "terms.terms.applications": [str(self._game)],
            **self._steam.settings(self._other),
            **self._vendor.settings,
        }
        await services.settings_editor.save(wanted, ORIGIN)
        self._idle = [await self._create_idle_guest() for _ in range(IDLE_GUESTS)]

    async def _create_idle_guest(self) -> Device:
        device, services = Device(), self._setup.services
        long_ago = services.clock.now() - 60 * DAY
        user = a_user(login=None, reg_time=long_ago)
        identity = an_identity(
            *(user.user_id, subject_of(device)), issuer=GUEST_ISSUER, provider=GUEST_PROVIDER, used_at=long_ago
        )
        record = services.core.recorder.record(AuditEvent.USER_REGISTERED, ORIGIN, subject=user.user_id)
        await services.storage.profile.create_with_identity(user, identity, record)
        return device

    def clients(self, pool: ClientPool) -> Sequence[Coroutine[Any, Any, None]]:
        workers = [self._work(pool.client(f"players {n}"), login) for n, login in enumerate(self._logins)]
        return [*workers, self._wake_idle(pool.client("idle")), self._sweep(pool)]

    async def _work(self, client: FaultClient, login: str) -> None:
        async def end(client: FaultClient) -> None:
            await self._end_guest(client, login)

        await repeat_until_over(
            client, self._begin_guest, end, end, self._race_challenge, self._accept, self._ticket, self._answer
        )

    # -- guests ---------------------------------------------------------------------------------------

    async def _begin_guest(self, client: FaultClient) -> None:
        guest = GuestDevice(key=f"guest:{next(self._numbers)}")
        fields = await self._proof(client, guest.device, new=True)
        if fields is None:
            return
        self._guests.append(guest)
        begin = CheckedRequest(
            op=Act.BEGIN, key=guest.key, path=GUEST, request={"json": fields}, judge=judge_sign_in, repeatable=False
        )
        if (await client.ask(begin)).ok:
            await self._use(client, guest)

    async def _use(self, client: FaultClient, guest: GuestDevice) -> None:
        """Sign in at each node, each time with a new challenge."""
        for node in range(len(client.pool.nodes)):
            if (fields := await self._proof(client, guest.device)) is not None:
                use = CheckedRequest(
                    op=Act.USE, key=guest.key, path=GUEST, request={"json": fields}, judge=judge_sign_in
                )
                await client.ask(use, node=node)

    async def _proof(
        self, client: FaultClient, device: Device, *, new: bool = False, **more: Any
    ) -> dict[str, Any] | None:
        asked = await client.ask(
            self._challenge_request(**({} if new else {"device_key": device.public_key}), **more)
        )
        if not asked.ok:
            return None
        fields = {**device.sign(asked.json["challenge"]), **more}
        puzzle = asked.json.get("puzzle")
        return fields if puzzle is None else {**fields, **solved(puzzle)}

    def _challenge_request(self, **fields: Any) -> CheckedRequest:
        return CheckedRequest(op=Act.READ, key="", path=GUEST, request={"json": fields})

    async def _race_challenge(self, client: FaultClient) -> None:
        """Send one challenge and one puzzle to every node at once, each for a guest of its own."""
        device = Device()
        fields = await self._proof(client, device, new=True)
        if fields is None:
            return
        spend = CheckedRequest(
            op=Act.SPEND,
            key=f"challenge {digest_name(fields['challenge'])}",
            path=GUEST,
            request={"json": fields},
            judge=judge_once,
        )
        await ask_nodes_together(client, spend)
        other = await self._proof(client, Device(), new=True)
        if other is not None:
            again = {**other, "puzzle": fields["puzzle"], "solution": fields["solution"]}
            reused = replace(spend, key=f"puzzle {digest_name(fields['puzzle'])}", request={"json": again})
            await ask_nodes_together(client, reused)

    async def _end_guest(self, client: FaultClient, login: str) -> None:
        """Merge a guest into the account of the person, and use its key afterwards."""
        if not self._guests:
            return
        guest = client.chance.choice(self._guests[-20:])
        registered = await self._register_upgrade(client, guest)
        if registered is None:
            return
        gsid, code = registered
        client.http.cookies.clear()
        page = await self._sign_in_anew(client, f"/?gsid={gsid}", login)
        if page is None or page.url.path != CONFIRM or not page.is_success:
            return
        fields = {**hidden_fields(page.text), "decision": "confirm", "code": code}
        end = CheckedRequest(
            op=Act.END,
            key=guest.key,
            path=CONFIRM,
            event=AuditEvent.ACCOUNT_MERGED,
            request={"data": fields},
            judge=judge_done,
            repeatable=False,
        )
        await client.ask(end)
        await self._use(client, guest)

    async def _register_upgrade(self, client: FaultClient, guest: GuestDevice) -> tuple[str, str] | None:
        fields = await self._proof(client, guest.device, intent="upgrade")
        if fields is None:
            return None
        ask = CheckedRequest(op=Act.READ, key="", path=GET_GSID, request={"json": {**fields, "factor": "f"}})
        registered = await client.ask(ask)
        return (registered.json["gsid"], registered.json["code"]) if registered.ok else None

    async def _sign_in_anew(self, client: FaultClient, path: str, login: str) -> httpx2.Response | None:
        page = await self._follow(client, path)
        if page is None or page.url.path != SIGN_IN or not page.is_success:
            return None
        fields = {**hidden_fields(page.text), "login": login, "password": PASSWORD}
        signed_in = await client.ask(CheckedRequest(op=Act.READ, key="", path=SIGN_IN, request={"data": fields}))
        if signed_in.answer is None or not signed_in.answer.is_redirect:
            return None
        return await self._follow(client, signed_in.answer.headers["location"])

    async def _follow(self, client: FaultClient, path: str) -> httpx2.Response | None:
        for _ in range(STEPS_MOST):
            page = await client.ask(CheckedRequest(op=Act.READ, key="", path=path, method="GET", request={}))
            if page.answer is None or not page.answer.is_redirect:
                return page.answer
            path = page.answer.headers["location"]
        return None

    # -- what works once ------------------------------------------------------------------------------

    async def _ticket(self, client: FaultClient) -> None:
        if self._refused_tickets >= MAX_REFUSED_TICKETS:
            return
        ticket = self._steam.ticket()
        body = {"platform": "steam", "ticket": ticket, "app_id": self._other, "factor": "f"}
        spend = CheckedRequest(
            op=Act.SPEND,
            key=f"ticket {digest_name(ticket)}",
            path="/proxy/api/platformLogin",
            request={"json": body},
            judge=judge_once,
        )
        replies = await ask_nodes_together(client, spend)
        self._refused_tickets += sum(not reply.ok for reply in replies)

    async def _answer(self, client: FaultClient) -> None:
        """Bring the answer of a provider to every node at once."""
        started = await client.ask(
            CheckedRequest(op=Act.READ, key="", path="/sign-in/with/vendor", method="GET", request={})
        )
        if started.answer is None or started.answer.status_code != httpx2.codes.SEE_OTHER:
            return
        answer = self._vendor.sign_in(started.answer.headers["location"], email="", sub=client.name)
        spend = CheckedRequest(
            op=Act.SPEND,
            key=f"state {digest_name(answer['state'])}",
            path=f"{CALLBACK}?{urlencode(answer)}",
            method="GET",
            request={},
            judge=judge_answer_of_provider,
            repeatable=False,
        )
        await ask_nodes_together(client, spend)

    async def _accept(self, client: FaultClient) -> None:
        """A new guest accepts the terms of the game by the link, and is asked no more."""
        guest = Device()
        fields = await self._proof(client, guest, new=True, app_id=self._game)
        if fields is None:
            return
        asked = await client.ask(CheckedRequest(op=Act.READ, key="", path=GUEST, request={"json": fields}))
        if not asked.ok or asked.json["status"] != "TERMS":
            return
        page = await self._follow(client, httpx2.URL(asked.json["url"]).raw_path.decode())
        if page is None or not page.is_success:
            return
        user_id = httpx2.URL(asked.json["url"]).params["token"].partition(".")[0]
        accept = CheckedRequest(
            op=Act.ADD,
            key=ACCEPTED,
            value=user_id,
            path="/terms",
            event=AuditEvent.TERMS_ACCEPTED,
            request={"data": {**hidden_fields(page.text), "decision": "accept"}},
            repeatable=False,
        )
        await client.ask(accept)

    # -- idle guests ----------------------------------------------------------------------------------

    async def _wake_idle(self, client: FaultClient) -> None:
        """Sign in idle guests, the newest first, while the oldest are erased: who has signed in is idle no more."""
        for device in self._idle[::-2]:
            if client.is_over():
                return
            if (fields := await self._proof(client, device)) is not None and "puzzle" not in fields:
                wake = CheckedRequest(
                    op=Act.ADD,
                    key=IDLE,
                    value=subject_of(device),
                    path=GUEST,
                    request={"json": fields},
                    judge=judge_sign_in,
                    repeatable=False,
                )
                await client.ask(wake)
            await client.pause()

    async def _sweep(self, pool: ClientPool) -> None:
        """Erase idle guests as a node does, a few at a time."""
        async with open_services_on(self._setup.url, self._setup.data) as services:

            def record(user_id: str) -> AuditRecord:
                return services.core.recorder.record(AuditEvent.USER_ERASED, ORIGIN, subject=user_id)

            while not pool.over.is_set():
                now = services.clock.now()
                with suppress(Unavailable):
                    await services.storage.profile.erase_idle_guests(now - 30 * DAY, record, now)
                await pool.wait(SWEEP_SECONDS)

    # -- after the run --------------------------------------------------------------------------------

    async def finish(self, pool: ClientPool) -> None:
        client = pool.client("players, at the end")
        for guest in self._guests:
            await self._use(client, guest)
        await self._stack.aclose()

    def problems(self, history: History, rows: Rows) -> list[str]:
        accepted = {row.user_id for row in rows["accepted_terms"]}
        awake = {row.subject for row in rows["identities"]}
        acknowledged = {
            operation.value
            for operation in history
            if operation.key == IDLE and operation.op is Act.ADD and operation.ok
        }
        keys = [row.subject for row in rows["retired_device_keys"]]
        return [
            *a_secret_is_spent_at_most_once(history),
            *i3_what_was_ended_stays_ended(history),
            *i11_what_was_not_ended_goes_on(history),
            *i7_every_acknowledged_element_is_there(history, {ACCEPTED: accepted, IDLE: awake & acknowledged}),
            *(f"a retired key has a guest: {key}" for key in keys if key in awake),
        ]


def subject_of(device: Device) -> str:
    return read_device_key(device.public_key).subject


def solved(puzzle: Mapping[str, Any]) -> dict[str, str]:
    return {"puzzle": puzzle["puzzle"], "solution": solve(puzzle["puzzle"], puzzle["difficulty"])}


def judge_sign_in(response: httpx2.Response) -> JudgedAnswer:
    status = response.json()["status"] if response.is_success else error_of(response)
    return JudgedAnswer(result=Result.OK if status == "OK" else Result.FAIL, note=status)


def judge_once(response: httpx2.Response) -> JudgedAnswer:
    judged = judge_sign_in(response)
    return judged if judged.result is Result.OK else replace(judged, note=USED_UP.format(judged.note))


def judge_done(response: httpx2.Response) -> JudgedAnswer:
    done = response.headers.get("location", "").startswith("/game/done")
    return JudgedAnswer(result=Result.OK if done else Result.FAIL, note=f"{response.status_code}")


def judge_answer_of_provider(response: httpx2.Response) -> JudgedAnswer:
    signed_in = response.headers.get("location", "") == "/account"
    return JudgedAnswer(result=Result.OK if signed_in else Result.FAIL, note=f"{response.status_code}")
