"""The login data of an OK answer, created when the answer is taken, not when it is confirmed (R4)."""

from collections import Counter

import msgspec
from msgspec.structs import replace

from gatehouse.accounts.bans.model import UserBan
from gatehouse.accounts.errors import LoginDenied
from gatehouse.accounts.login_result import LoginOptions, LoginResult, PreparedLogin
from gatehouse.accounts.model import SignInMethod
from gatehouse.accounts.store import AccountStore
from gatehouse.audit.model import AuditOrigin
from gatehouse.gamesessions.errors import OptionsDamaged
from gatehouse.gamesessions.model import GameSession, game_options_purpose
from gatehouse.gamesessions.store import IdTokenIssuer
from gatehouse.kernel.errors import NotFound
from gatehouse.keys.sealing import MasterKeys
from gatehouse.sign_in_flow.model import SignInProof


class GameLoginResults:
    def __init__(
        self, *, accounts: AccountStore, login_result: LoginResult, id_tokens: IdTokenIssuer, masters: MasterKeys
    ) -> None:
        self._accounts = accounts
        self._login_result = login_result
        self._id_tokens = id_tokens
        self._masters = masters
        self.outcomes: Counter[str] = Counter()  # of game sessions, for the metrics of this process

    async def prepare_login(self, session: GameSession, request_id: str) -> PreparedLogin:
        """Prepare the login.

        Raises LoginDenied if the account was blocked or changed or an application denies access; OptionsDamaged.
        """
        try:
            user = await self._accounts.user(session.user_id)
        except NotFound as error:
            raise LoginDenied from error
        if user.rev != session.rev:
            raise LoginDenied
        origin = AuditOrigin(actor=user.user_id, address=session.address, request_id=request_id)
        options = self.open_options(session)
        prepared = await self._login_result.prepare(user, SignInMethod(session.auth), options, origin)
        if options.id_token is None:
            return prepared
        id_token = await self._id_tokens.issue(
            options.id_token, options.primary_application, user, proof_of_game(session)
        )
        return replace(prepared, data={**prepared.data, "id_token": id_token})

    async def find_session_ban(self, session: GameSession) -> UserBan | None:
        """Return the ban that denies the person of the session, or the guest who upgrades, its applications now."""
        if not session.user_id or not session.options:
            return None
        for user_id in filter(None, (session.user_id, session.guest_id)):
            try:
                user = await self._accounts.user(user_id)
                ban = await self._login_result.find_login_ban(user, self.open_options(session))
            except (NotFound, OptionsDamaged):
                continue
            if ban is not None:
                return ban
        return None

    def open_options(self, session: GameSession) -> LoginOptions:
        """Open the sealed options of a session. Raises OptionsDamaged."""
        opened = self._masters.try_open(session.options, purpose=game_options_purpose(session.gsid))
        if opened is None:
            raise OptionsDamaged
        return msgspec.json.decode(opened, type=LoginOptions)

    def seal_options(self, gsid: str, options: LoginOptions) -> bytes:
        return self._masters.seal(msgspec.json.encode(options), purpose=game_options_purpose(gsid))


def proof_of_game(session: GameSession) -> SignInProof:
    """Return how the person signed in who confirmed the session."""
    return SignInProof(
        user_id=session.user_id,
        rev=session.rev,
        session_id="",
        sign_in_id="",
        auth=session.auth,
        second_factor=session.second_factor,
        proved_at=session.auth_time,
    )
