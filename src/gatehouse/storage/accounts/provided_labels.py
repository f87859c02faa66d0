"""Storage of tags and purchases that providers set, each with the identity it is about (R14)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from sqlalchemy import (
    Column,
    ColumnElement,
    Table,
    Text,
    and_,
    bindparam,
    delete,
    exists,
    false,
    literal_column,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import Identity, ProvidedLabel, ProvidedLabels, ProviderAnswer
from gatehouse.audit.model import AuditRecord
from gatehouse.storage.accounts.users import BUMP_USER_VERSION
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.installation import read_value
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.accounts import identities, user_purchases, user_tags
from gatehouse.storage.tables.installation import installation

LABEL_SOURCES: Final = "label_sources"  # the fact that holds until earlier labels have their sources
AT_ONCE: Final = 200  # labels in one transaction

_NOTHING: Final[ColumnElement[str]] = literal_column("''", Text())  # as in the partial indexes

_TO: Final = bindparam("to", type_=Text())


class LabelStatements(NamedTuple):
    """The same statements for tags and for purchases; the label's column is `name`."""

    of_user: Statement
    of_identity: Statement
    put: Statement
    drop: Statement
    drop_of_identity: Statement
    copy: Statement
    next_pair: Statement  # of a provider and a label that it set
    of_pair: Statement
    without_source: Statement
    drop_without_source: Statement


def _label_statements(table: Table, label: Column[str], *kept_column: Column[bool]) -> LabelStatements:
    """`kept_column`: whether the label stays without its identity, in a table that stores it."""
    row = table.c
    of_user, this = row.user_id == bindparam("of"), label == bindparam("the")
    of_identity = and_(of_user, row.issuer == bindparam("of_issuer"), row.subject == bindparam("of_subject"))
    provided = row.provider != _NOTHING
    source = (row.issuer, row.subject, row.provider)
    shown = (label.label("name"), *source, kept_column[0] if kept_column else false().label("kept"))
    upsert = insert(table)
    stored = (row.user_id, label, *source, *kept_column)
    pair = (row.provider, label)
    held_at = and_(identities.c.user_id == row.user_id, identities.c.provider == bindparam("at_provider"))
    return LabelStatements(
        of_user=Statement(lambda: select(*shown).where(of_user, provided).order_by(label, row.issuer, row.subject)),
        of_identity=Statement(lambda: select(*shown).where(of_identity, provided)),
        put=Statement(
            lambda: upsert.on_conflict_do_update(
                index_elements=["user_id", label.name, "issuer", "subject"],
                set_={column.name: upsert.excluded[column.name] for column in (row.provider, *kept_column)},
            )
        ),
        drop=Statement(lambda: delete(table).where(of_identity, provided, this).returning(row.user_id)),
        drop_of_identity=Statement(
            lambda: delete(table).where(of_identity, provided, *(column.is_(False) for column in kept_column))
        ),
        copy=Statement(
            lambda: (
                insert(table)
                .from_select(
                    [column.name for column in stored],
                    select(_TO.label("user_id"), *stored[1:]).where(of_user, provided),
                )
                .on_conflict_do_nothing()
            )
        ),
        next_pair=Statement(
            lambda: (
                select(row.provider, label.label("name"))
                .where(
                    provided,
                    tuple_(*pair)
                    > tuple_(bindparam("after_provider", type_=Text()), bindparam("after", type_=Text())),
                )
                .order_by(*pair)
                .limit(1)
            )
        ),
        of_pair=Statement(
            lambda: (
                select(row.user_id, row.issuer, row.subject)
                .where(provided, row.provider == bindparam("at_provider"), this)
                .limit(AT_ONCE)
            )
        ),
        # The newest sign-in first: it would have set or removed the label.
        without_source=Statement(
            lambda: (
                select(row.user_id, identities.c.issuer, identities.c.subject)
                .join_from(table, identities, held_at)
                .where(this, row.provider == "")
                .order_by(identities.c.used_at.desc())
                .limit(AT_ONCE)
            )
        ),
        drop_without_source=Statement(lambda: delete(table).where(of_user, row.provider == "", this)),
    )


TAGS: Final = _label_statements(user_tags, user_tags.c.tag, user_tags.c.kept)
PURCHASES: Final = _label_statements(user_purchases, user_purchases.c.purchase)

_OF_RULE: Final = (
    user_tags.c.provider != _NOTHING,
    user_tags.c.provider == bindparam("at_provider"),
    user_tags.c.tag == bindparam("the"),
)
SET_KEPT = Statement(
    lambda: update(user_tags).where(*_OF_RULE, user_tags.c.kept != bindparam("to")).values(kept=bindparam("to"))
)
KEPT_WITHOUT_IDENTITY = Statement(
    lambda: (
        select(user_tags.c.user_id, user_tags.c.issuer, user_tags.c.subject)
        .where(
            *_OF_RULE,
            user_tags.c.kept.is_(True),
            ~exists().where(
                identities.c.issuer == user_tags.c.issuer,
                identities.c.subject == user_tags.c.subject,
                identities.c.user_id == user_tags.c.user_id,
            ),
        )
        .limit(AT_ONCE)
    )
)
DROP_KEPT_ELSEWHERE = Statement(
    lambda: (
        delete(user_tags)
        .where(
            user_tags.c.kept.is_(True),
            user_tags.c.issuer == bindparam("of_issuer"),
            user_tags.c.subject == bindparam("of_subject"),
            user_tags.c.tag == bindparam("the"),
            user_tags.c.user_id != bindparam("of"),
        )
        .returning(user_tags.c.user_id)
    )
)
COPY_KEPT_TAGS = Statement(
    lambda: (
        insert(user_tags)
        .from_select(
            [column.name for column in user_tags.c],
            select(_TO.label("user_id"), *tuple(user_tags.c)[1:]).where(
                user_tags.c.user_id == bindparam("of"), user_tags.c.kept.is_(True)
            ),
        )
        .on_conflict_do_nothing()
    )
)
# Of whatever account it was connected to before.
COPY_KEPT_OF_IDENTITY = Statement(
    lambda: (
        insert(user_tags)
        .from_select(
            [column.name for column in user_tags.c],
            select(_TO.label("user_id"), *tuple(user_tags.c)[1:]).where(
                user_tags.c.kept.is_(True),
                user_tags.c.issuer == bindparam("of_issuer"),
                user_tags.c.subject == bindparam("of_subject"),
            ),
        )
        .on_conflict_do_nothing()
    )
)
END_SEARCH = Statement(lambda: delete(installation).where(installation.c.name == bindparam("name")))


def labels_of_user(user_id: str) -> Verb[Sequence[ProvidedLabel]]:
    user_labels: list[ProvidedLabel] = []
    for labels in (TAGS, PURCHASES):
        rows = yield labels.of_user(of=user_id)
        user_labels += [ProvidedLabel(**row._asdict(), is_purchase=labels is PURCHASES) for row in rows]
    return user_labels


def store_answer(identity: Identity, answer: ProviderAnswer, record: Callable[[str], AuditRecord]) -> Verb[None]:
    """Store what a provider says about the person of the identity; labels of other sources are not touched.

    `record`: of a change, by the ID of the account. A kept tag that the provider withdraws ends for every account
    that had the identity.
    """
    changed = yield from _store_labels(TAGS, identity, answer.tags, answer.kept_tags)
    changed |= yield from _store_labels(PURCHASES, identity, answer.purchases)
    if changed:
        yield from add_audit_record(record(identity.user_id))
    for tag in sorted(tag for tag in answer.kept_tags if answer.tags.get(tag) is False):
        former = yield DROP_KEPT_ELSEWHERE(
            of=identity.user_id, of_issuer=identity.issuer, of_subject=identity.subject, the=tag
        )
        for row in former:
            yield BUMP_USER_VERSION(of=row.user_id)
            yield from add_audit_record(record(row.user_id))


def _store_labels(
    labels: LabelStatements, identity: Identity, said: Mapping[str, bool], kept_names: frozenset[str] = frozenset()
) -> Verb[bool]:
    """Set or remove these; True if something changed."""
    if not said:
        return False
    of = {"of": identity.user_id, "of_issuer": identity.issuer, "of_subject": identity.subject}
    before = {row.name: (row.provider, bool(row.kept)) for row in (yield labels.of_identity(**of))}
    added = [
        name for name, holds in said.items() if holds and before.get(name) != (identity.provider, name in kept_names)
    ]
    dropped = [name for name, holds in said.items() if not holds and name in before]
    if not (added or dropped):
        return False
    if not (yield BUMP_USER_VERSION(of=identity.user_id)):
        raise UserNotFound
    yield labels.put.bulk([_row(labels, identity, name, is_kept=name in kept_names) for name in sorted(added)])
    for name in sorted(dropped):
        yield labels.drop(**of, the=name)
    return True


def _row(labels: LabelStatements, identity: Identity, name: str, *, is_kept: bool) -> Mapping[str, object]:
    row = {
        "user_id": identity.user_id,
        "issuer": identity.issuer,
        "subject": identity.subject,
        "provider": identity.provider,
    }
    return {**row, "purchase": name} if labels is PURCHASES else {**row, "tag": name, "kept": is_kept}


def end_labels(user_id: str, issuer: str, subject: str) -> Verb[None]:
    """End what an identity brought, apart from kept tags; the identity was removed."""
    for labels in (TAGS, PURCHASES):
        yield labels.drop_of_identity(of=user_id, of_issuer=issuer, of_subject=subject)


def copy_kept_tags(linked: Sequence[Identity]) -> Verb[None]:
    """Give accounts the kept tags of identities that are new to them: they are about the identity.

    Else disconnecting and signing in over a channel without claims would make an account without them.
    """
    yield COPY_KEPT_OF_IDENTITY.bulk(
        [
            {"to": identity.user_id, "of_issuer": identity.issuer, "of_subject": identity.subject}
            for identity in linked
        ]
    )


def take_over_labels(of: str, to: str) -> Verb[None]:
    """Copy what the identities of an account brought to the account that takes over its identities."""
    for labels in (TAGS, PURCHASES):
        yield labels.copy(of=of, to=to)


# When the rules of providers change.


def find_sources(rules: Mapping[str, ProvidedLabels]) -> Verb[bool]:
    """Give earlier labels, which have no source yet, to the identities whose provider has a rule for them.

    True if there may be more.
    """
    if (yield from read_value(LABEL_SOURCES)) is None:
        return False
    for provider, provided in rules.items():
        for labels, names in _labels_of(provided):
            for name, is_kept in names.items():
                rows = yield labels.without_source(at_provider=provider, the=name)
                newest = {row.user_id: row for row in reversed(rows)}
                for user_id in sorted(newest):
                    yield from _give_source(labels, newest[user_id], provider, name, is_kept=is_kept)
                if rows:
                    return True
    yield END_SEARCH(name=LABEL_SOURCES)
    return False


def _give_source(labels: LabelStatements, source: Row, provider: str, name: str, *, is_kept: bool) -> Verb[None]:
    identity = Identity(
        issuer=source.issuer,
        subject=source.subject,
        user_id=source.user_id,
        provider=provider,
        label="",
        created_at=0,
        used_at=0,
    )
    yield BUMP_USER_VERSION(of=source.user_id)
    yield labels.put.bulk([_row(labels, identity, name, is_kept=is_kept)])
    yield labels.drop_without_source(of=source.user_id, the=name)


def end_labels_without_rule(
    rules: Mapping[str, ProvidedLabels], record: Callable[[str, str], AuditRecord]
) -> Verb[bool]:
    """End some labels whose rule is gone, each with a record by account and provider; True if there may be more."""
    for labels in (TAGS, PURCHASES):
        provider, name = "", ""
        while pair := (yield labels.next_pair(after_provider=provider, after=name)):
            provider, name = pair[0].provider, pair[0].name
            is_kept = dict(_labels_of(rules.get(provider, ProvidedLabels())))[labels].get(name)
            if is_kept is None:
                ended: Sequence[Row] = yield labels.of_pair(at_provider=provider, the=name)
            else:
                ended = yield from _apply_keep(labels, provider, name, is_kept=is_kept)
            yield from _drop_labels(labels, ended, provider, name, record)
            if ended:
                return True
    return False


def _apply_keep(labels: LabelStatements, provider: str, name: str, *, is_kept: bool) -> Verb[Sequence[Row]]:
    """Store whether the rule keeps the tag now, and return those that end because it no longer does."""
    if labels is PURCHASES:
        return ()
    ended: Sequence[Row] = [] if is_kept else (yield KEPT_WITHOUT_IDENTITY(at_provider=provider, the=name))
    if not ended:
        yield SET_KEPT(at_provider=provider, the=name, to=is_kept)
    return ended


def _drop_labels(
    labels: LabelStatements,
    ended: Iterable[Row],
    provider: str,
    name: str,
    record: Callable[[str, str], AuditRecord],
) -> Verb[None]:
    for row in sorted(ended):
        if (yield labels.drop(of=row.user_id, of_issuer=row.issuer, of_subject=row.subject, the=name)):
            yield BUMP_USER_VERSION(of=row.user_id)
            yield from add_audit_record(record(row.user_id, provider))


def _labels_of(provided: ProvidedLabels) -> Sequence[tuple[LabelStatements, Mapping[str, bool]]]:
    return (TAGS, provided.tags), (PURCHASES, dict.fromkeys(provided.purchases, False))
