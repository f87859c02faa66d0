"""What administrators do to other people's accounts, through the services that own the data.

Every action needs can_administer; these services raise their own errors (the last administrator, a login in use).
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from msgspec import UNSET, Struct
from msgspec.structs import replace

from gatehouse.accounts.account_editor import AccountEditor
from gatehouse.accounts.administration import Administration
from gatehouse.accounts.errors import BadAccount, UserChanged
from gatehouse.accounts.field_checks import check_lang
from gatehouse.accounts.invitations import Invitation
from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION, AccountKind, User
from gatehouse.accounts.own_account.erasure import Erasure
from gatehouse.accounts.profile_fields import AccountChanges
from gatehouse.accounts.recovery import PasswordRecovery
from gatehouse.accounts.second_factors.email_codes import EmailCodes
from gatehouse.accounts.second_factors.model import Factor
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.accounts.second_factors.phone_codes import PhoneCodes
from gatehouse.accounts.second_factors.totp import Totp
from gatehouse.accounts.second_factors.verification import SecondFactors
from gatehouse.accounts.session_model import Session
from gatehouse.accounts.sessions import Sessions
from gatehouse.accounts.store import AccountStore
from gatehouse.admin.access_invitations import NO_ACCESS, AccessInvitations
from gatehouse.admin.people import PeopleListStore
from gatehouse.images.loading import ImageLoader, NewImage
from gatehouse.images.model import PICTURE, BadImage, image_url
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.text import is_plain_line
from gatehouse.oauth.authorize.service import Consents
from gatehouse.oauth.given_grants import GivenGrants
from gatehouse.permissions.commands.user_schemas import RecordDraft, UserRecordCommands
from gatehouse.permissions.documents.ends import end_members
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ApplicationModel, Assignment, UserRecord
from gatehouse.permissions.model.invitation import InvitedAccess
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require_operation

MAX_REASON_LENGTH: Final = 200
SAVE_ATTEMPTS: Final = 3  # of a save without a version, against concurrent changes


class PersonSignIn(Struct, frozen=True, kw_only=True):
    """The services for a person's second factors."""

    sessions: Sessions
    factors: SecondFactors
    totp: Totp
    passkeys: Passkeys
    email_codes: EmailCodes
    phone_codes: PhoneCodes


class PeopleAdmin:
    def __init__(
        self,
        *,
        accounts: AccountStore,
        administration: Administration,
        editing: AccountEditor,
        invitations: AccessInvitations,
        recovery: PasswordRecovery,
        erasure: Erasure,
        consents: Consents,
        given_grants: GivenGrants,
        schemas: UserRecordCommands,
        sign_in: PersonSignIn,
        images: ImageLoader,
        lists: PeopleListStore,
        clock: Clock,
        base_url: str,
    ) -> None:
        self._lists = lists
        self._clock = clock
        self._accounts = accounts
        self._administration = administration
        self._editing = editing
        self._invitations = invitations
        self._recovery = recovery
        self._erasure = erasure
        self._consents = consents
        self._given_grants = given_grants
        self._schemas = schemas
        self._sign_in = sign_in
        self._images = images
        self._base_url = base_url

    async def person(self, actor: Actor, user_id: str) -> User:
        """Return the account. Raises UserNotFound."""
        require_operation(actor.rights, Operation.ADMINISTER)
        return await self._accounts.user(user_id)

    # -- accounts ---------------------------------------------------------------------------------------

    async def create(
        self,
        actor: Actor,
        *,
        login: str,
        nick: str,
        lang: str,
        password: str | None,
        more: AccountChanges = MappingProxyType({}),
    ) -> User:
        """Create an account with `more` fields. Raises BadAccount and LoginTaken."""
        require_operation(actor.rights, Operation.ADMINISTER)
        named = nick.strip() or login.partition("@")[0]
        return await self._administration.create(
            login=login, nick=named, password=password, origin=actor.origin, lang=check_lang(lang), more=more
        )

    async def invite(
        self, actor: Actor, *, login: str, nick: str, lang: str, access: InvitedAccess = NO_ACCESS
    ) -> Invitation:
        """Return the invitation, without its link for an account that was signed in to.

        Such an account could be taken over with it (R9).
        """
        invitation = await self._invitations.invite(actor, login=login, nick=nick, lang=lang, access=access)
        if not invitation.path:
            return invitation
        state = await self._lists.account_state(invitation.user.user_id, self._clock.now())
        return replace(invitation, path="") if state.seen_at else invitation

    async def load_picture(self, actor: Actor, url: str | None, user_id: str = "") -> NewImage:
        """Return the picture that a URL gives, fetched once; the address of the present one changes nothing.

        Raises Malformed, TooMany, Unavailable.
        """
        require_operation(actor.rights, Operation.ADMINISTER)
        if not url:
            return None
        if user_id and url == image_url(self._base_url, (await self.person(actor, user_id)).picture):
            return UNSET
        try:
            return await self._images.load(url, PICTURE, uploader=actor.origin.actor)
        except BadImage as error:
            refusal = Malformed(f"data.picture: {error.detail}")
            raise refusal.on_screen(error.screen_key, **error.screen_values) from None

    async def change(self, actor: Actor, user: User, changes: AccountChanges, *, version: int) -> None:
        require_operation(actor.rights, Operation.ADMINISTER)
        await self._editing.save(user, changes, actor.origin, version=version)

    async def save_fields(self, actor: Actor, user_id: str, changes: AccountChanges, *, version: int | None) -> User:
        """Save these fields; without a version the newest account is changed.

        Raises UserNotFound, BadAccount, UserChanged and LoginTaken.
        """
        for attempt in range(SAVE_ATTEMPTS):
            user = await self.person(actor, user_id)
            try:
                await self.change(actor, user, changes, version=user.version if version is None else version)
                break
            except UserChanged:
                if version is not None or attempt + 1 == SAVE_ATTEMPTS:
                    raise
        return await self.person(actor, user_id)

    async def block(self, actor: Actor, user_id: str, *, blocked: bool) -> None:
        require_operation(actor.rights, Operation.ADMINISTER)
        change = self._administration.block if blocked else self._administration.unblock
        await change(user_id, actor.origin)

    async def erase(self, actor: Actor, user_id: str) -> None:
        await self._erasure.erase(await self.person(actor, user_id), actor.origin)

    async def send_password_link(self, actor: Actor, user_id: str) -> Invitation | None:
        """Email a link to set a password: an invitation if there never was one, which is returned."""
        user = await self.person(actor, user_id)
        if user.password_hash is None and not user.email_verified:
            return await self.invite(actor, login=user.login or "", nick=user.nick, lang=user.lang)
        await self._recovery.send_link(user, actor.origin)
        return None

    # -- what is signed in ------------------------------------------------------------------------------

    async def sign_out(self, actor: Actor, user_id: str, *, keep: Session | None) -> None:
        """End every session, token and JWT; administrators who do it to themselves keep their current session."""
        require_operation(actor.rights, Operation.ADMINISTER)
        own_session = keep if keep is not None and keep.user_id == user_id else None
        await self._sign_in.sessions.sign_out_everywhere(user_id, actor.origin, keep=own_session)

    async def end_session(self, actor: Actor, user_id: str, session_id: str) -> None:
        require_operation(actor.rights, Operation.ADMINISTER)
        await self._sign_in.sessions.end_as_administrator(user_id, session_id, actor.origin)

    async def disconnect(self, actor: Actor, user_id: str, client_id: str) -> None:
        require_operation(actor.rights, Operation.ADMINISTER)
        await self._consents.withdraw(user_id, client_id, actor.origin)

    async def end_grant(self, actor: Actor, user_id: str, grant_id: str) -> None:
        require_operation(actor.rights, Operation.ADMINISTER)
        await self._given_grants.end(user_id, grant_id, actor.origin)

    # -- second factors ---------------------------------------------------------------------------------

    async def remove_factor(
        self, actor: Actor, user_id: str, factor: Factor, *, reason: str, passkey_id: str = ""
    ) -> None:
        """Remove a second factor. Raises FactorMissing; BadAccount without a reason."""
        user, why = await self.person(actor, user_id), check_reason(reason)
        match factor:
            case Factor.TOTP:
                await self._sign_in.totp.remove(user, origin=actor.origin, reason=why)
            case Factor.EMAIL:
                await self._sign_in.email_codes.disable(user, origin=actor.origin, reason=why)
            case Factor.PHONE:
                await self._sign_in.phone_codes.disable(user, origin=actor.origin, reason=why)
            case Factor.PASSKEY:
                await self._sign_in.passkeys.remove(user, passkey_id, origin=actor.origin, reason=why)
            case Factor.RECOVERY:
                raise BadAccount("recovery codes are removed with the last second factor")

    async def open_phone(self, actor: Actor, user_id: str, *, reason: str) -> None:
        """Accept codes by text message again after too many wrong ones. Raises BadAccount without a reason."""
        user, why = await self.person(actor, user_id), check_reason(reason)
        await self._sign_in.phone_codes.open(user, origin=actor.origin, reason=why)

    async def remove_all_factors(self, actor: Actor, user_id: str, *, reason: str) -> None:
        """Remove all second factors, and end every session and token (checklist LG-20)."""
        user, why = await self.person(actor, user_id), check_reason(reason)
        await self._sign_in.factors.reset(user, origin=actor.origin, reason=why)

    # -- the administrator's role -----------------------------------------------------------------------

    async def set_administrator(self, actor: Actor, central: ApplicationModel, user_id: str, *, holds: bool) -> None:
        """Assign or remove the administrator role in the record of application 1. Raises NoAdministratorLeft."""
        user = await self.person(actor, user_id)
        if user.kind is AccountKind.SERVICE:
            raise BadAccount("a service account cannot be an administrator")
        record = (await self._schemas.load_person(actor, user_id, CENTRAL_APPLICATION)).records[CENTRAL_APPLICATION]
        draft = RecordDraft(roles=root_roles_to_save(record, holds=holds), version=record.version)
        await self._schemas.save(actor, central, user_id, draft, 0)


def root_roles_to_save(record: UserRecord, *, holds: bool) -> list[object]:
    """The root roles for a save, with or without the administrator role."""
    others = [role for role in record.root.roles if role.role != ADMINISTRATOR_ROLE]
    roles: Sequence[Assignment] = [*others, Assignment(role=ADMINISTRATOR_ROLE)] if holds else others
    return [{"name": role.role, **end_members(role.end)} for role in roles]


def check_reason(text: str) -> str:
    reason = text.strip()
    if not reason or len(reason) > MAX_REASON_LENGTH or not is_plain_line(reason):
        raise BadAccount(f"enter a reason of 1 to {MAX_REASON_LENGTH} visible characters on one line")
    return reason
