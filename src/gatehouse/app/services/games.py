"""Sign-in from games."""

from collections.abc import Mapping
from typing import cast

from msgspec import Struct

from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.app.services.audit import AuditServices
from gatehouse.app.services.core import Core
from gatehouse.app.services.keys import KeyServices
from gatehouse.app.services.oauth import OAuthServices
from gatehouse.app.services.permissions import PermissionServices
from gatehouse.app.services.sign_in import SignInServices
from gatehouse.gamesessions.administration import GameSessionAdmin
from gatehouse.gamesessions.notices import NoticeListener
from gatehouse.gamesessions.poll import PollService
from gatehouse.gamesessions.presence import Presence
from gatehouse.gamesessions.purpose import GameSignInPurpose
from gatehouse.gamesessions.refusals import GameRefusals
from gatehouse.gamesessions.registration import GameSessionRegistration, PendingLimit
from gatehouse.gamesessions.results import GameLoginResults
from gatehouse.gamesessions.session_info import GameSessionService
from gatehouse.gamesessions.store import GameLoginSettings, GameSessionStore
from gatehouse.gamesessions.throttle import PollThrottle, PollThrottleLimits
from gatehouse.gamesessions.unsent_answers import UnsentAnswerRetry
from gatehouse.gamesessions.waiters import Waiters
from gatehouse.gamesessions.write_behind import WriteBehind
from gatehouse.images.model import image_path
from gatehouse.kernel.ids import new_request_id
from gatehouse.oauth.game_id_tokens import GameIdTokens
from gatehouse.permissions.errors import ApplicationNotFound
from gatehouse.permissions.store import ApplicationStore
from gatehouse.settings.model import GameSettings


class GameServices(Struct, frozen=True, kw_only=True, eq=False):
    node: str  # the name of this process among all that serve the same database
    waiters: Waiters
    notices: NoticeListener
    write_behind: WriteBehind
    refusals: GameRefusals
    unsent_answers: UnsentAnswerRetry
    results: GameLoginResults
    presence: Presence
    purpose: GameSignInPurpose
    registration: GameSessionRegistration
    polls: PollService
    sessions: GameSessionService
    administration: GameSessionAdmin


def build_games(
    core: Core,
    *,
    keys: KeyServices,
    audit: AuditServices,
    notifier: AccountNotifier,
    permissions: PermissionServices,
    sign_in: SignInServices,
    oauth: OAuthServices,
) -> GameServices:
    storage, recorder, clock, settings = core.storage, core.recorder, core.clock, core.settings.game
    store, rules, node, waiters = storage.game_sessions, permissions.login_rules, new_request_id(), Waiters()
    write_behind = WriteBehind(store=store, node=node, clock=clock)
    refusals = GameRefusals(
        refusals=audit.refusals, recorder=recorder, max_refusals=core.settings.audit.refusals_kept, clock=clock
    )
    unsent_answers = UnsentAnswerRetry(store=store, refusals=refusals, clock=clock)
    id_tokens = GameIdTokens(
        clients=storage.clients,
        consents=oauth.consents,
        id_tokens=oauth.tokens.id_tokens,
        keyring=keys.keyring,
        clock=clock,
    )
    results = GameLoginResults(
        accounts=storage.accounts, login_result=sign_in.login_result, id_tokens=id_tokens, masters=core.masters
    )

    async def login_settings(application_id: int) -> GameLoginSettings:
        return await game_login_settings(storage.applications, application_id)

    return GameServices(
        node=node,
        waiters=waiters,
        notices=NoticeListener(store=store, waiters=waiters, clock=clock),
        write_behind=write_behind,
        refusals=refusals,
        unsent_answers=unsent_answers,
        results=results,
        presence=Presence(
            store=store,
            waiters=waiters,
            write_behind=write_behind,
            results=results,
            refusals=refusals,
            clock=clock,
            node=node,
            max_sockets=settings.sockets_per_session,
        ),
        purpose=GameSignInPurpose(
            store=store,
            accounts=storage.accounts,
            game_settings=login_settings,
            rules=rules,
            results=results,
            id_tokens=id_tokens,
            refusals=refusals,
            guests=storage.profile,
            devices=permissions.devices,
            notifier=notifier,
            failures=core.failed_sign_ins,
            recorder=recorder,
            clock=clock,
        ),
        registration=GameSessionRegistration(
            store=store,
            results=results,
            id_tokens=id_tokens,
            rules=rules,
            sample_factor=permissions.sample_factor,
            game_settings=login_settings,
            refusals=refusals,
            pending_limit=PendingLimit(store=store, clock=clock, most=settings.pending_most),
            clock=clock,
            node=node,
            code_match=lambda: core.settings.game.code_match,
        ),
        polls=PollService(
            store=store,
            waiters=waiters,
            write_behind=write_behind,
            throttle=PollThrottle(limits=poll_limits(settings), clock=clock),
            results=results,
            unsent=unsent_answers,
            refusals=refusals,
            clock=clock,
            node=node,
            delay=settings.retry_delay,
        ),
        sessions=GameSessionService(
            store=store, results=results, refusals=refusals, clock=clock, info_allow=settings.session_info_allow
        ),
        administration=GameSessionAdmin(store=store, refusals=refusals, recorder=recorder, clock=clock),
    )


async def shut_down_games(games: GameServices, store: GameSessionStore) -> None:
    """Write what is pending, and record that this process holds no sockets any more."""
    await games.write_behind.flush()
    await games.unsent_answers.flush()
    await store.forget_node(games.node)


def poll_limits(settings: GameSettings) -> PollThrottleLimits:
    return PollThrottleLimits(
        max_early_polls=settings.early_polls,
        block_seconds=settings.block_seconds,
        max_block_seconds=settings.block_longest_seconds,
        max_blocked_subjects=settings.blocked_most,
    )


async def game_login_settings(applications: ApplicationStore, application_id: int) -> GameLoginSettings:
    """Return the settings of an application, or the defaults if there is none."""
    try:
        application = await applications.application(application_id)
    except ApplicationNotFound:
        return GameLoginSettings()
    game = cast("Mapping[str, bool]", application.settings.get("game", {}))  # as documents/grammar.py checked it
    return GameLoginSettings(
        name=application.name,
        logo=image_path(application.logo),
        enabled=game.get("enabled", True),
        code_match=game.get("code_match", False),
    )
