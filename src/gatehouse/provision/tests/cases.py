"""The cases of a test file, and their results for people, scripts and CI systems."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from msgspec import UNSET, Struct, UnsetType, field

from gatehouse.kernel.addresses import Address, parse_address
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.questions.parsing import ResourceDraft, RuleReference, read_rule
from gatehouse.provision.document import Document
from gatehouse.provision.file_secrets import FileSecret
from gatehouse.provision.model import Problems, Unfit, one_line
from gatehouse.provision.sections.references import collect_problems
from gatehouse.provision.sections.section import read_record, suggestion


class CaseFailure(Struct, frozen=True, kw_only=True):
    expected: str  # "user 1001 may user.kick"
    sentences: tuple[str, ...]  # why the result differs

    @property
    def line(self) -> str:
        return one_line(f"{self.expected}: {' '.join(self.sentences)}")


class CaseResult(Struct, frozen=True, kw_only=True):
    file: str
    place: str
    name: str
    failures: tuple[CaseFailure, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def line(self) -> str:
        """One line, even if the name of the case has line breaks."""
        told = "; ".join(failure.line for failure in self.failures)
        return one_line(f"{'ok' if self.passed else 'FAIL'} {self.file} {self.name}{': ' if told else ''}{told}")


def junit_xml(results: Sequence[CaseResult]) -> bytes:
    """JUnit XML for CI systems: one suite per file."""
    root = Element("testsuites", tests=str(len(results)), failures=str(count_failed(results)))
    for file in dict.fromkeys(result.file for result in results):
        own = [result for result in results if result.file == file]
        suite = SubElement(
            root, "testsuite", name=one_line(file), tests=str(len(own)), failures=str(count_failed(own)), errors="0"
        )
        for result in own:
            case = SubElement(suite, "testcase", classname=one_line(file), name=one_line(result.name))
            for failure in result.failures:
                element = SubElement(case, "failure", message=one_line(failure.expected))
                element.text = "\n".join(map(one_line, failure.sentences))
    indent(root)
    written: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def count_failed(results: Sequence[CaseResult]) -> int:
    return sum(not result.passed for result in results)


# The cases of a test file.


SUITE_FIELDS: Final = dict.fromkeys(("model", "server", "token", "cases"))
Expected = Literal["may", "may_not"]
EXPECTED: Final[tuple[Expected, ...]] = ("may", "may_not")


class HypotheticalPerson(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person who is not in the model, as conditions see them; their address counts as verified."""

    user_id: str = "9999999999"
    login: str | None = None
    tags: frozenset[str] = frozenset()
    purchases: frozenset[str] = frozenset()
    roles: tuple[Any, ...] = ()  # held at the root of the application


class CaseEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str = ""
    application: int
    user: str | dict[str, Any] | UnsetType = UNSET
    rule: str | UnsetType = UNSET
    rules: tuple[str, ...] | UnsetType = UNSET
    project: str | None = None
    resource: ResourceDraft | None = None
    at: int | str | None = None
    ip: str | None = None
    may: tuple[Any, ...] = ()
    may_not: tuple[Any, ...] = ()
    roles: tuple[str, ...] | UnsetType = UNSET


class CaseCredentials(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credentials for a running service: a user's JWT with a factor or an access key."""

    jwt: FileSecret | UnsetType = UNSET
    factor: FileSecret | UnsetType = UNSET
    access_key: FileSecret | UnsetType = UNSET


class ExpectedPermission(Struct, frozen=True, kw_only=True):
    """One expectation about one person."""

    expected: Expected
    user: str | HypotheticalPerson  # an id or a login, or facts
    rule: RuleReference


class PermissionCase(Struct, frozen=True, kw_only=True):
    place: str
    name: str
    application_id: int
    questions: tuple[ExpectedPermission, ...]
    project: str | None = None
    resource: ResourceDraft | None = None
    at: int | None = None  # Unix seconds; None: now
    address: Address | None = None
    user: str | HypotheticalPerson | None = None  # of the expected roles
    roles: tuple[str, ...] | None = None  # exactly these, in the scope of the case


class Suite(Struct, frozen=True, kw_only=True):
    cases: tuple[PermissionCase, ...]
    model: str | Document | None = None  # the name of a file, or its sections
    server: str | None = None
    token: CaseCredentials = field(default_factory=CaseCredentials)


def read_suite(document: Document) -> Suite:
    """Raises Unfit with every problem."""
    problems = Problems()
    for name in document:
        if name not in SUITE_FIELDS:
            problems.add(name, f"unknown field{suggestion(name, SUITE_FIELDS)}")
    model, server = document.get("model"), document.get("server")
    if (model is None) == (server is None):
        problems.add("the file", "needs a model or a server")
    if model is not None and not isinstance(model, str | dict):
        problems.add("model", "must be a file name, or sections as in `gatehouse apply`")
    if server is not None and not isinstance(server, str):
        problems.add("server", "must be a URL such as https://sso.studio.example")
    token = read_record(document.get("token", {}), CaseCredentials, "token", problems)
    cases = read_cases(document.get("cases"), problems)
    if problems.lines:
        raise Unfit(problems.lines)
    return Suite(
        cases=cases,
        model=model if isinstance(model, str | dict) else None,
        server=server if isinstance(server, str) else None,
        token=token or CaseCredentials(),
    )


def read_cases(given: object, problems: Problems) -> tuple[PermissionCase, ...]:
    if not isinstance(given, list) or not given:
        problems.add("cases", "must be a list of at least one case")
        return ()
    found = []
    for number, record in enumerate(given):
        place = f"cases[{number}]"
        entry = read_record(record, CaseEntry, place, problems)
        if entry is not None:
            with collect_problems(problems):
                found.append(read_case(entry, place, problems))
    return tuple(found)


def read_case(entry: CaseEntry, place: str, problems: Problems) -> PermissionCase:
    """Raises Malformed."""
    questions = read_questions(entry, place, problems)
    if not questions and entry.roles is UNSET:
        raise Malformed(f"{place}: no expectation; add may, may_not or roles")
    if entry.resource is not None and entry.project is None:
        raise Malformed(f"{place}.project: required for a resource")
    if entry.roles is not UNSET and entry.user is UNSET:
        raise Malformed(f"{place}.user: required for roles")
    return PermissionCase(
        place=place,
        name=entry.name or place,
        application_id=grammar.parse_application_id(entry.application, f"{place}.application"),
        questions=questions,
        project=None if entry.project is None else grammar.check_project_id(entry.project, f"{place}.project"),
        resource=entry.resource,
        at=None if entry.at is None else read_time(entry.at, f"{place}.at"),
        address=None if entry.ip is None else read_address(entry.ip, f"{place}.ip"),
        user=None if entry.user is UNSET else read_user(entry.user, f"{place}.user", problems),
        roles=None if entry.roles is UNSET else entry.roles,
    )


def read_questions(entry: CaseEntry, place: str, problems: Problems) -> tuple[ExpectedPermission, ...]:
    """With a user, may and may_not list rules; with rules, they list users."""
    rules = read_rules(entry, place)
    if (entry.user is UNSET) == (rules is None):
        raise Malformed(f"{place}: give either a user with a list of rules, or a rule with a list of users")
    found: list[ExpectedPermission] = []
    for expected in EXPECTED:
        for index, one in enumerate(getattr(entry, expected)):
            where = f"{place}.{expected}[{index}]"
            users = [one] if entry.user is UNSET else [entry.user]
            asked = [read_rule(one, where)] if rules is None else rules
            found += [
                ExpectedPermission(expected=expected, user=read_user(user, where, problems), rule=rule)
                for user in users
                for rule in asked
            ]
    return tuple(found)


def read_rules(entry: CaseEntry, place: str) -> Sequence[RuleReference] | None:
    if entry.rule is not UNSET and entry.rules is not UNSET:
        raise Malformed(f"{place}: give either rule or rules")
    if entry.rule is not UNSET:
        return [read_rule(entry.rule, f"{place}.rule")]
    if entry.rules is UNSET:
        return None
    return [read_rule(one, f"{place}.rules[{index}]") for index, one in enumerate(entry.rules)]


def read_user(given: object, place: str, problems: Problems) -> str | HypotheticalPerson:
    if isinstance(given, str):
        return given
    return read_record(given, HypotheticalPerson, place, problems) or HypotheticalPerson()


def read_time(given: int | str, place: str) -> int:
    if isinstance(given, int):
        return given
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise Malformed(f"{place}: must be Unix seconds, or a time such as 2026-05-01T12:00:00Z") from None
    if moment.tzinfo is None:
        raise Malformed(f"{place}: must be a time with a time zone, such as 2026-05-01T12:00:00Z")
    return int(moment.timestamp())


def read_address(given: str, place: str) -> Address:
    address = parse_address(given)
    if address is None:
        raise Malformed(f"{place}: must be an IP address")
    return address
