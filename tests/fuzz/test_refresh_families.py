"""Refresh families against a model: after refreshes, thefts, revocations and waits, at most one token is valid."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gatehouse.accounts.model import User
from tests.fuzz.stepped_service import SteppedService, run_machine, stepped_service
from tests.support.builders import a_record
from tests.support.oauth import (
    DAY,
    RelyingPartyClient,
    a_native_client,
    an_oidc_client,
    basic_auth,
    claims_of,
    oauth_error,
    success_body,
)
from tests.support.permission_builders import a_person

REFRESH: Final = 30 * DAY
ACCESS: Final = 3_600
FAMILY: Final = 90 * DAY
GONE: Final = (400, "invalid_grant")
INACTIVE: Final = {"active": False}
MOST: Final = 3
PAUSES: Final = (1, ACCESS - 1, ACCESS, 10 * DAY, REFRESH - 1, REFRESH)
PEOPLE: Final = 2

which_family = st.integers(0, MOST - 1)


@dataclass(kw_only=True)
class Family:
    person: int
    begun: int
    refreshed: int
    tokens: list[str]  # refresh tokens, newest last
    access: str  # the newest one
    dead: bool = False

    def is_live(self, now: int) -> bool:
        return not self.dead and now < self.begun + FAMILY

    def refreshes(self, now: int) -> bool:
        return self.is_live(now) and now < self.refreshed + REFRESH

    def opens(self, now: int) -> bool:
        return self.is_live(now) and now < self.refreshed + ACCESS


@dataclass(kw_only=True)
class FuzzSetup:
    """The data of one service for all runs of the machine."""

    bench: SteppedService
    web: RelyingPartyClient
    other_client: RelyingPartyClient
    numbers: list[int] = field(default_factory=lambda: [3_000_000_000])

    def next_person(self) -> User:
        self.numbers[0] += 1
        return self.bench.run(a_person(self.bench.service.services.storage, str(self.numbers[0])))


class RefreshFamilies(RuleBasedStateMachine):
    fuzz_setup: FuzzSetup

    def __init__(self) -> None:
        super().__init__()
        self.people = [self.fuzz_setup.next_person() for _ in range(PEOPLE)]
        self.families: list[Family] = []

    @property
    def now(self) -> int:
        return self.fuzz_setup.bench.now()

    def do(self, step: Any) -> Any:
        return self.fuzz_setup.bench.run(step)

    def choose_family(self, number: int) -> Family:
        return self.families[number % len(self.families)]

    @precondition(lambda self: len(self.families) < MOST)
    @rule(person=st.integers(0, PEOPLE - 1))
    def sign_in(self, person: int) -> None:
        web = self.fuzz_setup.web
        tokens = self.do(web.tokens(self.do(web.issue_code(self.people[person]))))
        family = Family(
            person=person,
            begun=self.now,
            refreshed=self.now,
            tokens=[tokens["refresh_token"]],
            access=tokens["access_token"],
        )
        self.families.append(family)

    @precondition(lambda self: self.families)
    @rule(number=which_family)
    def refresh(self, number: int) -> None:
        family = self.choose_family(number)
        answer = self.do(self.fuzz_setup.web.refresh(family.tokens[-1]))
        if family.refreshes(self.now):
            self.record_rotation(family, success_body(answer))
        else:
            assert oauth_error(answer) == GONE

    def record_rotation(self, family: Family, tokens: dict[str, Any]) -> None:
        assert tokens["refresh_token"] not in family.tokens
        assert tokens["access_token"] != family.access
        family.tokens.append(tokens["refresh_token"])
        family.access, family.refreshed = tokens["access_token"], self.now

    @precondition(lambda self: any(len(family.tokens) > 1 for family in self.families))
    @rule(number=which_family, back=st.integers(2, 4))
    def steal(self, number: int, back: int) -> None:
        """Presenting a rotated token ends the family, unless the token has expired."""
        family = self.choose_family(number)
        if len(family.tokens) < back:
            return
        stolen = family.tokens[-back]
        has_ended = self.ends_of(stolen) <= self.now
        assert oauth_error(self.do(self.fuzz_setup.web.refresh(stolen))) == GONE
        family.dead = family.dead or not has_ended

    def ends_of(self, token: str) -> int:
        end: int = claims_of(token)["exp"]
        return end

    @precondition(lambda self: self.families)
    @rule(number=which_family)
    def race(self, number: int) -> None:
        """Three requests at once with the valid token: one gets tokens, which are then worthless."""
        family = self.choose_family(number)
        responses = self.do(refresh_concurrently(self.fuzz_setup.web, family.tokens[-1]))
        won = [response for response in responses if response.status_code == 200]
        assert len(won) == family.refreshes(self.now)
        if won:
            self.record_rotation(family, success_body(won[0]))
            family.dead = True

    @precondition(lambda self: self.families)
    @rule(number=which_family)
    def refresh_by_other_client(self, number: int) -> None:
        """A different client gets nothing for it and does not spend it."""
        answer = self.do(self.fuzz_setup.other_client.refresh(self.choose_family(number).tokens[-1], redirect_uri=""))
        assert oauth_error(answer) == GONE

    @precondition(lambda self: self.families)
    @rule(number=which_family, by_access_token=st.booleans())
    def revoke(self, number: int, by_access_token: bool) -> None:  # noqa: FBT001 - drawn
        family = self.choose_family(number)
        token = family.access if by_access_token else family.tokens[-1]
        response = self.do(self.ask("/proxy/oauth/revoke", token))
        assert (response.status_code, response.content) == (200, b"")
        family.dead = family.dead or (family.opens(self.now) if by_access_token else family.refreshes(self.now))

    @rule(person=st.integers(0, PEOPLE - 1))
    def sign_out_everywhere(self, person: int) -> None:
        services, user_id = self.fuzz_setup.bench.service.services, self.people[person].user_id
        self.do(services.storage.sessions.revoke_user(user_id, a_record(), keep=None, now=self.now))
        self.people[person] = self.do(services.storage.accounts.user(user_id))
        for family in self.families:
            family.dead = family.dead or family.person == person

    @rule(seconds=st.sampled_from(PAUSES))
    def wait(self, seconds: int) -> None:
        self.fuzz_setup.bench.wait(seconds)

    async def ask(self, path: str, token: str) -> httpx2.Response:
        web = self.fuzz_setup.web
        headers = {"Authorization": basic_auth(web.client.client_id, web.secret)}
        return await self.fuzz_setup.bench.service.client.post(path, data={"token": token}, headers=headers)

    def is_active(self, token: str) -> bool:
        reported: dict[str, Any] = success_body(self.do(self.ask("/proxy/oauth/introspect", token)))
        return bool(reported["active"])

    @invariant()
    def only_the_newest_tokens_of_living_families_are_good(self) -> None:
        for family in self.families:
            assert self.is_active(family.tokens[-1]) == family.refreshes(self.now)
            assert self.is_active(family.access) == family.opens(self.now)
            if len(family.tokens) > 1:
                assert not self.is_active(family.tokens[-2])


async def refresh_concurrently(web: RelyingPartyClient, token: str) -> list[httpx2.Response]:
    return await asyncio.gather(*(web.refresh(token) for _ in range(3)))


def test_tk_11_a_refresh_family_does_what_its_model_says(fuzzed_url: str, tmp_path: Path) -> None:
    with stepped_service(fuzzed_url, tmp_path) as bench:
        fuzz_setup = FuzzSetup(
            bench=bench,
            web=bench.run(a_native_client(bench.service)),
            other_client=bench.run(an_oidc_client(bench.service)),
        )
        machine = type("Families", (RefreshFamilies,), {"fuzz_setup": fuzz_setup})
        run_machine(machine, short=6, steps=15)
