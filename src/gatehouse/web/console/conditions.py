"""The condition builder: a condition as rows of plain form fields, in words, and with whom it holds for.

A row is a test or a group of rows below it, the first one a group that stands for the whole. Rows come in the order
of the page with their depth, so a form is three lists of the same length. Buttons that change rows are answered with
the form as it then is; nothing is saved by them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Final, assert_never

from markupsafe import Markup

from gatehouse.admin.model.matching import Match, MatchStore
from gatehouse.admin.model.names import NamedPerson, NameStore
from gatehouse.permissions.documents.conditions import DEEPEST, NODES_MOST, parse_condition
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.condition import (
    AllOf,
    AnyOf,
    Condition,
    Domain,
    Everyone,
    FromNetwork,
    HasPurchase,
    HasTag,
    OneOfUsers,
    Test,
    tests_in,
)
from gatehouse.web.console.editing import typed_lines
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.pages.words import Words

ALL: Final = "all"
ANY: Final = "any"
GROUPS: Final = (ALL, ANY)
NO_VALUE: Final = ("everyone", "nobody")
TESTS: Final = ("domain", "tag", "uid", "purchase", *NO_VALUE)
TESTS_WITH_ADDRESS: Final = ("domain", "tag", "uid", "purchase", "ip", *NO_VALUE)
NAMES_SHOWN: Final = 3  # of people, in words


class ConditionForm(Guarded, frozen=True, kw_only=True):
    """`do`: what a button other than the form's own asks for, such as `add:0`."""

    kind: tuple[str, ...] = ()
    value: tuple[str, ...] = ()
    depth: tuple[str, ...] = ()
    do: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    depth: int
    kind: str
    value: str = ""
    fresh: bool = False  # just added: it gets the focus

    @property
    def is_group(self) -> bool:
        return self.kind in GROUPS


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A row at its place, with what stands below it."""

    index: int
    row: Row
    below: Sequence["Node"] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """What the builder's template shows."""

    rows: Sequence[Row]
    tests: Sequence[str]  # kinds that are offered
    test: Test | None = None  # None while there is none, or it is not complete
    lacks: str = ""  # what it lacks to be one
    match: Match | None = None  # None: not counted, or whoever writes it may not see whom it holds for
    counts_later: bool = False  # the page asks for the count once it is shown
    names: Mapping[str, NamedPerson] = field(default_factory=dict)

    @property
    def depends_on_address(self) -> bool:
        return self.test is not None and looks_at_address(self.test)

    @property
    def is_empty(self) -> bool:
        return len(self.rows) == 1

    @property
    def tree(self) -> Node:
        return node_at(self.rows, 0)


ROOT: Final = Row(depth=0, kind=ALL)


class Conditions:
    """Builders for screens."""

    def __init__(self, *, matches: MatchStore, names: NameStore) -> None:
        self._matches = matches
        self._names = names

    async def builder(self, rows: Sequence[Row], *, counts: bool, with_address: bool, later: bool) -> Builder:
        """`counts`: whether whoever writes it may see whom it holds for. `later`: not before the page is shown."""
        tests = TESTS_WITH_ADDRESS if with_address else TESTS
        try:
            condition = condition_in(rows, with_address=with_address)
        except Malformed as error:
            return Builder(rows=rows, tests=tests, lacks=error.detail)
        if condition is None:
            return Builder(rows=rows, tests=tests)
        return Builder(
            rows=rows,
            tests=tests,
            test=condition.test,
            match=await self._matches.match(condition.test) if counts and not later else None,
            counts_later=counts and later,
            names=await self.names_in(condition.test),
        )

    async def names_in(self, *tests: Test) -> Mapping[str, NamedPerson]:
        """The first people that each test names, which is as many as words tell."""
        named = {
            user_id
            for test in tests
            for one in tests_in(test)
            if isinstance(one, OneOfUsers)
            for user_id in sorted(one.user_ids)[:NAMES_SHOWN]
        }
        return await self._names.people(named)


# -- rows ---------------------------------------------------------------------------------------------


def rows_in(condition: Condition | None) -> Sequence[Row]:
    if condition is None:
        return [ROOT]
    rows = list(rows_of(condition.test, 0))
    return rows if rows[0].is_group else [ROOT, *rows_of(condition.test, 1)]


def rows_of(test: Test, depth: int) -> Sequence[Row]:
    if isinstance(test, AllOf | AnyOf):
        kind = ALL if isinstance(test, AllOf) else ANY
        parts = (row for part in test.parts for row in rows_of(part, depth + 1))
        return [Row(depth=depth, kind=kind), *parts]
    kind, value = leaf_of(test)
    return [Row(depth=depth, kind=kind, value=value)]


def leaf_of(test: Test) -> tuple[str, str]:
    match test:
        case Domain(name):
            return "domain", name
        case OneOfUsers(user_ids):
            return "uid", ", ".join(sorted(user_ids))
        case HasTag(tag):
            return "tag", tag
        case HasPurchase(purchase):
            return "purchase", purchase
        case FromNetwork(network):
            return "ip", str(network)
        case Everyone(holds):
            return "everyone" if holds else "nobody", ""
        case AllOf() | AnyOf():
            raise TypeError("a group of tests")
        case _:
            assert_never(test)


def typed_rows(form: ConditionForm) -> list[Row]:
    """Raises Malformed for what no page of ours sends."""
    if not len(form.kind) == len(form.value) == len(form.depth) <= NODES_MOST:
        raise Malformed("The condition is incomplete. Reload the page and try again.")
    rows = [
        Row(depth=int(depth), kind=kind, value=value.strip())
        for depth, kind, value in zip(form.depth, form.kind, form.value, strict=True)
        if is_number(depth)
    ]
    if not rows:
        return [ROOT]
    fits = rows[0].depth == 0 and rows[0].is_group and len(rows) == len(form.depth)
    for above, row in pairwise(rows):
        fits = fits and 1 <= row.depth <= above.depth + above.is_group and row.depth < DEEPEST
        fits = fits and row.kind in (*GROUPS, *TESTS_WITH_ADDRESS)
    if not fits:
        raise Malformed("The condition is invalid. Reload the page and try again.")
    return rows


def is_number(text: str) -> bool:
    return len(text) <= len(str(NODES_MOST)) and text.isascii() and text.isdecimal()


def is_about_rows(do: str) -> bool:
    return do.partition(":")[0] in ("add", "group", "remove", "count")


def changed_rows(rows: Sequence[Row], do: str) -> list[Row]:
    """What a button makes of the rows; one that is not there changes nothing."""
    act, _, place = do.partition(":")
    at = int(place) if is_number(place) else len(rows)
    if at >= len(rows):
        return list(rows)
    end = end_of(rows, at)
    if act == "remove" and at:
        return [*rows[:at], *rows[end:]]
    if act in ("add", "group") and rows[at].is_group:
        return [*rows[:end], *new_rows(rows[at].depth + 1, group=act == "group"), *rows[end:]]
    return list(rows)


def new_rows(depth: int, *, group: bool) -> list[Row]:
    if not group:
        return [Row(depth=depth, kind="domain", fresh=True)]
    return [Row(depth=depth, kind=ANY, fresh=True), Row(depth=depth + 1, kind="domain")]


def end_of(rows: Sequence[Row], at: int) -> int:
    """Where what stands below the row ends."""
    end = at + 1
    while end < len(rows) and rows[end].depth > rows[at].depth:
        end += 1
    return end


def below(rows: Sequence[Row], at: int) -> Sequence[int]:
    """Where the rows right below that one stand."""
    return [index for index in range(at + 1, end_of(rows, at)) if rows[index].depth == rows[at].depth + 1]


def node_at(rows: Sequence[Row], at: int) -> Node:
    return Node(index=at, row=rows[at], below=[node_at(rows, index) for index in below(rows, at)])


def condition_in(rows: Sequence[Row], *, with_address: bool) -> Condition | None:
    """None when there is no test at all. Raises Malformed."""
    if len(rows) <= 1:
        return None
    return parse_condition(document_of(rows, 0), place="condition", with_address=with_address)


def document_of(rows: Sequence[Row], at: int) -> Mapping[str, object]:
    row = rows[at]
    if not row.is_group:
        return leaf_document(row)
    parts = [document_of(rows, index) for index in below(rows, at)]
    if not parts:
        raise Malformed("a condition group is empty; add a condition or remove the group")
    return parts[0] if len(parts) == 1 else {"and" if row.kind == ALL else "or": parts}


def leaf_document(row: Row) -> Mapping[str, object]:
    if row.kind in NO_VALUE:
        return {"everyone": row.kind == "everyone"}
    if not row.value:
        raise Malformed("a condition has no value")
    return {row.kind: typed_lines(row.value) if row.kind == "uid" else row.value}


def looks_at_address(test: Test) -> bool:
    return any(isinstance(one, FromNetwork) for one in tests_in(test))


# -- words --------------------------------------------------------------------------------------------

NOBODY_NAMED: Final[Mapping[str, NamedPerson]] = MappingProxyType({})


def condition_words(  # noqa: PLR0911 - one a kind
    t: Words, test: Test, names: Mapping[str, NamedPerson] = NOBODY_NAMED
) -> Markup:
    """`e-mail at studio.example, and tagged beta`."""
    match test:
        case Domain(name):
            return t("condition.words_domain", value=name)
        case OneOfUsers(user_ids):
            return people_words(t, sorted(user_ids), names)
        case HasTag(tag):
            return t("condition.words_tag", value=tag)
        case HasPurchase(purchase):
            return t("condition.words_purchase", value=purchase)
        case FromNetwork(network):
            return t("condition.words_ip", value=network)
        case Everyone(holds):
            return t("condition.words_everyone") if holds else t("condition.words_nobody")
        case AllOf(parts):
            return t("condition.and").join(part_words(t, part, names) for part in parts)
        case AnyOf(parts):
            return t("condition.or").join(part_words(t, part, names) for part in parts)
        case _:
            assert_never(test)


def part_words(t: Words, test: Test, names: Mapping[str, NamedPerson]) -> Markup:
    words = condition_words(t, test, names)
    is_several = isinstance(test, AllOf | AnyOf) and len(test.parts) > 1
    return t("condition.inner", words=words) if is_several else words


def people_words(t: Words, user_ids: Sequence[str], names: Mapping[str, NamedPerson]) -> Markup:
    shown = [names[one].nick if one in names else one for one in user_ids[:NAMES_SHOWN]]
    more = len(user_ids) - len(shown)
    people = ", ".join(shown)
    return (
        t("condition.words_uid_more", people=people, count=more) if more else t("condition.words_uid", value=people)
    )
