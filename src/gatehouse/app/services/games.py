"""Sign-in from games."""

from collections.abc import Mapping
from functools import cached_property
from typing import cast

from gatehouse.app.services.oauth import OAuthServices
from gatehouse.gamesessions.administration import GameSessionAdmin
from gatehouse.gamesessions.notices import NoticeListener
from gatehouse.gamesessions.poll import PollService
from gatehouse.gamesessions.presence import Presence
from gatehouse.gamesessions.purpose import GameSignInPurpose
from gatehouse.gamesessions.refusals import GameRefusals
from gatehouse.gamesessions.registration import GameSessionRegistration, PendingLimit
from gatehouse.gamesessions.results import GameLoginResults
from gatehouse.gamesessions.session_info import GameSessionService
from gatehouse.gamesessions.store import GameLoginSettings
from gatehouse.gamesessions.throttle import PollThrottle, PollThrottleLimits
from gatehouse.gamesessions.unsent_answers import UnsentAnswerRetry
from gatehouse.gamesessions.waiters import Waiters
from gatehouse.gamesessions.write_behind import WriteBehind
from gatehouse.images.model import image_path
from gatehouse.kernel.ids import new_request_id
from gatehouse.oauth.game_id_tokens import GameIdTokens
from gatehouse.permissions.errors import ApplicationNotFound


class GameServices(OAuthServices):
    @cached_property
    def node(self) -> str:
        """The name of this process among all that serve the same database."""
        return new_request_id()

    @cached_property
    def waiters(self) -> Waiters:
        return Waiters()

    @cached_property
    def game_notices(self) -> NoticeListener:
        """Listens from its first use on, which only a serving process makes."""
        store = self.storage.game_sessions
        listener = NoticeListener(store=store, waiters=self.waiters, clock=self.clock)
        store.listen_for_changes(listener.handle_notice)
        return listener

    @cached_property
    def write_behind(self) -> WriteBehind:
        return WriteBehind(store=self.storage.game_sessions, node=self.node, clock=self.clock)

    @cached_property
    def game_refusals(self) -> GameRefusals:
        return GameRefusals(
            refusals=self.refusal_log,
            recorder=self.recorder,
            kept=self.settings.audit.refusals_kept,
            clock=self.clock,
        )

    @cached_property
    def unsent_answers(self) -> UnsentAnswerRetry:
        return UnsentAnswerRetry(store=self.storage.game_sessions, refusals=self.game_refusals, clock=self.clock)

    @cached_property
    def presence(self) -> Presence:
        return Presence(
            store=self.storage.game_sessions,
            waiters=self.waiters,
            write_behind=self.write_behind,
            results=self.game_results,
            refusals=self.game_refusals,
            clock=self.clock,
            node=self.node,
            max_sockets=self.settings.game.sockets_per_session,
        )

    @cached_property
    def game_results(self) -> GameLoginResults:
        return GameLoginResults(
            accounts=self.storage.accounts,
            login_result=self.login_result,
            id_tokens=self.game_id_tokens,
            masters=self.masters,
        )

    @cached_property
    def game_id_tokens(self) -> GameIdTokens:
        return GameIdTokens(
            clients=self.storage.clients,
            consents=self.consents,
            id_tokens=self.id_tokens,
            keyring=self.keyring,
            clock=self.clock,
        )

    async def game_login_settings(self, application_id: int) -> GameLoginSettings:
        """Return the settings of an application, or the defaults if there is none."""
        try:
            application = await self.storage.applications.application(application_id)
        except ApplicationNotFound:
            return GameLoginSettings()
        game = cast("Mapping[str, bool]", application.settings.get("game", {}))  # as documents/grammar.py checked it
        return GameLoginSettings(
            name=application.name,
            logo=image_path(application.logo),
            enabled=game.get("enabled", True),
            code_match=game.get("code_match", False),
        )

    @cached_property
    def game_purpose(self) -> GameSignInPurpose:
        return GameSignInPurpose(
            store=self.storage.game_sessions,
            accounts=self.storage.accounts,
            game_settings=self.game_login_settings,
            rules=self.login_rules,
            results=self.game_results,
            id_tokens=self.game_id_tokens,
            refusals=self.game_refusals,
            guests=self.storage.profile,
            devices=self.sign_in_devices,
            notifier=self.account_notifier,
            recorder=self.recorder,
            clock=self.clock,
        )

    @cached_property
    def game_registration(self) -> GameSessionRegistration:
        store, settings = self.storage.game_sessions, self.settings.game
        return GameSessionRegistration(
            store=store,
            results=self.game_results,
            id_tokens=self.game_id_tokens,
            rules=self.login_rules,
            game_settings=self.game_login_settings,
            refusals=self.game_refusals,
            pending_limit=PendingLimit(store=store, clock=self.clock, most=settings.pending_most),
            clock=self.clock,
            node=self.node,
            code_match=lambda: self.settings.game.code_match,
        )

    @cached_property
    def poll_throttle(self) -> PollThrottle:
        settings = self.settings.game
        limits = PollThrottleLimits(
            max_early_polls=settings.early_polls,
            block_seconds=settings.block_seconds,
            max_block_seconds=settings.block_longest_seconds,
            max_blocked_subjects=settings.blocked_most,
        )
        return PollThrottle(limits=limits, clock=self.clock)

    @cached_property
    def polls(self) -> PollService:
        return PollService(
            store=self.storage.game_sessions,
            waiters=self.waiters,
            write_behind=self.write_behind,
            throttle=self.poll_throttle,
            results=self.game_results,
            unsent=self.unsent_answers,
            refusals=self.game_refusals,
            clock=self.clock,
            node=self.node,
            delay=self.settings.game.retry_delay,
        )

    @cached_property
    def game_sessions(self) -> GameSessionService:
        return GameSessionService(
            store=self.storage.game_sessions,
            results=self.game_results,
            refusals=self.game_refusals,
            clock=self.clock,
            info_allow=self.settings.game.session_info_allow,
        )

    @cached_property
    def game_session_admin(self) -> GameSessionAdmin:
        return GameSessionAdmin(
            store=self.storage.game_sessions,
            refusals=self.game_refusals,
            recorder=self.recorder,
            clock=self.clock,
        )

    async def shut_down_games(self) -> None:
        """Write what is pending, and record that this process holds no sockets any more."""
        await self.write_behind.flush()
        await self.unsent_answers.flush()
        await self.storage.game_sessions.forget_node(self.node)
