"""Two nodes race for things that work once or are limited, with requests that start together (faults R-12)."""

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from gatehouse.app.services import Services
from tests.faults.clients import CheckedRequest, ClientPool, FaultClient, addresses
from tests.faults.fault_setup import (
    DEV,
    FaultSetup,
    Person,
    create_person,
    create_project_application,
    fault_setup,
    nodes_of,
    publishers,
)
from tests.faults.history import Act, Operation, Result
from tests.faults.invariants.once import (
    a_secret_is_spent_at_most_once,
    i1_a_code_is_consumed_at_most_once,
    i2_a_family_has_one_live_token_and_after_reuse_none,
    i4_an_answer_is_delivered_once_and_never_lost,
)
from tests.faults.invariants.sets import i5_limits_are_never_exceeded
from tests.faults.run_record import RunRecord
from tests.faults.simultaneous_requests import SimultaneousSender
from tests.faults.workloads.games import approve_game, register_game
from tests.faults.workloads.logins import FREE, GUESSES, Logins
from tests.faults.workloads.players import judge_once
from tests.faults.workloads.signing_in import digest_name, redeem_request, refresh_request, request_code, sign_in
from tests.faults.workloads.workload import permission_request
from tests.support.builders import ORIGIN
from tests.support.guests import GUEST, Device
from tests.support.permission_builders import a_role, set_roles
from tests.support.studio import PROJECT

RACES: Final = int(os.environ.get("FAULT_RACES", "40"))  # noqa: TID251 - an option of the tests
EACH: Final = 2  # requests at each node
KINDS: Final = 10


class RaceSetup:
    """Prepare one race of each kind in turn."""

    def __init__(self, setup: FaultSetup, logins: Logins) -> None:
        self.owner, self.relying, self.logins = setup.owner, setup.relying, logins
        self.administrator = setup.administrator

    async def fill(self, services: Services) -> None:
        self.keyed, self.seated = (
            await create_project_application(services, "Keyed"),
            await create_project_application(services, "Seated"),
        )
        one = a_role("one", self.seated, user_limit=1)
        await services.storage.applications.edit_schema(self.seated, set_roles(one))
        self.people: Sequence[Person] = [await create_person(services) for _ in range(2 * EACH)]
        self.publishers = await publishers(services, RACES // KINDS + 1, 1)
        await services.settings_editor.save({"guests.enabled": True, "guests.created_per_hour": 1_000_000}, ORIGIN)

    async def code(self, client: FaultClient, sender: SimultaneousSender, _n: int) -> list[Operation]:
        code = await request_code(client, self.relying)
        assert code is not None
        return await sender.send_together(client, [redeem_request(self.relying, code)] * 2 * EACH)

    async def token(self, client: FaultClient, sender: SimultaneousSender, _n: int) -> list[Operation]:
        code = await request_code(client, self.relying)
        assert code is not None
        reply = await client.ask(redeem_request(self.relying, code))
        return await sender.send_together(
            client, [refresh_request(self.relying, reply.json["refresh_token"])] * 2 * EACH
        )

    async def answer(self, client: FaultClient, sender: SimultaneousSender, _n: int) -> list[Operation]:
        registered = await register_game(client)
        assert registered is not None
        gsid, ask = registered
        assert await approve_game(client, gsid)
        return await sender.send_together(client, [ask] * 2 * EACH)

    async def key(self, client: FaultClient, sender: SimultaneousSender, n: int) -> list[Operation]:
        """One key exists; one of the requests may add a second."""
        await client.ask(self._adding_key(f"{n} before"))
        fired = await sender.send_together(client, [self._adding_key(f"{n} {number}") for number in range(2 * EACH)])
        about = {"application_id": self.keyed}
        listed = await client.ask(
            permission_request(Act.READ, "", "accessKey", {"action": "get", **about}, self.owner)
        )
        assert len(listed.json["data"]) == 2
        for one in listed.json["data"]:
            removed = {"action": "delete", **about, "data": {"id": one["id"]}}
            await client.ask(
                permission_request(
                    *(Act.REMOVE, f"keys:{self.keyed}", "accessKey", removed, self.owner), value=one["comment"]
                )
            )
        return fired

    def _adding_key(self, comment: str) -> CheckedRequest:
        body = {"action": "save", "application_id": self.keyed, "data": {"comment": comment}}
        return permission_request(*(Act.ADD, f"keys:{self.keyed}", "accessKey", body, self.owner), value=comment)

    async def role_assignment(self, client: FaultClient, sender: SimultaneousSender, _n: int) -> list[Operation]:
        fired = await sender.send_together(client, [self._assigning(who, "one") for who in self.people])
        for who in self.people:
            await client.ask(self._assigning(who))
        return fired

    def _assigning(self, who: Person, *roles: str) -> CheckedRequest:
        body = {
            "action": "save",
            "application_id": self.seated,
            "data": {"user_id": who.user_id, "roles": list(roles)},
        }
        act = Act.ADD if roles else Act.REMOVE
        return permission_request(*(act, f"seats:{self.seated}", "meta/data", body, self.owner), value=who.user_id)

    async def project(self, client: FaultClient, sender: SimultaneousSender, n: int) -> list[Operation]:
        who = self.publishers[n // KINDS]
        asks = [
            permission_request(*(Act.ADD, f"projects:{who.user_id}", "publish", {"project": title}, who), value=title)
            for title in (f"p {n} {number}" for number in range(2 * EACH))
        ]
        return await sender.send_together(client, asks)

    async def name(self, client: FaultClient, sender: SimultaneousSender, n: int) -> list[Operation]:
        body = {"action": "save", "data": {"name": f"Wanted {n}", "project_id": PROJECT}}
        asks = [
            permission_request(*(Act.ADD, f"name:{n}", "application", body, self.owner), value=str(number))
            for number in range(2 * EACH)
        ]
        return await sender.send_together(client, asks)

    async def password(self, client: FaultClient, sender: SimultaneousSender, n: int) -> list[Operation]:
        login = sorted(self.logins.people)[n // KINDS % len(self.logins.people)]
        return await sender.send_together(client, [self.logins.login_request(login)] * 2 * EACH)

    async def challenge(self, client: FaultClient, sender: SimultaneousSender, _n: int) -> list[Operation]:
        """A new guest: one of the requests signs in and creates it."""
        asked = await client.ask(CheckedRequest(op=Act.READ, key="", path=GUEST, request={"json": {}}))
        fields = Device().sign(asked.json["challenge"])
        spend = CheckedRequest(
            op=Act.SPEND, key=digest_name(fields["challenge"]), path=GUEST, request={"json": fields}, judge=judge_once
        )
        return await sender.send_together(client, [spend] * 2 * EACH)

    async def guess(self, client: FaultClient, sender: SimultaneousSender, _n: int) -> list[Operation]:
        return await sender.send_together(client, [self.logins.guess_request() for _ in range(2 * EACH)])

    @property
    def races(
        self,
    ) -> list[tuple[Callable[[FaultClient, SimultaneousSender, int], Awaitable[list[Operation]]], bool]]:
        """All races, with whether exactly one request must win; otherwise the checkers bound it."""
        surely = (
            *(self.code, self.token, self.answer, self.key, self.role_assignment, self.project, self.name),
            self.challenge,
        )
        return [*((race, True) for race in surely), (self.password, False), (self.guess, False)]


async def test_r_12_of_requests_that_start_together_at_two_nodes_as_many_win_as_may(
    installed_postgres_url: str, tmp_path: Path, run_record: RunRecord
) -> None:
    nodes = nodes_of(installed_postgres_url, tmp_path, flags=[DEV, DEV])
    logins = Logins()
    async with fault_setup(installed_postgres_url, tmp_path, nodes[0].base_url) as setup:
        await logins.prepare(setup)
        race_setup = RaceSetup(setup, logins)
        await race_setup.fill(setup.services)
    pool = ClientPool(addresses(nodes), run_record.recorder, run_record.seed)
    lost: Counter[str] = Counter()
    with nodes[0], nodes[1]:
        async with SimultaneousSender(pool, nodes, each=EACH) as sender:
            client = pool.client("races")
            await sign_in(client, race_setup.administrator)
            for number in range(RACES):
                race, surely = race_setup.races[number % KINDS]
                fired = await race(client, sender, number)
                if surely and sum(operation.ok for operation in fired) != 1:
                    lost[race.__name__] += 1
        await pool.close()
    history = run_record.recorder.operations
    assert lost == {}
    limits = {"keys": 2, "seats": 1, "projects": 1, "name": 1, GUESSES: FREE}
    assert [
        *i1_a_code_is_consumed_at_most_once(history),
        *i2_a_family_has_one_live_token_and_after_reuse_none(history),
        *i4_an_answer_is_delivered_once_and_never_lost(history),
        *a_secret_is_spent_at_most_once(history),
        *i5_limits_are_never_exceeded(history, limits),
    ] == []
    assert any(one.op is Act.SPEND and one.ok for one in history)
    assert {one.result for one in history if one.op is Act.ADD and one.key.startswith(GUESSES)} >= {Result.OK}
    fastest = min(one.t1 - one.t0 for one in history)
    assert min(sender.spreads) < fastest  # all requests of a round were sent before the first could be answered
