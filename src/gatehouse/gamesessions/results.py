"""The login data of an OK answer, created when the answer is taken, not when it is confirmed (R4)."""

import msgspec

from gatehouse.accounts.bans.model import UserBan
from gatehouse.accounts.errors import LoginDenied
from gatehouse.accounts.login_result import LoginOptions, LoginResult, PreparedLogin
from gatehouse.accounts.model import SignInMethod
from gatehouse.accounts.store import AccountStore
from gatehouse.audit.model import AuditOrigin
from gatehouse.gamesessions.errors import OptionsDamaged
from gatehouse.gamesessions.model import GameSession, game_options_purpose
from gatehouse.kernel.errors import NotFound
from gatehouse.keys.sealing import MasterKeys


class GameLoginResults:
    def __init__(self, *, accounts: AccountStore, login_result: LoginResult, masters: MasterKeys) -> None:
        self._accounts = accounts
        self._login_result = login_result
        self._masters = masters

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
        return await self._login_result.prepare(user, SignInMethod(session.auth), self.open_options(session), origin)

    async def find_ban(self, session: GameSession) -> UserBan | None:
        """Return the ban that denies the person of the session, or the guest who upgrades, its applications now."""
        if not session.user_id or not session.options:
            return None
        for user_id in filter(None, (session.user_id, session.guest_id)):
            try:
                user = await self._accounts.user(user_id)
                ban = await self._login_result.find_ban(user, self.open_options(session))
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
