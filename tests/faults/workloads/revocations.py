"""W5: what is ended on one node is ended on all: accounts, sign-ins, keys, service accounts, permissions."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, Final

import httpx2

from tests.faults.clients import (
    CheckedRequest,
    ClientPool,
    FaultClient,
    JudgedAnswer,
    ask_nodes_in_turn,
    error_of,
    repeat_until_over,
)
from tests.faults.fault_setup import FaultSetup, Person, create_person, create_project_application, with_password
from tests.faults.history import Act, History, Operation, Result
from tests.faults.invariants.lasting import i3_what_was_ended_stays_ended, i11_what_was_not_ended_goes_on
from tests.faults.invariants.roles import i10_roles_are_whole
from tests.faults.workloads.signing_in import REVOKE, USERINFO, redeem_request, request_code, sign_in
from tests.faults.workloads.workload import API, permission_request
from tests.support.browser import hidden_fields
from tests.support.database_contents import Rows
from tests.support.permission_builders import a_role, set_roles
from tests.support.studio import PROJECT

CLIENTS: Final = 3
LEFT_ALIVE: Final = 0.3  # the share that is not ended
EXCHANGE: Final = "/proxy/oauth/exchange"
PROTECTED: Final = {"private_data": {"ban": {"value": False, "protected": True}, "kick": {"value": False}}}
TO_KICK: Final = {"private_data": {"kick": {"value": True}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocable:
    """Something that is valid until it is ended."""

    use: CheckedRequest
    end: Callable[[FaultClient], Awaitable[object]]


class Revocations:
    def __init__(self, people: int = 60) -> None:
        self._wanted = people
        self.things: list[Revocable] = []
        self._numbers = count()

    async def prepare(self, setup: FaultSetup) -> None:
        services, self._setup = setup.services, setup
        self._owner, self._relying = setup.owner, setup.relying
        self._logins = [(await with_password(services, f"ends{n}")).login or "" for n in range(CLIENTS)]
        self._doomed = [await create_person(services) for _ in range(self._wanted)]  # will be blocked
        self._given = [await create_person(services) for _ in range(CLIENTS)]  # get a permission and lose it
        self._keyed = [await create_project_application(services, f"Key {n}") for n in range(CLIENTS)]
        self._ruled = await create_project_application(services, "Ruled")
        moderator = a_role("moderator", self._ruled, meta=TO_KICK)
        await services.storage.applications.edit_schema(self._ruled, set_roles(moderator))

    def clients(self, pool: ClientPool) -> Sequence[Coroutine[Any, Any, None]]:
        workers = [self._work(pool.client(f"ends {n}"), n) for n in range(CLIENTS)]
        return [*workers, self._block(pool.client("administrator")), self._roles(pool.client("roles"))]

    async def _work(self, client: FaultClient, number: int) -> None:
        await sign_in(client, self._logins[number])

        async def give(client: FaultClient) -> None:
            await self._give(client, self._given[number])

        async def key(client: FaultClient) -> None:
            await self._key(client, self._keyed[number])

        await repeat_until_over(client, self._grant, key, self._account, give, give)

    # -- each of them begins, is used, mostly ended, and used again ------------------------------------

    async def _grant(self, client: FaultClient) -> None:
        if (code := await request_code(client, self._relying)) is None:
            return
        key = f"grant:{next(self._numbers)}"
        ask = redeem_request(self._relying, code, op=Act.BEGIN, repeatable=False)
        reply = await client.ask(replace(ask, key=key))
        if not reply.ok:
            return
        headers = {"Authorization": f"Bearer {reply.json['access_token']}"}
        body = {
            "client_id": self._relying.client_id,
            "client_secret": self._relying.secret,
            "refresh_token": reply.json["refresh_token"],
        }
        end = CheckedRequest(
            op=Act.END, key=key, path=REVOKE, event="grant.revoked", request={"json": body}, judge=judge_revocation
        )
        use = CheckedRequest(op=Act.USE, key=key, path=USERINFO, method="GET", request={"headers": headers})
        await self._use_and_end(client, Revocable(use=use, end=lambda who: who.ask(end)))

    async def _key(self, client: FaultClient, application_id: int) -> None:
        key = f"access key:{next(self._numbers)}"
        about = {"application_id": application_id}
        make = permission_request(
            *(Act.BEGIN, key, "accessKey", {"action": "save", **about, "data": {}}, self._owner),
            event="access_key.made",
            repeatable=False,
        )
        reply = await client.ask(make)
        if not reply.ok:
            if reply.operation.result is Result.FAIL:
                await self._free_a_slot(client, about)
            return
        data = reply.json["data"]
        end = self._ending_key(key, about, data["id"])
        body = {"action": "get", **about, "data": {"type": "roles", "user_id": self._owner.user_id}}
        request = {"json": body, "headers": {"Authorization": f"Bearer {data['hash']}"}}
        use = CheckedRequest(op=Act.USE, key=key, path=f"{API}meta/data", request=request)
        await self._use_and_end(client, Revocable(use=use, end=lambda who: who.ask(end)), surely=True)

    async def _free_a_slot(self, client: FaultClient, about: dict[str, Any]) -> None:
        """Remove a key whose creation response was lost."""
        body = {"action": "get", **about}
        listed = await client.ask(permission_request(Act.READ, "", "accessKey", body, self._owner))
        for key in listed.json["data"] if listed.ok else []:
            await client.ask(self._ending_key(f"forgotten {key['id']}", about, key["id"]))

    def _ending_key(self, key: str, about: dict[str, Any], number: object) -> CheckedRequest:
        removed = {"action": "delete", **about, "data": {"id": number}}
        return permission_request(*(Act.END, key, "accessKey", removed, self._owner), event="access_key.removed")

    async def _account(self, client: FaultClient) -> None:
        number = next(self._numbers)
        key = f"service account:{number}"
        body = {"action": "save", "data": {"project_id": PROJECT, "name": f"ci {number}"}}
        make = permission_request(
            *(Act.BEGIN, key, "serviceAccount", body, self._owner), event="service_account.made"
        )
        reply = await client.ask(make)
        if not reply.ok:
            return
        data = reply.json["data"]
        removed = {"action": "delete", "data": {"user_id": data["user_id"]}}
        end = permission_request(
            *(Act.END, key, "serviceAccount", removed, self._owner), event="service_account.revoked", repeatable=False
        )
        own = {"action": "get", "application_id": self._ruled, "data": {}}
        request = {"json": own, "headers": {"Authorization": f"Bearer {data['jwt']}"}}
        use = CheckedRequest(op=Act.USE, key=key, path=f"{API}meta/data", request=request)
        await self._use_and_end(client, Revocable(use=use, end=lambda who: who.ask(end)))

    async def _give(self, client: FaultClient, who: Person) -> None:
        """Give and take a permission repeatedly; probe on each node whether it is effective."""
        key = f"right:{who.user_id}"
        probe = self._holding(key, who)
        await client.ask(self._saving(Act.BEGIN, key, who, "moderator"))
        await ask_nodes_in_turn(client, probe)
        await client.ask(self._saving(Act.END, key, who))
        await ask_nodes_in_turn(client, probe)

    def _saving(self, op: Act, key: str, who: Person, *roles: str) -> CheckedRequest:
        data = {"user_id": who.user_id, "roles": roles}
        body = {"action": "save", "application_id": self._ruled, "data": data}
        return permission_request(
            op, key, "meta/data", body, self._owner, event="user_schema.saved", value=",".join(roles)
        )

    def _holding(self, key: str, who: Person) -> CheckedRequest:
        body = {"action": "get", "application_id": self._ruled, "data": {"type": "list_short"}}
        return permission_request(Act.USE, key, "meta/data", body, who, judge=judge_kick)

    async def _use_and_end(self, client: FaultClient, thing: Revocable, *, surely: bool = False) -> None:
        self.things.append(thing)
        await client.ask(thing.use)
        if surely or client.chance.random() > LEFT_ALIVE:
            await thing.end(client)
            await ask_nodes_in_turn(client, thing.use)

    # -- the administrator, and the owner of roles -----------------------------------------------------

    async def _block(self, client: FaultClient) -> None:
        """Block one account after the other on its page; each existed before the run."""
        await sign_in(client, self._setup.administrator)
        for who in self._doomed:
            if client.is_over():
                return
            key = f"user:{who.user_id}"
            self._note_beginning(client, key)
            use = CheckedRequest(op=Act.USE, key=key, path=EXCHANGE, request={"headers": who.headers})
            await self._use_and_end(client, Revocable(use=use, end=partial(self._block_person, who=who)))
            await client.pause(0.1)

    async def _block_person(self, client: FaultClient, who: Person) -> None:
        path = f"/console/people/{who.user_id}/act/block"
        page = await client.ask(CheckedRequest(op=Act.READ, key="", path=path, method="GET", request={}))
        if page.answer is not None and page.answer.is_redirect:  # the session has ended
            await sign_in(client, client.login)
        elif page.ok and page.answer is not None:
            fields = {"csrf": hidden_fields(page.answer.text)["csrf"]}
            end = CheckedRequest(
                op=Act.END,
                key=f"user:{who.user_id}",
                path=path,
                event="user.blocked",
                request={"data": fields},
                judge=judge_redirect,
                repeatable=False,
            )
            await client.ask(end)

    def _note_beginning(self, client: FaultClient, key: str) -> None:
        client.pool.recorder.write(
            Operation(t0=0, t1=0, node=0, client=client.name, op=Act.BEGIN, key=key, value="", result=Result.OK)
        )

    async def _roles(self, client: FaultClient) -> None:
        """Create, assign, protect and delete a role while other clients assign it (I10)."""

        async def save(client: FaultClient) -> None:
            guarded = client.chance.random() < 0.5
            rule = "ban" if guarded else "kick"
            data = {"name": "fleeting", "protected": guarded, "meta": {"private_data": {rule: {"value": True}}}}
            await self._send(client, "roles", "save", data)

        async def drop(client: FaultClient) -> None:
            await self._send(client, "roles", "delete", {"name": "fleeting"})

        async def give(client: FaultClient) -> None:
            who = client.chance.choice(self._given)
            await self._send(client, "meta/data", "save", {"user_id": self._owner.user_id, "roles": ["fleeting"]})
            await self._send(client, "meta/data", "get", {"user_id": who.user_id})

        await self._send(client, "meta/schema", "save", PROTECTED)
        await repeat_until_over(client, save, drop, give, give)

    async def _send(self, client: FaultClient, path: str, action: str, data: dict[str, Any]) -> None:
        """Send it for its effect on others; the database shows what happened."""
        body = {"action": action, "application_id": self._ruled, "data": data}
        await client.ask(permission_request(Act.READ, "", path, body, self._owner))

    # -- after the run --------------------------------------------------------------------------------

    async def finish(self, pool: ClientPool) -> None:
        client = pool.client("ends, at the end")
        for thing in self.things:
            await ask_nodes_in_turn(client, thing.use)
        for who in self._given:
            await ask_nodes_in_turn(client, self._holding(f"right:{who.user_id}", who))

    def problems(self, history: History, rows: Rows) -> list[str]:
        return [
            *i3_what_was_ended_stays_ended(history),
            *i11_what_was_not_ended_goes_on(history),
            *i10_roles_are_whole(rows),
        ]


def judge_kick(response: httpx2.Response) -> JudgedAnswer:
    if not response.is_success:
        return JudgedAnswer(result=Result.FAIL, note=error_of(response))
    return JudgedAnswer(result=Result.OK if "kick" in response.json()["data"] else Result.FAIL)


def judge_redirect(response: httpx2.Response) -> JudgedAnswer:
    return (
        JudgedAnswer(result=Result.OK)
        if response.status_code == 303
        else JudgedAnswer(result=Result.FAIL, note=error_of(response))
    )


def judge_revocation(response: httpx2.Response) -> JudgedAnswer:
    """A token that is already revoked is a conflict, with this endpoint's own error (R3)."""
    if response.is_success:
        return JudgedAnswer(result=Result.OK)
    error = error_of(response)
    return JudgedAnswer(
        result=Result.FAIL, note="invalid_grant (told as invalid_request)" if error == "invalid_request" else error
    )
