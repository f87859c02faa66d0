"""The three codes of which the game shows one (R4, cross-device phishing)."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, TypedDict
from urllib.parse import urlencode

from msgspec.structs import replace

from gatehouse.accounts.bans.devices import SignInDevices
from gatehouse.accounts.bans.model import UserBan, find_ban
from gatehouse.accounts.errors import LoginDenied, UserNotFound
from gatehouse.accounts.failed_sign_ins.counter import FailedSignIns
from gatehouse.accounts.failed_sign_ins.model import denial_reason
from gatehouse.accounts.login_result import LoginOptions
from gatehouse.accounts.merge import GuestNotUpgraded, GuestUpgrade, dropped_text
from gatehouse.accounts.model import SignInMethod, User
from gatehouse.accounts.own_account.model import OwnAccountStore
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.accounts.session_model import is_phone_factor
from gatehouse.accounts.short_tokens import may_be_silent
from gatehouse.accounts.store import AccountStore, ApplicationAccess
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord, Details
from gatehouse.audit.recorder import Recorder
from gatehouse.gamesessions.errors import OptionsDamaged
from gatehouse.gamesessions.model import GameSession, GameSessionState, SessionConfirmation
from gatehouse.gamesessions.refusals import GameRefusals
from gatehouse.gamesessions.results import GameLoginResults
from gatehouse.gamesessions.store import GameLoginSettings, GameSessionStore, GameSettingsReader, IdTokenIssuer
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal
from gatehouse.kernel.errors import Conflict, Refused
from gatehouse.mail.model import MailTemplate
from gatehouse.sign_in_flow.model import (
    Destination,
    FlowStep,
    SignInFlow,
    SignInFlowGone,
    SignInProof,
    SignInPurposeEnded,
    proof_of_flow,
)
from gatehouse.sign_in_flow.questions import ConfirmationQuestion, ConsentRequest, NetworkNearness, compare_networks

LOWEST_CODE: Final = 10
CODE_COUNT: Final = 90  # 10 to 99
CHOICE_COUNT: Final = 3


def code_choices(session: GameSession) -> tuple[str, ...]:
    """Return the code among two others, always the same ones in the same order.

    They are derived from a secret of the session, so that loading the page twice does not reveal the right one.
    """
    seed = hashlib.sha256(b"choices" + session.location).digest()
    right = int(session.code)
    others = [number for number in (LOWEST_CODE + byte % CODE_COUNT for byte in seed[:-1]) if number != right]
    chosen = list(dict.fromkeys(others))[: CHOICE_COUNT - 1]
    chosen.insert(seed[-1] % CHOICE_COUNT, right)
    return tuple(map(str, chosen))


# The sign-in for a game, as the sign-in flow and its confirmation page use it.


KIND: Final = "game"
GSID_KEY: Final = "gsid"
LINK_PATH: Final = "/"  # what the game shows or opens
DONE_PATH: Final = "/game/done"
CANCELLED_PATH: Final = "/game/cancelled"
WRONG_CODE_PATH: Final = "/game/wrong-code"
DENIED_PATH: Final = "/game/denied"
NOT_MERGED_PATH: Final = "/game/not-merged"
GUEST_GONE: Final = "the guest was upgraded or erased in the meantime"


class GuestQuestion(TypedDict, total=False):
    guest: str
    merges_guest: bool


class GameSignInPurpose:
    def __init__(
        self,
        *,
        store: GameSessionStore,
        accounts: AccountStore,
        game_settings: GameSettingsReader,
        rules: ApplicationAccess,
        results: GameLoginResults,
        id_tokens: IdTokenIssuer,
        refusals: GameRefusals,
        guests: OwnAccountStore,
        devices: SignInDevices,
        notifier: AccountNotifier,
        failures: FailedSignIns,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._store = store
        self._guests = guests
        self._devices = devices
        self._notifier = notifier
        self._accounts = accounts
        self._game_settings = game_settings
        self._rules = rules
        self._results = results
        self._id_tokens = id_tokens
        self._refusals = refusals
        self._failures = failures
        self._recorder = recorder
        self._clock = clock

    async def open_page(self, gsid: str) -> Mapping[str, str]:
        """Record that the page was opened; return what the sign-in flow stores.

        Raises InteractionGone for an unknown session.
        """
        session = await self._pending_session(gsid)
        self.application_ids(session)  # refuse a sign-in that could not complete
        await self._store.record_progress(session.gsid, self._clock.now(), signing_in=False)
        return {GSID_KEY: session.gsid}

    async def find_session(self, gsid: str) -> GameSession | None:
        """Return the session until it expires, in any state, for the pages that show it."""
        return await self._store.find_session(gsid, self._clock.now())

    async def find_session_ban(self, session: GameSession) -> UserBan | None:
        """Return the ban that denies the person of the session its applications now."""
        return await self._results.find_session_ban(session)

    async def destination(self, interaction: SignInFlow) -> Destination:
        session = await self._pending_session(interaction.ask[GSID_KEY])
        application = await self.application(session)
        return Destination(
            application=application.name,
            application_ids=tuple(self.application_ids(session)),
            logo=application.logo,
            hand_over=page_url(LINK_PATH, session.gsid),
            guest=await self._guest_nick(session),
            asks_again=bool(session.guest_id),
        )

    async def _guest_nick(self, session: GameSession) -> str:
        """Return the nick of the guest to upgrade; empty without one, or for one that is gone."""
        try:
            return (await self._accounts.user(session.guest_id)).nick if session.guest_id else ""
        except UserNotFound:
            return ""

    async def next_step(self, interaction: SignInFlow) -> FlowStep:
        """Ask even a person who is signed in: anyone can send them the link (R4).

        A session from a short-lived token is not enough: it came from a game itself. A person who upgrades a guest
        always signs in again (R10), and not by a provider that may not have asked them (ID-12), nor with a code by
        text message (R11).
        """
        proof = proof_of_flow(interaction)
        if proof.limited:
            return FlowStep.LOGIN
        if (await self._pending_session(interaction.ask[GSID_KEY])).guest_id and not await self._is_fresh(proof):
            return FlowStep.LOGIN
        await self._store.record_progress(interaction.ask[GSID_KEY], self._clock.now(), signing_in=True)
        return FlowStep.CONFIRM

    async def _is_fresh(self, proof: SignInProof) -> bool:
        if not proof.is_new or is_phone_factor(proof.second_factor):
            return False
        return not may_be_silent(SignInMethod(proof.auth), await self._accounts.user(proof.user_id))

    async def question(self, interaction: SignInFlow, origin: AuditOrigin) -> ConfirmationQuestion:
        session = await self._pending_session(interaction.ask[GSID_KEY])
        application = await self.application(session)
        return ConfirmationQuestion(
            kind=KIND,
            application=application.name,
            logo=application.logo,
            choices=code_choices_for(session, origin),
            consent=await self._consent_request(session, interaction.user_id or "", origin),
            asked_at=session.created_at,
            address=session.address,
            nearness=network_nearness(session, origin),
            watched=session.gsid,
            is_waited_for=session.is_waited_for(self._clock.now()),
            **await self._guest_question(interaction, session, origin),
        )

    async def _guest_question(
        self, interaction: SignInFlow, session: GameSession, origin: AuditOrigin
    ) -> GuestQuestion:
        if not session.guest_id:
            return {}
        try:
            guest = await self._accounts.user(session.guest_id)
        except UserNotFound:
            await self._fail(session, origin, GUEST_GONE)
            raise SignInPurposeEnded from None
        merges = await self._guests.is_merge(guest_upgrade(session, proof_of_flow(interaction)))
        return {"guest": guest.nick, "merges_guest": merges}

    async def check_choice(self, interaction: SignInFlow, picked: str, origin: AuditOrigin) -> str:
        session = await self._pending_session(interaction.ask[GSID_KEY])
        if not code_choices_for(session, origin) or constant_time_equal(picked, session.code):
            return ""
        await self._fail(session, origin, "wrong code picked")
        return page_url(WRONG_CODE_PATH, session.gsid)

    async def finish(self, interaction: SignInFlow, origin: AuditOrigin) -> str:
        session, proof = await self._pending_session(interaction.ask[GSID_KEY]), proof_of_flow(interaction)
        if proof.limited:
            raise SignInFlowGone
        user = await self._accounts.user(proof.user_id)
        if not await self._may_log_in(user, session):
            ban = await self._rules.find_ban_from(user, self.application_ids(session))
            self._failures.count(user.user_id, denial_reason(user, ban), origin.address)
            return await self._deny(session, origin, proof.user_id, None if user.blocked else ban)
        if session.guest_id:
            return await self._finish_upgrade(session, proof, origin)
        await self._give_consent(session, proof.user_id, origin)
        confirmation = SessionConfirmation(
            gsid=session.gsid,
            user_id=proof.user_id,
            rev=proof.rev,
            auth=proof.auth,
            second_factor=proof.second_factor,
            auth_time=proof.proved_at,
        )
        entry = self._confirmation_record(session, proof.user_id, origin)
        if not await self._store.confirm_session(confirmation, self._clock.now(), entry):
            raise SignInFlowGone
        self._results.outcomes["confirmed"] += 1
        return page_url(DONE_PATH, session.gsid)

    async def _finish_upgrade(self, session: GameSession, proof: SignInProof, origin: AuditOrigin) -> str:
        """Upgrade or merge the guest and confirm the session, all or nothing; a banned guest is not merged (R10)."""
        upgrade = guest_upgrade(session, proof)
        try:
            guest, person = [await self._accounts.user(user_id) for user_id in (session.guest_id, proof.user_id)]
            ban = await self._rules.find_ban_from(guest, self.application_ids(session))
            if ban is not None and await self._guests.is_merge(upgrade):
                await self._fail(
                    session, origin, "the guest is banned", user_id=proof.user_id, ban=ban, guest_id=guest.user_id
                )
                return page_url(DENIED_PATH, session.gsid)
            # A ban of the device that the guest is on counts for the guest, who may never have signed in with it.
            await self._devices.record_sign_in(guest.user_id, self._options(session).factor)
            await self._guests.complete_upgrade(
                upgrade,
                lambda merged, dropped: self._upgrade_records(
                    session, upgrade, origin, dropped, merged=merged, guest=guest.nick
                ),
                lambda merged: self._notifier.mails(
                    MailTemplate.GUEST_MERGED if merged else MailTemplate.GUEST_UPGRADED,
                    person,
                    origin,
                    device="",
                    guest=guest.nick,
                ),
                self._clock.now(),
            )
        except (UserNotFound, GuestNotUpgraded):
            await self._fail(session, origin, GUEST_GONE)
            raise SignInPurposeEnded from None
        except (Conflict, Refused) as refusal:
            await self._fail(session, origin, f"the guest was not merged: {refusal}")
            return page_url(NOT_MERGED_PATH, session.gsid)
        self._results.outcomes["confirmed"] += 1
        return page_url(DONE_PATH, session.gsid)

    def _upgrade_records(
        self,
        session: GameSession,
        upgrade: GuestUpgrade,
        origin: AuditOrigin,
        dropped: Sequence[str],
        *,
        merged: bool,
        guest: str,
    ) -> Sequence[AuditRecord]:
        kept_id, ended_id = (upgrade.user_id, upgrade.guest_id) if merged else (upgrade.guest_id, upgrade.user_id)
        event = AuditEvent.ACCOUNT_MERGED if merged else AuditEvent.ACCOUNT_UPGRADED
        by_owner = replace(origin, actor=kept_id)
        details: Details = {"from": ended_id, "to": kept_id}
        if dropped:
            details = {**details, "dropped": dropped_text(dropped)}
        personal = {"guest": guest}  # the nick before
        record = self._recorder.record(event, by_owner, subject=kept_id, details=details, personal=personal)
        return record, self._confirmation_record(session, kept_id, by_owner)

    def _confirmation_record(self, session: GameSession, user_id: str, origin: AuditOrigin) -> AuditRecord:
        details: Details = {
            "gsid": session.gsid,
            "app_id": session.app_id,
            "network": network_nearness(session, origin).value,
        }
        return self._recorder.record(AuditEvent.GAME_CONFIRMED, origin, subject=user_id, details=details)

    async def _consent_request(
        self, session: GameSession, user_id: str, origin: AuditOrigin
    ) -> ConsentRequest | None:
        """Return what the client of the id_token needs; a client that gets none any more ends the session."""
        options = self._options(session)
        if options.id_token is None:
            return None
        try:
            return await self._id_tokens.consent_request(options.id_token, options.primary_application, user_id)
        except LoginDenied as denied:
            await self._fail(session, origin, denied.detail)
            raise SignInPurposeEnded from denied

    async def _give_consent(self, session: GameSession, user_id: str, origin: AuditOrigin) -> None:
        options = self._options(session)
        if options.id_token is None:
            return
        try:
            await self._id_tokens.give_consent(options.id_token, options.primary_application, user_id, origin)
        except LoginDenied as denied:
            await self._fail(session, origin, denied.detail)
            raise SignInPurposeEnded from denied

    async def deny_banned(self, interaction: SignInFlow, user_id: str, origin: AuditOrigin) -> None:
        """End the session of a person who is banned from the installation, so that the game is told."""
        session = await self._pending_session(interaction.ask[GSID_KEY])
        user = await self._accounts.user(user_id)
        await self._deny(session, origin, user_id, find_ban(user.bans, self._clock.now()))

    async def _deny(self, session: GameSession, origin: AuditOrigin, user_id: str, ban: UserBan | None) -> str:
        origin = replace(origin, actor=user_id)
        if ban is None:
            await self._fail(session, origin, "the account is not allowed to use the application", user_id=user_id)
        else:
            await self._fail(session, origin, "the person is banned", user_id=user_id, ban=ban)
        return page_url(DENIED_PATH, session.gsid)

    async def refuse(self, interaction: SignInFlow, origin: AuditOrigin) -> str:
        session = await self._pending_session(interaction.ask[GSID_KEY])
        await self._fail(session, origin, "canceled in the browser")
        return page_url(CANCELLED_PATH, session.gsid)

    async def _pending_session(self, gsid: str) -> GameSession:
        session = await self._store.find_session(gsid, self._clock.now())
        if session is None or session.state is not GameSessionState.PENDING:
            raise SignInPurposeEnded
        return session

    async def _may_log_in(self, user: User, session: GameSession) -> bool:
        return not user.blocked and await self._rules.may_log_in(user, self.application_ids(session))

    def application_ids(self, session: GameSession) -> Sequence[int]:
        """Return the applications that the session names. Raises SignInFlowGone for damaged options."""
        return self._options(session).applications

    def _options(self, session: GameSession) -> LoginOptions:
        try:
            return self._results.open_options(session)
        except OptionsDamaged:
            raise SignInFlowGone from None

    def first_application_id(self, session: GameSession) -> int:
        """Return the first application that the session names; 0 for none."""
        return next(iter(self.application_ids(session)), 0)

    async def application(self, session: GameSession) -> GameLoginSettings:
        """Return the settings of that application, with its name and logo."""
        return await self.application_by_id(self.first_application_id(session))

    async def application_by_id(self, application_id: int) -> GameLoginSettings:
        return await self._game_settings(application_id) if application_id else GameLoginSettings()

    async def _fail(
        self,
        session: GameSession,
        origin: AuditOrigin,
        reason: str,
        *,
        user_id: str = "",
        ban: UserBan | None = None,
        guest_id: str = "",
    ) -> None:
        app_id = session.app_id or session.gapp_id
        refusal = self._refusals.end_refusal(session.gsid, origin, reason, app_id=app_id, ban=ban, guest_id=guest_id)
        failed = await self._store.fail_session(
            session.gsid, self._clock.now(), refusal, self._refusals.max_refusals, user_id=user_id
        )
        if not failed:
            raise SignInPurposeEnded
        self._results.outcomes["failed"] += 1


def code_choices_for(session: GameSession, origin: AuditOrigin) -> tuple[str, ...]:
    """Return the codes to choose from, for a person who is not known to be in the game's network (R4).

    A person who upgrades a guest always chooses (R10).
    """
    is_near = network_nearness(session, origin) is NetworkNearness.SAME
    if not session.code or (is_near and not session.guest_id):
        return ()
    return code_choices(session)


def network_nearness(session: GameSession, origin: AuditOrigin) -> NetworkNearness:
    return compare_networks(session.address, origin, proven=session.address_proven)


def guest_upgrade(session: GameSession, proof: SignInProof) -> GuestUpgrade:
    return GuestUpgrade(
        gsid=session.gsid,
        session_created_at=session.created_at,
        guest_id=session.guest_id,
        user_id=proof.user_id,
        rev=proof.rev,
        auth=proof.auth,
        second_factor=proof.second_factor,
        auth_time=proof.proved_at,
    )


def page_url(path: str, gsid: str) -> str:
    return f"{path}?{urlencode({GSID_KEY: gsid})}"
