"""Storage of accounts, and the rule that one administrator is always left."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Exists,
    Text,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal_column,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.errors import (
    LoginTaken,
    SetupClosed,
    SetupLinkDead,
    UserChanged,
    UserIdTaken,
    UsernameTaken,
    UserNotFound,
)
from gatehouse.accounts.model import (
    ACCOUNT_FIELDS,
    ADMINISTRATOR_ROLE,
    CENTRAL_APPLICATION,
    AccountKind,
    SetupLink,
    User,
    exact_login,
    login_key,
    search_key,
)
from gatehouse.accounts.own_account.model import LastAdministrator
from gatehouse.accounts.phones.model import PhoneTaken
from gatehouse.accounts.system_tags import GUEST_TAG, LINKED_TAG_PREFIX, is_service_tag
from gatehouse.audit.model import AuditRecord
from gatehouse.images.model import StoredImage, picture_owner
from gatehouse.kernel.digests import sha256
from gatehouse.storage import single_use
from gatehouse.storage.accounts.ban_aware import BanAwareStore, BanFollower, write_with_bans
from gatehouse.storage.accounts.last_seen import ADD_NEVER_SEEN
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.epoch import USER_REV, next_rev
from gatehouse.storage.images import put_image
from gatehouse.storage.installation import read_value, set_value, set_value_once
from gatehouse.storage.oauth.logout_calls import revoke_user_grants
from gatehouse.storage.permissions import row_readers
from gatehouse.storage.permissions.user_records import assign_root_role
from gatehouse.storage.rows import RecordColumns
from gatehouse.storage.runner import read, snapshot_read, write
from gatehouse.storage.statements import InStringList, JoinedLines, Statement, Verb, split_lines
from gatehouse.storage.tables.accounts import (
    passkeys,
    recovery_codes,
    totp_factors,
    user_ids,
    user_purchases,
    user_tags,
    usernames,
    users,
)
from gatehouse.storage.tables.permissions import (
    role_assignments,
)


def has_central_role(user_id: ColumnElement[str]) -> Exists:
    """Return the condition that an account has a role of application 1."""
    return exists().where(
        role_assignments.c.user_id == user_id, role_assignments.c.application_id == CENTRAL_APPLICATION
    )


_ADMINISTRATORS = (
    select(role_assignments.c.user_id)
    .join(users, users.c.user_id == role_assignments.c.user_id)
    .where(
        role_assignments.c.application_id == CENTRAL_APPLICATION,
        role_assignments.c.project_id == "",
        role_assignments.c.resource_kind == "",
        role_assignments.c.role_key == ADMINISTRATOR_ROLE,
        row_readers.UNEXPIRED,
        row_readers.ACCOUNT_NOT_ENDED,
        users.c.blocked.is_(False),
        row_readers.NOT_BANNED,
    )
    .order_by(role_assignments.c.user_id)
)
# Locked until the commit in one order: of the last two administrators removed concurrently, one stays.
LOCK_ADMINISTRATORS = Statement(lambda: _ADMINISTRATORS.with_for_update(of=role_assignments))
REMAINING_ADMINISTRATORS = Statement(lambda: _ADMINISTRATORS)


def refuse_last_administrator(user_id: str, now: int) -> Verb[None]:
    """Refuse to block or delete the last administrator; first in such methods. Raises LastAdministrator."""
    administrators = {row.user_id for row in (yield LOCK_ADMINISTRATORS(now=now))}
    if user_id not in administrators:
        return
    # Read again: an administrator blocked while we waited still has the role.
    if {row.user_id for row in (yield REMAINING_ADMINISTRATORS(now=now))} <= {user_id}:
        raise LastAdministrator


# Accounts (accounts/store.py).


LAST_SETUP_LINK: Final = "setup_link"  # the fact that holds when the last one was made
SETUP_LINK: Final = "setup"  # kind of the single-use record
SETUP_CLOSED: Final = "setup_closed"
HASH_KINDS: Final = "hash_kinds"  # how many accounts have a password hash of each kind, as JSON

FIXED_COLUMNS: Final = frozenset({"user_id", "kind", "reg_time", "rev", "version"})  # never changed by a save
SEPARATE_COLUMNS: Final = frozenset({"username", "bans", "lost_at"})  # not by what a save says
CHANGEABLE_COLUMNS: Final = tuple(
    column.name for column in users.c if column.name not in FIXED_COLUMNS | SEPARATE_COLUMNS
)

RESERVE_ID = Statement(lambda: insert(user_ids).on_conflict_do_nothing().returning(user_ids.c.user_id))
INSERT_USER = Statement(lambda: insert(users).on_conflict_do_nothing().returning(users.c.user_id))
UPDATE_USER = Statement(
    lambda: (
        update(users)
        .where(users.c.user_id == bindparam("of"), users.c.version == bindparam("seen"))
        .values({name: bindparam(name) for name in CHANGEABLE_COLUMNS})
        .values(
            version=users.c.version + 1,
            # An account that is opened again is lost no more, also if it is blocked later.
            lost_at=case((users.c.blocked == bindparam("blocked"), users.c.lost_at), else_=0),
        )
        .returning(users.c.user_id)
    )
)
_SPACE = literal_column("' '", Text())
_BY_HAND = " "  # begins a line without a provider, whose ID has no space
_TAGS = select(JoinedLines(user_tags.c.provider + _SPACE + user_tags.c.tag)).where(
    user_tags.c.user_id == users.c.user_id
)
_PURCHASES = select(JoinedLines(user_purchases.c.provider + _SPACE + user_purchases.c.purchase)).where(
    user_purchases.c.user_id == users.c.user_id
)
_PASSKEYS = select(func.count()).where(passkeys.c.user_id == users.c.user_id)
_NOT_READ: Final = frozenset({"shared_key", "nick_key", "name_key", "lost_at"})  # for searches and lists
SELECT_USER = select(
    *(
        USER_REV.label(column.name) if column.name == "rev" else column
        for column in users.c
        if column.name not in _NOT_READ
    ),
    _PASSKEYS.scalar_subquery().label("passkeys"),
    totp_factors.c.sealed_secret.label("sealed_totp"),
    _TAGS.scalar_subquery().label("tags"),
    _PURCHASES.scalar_subquery().label("purchases"),
).outerjoin(totp_factors, totp_factors.c.user_id == users.c.user_id)


def user_from_row(fields: dict[str, Any]) -> User:
    """Build the account from the columns of SELECT_USER."""
    stored_key, login = fields.pop("login_key"), fields["login"]
    fields["exact_key"] = stored_key if login is not None and stored_key != login_key(login) else ""
    fields["kind"] = AccountKind(fields["kind"])
    tags, fields["provided_tags"] = labels_by_source(fields["tags"])
    fields["service_tags"] = frozenset(filter(is_service_tag, tags))
    fields["tags"] = tags - fields["service_tags"]
    fields["purchases"], fields["provided_purchases"] = labels_by_source(fields["purchases"])
    fields["bans"] = row_readers.bans_from_document(fields["bans"])
    return User(**fields)


USER_COLUMNS: Final = RecordColumns(user_from_row, SELECT_USER.exported_columns)
USER_BY_ID = Statement(
    lambda: SELECT_USER.where(users.c.user_id == bindparam("user_id")), records={"user": USER_COLUMNS}
)
_NAMED = users.alias("named")
_EXACT_KEY = bindparam("exact_key", type_=Text())
_LOGIN_KEY = bindparam("login_key", type_=Text())
# The account of a login: the exact spelling counts before the canonical one. The parameters are login_parameters.
USER_ID_OF_LOGIN = (
    select(_NAMED.c.user_id)
    .where(or_(_NAMED.c.login_key == _EXACT_KEY, _NAMED.c.login_key == _LOGIN_KEY, _NAMED.c.shared_key == _LOGIN_KEY))
    .order_by(_NAMED.c.login_key != _EXACT_KEY, _NAMED.c.login_key != _LOGIN_KEY, _NAMED.c.reg_time, _NAMED.c.user_id)
    .limit(1)
    .scalar_subquery()
)
USER_BY_LOGIN = Statement(
    lambda: SELECT_USER.where(users.c.user_id == USER_ID_OF_LOGIN), records={"user": USER_COLUMNS}
)
SHARES_LOGIN = Statement(lambda: select(users.c.user_id).where(users.c.shared_key == _LOGIN_KEY).limit(1))
USER_BY_USERNAME = Statement(
    lambda: SELECT_USER.where(users.c.username == bindparam("username")), records={"user": USER_COLUMNS}
)
_NEW_USERNAME = insert(usernames)
# Finds no row to change if the name belongs or belonged to another account.
RESERVE_USERNAME = Statement(
    lambda: _NEW_USERNAME.on_conflict_do_update(
        index_elements=["digest"],
        set_={"user_id": _NEW_USERNAME.excluded.user_id},
        where=usernames.c.user_id == _NEW_USERNAME.excluded.user_id,
    ).returning(usernames.c.digest)
)
SET_USERNAME = Statement(
    lambda: update(users).where(users.c.user_id == bindparam("of")).values(username=bindparam("to"))
)
PASSWORD_HASHES = Statement(
    lambda: (
        select(users.c.user_id, users.c.password_hash)
        .where(users.c.user_id > bindparam("after"), users.c.password_hash.is_not(None))
        .order_by(users.c.user_id)
        .limit(bindparam("size"))
    )
)
ALL_USERS = Statement(lambda: SELECT_USER.order_by(users.c.user_id))
USERS_BY_ID_OR_LOGIN = Statement(
    lambda: SELECT_USER.where(
        or_(
            InStringList(users.c.user_id, "user_ids"),
            InStringList(users.c.login_key, "login_keys"),
            InStringList(users.c.shared_key, "login_keys"),
        )
    ).order_by(users.c.user_id)
)
# Without ON CONFLICT: they fail for a name that is taken.
ADD_ID = Statement(lambda: insert(user_ids))
ADD_USER = Statement(lambda: insert(users))
ADD_USERNAME = Statement(lambda: insert(usernames))
USED_USER_IDS = Statement(
    lambda: select(user_ids.c.user_id).where(InStringList(user_ids.c.user_id, "user_ids")).limit(1)
)
USED_LOGINS = Statement(
    lambda: (
        select(users.c.user_id)
        .where(or_(InStringList(users.c.login_key, "login_keys"), InStringList(users.c.shared_key, "login_keys")))
        .limit(1)
    )
)
RETIRED_USER_IDS = Statement(
    lambda: select(user_ids.c.user_id).where(
        InStringList(user_ids.c.user_id, "user_ids"), ~exists().where(users.c.user_id == user_ids.c.user_id)
    )
)
USERNAME_OWNERS = Statement(
    lambda: select(usernames.c.digest, usernames.c.user_id).where(InStringList(usernames.c.digest, "digests"))
)
# Of people and the service: without a source. Inline, or SQLAlchemy would ask for the defaults of the key.
_NEW_TAG = insert(user_tags).inline().values({name: bindparam(name) for name in ("user_id", "tag")})
_NEW_PURCHASE = insert(user_purchases).inline().values({name: bindparam(name) for name in ("user_id", "purchase")})
ADD_TAG = Statement(lambda: _NEW_TAG)
ADD_TAG_ONCE = Statement(_NEW_TAG.on_conflict_do_nothing)
ADD_PURCHASE = Statement(lambda: _NEW_PURCHASE)
ADD_PURCHASE_ONCE = Statement(_NEW_PURCHASE.on_conflict_do_nothing)
# Those that people set. Not those that say how a person can sign in: they change with the identities.
DROP_TAGS = Statement(
    lambda: delete(user_tags).where(
        user_tags.c.user_id == bindparam("of"),
        user_tags.c.provider == "",
        user_tags.c.tag != GUEST_TAG,
        ~user_tags.c.tag.startswith(LINKED_TAG_PREFIX, autoescape=True),
    )
)
DROP_PURCHASES = Statement(
    lambda: delete(user_purchases).where(user_purchases.c.user_id == bindparam("of"), user_purchases.c.provider == "")
)
_NEW_TOTP = insert(totp_factors)
# An unchanged secret keeps its last_step: a reset would make used codes valid again.
PUT_TOTP = Statement(
    lambda: _NEW_TOTP.on_conflict_do_update(
        index_elements=["user_id"],
        set_={name: _NEW_TOTP.excluded[name] for name in ("sealed_secret", "confirmed_at", "last_step")},
        where=totp_factors.c.sealed_secret != _NEW_TOTP.excluded.sealed_secret,
    )
)
ADD_TOTP = Statement(lambda: insert(totp_factors))
DROP_TOTP = Statement(lambda: delete(totp_factors).where(totp_factors.c.user_id == bindparam("of")))
# Recovery codes replace a lost factor: without any factor they are deleted.
DROP_UNNEEDED_RECOVERY_CODES = Statement(
    lambda: delete(recovery_codes).where(
        recovery_codes.c.user_id == bindparam("of"),
        ~exists().where(totp_factors.c.user_id == bindparam("of")),
        ~exists().where(passkeys.c.user_id == bindparam("of")),
        ~exists().where(users.c.user_id == bindparam("of"), or_(users.c.email_code, users.c.phone_code)),
    )
)
PHONE_OWNER = Statement(
    lambda: select(users.c.user_id, users.c.login, users.c.lang).where(
        users.c.phone == bindparam("phone"),
        users.c.phone_verified.is_(True),
        users.c.phone != literal_column("''"),  # as the index says
        users.c.user_id != bindparam("of"),
    )
)
REPLACE_HASH = Statement(
    lambda: (
        update(users)
        .where(users.c.user_id == bindparam("of"), users.c.password_hash == bindparam("old"))
        .values(password_hash=bindparam("new"))
    )
)
LOCK_USER = Statement(lambda: select(users.c.user_id).where(users.c.user_id == bindparam("of")).with_for_update())
CLEAR_PASSWORD = Statement(
    lambda: update(users).where(users.c.user_id == bindparam("of")).values(password_hash=null())
)
CLEAR_PASSWORD_AT_REV = Statement(
    lambda: (
        update(users)
        .where(users.c.user_id == bindparam("of"), bindparam("seen") == USER_REV, users.c.password_hash.is_not(None))
        .values(password_hash=null(), version=users.c.version + 1)
        .returning(users.c.user_id)
    )
)
BUMP_USER_VERSION = Statement(
    lambda: (
        update(users)
        .where(users.c.user_id == bindparam("of"))
        .values(version=users.c.version + 1)
        .returning(users.c.user_id)
    )
)
SET_BLOCKED = Statement(
    lambda: (
        update(users)
        .where(users.c.user_id == bindparam("of"))
        .values(
            blocked=bindparam("to"),
            lost_at=0,
            rev=next_rev(USER_REV),
            version=users.c.version + 1,
        )
        .returning(users.c.user_id)
    )
)


def create_user(
    bans: BanFollower,
    user: User,
    entry: AuditRecord,
    *,
    administrator: bool = False,
    picture: StoredImage | None = None,
) -> Verb[None]:
    yield from insert_user(user)
    if picture is not None:
        yield from put_image(picture_owner(user.user_id), picture, entry.at)
    if administrator:
        yield from assign_root_role(CENTRAL_APPLICATION, user.user_id, ADMINISTRATOR_ROLE)
        yield from set_value_once(SETUP_CLOSED, str(entry.at))  # a setup link ends with the first administrator
    yield from bans.apply_to(user.user_id, entry.at, new=True)  # whom its author could ban: with the role
    yield from add_audit_record(entry)


def insert_user(user: User) -> Verb[None]:
    """Insert the account; part of every method that creates one.

    Its login has no other account in the canonical spelling, which is unique. Those that share one are never new, so
    looking for them first is no race.
    """
    if not (yield RESERVE_ID(user_id=user.user_id)):
        raise UserIdTaken
    if user.login_key is not None and (yield SHARES_LOGIN(login_key=user.login_key)):
        raise LoginTaken
    yield from refuse_taken_phone(user)
    if not (yield INSERT_USER(**{**insert_values(user), "username": None})):
        raise LoginTaken
    yield ADD_NEVER_SEEN(user_id=user.user_id)
    if user.username is not None:
        yield from assign_username(user.user_id, user.username)
    yield from _insert_user_sets(user)


def insert_new_users(people: Sequence[User]) -> Verb[None]:
    """Insert accounts whose names differ. Raises UserIdTaken, LoginTaken, UsernameTaken.

    A name that is taken between the check and the insertion is a Conflict.
    """
    if (yield USED_USER_IDS(user_ids=[user.user_id for user in people])):
        raise UserIdTaken
    if (yield USED_LOGINS(login_keys=[user.login_key for user in people if user.login_key is not None])):
        raise LoginTaken
    if (yield from username_owners([user.username for user in people if user.username is not None])):
        raise UsernameTaken
    yield from insert_users(people)


def insert_users(people: Sequence[User]) -> Verb[None]:
    """Insert what `insert_user` inserts, for many accounts at once; a name that is taken is a Conflict."""
    yield ADD_ID.bulk([{"user_id": user.user_id} for user in people])
    yield ADD_USER.bulk([insert_values(user) for user in people])
    yield ADD_NEVER_SEEN.bulk([{"user_id": user.user_id} for user in people])
    yield ADD_USERNAME.bulk(
        [{"digest": sha256(user.username).hex(), "user_id": user.user_id} for user in people if user.username]
    )
    yield ADD_TAG.bulk([row for user in people for row in _tag_rows(user)])
    yield ADD_PURCHASE.bulk([row for user in people for row in _purchase_rows(user)])
    yield ADD_TOTP.bulk([_totp_row(user) for user in people if user.sealed_totp is not None])


def update_user(user: User) -> Verb[None]:
    """Replace the account if its version has not changed. Raises UserChanged, LoginTaken, UsernameTaken."""
    if user.login is not None:
        owner = yield USER_BY_LOGIN(**login_parameters(user.login))
        if owner and owner[0].user.user_id != user.user_id:
            raise LoginTaken
    yield from refuse_taken_phone(user)
    if not (yield UPDATE_USER(**_user_columns(user), of=user.user_id, seen=user.version)):
        raise UserChanged
    yield from assign_username(user.user_id, user.username)
    yield DROP_TAGS(of=user.user_id)
    yield DROP_PURCHASES(of=user.user_id)
    if user.sealed_totp is None:
        yield DROP_TOTP(of=user.user_id)
    yield from _insert_user_sets(user)
    yield DROP_UNNEEDED_RECOVERY_CODES(of=user.user_id)


def refuse_taken_phone(user: User) -> Verb[None]:
    """Raise PhoneTaken if another account has verified the number that this one has verified."""
    if user.phone and user.phone_verified and (yield PHONE_OWNER(phone=user.phone, of=user.user_id)):
        raise PhoneTaken


def assign_username(user_id: str, username: str | None) -> Verb[None]:
    """Set the user name, or none; the caller has locked the account's row. Raises UsernameTaken."""
    if username is not None and not (yield from reserve_username(user_id, username)):
        raise UsernameTaken
    yield SET_USERNAME(of=user_id, to=username)


def reserve_username(user_id: str, username: str) -> Verb[bool]:
    """Reserve the name for the account forever; False if another account has it or ever had it."""
    return bool((yield RESERVE_USERNAME(digest=sha256(username).hex(), user_id=user_id)))


def _insert_user_sets(user: User) -> Verb[None]:
    yield ADD_TAG.bulk(_tag_rows(user))
    yield ADD_PURCHASE.bulk(_purchase_rows(user))
    if user.sealed_totp is not None:
        yield PUT_TOTP(**_totp_row(user))


def _tag_rows(user: User) -> list[dict[str, object]]:
    return [{"user_id": user.user_id, "tag": tag} for tag in sorted(user.tags)]


def _purchase_rows(user: User) -> list[dict[str, object]]:
    return [{"user_id": user.user_id, "purchase": name} for name in sorted(user.purchases)]


def _totp_row(user: User) -> dict[str, object]:
    return {
        "user_id": user.user_id,
        "sealed_secret": user.sealed_totp,
        "confirmed_at": user.reg_time,
        "last_step": 0,
    }


def user_by_id(user_id: str) -> Verb[User]:
    rows = yield USER_BY_ID(user_id=user_id)
    if not rows:
        raise UserNotFound
    user: User = rows[0].user
    return user


def login_parameters(login: str) -> dict[str, str]:
    return {"exact_key": exact_login(login), "login_key": login_key(login)}


def user_by_login(login: str) -> Verb[User | None]:
    rows = yield USER_BY_LOGIN(**login_parameters(login))
    return rows[0].user if rows else None


def user_by_username(username: str) -> Verb[User | None]:
    rows = yield USER_BY_USERNAME(username=username)
    return rows[0].user if rows else None


def password_hashes(after: str, limit: int) -> Verb[Mapping[str, str]]:
    return {row.user_id: row.password_hash for row in (yield PASSWORD_HASHES(after=after, size=limit))}


def hash_kinds() -> Verb[str | None]:
    return (yield from read_value(HASH_KINDS))


def set_hash_kinds(value: str) -> Verb[None]:
    yield from set_value(HASH_KINDS, value)


def all_users() -> Verb[Sequence[User]]:
    rows = yield ALL_USERS()
    return [user_from_row(row._asdict()) for row in rows]


def users_by_id_or_login(ids: Collection[str], login_keys: Collection[str]) -> Verb[Sequence[User]]:
    rows = yield USERS_BY_ID_OR_LOGIN(user_ids=sorted(ids), login_keys=sorted(login_keys))
    return [user_from_row(row._asdict()) for row in rows]


def retired_user_ids(ids: Collection[str]) -> Verb[frozenset[str]]:
    """Return which of these IDs belonged to deleted accounts."""
    rows = yield RETIRED_USER_IDS(user_ids=sorted(ids))
    return frozenset(row.user_id for row in rows)


def username_owners(names: Collection[str]) -> Verb[Mapping[str, str]]:
    """Return which of these user names were ever used, and by whom: the ID, or empty for an erased account."""
    digests = {sha256(name).hex(): name for name in names}
    rows = yield USERNAME_OWNERS(digests=sorted(digests))
    return {digests[row.digest]: row.user_id for row in rows}


def set_blocked(
    user_id: str, entry: AuditRecord, *, blocked: bool, now: int, even_last_administrator: bool = False
) -> Verb[User]:
    if blocked and not even_last_administrator:
        yield from refuse_last_administrator(user_id, now)
    # Milliseconds, so that epochs raised within one second differ; never lower than before.
    if not (yield SET_BLOCKED(of=user_id, to=blocked, epoch=now * 1_000)):
        raise UserNotFound
    yield from revoke_user_grants(user_id, now)
    yield from add_audit_record(entry)
    return (yield from user_by_id(user_id))


def set_labels(
    user_id: str, entry: AuditRecord, *, tags: frozenset[str] | None = None, purchases: frozenset[str] | None = None
) -> Verb[User]:
    if not (yield BUMP_USER_VERSION(of=user_id)):  # locks the row, so that no concurrent write interferes
        raise UserNotFound
    if tags is not None:
        yield DROP_TAGS(of=user_id)
        yield ADD_TAG.bulk([{"user_id": user_id, "tag": tag} for tag in sorted(tags)])
    if purchases is not None:
        yield DROP_PURCHASES(of=user_id)
        yield ADD_PURCHASE.bulk([{"user_id": user_id, "purchase": name} for name in sorted(purchases)])
    yield from add_audit_record(entry)
    return (yield from user_by_id(user_id))


def replace_password_hash(user_id: str, old: str, new: str) -> Verb[None]:
    yield REPLACE_HASH(of=user_id, old=old, new=new)


def put_setup_link(link: SetupLink, entry: AuditRecord, *, keep_unused: bool = False) -> Verb[bool]:
    if (yield from setup_is_closed()):
        raise SetupClosed
    # This locks the row: of two nodes the second sees the link of the first.
    yield from set_value(LAST_SETUP_LINK, str(link.created_at))
    if keep_unused and (yield from single_use.has_open_secret(SETUP_LINK, "", link.created_at)):
        return False
    yield from single_use.put_single_use(
        SETUP_LINK,
        link.digest,
        subject="",
        details={},
        now=link.created_at,
        expires_at=link.expires_at,
    )
    yield from add_audit_record(entry)
    return True


def setup_is_closed() -> Verb[bool]:
    return (yield from read_value(SETUP_CLOSED)) is not None


def setup_link_is_open(digest: bytes, now: int) -> Verb[bool]:
    if (yield from setup_is_closed()):
        return False
    return (yield from single_use.single_use_is_open(SETUP_LINK, digest, now))


def complete_setup(
    bans: BanFollower, digest: bytes, first: User, records: Mapping[str, AuditRecord], now: int
) -> Verb[None]:
    if (yield from single_use.take_single_use(SETUP_LINK, digest, now)) is None:
        raise SetupLinkDead
    if not (yield from set_value_once(SETUP_CLOSED, str(now))):
        raise SetupClosed
    yield from create_user(bans, first, records["created"], administrator=True)
    yield from add_audit_record(records["closed"])


class AccountStorage(BanAwareStore):
    create_user = write_with_bans(create_user)
    user = read(user_by_id)
    user_by_login = read(user_by_login)
    user_by_username = read(user_by_username)
    all_users = snapshot_read(all_users)
    replace_password_hash = write(replace_password_hash)
    password_hashes = snapshot_read(password_hashes)
    hash_kinds = read(hash_kinds)
    set_hash_kinds = write(set_hash_kinds)
    set_blocked = write(set_blocked)
    set_labels = write(set_labels)
    add_record = write(add_audit_record)
    put_setup_link = write(put_setup_link)
    setup_is_closed = read(setup_is_closed)
    setup_link_is_open = read(setup_link_is_open)
    complete_setup = write_with_bans(complete_setup)


# Columns that a save of the whole account writes as the record has them; the others have statements of their own.
SAVED_COLUMNS: Final = (
    *(field.name for field in ACCOUNT_FIELDS if field.name in users.c and field.name != "username"),
    *("password_hash", "password_browser", "level", "email_code", "phone_code", "phone_closed", "blocked", "meta"),
    *("username_at", "updated_at"),
)


def insert_values(user: User) -> dict[str, object]:
    """Return every column of a new account."""
    return {
        **_user_columns(user),
        "user_id": user.user_id,
        "kind": user.kind,
        "reg_time": user.reg_time,
        "username": user.username,
        "bans": [],
        "lost_at": 0,
        "rev": user.rev,
        "version": user.version,
    }


def shared_key(user: User) -> str | None:
    """Return the canonical spelling of an account that is stored under its exact one."""
    key = None if user.login is None else login_key(user.login)
    return None if key == user.login_key else key


def _user_columns(user: User) -> dict[str, object]:
    return {
        **{name: getattr(user, name) for name in SAVED_COLUMNS},
        "login_key": user.login_key,
        "shared_key": shared_key(user),
        "nick_key": search_key(user.nick),
        "name_key": search_key(user.name),
    }


def labels_by_source(joined: str | None) -> tuple[frozenset[str], frozenset[str]]:
    """Return those that people or the service set, and those that providers set."""
    lines = split_lines(joined)
    by_hand = {line for line in lines if line.startswith(_BY_HAND)}
    return (
        frozenset(line.removeprefix(_BY_HAND) for line in by_hand),
        frozenset(line.partition(" ")[2] for line in lines - by_hand),
    )


# An administrator created by the operator.


def create_administrator(bans: BanFollower, user: User, records: Mapping[str, AuditRecord], now: int) -> Verb[bool]:
    """Store the account and close setup in the same transaction, which ends any setup link.

    True when setup was still open. `records` holds the entries `created` and `closed`.
    """
    closed = yield from set_value_once(SETUP_CLOSED, str(now))  # first: of two concurrent calls one gets the record
    yield from create_user(bans, user, records["created"], administrator=True)
    if closed:
        yield from add_audit_record(records["closed"])
    return closed
