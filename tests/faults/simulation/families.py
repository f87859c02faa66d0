"""Codes and refresh token families (W1), and what ends them: revocation, reuse, a blocked account (W5)."""

import asyncio
from dataclasses import dataclass, field
from secrets import token_hex, token_urlsafe
from typing import Final

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import Refused
from gatehouse.oauth.client_auth import ClientCredentials
from gatehouse.oauth.token_endpoint import TokenRequest
from gatehouse.oauth.token_issuer import TokenResponse
from gatehouse.oauth.vocabulary import GrantName
from tests.faults.simulation.cluster import ADDRESS, NodeCall, SimulatedCluster
from tests.faults.simulation.history import History, Op, Result
from tests.faults.simulation.initial_state import InitialState
from tests.faults.simulation.node import Node
from tests.support.oauth import DAY, REDIRECT, a_grant, claims_of, native_proof

CODE_SECONDS: Final = 600
FAMILY: Final = ("redeem", "refresh", "identify")


@dataclass(slots=True, kw_only=True)
class Family:
    """One grant, and every token issued from it."""

    grant_id: str
    user_id: str
    code: str
    is_peaceful: bool  # nothing that could end it is tried
    refresh: list[str] = field(default_factory=list)
    access: list[str] = field(default_factory=list)

    def add_tokens(self, answer: object) -> None:
        if isinstance(answer, TokenResponse) and answer.refresh_token is not None:
            self.refresh.append(answer.refresh_token)
            self.access.append(answer.access_token)

    def newest_first(self) -> list[str]:
        """All refresh tokens without duplicates, newest first."""
        return sorted(dict.fromkeys(self.refresh), key=lambda token: int(generation_of(token)), reverse=True)


def a_family(user_id: str, *, is_peaceful: bool) -> Family:
    return Family(grant_id=token_hex(16), user_id=user_id, code=token_urlsafe(32), is_peaceful=is_peaceful)


def begin_family(family: Family) -> NodeCall:
    async def begin(node: Node, origin: AuditOrigin) -> object:
        now = node.clock.now()
        grant = a_grant(
            grant_id=family.grant_id,
            user_id=family.user_id,
            code=sha256(family.code),
            auth_time=now,
            created_at=now,
            code_ends_at=now + CODE_SECONDS,
            ends_at=now + 90 * DAY,
        )
        entry = node.services.core.recorder.record(AuditEvent.GRANT_MADE, origin, subject=family.user_id)
        if not await node.services.storage.grants.create_grant(grant, entry):
            raise Refused("blocked")
        return None

    return begin


def redeem_code(family: Family, initial_state: InitialState) -> NodeCall:
    async def redeem(node: Node, origin: AuditOrigin) -> object:
        credentials = ClientCredentials(
            proof=native_proof(REDIRECT, initial_state.secret), source=ADDRESS, origin=origin
        )
        return await node.services.oauth.token_endpoint.issue_tokens(
            TokenRequest(
                grant_type=GrantName.AUTHORIZATION_CODE,
                code=family.code,
                redirect_uri=REDIRECT,
            ),
            credentials,
        )

    return redeem


def refresh_with(token: str, initial_state: InitialState) -> NodeCall:
    async def refresh(node: Node, origin: AuditOrigin) -> object:
        credentials = ClientCredentials(
            proof=native_proof(REDIRECT, initial_state.secret), source=ADDRESS, origin=origin
        )
        return await node.services.oauth.token_endpoint.issue_tokens(
            TokenRequest(
                grant_type=GrantName.REFRESH_TOKEN,
                refresh_token=token,
                redirect_uri=REDIRECT,
            ),
            credentials,
        )

    return refresh


def identify_with(token: str) -> NodeCall:
    async def identify(node: Node, _origin: AuditOrigin) -> object:
        return await node.services.oauth.tokens.verifier.verify(token)

    return identify


def revoke_token(token: str, initial_state: InitialState) -> NodeCall:
    async def revoke(node: Node, origin: AuditOrigin) -> object:
        credentials = ClientCredentials(
            client_id="web", client_secret=initial_state.secret, source=ADDRESS, origin=origin
        )
        await node.services.oauth.revocation.revoke(credentials, token, origin)
        return None

    return revoke


def block_user(user_id: str) -> NodeCall:
    async def block(node: Node, origin: AuditOrigin) -> object:
        return await node.services.accounts.administration.block(user_id, origin)

    return block


class TokenClient:
    """A client and the tokens it received."""

    def __init__(self, cluster: SimulatedCluster, initial_state: InitialState, family: Family) -> None:
        self._cluster = cluster
        self._initial_state = initial_state
        self._family = family

    async def run(self) -> None:
        begun_ = await self._cluster.insist("begin", self._family.grant_id, begin_family(self._family), tries=1)
        if begun_.result is Result.FAIL:
            return
        rivals = 1 if self._family.is_peaceful else self._cluster.chance.randint(1, 3)
        await asyncio.gather(*(self._redeem() for _ in range(rivals)))
        if not self._family.refresh:
            return
        ways = [self._refresh(), self._probe()]
        if not self._family.is_peaceful:
            ways += [
                way() for way in (self._refresh, self._steal, self._revoke) if self._cluster.chance.random() < 0.5
            ]
        await asyncio.gather(*ways)

    async def _redeem(self) -> None:
        await self._cluster.pause(2)
        op, answer = await self._cluster.ask(
            "redeem", self._family.grant_id, redeem_code(self._family, self._initial_state)
        )
        self._family.add_tokens(answer)
        if op.result is Result.INFO and not self._family.is_peaceful:
            await self._redeem()

    async def _refresh(self) -> None:
        """Refresh with the newest known token, and retry without a response, as clients do."""
        for _ in range(self._cluster.chance.randint(1, 4)):
            await self._cluster.pause(3)
            if not await self._present(self._family.refresh[-1]) and self._family.is_peaceful:
                return  # it is unknown which token is valid now

    async def _present(self, token: str) -> bool:
        """Present a token; return whether there was any response."""
        for _ in range(3):
            op, answer = await self._cluster.ask(
                "refresh", self._family.grant_id, refresh_with(token, self._initial_state), value=generation_of(token)
            )
            self._family.add_tokens(answer)
            if op.result is not Result.INFO:
                return True
            await self._cluster.pause(1)
        return False

    async def _steal(self) -> None:
        """Present a token that was rotated long ago."""
        await self._cluster.pause(60)
        await self._present(self._family.refresh[0])

    async def _revoke(self) -> None:
        await self._cluster.pause(15)
        await self._cluster.insist(
            "revoke", self._family.grant_id, revoke_token(self._family.refresh[-1], self._initial_state)
        )

    async def _probe(self) -> None:
        for _ in range(self._cluster.chance.randint(1, 4)):
            await self._cluster.pause(6)
            await self._cluster.ask("identify", self._family.grant_id, identify_with(self._family.access[-1]))


def generation_of(token: str) -> str:
    return str(claims_of(token)["jti"]).partition(".")[2]


# -- invariants ----------------------------------------------------------------------------------------


def codes_are_taken_once(history: History) -> list[str]:
    """I1."""
    return [
        f"I1: the code of {key} was taken {len(taken)} times"
        for key in history.keys("redeem")
        if len(taken := [op for op in history.of("redeem", key=key) if op.result is Result.OK]) > 1
    ]


def endings(history: History, family: Family) -> list[Op]:
    """The acknowledged operations that ended the family: a revocation, a detected reuse, a blocked account."""
    done = [op for op in history.of("revoke", key=family.grant_id) if op.result is Result.OK]
    done += [op for op in history.of("block", key=family.user_id) if op.result is Result.OK]
    done += [op for op in history.of("redeem", "refresh", key=family.grant_id) if op.detail.endswith("REUSED")]
    return done


def what_ended_stays_ended(history: History, family: Family) -> list[str]:
    """I2, I3, I9, I16: nothing that began after an acknowledged end succeeds."""
    ends = endings(history, family)
    if not ends:
        return []
    since = min(op.ended for op in ends)
    return [
        f"I3: {op} after its end at {since:.3f}"
        for op in history.of(*FAMILY, key=family.grant_id)
        if op.began > since and op.result is Result.OK
    ]


def no_one_is_refused_for_nothing(history: History, family: Family) -> list[str]:
    """I11, I14: in a family that nothing ended, every request succeeds or gets a retryable error."""
    if not family.is_peaceful:
        return []
    refusals = [op for op in history.of("refresh", "identify", key=family.grant_id) if op.result is Result.FAIL]
    return [f"I11: {op} for no reason" for op in refusals]


def one_refresh_token_is_good(history: History, family: Family, good: list[str]) -> list[str]:
    """I2: `good` has the numbers of the tokens accepted after the run, each tried after the grace period."""
    acknowledged = max((int(generation_of(token)) for token in family.refresh), default=0)
    problems = [f"I2: of {family.grant_id} these are good: {good}"] if len(good) > 1 else []
    if any(int(generation) < acknowledged for generation in good):
        problems.append(f"I2: of {family.grant_id} {good} is good, though {acknowledged} was given out")
    if good and endings(history, family):
        problems.append(f"I3: {good} of {family.grant_id} is good after its end")
    return problems


def revocations_are_recorded(history: History, family: Family, recorded: int) -> list[str]:
    """I8: one record for a family that was only revoked."""
    revokes = [op for op in history.of("revoke", key=family.grant_id) if op.result is Result.OK]
    others = [op for op in endings(history, family) if op.kind != "revoke"] or history.of("block", key=family.user_id)
    doubtful = [op for op in history.of("redeem", "refresh", key=family.grant_id) if op.result is not Result.OK]
    if not revokes or others or doubtful:
        return [] if recorded <= 1 else [f"I8: {family.grant_id} was revoked {recorded} times"]
    return [] if recorded == 1 else [f"I8: {family.grant_id} was revoked with {recorded} records"]
