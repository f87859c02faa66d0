"""Invitations of many people at once: pasted addresses, selected accounts, those an import gave no password (R9)."""

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.invitations import Invitation
from gatehouse.accounts.model import User, check_new_login, login_key
from gatehouse.accounts.store import AccountStore
from gatehouse.admin.access_invitations import AccessInvitations
from gatehouse.admin.people import PeopleListStore
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import GatehouseError
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.invitation import InvitedAccess
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require_operation

MAX_AT_ONCE: Final = 500  # invitations of one request; each is a transaction of its own
MAX_WRONG: Final = 5  # entries that an error repeats
ENTRY_ENDS: Final = re.compile(r"[\r\n;]|(?<=>)\s*,")
NAMED_ADDRESS: Final = re.compile(r"[\"']?(?P<nick>[^<>\"]*?)[\"']?\s*<(?P<login>[^<>]+)>")


class Address(Struct, frozen=True):
    """An address to invite, and the name it was pasted with."""

    login: str
    nick: str = ""


class InvitedPerson(SecretRecord, frozen=True, kw_only=True):
    user_id: str
    nick: str
    login: str
    path: SecretText  # of a link to show, which proves nothing; empty where there is none


class NotInvited(Struct, frozen=True, kw_only=True):
    name: str
    user_id: str = ""
    error: GatehouseError


class InvitedMany(SecretRecord, frozen=True, kw_only=True):
    invited: Sequence[InvitedPerson]
    refused: Sequence[NotInvited]
    after: str = ""  # where the next of an import begin; empty if there are none


class BulkInvitations(Struct, frozen=True, kw_only=True, eq=False):
    """Each invitation is sent for itself: one that is refused does not stop the others."""

    invitations: AccessInvitations
    accounts: AccountStore
    lists: PeopleListStore
    clock: Clock

    async def check(self, actor: Actor, access: InvitedAccess) -> InvitedAccess:
        """Return the access as it is stored, if the actor may give it. Raises Malformed and NoRight."""
        require_operation(actor.rights, Operation.ADMINISTER)
        return await self.invitations.check(actor, access) if access else access

    async def invite_addresses(
        self, actor: Actor, addresses: Sequence[Address], *, lang: str, access: InvitedAccess
    ) -> InvitedMany:
        """Invite addresses; with access also those that have an account."""
        checked = await self.check(actor, access)
        return await self._invite_each(
            [
                (address.login, "", partial(self._invite_address, actor, address, lang, checked))
                for address in addresses
            ]
        )

    async def invite_accounts(self, actor: Actor, users: Sequence[User], access: InvitedAccess) -> InvitedMany:
        checked = await self.check(actor, access)
        return await self._invite_each(
            [(user.nick, user.user_id, partial(self._invite_account, actor, user, checked)) for user in users]
        )

    async def invite_imported(
        self, actor: Actor, import_id: str, access: InvitedAccess, *, after: str = ""
    ) -> InvitedMany:
        """Invite those whom the import gave no password and who have none yet, a few at a time."""
        require_operation(actor.rights, Operation.ADMINISTER)
        user_ids = await self.lists.imported_without_password(import_id, after, MAX_AT_ONCE + 1)
        users = [await self.accounts.user(user_id) for user_id in user_ids[:MAX_AT_ONCE]]
        done = await self.invite_accounts(actor, users, access)
        more = len(user_ids) > MAX_AT_ONCE
        return InvitedMany(
            invited=done.invited, refused=done.refused, after=user_ids[MAX_AT_ONCE - 1] if more else ""
        )

    async def _invite_address(self, actor: Actor, address: Address, lang: str, access: InvitedAccess) -> Invitation:
        known = await self.invitations.logins.user_by_login(address.login)
        if known is not None:
            return await self._invite_account(actor, known, access)
        return await self.invitations.send(actor, login=address.login, nick=address.nick, lang=lang, access=access)

    async def _invite_account(self, actor: Actor, user: User, access: InvitedAccess) -> Invitation:
        state = await self.lists.account_state(user.user_id, self.clock.now())
        return await self.invitations.invite_account(actor, user, access, has_signed_in=state.seen_at > 0)

    async def _invite_each(self, each: Sequence[tuple[str, str, Callable[[], Awaitable[Invitation]]]]) -> InvitedMany:
        invited: list[InvitedPerson] = []
        refused: list[NotInvited] = []
        for name, user_id, invite in each:
            try:
                sent = await invite()
            except GatehouseError as error:
                refused.append(NotInvited(name=name, user_id=user_id, error=error))
            else:
                user = sent.user
                invited.append(
                    InvitedPerson(user_id=user.user_id, nick=user.nick, login=user.login or "", path=sent.path)
                )
        return InvitedMany(invited=invited, refused=refused)


def parse_addresses(text: str, *, most: int = MAX_AT_ONCE) -> Sequence[Address]:
    """Return pasted addresses, one a line or with commas or semicolons between, with or without a name.

    Each address once. Raises Malformed for what is none and for too many.
    """
    addresses: dict[str, Address] = {}
    wrong: list[str] = []
    for entry in filter(None, map(str.strip, ENTRY_ENDS.split(text))):
        for address in addresses_in(entry):
            try:
                login = check_new_login(address.login)
            except BadAccount:
                wrong.append(address.login)
            else:
                addresses.setdefault(login_key(login), Address(login, address.nick))
    if wrong:
        raise Malformed("login: not an email address").on_screen("not_addresses", texts=", ".join(wrong[:MAX_WRONG]))
    if not addresses:
        raise Malformed("login: enter an email address").on_screen("enter_addresses")
    if len(addresses) > most:
        raise Malformed(f"login: at most {most} at a time").on_screen("addresses_most", most=most)
    return list(addresses.values())


def addresses_in(entry: str) -> Sequence[Address]:
    named = NAMED_ADDRESS.fullmatch(entry)
    if named is not None:
        return [Address(named["login"].strip(), named["nick"].strip())]
    return [Address(part) for part in re.split(r"[,\s]+", entry) if part]
