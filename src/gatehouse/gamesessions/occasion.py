"""A sign-in for the sake of a game: what the interaction room, and its confirmation page, ask about it."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from gatehouse.accounts.model import User
from gatehouse.accounts.ports import ApplicationRules
from gatehouse.accounts.store import AccountStore
from gatehouse.audit.events import Event
from gatehouse.audit.model import Details, Origin
from gatehouse.audit.recorder import Recorder
from gatehouse.gamesessions.choices import choices_of
from gatehouse.gamesessions.errors import OptionsDamaged
from gatehouse.gamesessions.model import GameSession, State
from gatehouse.gamesessions.ports import Applications
from gatehouse.gamesessions.records import GameRecords
from gatehouse.gamesessions.result import Results
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.interaction.confirming import Nearness, Question, nearness
from gatehouse.interaction.errors import InteractionGone, OccasionOver
from gatehouse.interaction.model import Destination, Interaction, Step, proof_of
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import same_secret

KIND: Final = "game"
GSID: Final = "gsid"
LINK: Final = "/"  # what the game shows or opens
DONE: Final = "/game/done"
CANCELLED: Final = "/game/cancelled"
WRONG_CODE: Final = "/game/wrong-code"
DENIED: Final = "/game/denied"


class GameOccasion:
    def __init__(
        self,
        *,
        store: GameSessionStore,
        accounts: AccountStore,
        applications: Applications,
        rules: ApplicationRules,
        results: Results,
        records: GameRecords,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._store = store
        self._accounts = accounts
        self._applications = applications
        self._rules = rules
        self._results = results
        self._records = records
        self._recorder = recorder
        self._clock = clock

    async def open(self, gsid: str) -> Mapping[str, str]:
        """The page was opened; returns what the interaction keeps. Raises InteractionGone for no such session."""
        session = await self._waiting(gsid)
        self.applications(session)  # nobody begins a sign-in that cannot end
        await self._store.move(session.gsid, self._clock.now(), signing_in=False)
        return {GSID: session.gsid}

    async def standing(self, gsid: str) -> GameSession | None:
        """The session while it lasts, whatever became of it: for the pages that follow it."""
        return await self._store.find(gsid, self._clock.now())

    async def destination(self, interaction: Interaction) -> Destination:
        session = await self._waiting(interaction.ask[GSID])
        return Destination(application=await self.name(session), hand_over=page(LINK, session.gsid))

    async def next_step(self, interaction: Interaction) -> Step:
        """Always asked, also of someone who is signed in: anyone can mail him the link (R4).

        A session from a short-lived token does not do: it came out of a game itself.
        """
        if proof_of(interaction).limited:
            return Step.LOGIN
        await self._store.move(interaction.ask[GSID], self._clock.now(), signing_in=True)
        return Step.CONFIRM

    async def question(self, interaction: Interaction, origin: Origin) -> Question:
        session = await self._waiting(interaction.ask[GSID])
        return Question(
            kind=KIND,
            application=await self.name(session),
            choices=asked_to_pick(session, origin),
            asked_at=session.created_at,
            address=session.address,
            nearness=closeness(session, origin),
            watched=session.gsid,
            is_waited_for=session.is_waited_for(self._clock.now()),
        )

    async def check(self, interaction: Interaction, picked: str, origin: Origin) -> str:
        session = await self._waiting(interaction.ask[GSID])
        if not asked_to_pick(session, origin) or same_secret(picked, session.code):
            return ""
        await self._fail(session, origin, "wrong code picked")
        return page(WRONG_CODE, session.gsid)

    async def finish(self, interaction: Interaction, origin: Origin) -> str:
        session, proof = await self._waiting(interaction.ask[GSID]), proof_of(interaction)
        if proof.limited:
            raise InteractionGone
        if not await self._lets_in(await self._accounts.user(proof.user_id), session):
            await self._fail(
                session, origin, "the account is not allowed to use the application", user_id=proof.user_id
            )
            return page(DENIED, session.gsid)
        details: Details = {
            "gsid": session.gsid,
            "app_id": session.app_id,
            "network": closeness(session, origin).value,
        }
        entry = self._recorder.record(Event.GAME_CONFIRMED, origin, subject=proof.user_id, details=details)
        confirmed = await self._store.confirm(
            session.gsid, self._clock.now(), user_id=proof.user_id, rev=proof.rev, auth=proof.auth, entry=entry
        )
        if not confirmed:
            raise InteractionGone
        return page(DONE, session.gsid)

    async def refuse(self, interaction: Interaction, origin: Origin) -> str:
        session = await self._waiting(interaction.ask[GSID])
        await self._fail(session, origin, "canceled in the browser")
        return page(CANCELLED, session.gsid)

    async def _waiting(self, gsid: str) -> GameSession:
        session = await self._store.find(gsid, self._clock.now())
        if session is None or session.state is not State.PENDING:
            raise OccasionOver
        return session

    async def _lets_in(self, user: User, session: GameSession) -> bool:
        return not user.blocked and await self._rules.may_log_in(user, self.applications(session))

    def applications(self, session: GameSession) -> Sequence[int]:
        """All that it names. Raises InteractionGone where that is damaged: nobody can sign in with it."""
        try:
            return self._results.options(session).applications
        except OptionsDamaged:
            raise InteractionGone from None

    def application(self, session: GameSession) -> int:
        """The first application it names; 0 when it names none."""
        return next(iter(self.applications(session)), 0)

    async def name(self, session: GameSession) -> str:
        """Of that application; empty when there is none."""
        return await self.name_of(self.application(session))

    async def name_of(self, application_id: int) -> str:
        return (await self._applications.terms(application_id)).name if application_id else ""

    async def _fail(self, session: GameSession, origin: Origin, reason: str, *, user_id: str = "") -> None:
        refusal = self._records.ended(session.gsid, origin, reason)
        failed = await self._store.fail(session.gsid, self._clock.now(), refusal, self._records.kept, user_id=user_id)
        if not failed:
            raise OccasionOver


def asked_to_pick(session: GameSession, origin: Origin) -> tuple[str, ...]:
    """The codes to pick from, for somebody who is not known to be in the network the game is in (R4)."""
    if not session.code or closeness(session, origin) is Nearness.SAME:
        return ()
    return choices_of(session)


def closeness(session: GameSession, origin: Origin) -> Nearness:
    return nearness(session.address, origin, proven=session.address_proven)


def page(path: str, gsid: str) -> str:
    return f"{path}?{urlencode({GSID: gsid})}"
