"""The condition builder: a condition as rows of plain form fields, in words, and with the people it holds for.

A row is a test or a group of rows below it, the first one a group for the whole. Rows come in the order
of the page with their depth, so a form is three lists of the same length. Buttons that change rows are answered with
the form as it then is; nothing is saved by them.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, assert_never

from markupsafe import Markup
from msgspec import Struct, field

from gatehouse.admin.conditions import ConditionMatch, ConditionMatchStore
from gatehouse.admin.names import NamedPerson, NameStore
from gatehouse.permissions.documents.conditions import MAX_CONDITION_DEPTH, MAX_CONDITION_MEMBERS, parse_condition
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.condition import (
    AllOf,
    AnyOf,
    Condition,
    ConditionTest,
    Domain,
    Everyone,
    FromNetwork,
    HasPurchase,
    HasTag,
    OneOfUsers,
    tests_in,
)
from gatehouse.web.console.forms import FieldConflict, ReviewedForm, split_lines
from gatehouse.web.console.view import FormProblem, problem_from
from gatehouse.web.pages.translations import Translator

ALL: Final = "all"
ANY: Final = "any"
GROUP_KINDS: Final = (ALL, ANY)
KINDS_WITHOUT_VALUE: Final = ("everyone", "none")
TEST_KINDS: Final = ("domain", "tag", "uid", "purchase", *KINDS_WITHOUT_VALUE)
TEST_KINDS_WITH_ADDRESS: Final = ("domain", "tag", "uid", "purchase", "ip", *KINDS_WITHOUT_VALUE)
MAX_NAMES_SHOWN: Final = 3  # of people, in words


class ConditionForm(ReviewedForm, frozen=True, kw_only=True):
    """The rows of a condition."""

    kind: tuple[str, ...] = ()
    value: tuple[str, ...] = ()
    depth: tuple[str, ...] = ()


class ConditionRow(Struct, frozen=True, kw_only=True):
    depth: int
    kind: str
    value: str = ""
    is_new: bool = False  # just added: it gets the focus

    @property
    def is_group(self) -> bool:
        return self.kind in GROUP_KINDS


class ConditionNode(Struct, frozen=True, kw_only=True):
    """A row with the rows below it."""

    index: int
    row: ConditionRow
    below: Sequence["ConditionNode"] = ()


class ConditionBuilder(Struct, frozen=True, kw_only=True):
    """What the builder's template shows."""

    rows: Sequence[ConditionRow]
    tests: Sequence[str]  # kinds that are offered
    test: ConditionTest | None = None  # None while there is none, or it is not complete
    lacks: FormProblem | None = None  # what is missing
    match: ConditionMatch | None = None  # None: not counted, or the author may not see the people it holds for
    counts_later: bool = False  # the page asks for the count once it is shown
    names: Mapping[str, NamedPerson] = field(default_factory=dict)

    @property
    def depends_on_address(self) -> bool:
        return self.test is not None and tests_address(self.test)

    @property
    def is_empty(self) -> bool:
        return len(self.rows) == 1

    @property
    def tree(self) -> ConditionNode:
        return node_at(self.rows, 0)


ROOT: Final = ConditionRow(depth=0, kind=ALL)


class ConditionBuilders:
    """Builders for screens."""

    def __init__(self, *, matches: ConditionMatchStore, names: NameStore) -> None:
        self._matches = matches
        self._names = names

    async def build(
        self, rows: Sequence[ConditionRow], *, may_count: bool, with_address: bool, count_later: bool
    ) -> ConditionBuilder:
        """`may_count`: the author may see how many people match. `count_later`: the page asks for the count."""
        tests = TEST_KINDS_WITH_ADDRESS if with_address else TEST_KINDS
        try:
            condition = condition_from_rows(rows, with_address=with_address)
        except Malformed as error:
            return ConditionBuilder(rows=rows, tests=tests, lacks=problem_from(error))
        if condition is None:
            return ConditionBuilder(rows=rows, tests=tests)
        return ConditionBuilder(
            rows=rows,
            tests=tests,
            test=condition.test,
            match=await self._matches.count_matches(condition.test) if may_count and not count_later else None,
            counts_later=may_count and count_later,
            names=await self.load_names(condition.test),
        )

    async def load_names(self, *tests: ConditionTest) -> Mapping[str, NamedPerson]:
        """The first people that each test names: the texts show no more."""
        named = {
            user_id
            for test in tests
            for one in tests_in(test)
            if isinstance(one, OneOfUsers)
            for user_id in sorted(one.user_ids)[:MAX_NAMES_SHOWN]
        }
        return await self._names.people_by_id(named)


# -- rows ---------------------------------------------------------------------------------------------


def rows_of_condition(condition: Condition | None) -> Sequence[ConditionRow]:
    if condition is None:
        return [ROOT]
    rows = list(rows_of_test(condition.test, 0))
    return rows if rows[0].is_group else [ROOT, *rows_of_test(condition.test, 1)]


def rows_of_test(test: ConditionTest, depth: int) -> Sequence[ConditionRow]:
    if isinstance(test, AllOf | AnyOf):
        kind = ALL if isinstance(test, AllOf) else ANY
        parts = (row for part in test.parts for row in rows_of_test(part, depth + 1))
        return [ConditionRow(depth=depth, kind=kind), *parts]
    kind, value = kind_and_value(test)
    return [ConditionRow(depth=depth, kind=kind, value=value)]


def kind_and_value(test: ConditionTest) -> tuple[str, str]:
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
            return "everyone" if holds else "none", ""
        case AllOf() | AnyOf():
            raise TypeError("a group of tests")
        case _:
            assert_never(test)


def rows_from_form(form: ConditionForm) -> list[ConditionRow]:
    """Raises Malformed for what no page of ours sends."""
    if not len(form.kind) == len(form.value) == len(form.depth) <= MAX_CONDITION_MEMBERS:
        raise Malformed("The condition is incomplete. Reload the page and try again.").on_screen(
            "condition_incomplete"
        )
    rows = [
        ConditionRow(depth=int(depth), kind=kind, value=value.strip())
        for depth, kind, value in zip(form.depth, form.kind, form.value, strict=True)
        if is_number(depth)
    ]
    if not rows:
        return [ROOT]
    fits = rows[0].depth == 0 and rows[0].is_group and len(rows) == len(form.depth)
    for above, row in pairwise(rows):
        fits = fits and 1 <= row.depth <= above.depth + above.is_group and row.depth < MAX_CONDITION_DEPTH
        fits = fits and row.kind in (*GROUP_KINDS, *TEST_KINDS_WITH_ADDRESS)
    if not fits:
        raise Malformed("The condition is invalid. Reload the page and try again.").on_screen("condition_invalid")
    return rows


def shown_rows(form: ConditionForm) -> list[ConditionRow]:
    """The rows that were sent, after the button that changes them."""
    return apply_row_action(rows_from_form(form), form.do)


def fields_of_rows(rows: Sequence[ConditionRow]) -> Mapping[str, Any]:
    """The fields of a form with these rows."""
    return {
        "kind": tuple(row.kind for row in rows),
        "value": tuple(row.value for row in rows),
        "depth": tuple(str(row.depth) for row in rows),
    }


def is_number(text: str) -> bool:
    return len(text) <= len(str(MAX_CONDITION_MEMBERS)) and text.isascii() and text.isdecimal()


def is_row_action(do: str) -> bool:
    return do.partition(":")[0] in ("add", "group", "remove", "count")


def apply_row_action(rows: Sequence[ConditionRow], do: str) -> list[ConditionRow]:
    """The rows after a button; an unknown row changes nothing."""
    act, _, place = do.partition(":")
    at = int(place) if is_number(place) else len(rows)
    if at >= len(rows):
        return list(rows)
    end = subtree_end(rows, at)
    if act == "remove" and at:
        return [*rows[:at], *rows[end:]]
    if act in ("add", "group") and rows[at].is_group:
        return [*rows[:end], *new_rows(rows[at].depth + 1, group=act == "group"), *rows[end:]]
    return list(rows)


def new_rows(depth: int, *, group: bool) -> list[ConditionRow]:
    if not group:
        return [ConditionRow(depth=depth, kind="domain", is_new=True)]
    return [ConditionRow(depth=depth, kind=ANY, is_new=True), ConditionRow(depth=depth + 1, kind="domain")]


def subtree_end(rows: Sequence[ConditionRow], at: int) -> int:
    """The index after the last row below that one."""
    end = at + 1
    while end < len(rows) and rows[end].depth > rows[at].depth:
        end += 1
    return end


def child_indexes(rows: Sequence[ConditionRow], at: int) -> Sequence[int]:
    """The indexes of the rows directly below that one."""
    return [index for index in range(at + 1, subtree_end(rows, at)) if rows[index].depth == rows[at].depth + 1]


def node_at(rows: Sequence[ConditionRow], at: int) -> ConditionNode:
    return ConditionNode(index=at, row=rows[at], below=[node_at(rows, index) for index in child_indexes(rows, at)])


def condition_from_rows(rows: Sequence[ConditionRow], *, with_address: bool) -> Condition | None:
    """None when there is no test at all. Raises Malformed."""
    if len(rows) <= 1:
        return None
    return parse_condition(document_from_rows(rows, 0), place="condition", with_address=with_address)


def document_from_rows(rows: Sequence[ConditionRow], at: int) -> Mapping[str, object]:
    row = rows[at]
    if not row.is_group:
        return leaf_document(row)
    parts = [document_from_rows(rows, index) for index in child_indexes(rows, at)]
    if not parts:
        raise Malformed("a condition group is empty; add a condition or remove the group").on_screen(
            "condition_group_empty"
        )
    return parts[0] if len(parts) == 1 else {"and" if row.kind == ALL else "or": parts}


def leaf_document(row: ConditionRow) -> Mapping[str, object]:
    if row.kind in KINDS_WITHOUT_VALUE:
        return {"everyone": row.kind == "everyone"}
    if not row.value:
        raise Malformed("a condition has no value").on_screen("condition_empty")
    return {row.kind: split_lines(row.value) if row.kind == "uid" else row.value}


def tests_address(test: ConditionTest) -> bool:
    return any(isinstance(one, FromNetwork) for one in tests_in(test))


def test_of(condition: Condition | None) -> ConditionTest | None:
    return None if condition is None else condition.test


# -- words --------------------------------------------------------------------------------------------

NO_NAMES: Final[Mapping[str, NamedPerson]] = MappingProxyType({})


def condition_words(  # noqa: PLR0911 - one a kind
    t: Translator, test: ConditionTest, names: Mapping[str, NamedPerson] = NO_NAMES
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
            return t("condition.words_everyone") if holds else t("condition.words_none")
        case AllOf(parts):
            return t("condition.and").join(part_words(t, part, names) for part in parts)
        case AnyOf(parts):
            return t("condition.or").join(part_words(t, part, names) for part in parts)
        case _:
            assert_never(test)


def part_words(t: Translator, test: ConditionTest, names: Mapping[str, NamedPerson]) -> Markup:
    words = condition_words(t, test, names)
    is_several = isinstance(test, AllOf | AnyOf) and len(test.parts) > 1
    return t("condition.inner", words=words) if is_several else words


def people_words(t: Translator, user_ids: Sequence[str], names: Mapping[str, NamedPerson]) -> Markup:
    shown = [names[one].nick if one in names else one for one in user_ids[:MAX_NAMES_SHOWN]]
    more = len(user_ids) - len(shown)
    people = ", ".join(shown)
    return (
        t("condition.words_uid_more", people=people, count=more) if more else t("condition.words_uid", value=people)
    )


def condition_conflicts(
    t: Translator, typed: ConditionForm, stored: Condition | None, *, with_address: bool
) -> tuple[FieldConflict, ...]:
    """The condition in words, if another one was saved meanwhile."""
    tests = test_of(condition_from_rows(rows_from_form(typed), with_address=with_address)), test_of(stored)
    if tests[0] == tests[1]:
        return ()
    words = ["" if test is None else condition_words(t, test).unescape() for test in tests]
    return (FieldConflict(field="condition", typed=words[0], stored=words[1]),)
