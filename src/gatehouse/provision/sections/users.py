"""Accounts of people, with password and TOTP secret."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.field_checks import username_key
from gatehouse.accounts.model import AccountKind, User, exact_login, login_key, login_keys
from gatehouse.accounts.password_rules import PasswordRules, refuse_too_long
from gatehouse.accounts.second_factors.codes import check_totp
from gatehouse.accounts.second_factors.model import totp_sealing_purpose
from gatehouse.images.loading import NewImage
from gatehouse.images.model import PICTURE, picture_owner
from gatehouse.kernel.digests import constant_time_equal
from gatehouse.kernel.errors import BadInput
from gatehouse.kernel.ids import new_user_id
from gatehouse.provision.document import Document
from gatehouse.provision.model import Problems, ReadScope, StoredState
from gatehouse.provision.sections.images import wanted_image
from gatehouse.provision.sections.references import collect_problems
from gatehouse.provision.sections.section import (
    Context,
    Located,
    Options,
    ResolvedSection,
    Section,
    gather_in_batches,
    reveal_secret,
    sealed_document,
)
from gatehouse.provision.sections.user_plan import (
    PLAIN_FIELDS,
    UserEdit,
    UserFileEntry,
    check_entry,
    plan_users,
    refuse_unreachable,
)


async def resolve_user_secrets(found: UserEdit, context: Context, options: Options, problems: Problems) -> UserEdit:
    """Compare the secrets with the stored ones: an equal one is no change, even if it is hashed."""
    password_hash: str | UnsetType | None = UNSET
    sealed_totp: bytes | UnsetType | None = UNSET
    try:
        password_hash = await wanted_hash(found, context, options)
    except BadInput as error:
        problems.add(f"{found.place}.password", str(error))
    try:
        sealed_totp = wanted_totp(found, context, options)
    except BadInput as error:
        problems.add(f"{found.place}.totp_secret", str(error))
    return replace(found, password_hash=password_hash, sealed_totp=sealed_totp)


async def wanted_hash(found: UserEdit, context: Context, options: Options) -> str | UnsetType | None:
    given = found.entry.password
    if given is UNSET or given is None:
        return given
    kept = None if found.before is None else found.before.password_hash
    revealed = reveal_secret(given, context, options, purpose=password_purpose(found.user_id))
    if revealed.was_sealed:
        return revealed.text
    if kept is not None and await context.passwords.matches(revealed.text, kept):
        return kept
    refuse_too_long(revealed.text)  # no option allows it, because no login would accept it
    if not options.allow_weak:
        await check_password(revealed.text, found, context.rules)
    return await context.passwords.hash(revealed.text)


async def check_password(password: str, found: UserEdit, rules: PasswordRules) -> None:
    own_words = [word for word in (found.entry.login, found.entry.nick) if isinstance(word, str)]
    if found.before is not None:
        own_words += [found.before.login or "", found.before.nick]
    try:
        await rules.check(password, *own_words)
    except BadAccount as error:
        raise BadAccount(f"{error}; use --allow-weak to accept it") from None


def wanted_totp(found: UserEdit, context: Context, options: Options) -> bytes | UnsetType | None:
    given = found.entry.totp_secret
    if given is UNSET or given is None:
        return given
    revealed = reveal_secret(given, context, options, purpose=totp_sealing_purpose(found.user_id))
    secret = check_totp(revealed.text)
    kept = None if found.before is None else found.before.sealed_totp
    opened = None if kept is None else context.masters.try_open(kept, purpose=totp_sealing_purpose(found.user_id))
    if opened is not None and constant_time_equal(secret, opened):
        return kept
    return context.masters.seal(secret.encode(), purpose=totp_sealing_purpose(found.user_id))


def stored_totp(user: User, context: Context) -> str:
    return context.masters.open(user.sealed_totp or b"", purpose=totp_sealing_purpose(user.user_id)).decode()


def secrets_document(user: User, context: Context) -> Document:
    """Both secrets as an export writes them; null for none."""
    hashed, totp = user.password_hash, user.sealed_totp
    return {
        "password": None
        if hashed is None
        else sealed_document(hashed, context, purpose=password_purpose(user.user_id)),
        "totp_secret": (
            None
            if totp is None
            else sealed_document(stored_totp(user, context), context, purpose=totp_sealing_purpose(user.user_id))
        ),
    }


def password_purpose(user_id: str) -> str:
    return f"password:{user_id}"


# The section; service accounts have their own.


def user_scope(entries: Sequence[UserFileEntry]) -> ReadScope:
    return ReadScope(
        user_ids=frozenset(entry.user_id for entry in entries if entry.user_id is not UNSET),
        login_keys=frozenset(key for entry in entries if entry.login for key in login_keys(entry.login)),
        usernames=frozenset(username_key(entry.username) for entry in entries if entry.username),
    )


async def resolve_user_entries(
    entries: Sequence[Located[UserFileEntry]], state: StoredState, context: Context, options: Options
) -> ResolvedSection:
    problems = Problems()
    users = resolve_users(entries, state, problems)
    if problems.lines:
        return ResolvedSection(users, tuple(problems.lines), is_plannable=False)
    users = [replace(one, picture=await load_picture(one, state, context, problems)) for one in users]
    resolved = await gather_in_batches(
        [resolve_user_secrets(one, context, options, problems) for one in users], context.on_progress
    )
    return ResolvedSection(resolved, tuple(problems.lines))


def resolve_users(
    entries: Sequence[Located[UserFileEntry]],
    state: StoredState,
    problems: Problems,
    new_id: Callable[[], str] = new_user_id,
) -> list[UserEdit]:
    """Find the account of each entry, by user_id if it has one, else by login in any spelling."""
    index = UserIndex(state)
    # Ids that the file names are reserved before new ones are generated (R7).
    taken = {located.entry.user_id for located in entries if located.entry.user_id is not UNSET} | set(index.by_id)
    found = []
    for located in entries:
        entry = check_entry(located.entry, located.place, problems)
        before = index.find_account(entry, located.place, problems)
        if before is None:
            refuse_unreachable(entry, located.place, problems)
        user_id = user_id_for(entry, before, taken, new_id)
        taken.add(user_id)
        found.append(UserEdit(place=located.place, entry=entry, before=before, user_id=user_id))
    refuse_duplicates(found, problems)
    return found


class UserIndex:
    def __init__(self, state: StoredState) -> None:
        self.by_id = {user.user_id: user for user in state.users}
        named = [user for user in state.users if user.login is not None]
        self._by_login = {login_key(user.login or ""): user for user in named} | {
            user.login_key: user for user in named if user.login_key is not None
        }
        self._retired = state.retired_user_ids

    def find_account(self, entry: UserFileEntry, place: str, problems: Problems) -> User | None:
        if entry.user_id is not UNSET:
            return self._find_by_user_id(entry.user_id, place, problems)
        if entry.login:
            return next(filter(None, map(self._by_login.get, login_keys(entry.login))), None)
        problems.add(place, "needs a user_id or a login")
        return None

    def _find_by_user_id(self, user_id: str, place: str, problems: Problems) -> User | None:
        user = self.by_id.get(user_id)
        if user is not None and user.kind is not AccountKind.PERSON:
            problems.add(f"{place}.user_id", f"{user_id} is a service account")
        if user_id in self._retired:
            problems.add(f"{place}.user_id", f"{user_id} belonged to a removed account; IDs are never reused")
        return user


def user_id_for(entry: UserFileEntry, before: User | None, taken: set[str], new_id: Callable[[], str]) -> str:
    if before is not None:
        return before.user_id
    if entry.user_id is not UNSET:
        return entry.user_id
    user_id = new_id()
    while user_id in taken:
        user_id = new_id()
    return user_id


def refuse_duplicates(found: Sequence[UserEdit], problems: Problems) -> None:
    first: dict[str, str] = {}
    for one in found:
        names = [one.user_id, exact_login(one.entry.login)] if one.entry.login else [one.user_id]
        earlier = {first.setdefault(name, one.place) for name in names} - {one.place}
        if earlier:
            problems.add(one.place, f"is the same account as {min(earlier)}")


async def load_picture(found: UserEdit, state: StoredState, context: Context, problems: Problems) -> NewImage:
    """Load pictures one after the other: the converter refuses many at a time."""
    picture: NewImage = UNSET
    with collect_problems(problems):
        picture = await wanted_image(
            found.entry.picture,
            PICTURE,
            state.images.get(picture_owner(found.user_id)),
            context,
            image_id="" if found.before is None else found.before.picture,
            place=f"{found.place}.picture",
        )
    return picture  # noqa: RET504 - unless a problem was collected


def picture_document(user: User, state: StoredState) -> Document:
    """The URL of a picture that was fetched; an uploaded one is left out, because a file of all people is large."""
    if not user.picture:
        return {"picture": None}
    stored = state.images.get(picture_owner(user.user_id))
    return {"picture": stored.source} if stored is not None and stored.is_fetched else {}


def user_document(user: User, state: StoredState, context: Context) -> Document:
    given = {name: getattr(user, name) for name in PLAIN_FIELDS}
    given |= {name: sorted(given[name]) for name in ("tags", "purchases")}
    hidden = secrets_document(user, context) if context.secrets else {}
    administrator = user.user_id in state.administrators
    # Without it, what a stranger set up would outlive the first proof of the address in the new installation (R10).
    joined = {} if user.email_verified or not user.unproved_origin else {"joined": user.unproved_origin}
    picture = picture_document(user, state)
    return {"user_id": user.user_id, **given, **joined, **picture, "administrator": administrator, **hidden}


def user_documents(state: StoredState, context: Context) -> list[Document]:
    return [user_document(user, state, context) for user in state.users if user.kind is AccountKind.PERSON]


USERS: Final = Section(
    name="users",
    entry=UserFileEntry,
    scope=user_scope,
    scope_of_prune=ReadScope(all_users=True),
    resolve=resolve_user_entries,
    plan=lambda entries, state, context, options: plan_users(entries, state, now=context.now, prune=options.prune),
    documents=user_documents,
)
