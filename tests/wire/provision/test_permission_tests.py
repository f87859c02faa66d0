"""`gatehouse test`: cases run against a model and a running service."""

import asyncio
import socket
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from msgspec.structs import replace

from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.model.rules import ROOT, Scope
from tests.support.command_line import CommandLine, CommandResult
from tests.support.guides import programs_for
from tests.support.studio import FACTOR, OTHER_USER, PROJECT, Studio, put_roles, role_granting, set_user_roles

MODEL: Mapping[str, Any] = yaml.safe_load("""\
users:
  - {login: anna@studio.example, nick: Anna, user_id: "1001", password: {env: NOT_SET}, totp_secret: {env: NOT_SET}}
  - {login: bob@studio.example, nick: Bob, user_id: "1002", email_verified: true}
clients:
  - {client_id: web, client_secret: {env: NOT_SET}}
settings:
  - {name: mail.password, secret: {env: NOT_SET}}
projects:
  - title: Mind Games
    owners: ["1001"]
    aliases: [mg]
    settings: {services: {"50001": {groups: [{group_id: Testers, roles: [moderator]}]}}}
applications:
  - application_id: 50001
    name: Shop
    project_id: mg
    schema: {private_data: {user: {kick: {value: false}}}, public_data: {seen: {value: true}}}
    roles:
      moderator: {meta: {private_data: {user: {kick: {value: true}}}}}
      staff: {meta: {private_data: {desk: {value: true}}}, condition: {domain: studio.example}}
      office: {meta: {private_data: {door: {value: true}}}, condition: {ip: 10.0.0.0/8}}
      safe: {meta: {private_data: {vault: {value: true}}}, condition: {tag: 2step_totp}}
    access_keys: [{comment: ci, hash: {env: NOT_SET}}]
    users: {"1002": {roles: [{name: moderator, expired: 1800000000}]}}
groups:
  - {project_id: mg, title: Testers, users: ["1001"]}
service_accounts:
  - {project_id: mg, name: ci, user_id: "77", roles: [project_administrator]}
""")
SHOP = {"application": 50001}
BEFORE, LATER = 1_799_999_999, "2027-01-15T08:00:00Z"
TRUE = [
    {**SHOP, "user": "1001", "project": "mg", "may": ["user.kick", "private_data.user.kick"]},
    {**SHOP, "user": "1001", "may": ["seen"], "may_not": ["user.kick", "private_data.user.kick"]},
    {**SHOP, "user": "BOB@studio.example", "at": BEFORE, "may": ["user.kick"], "roles": ["Moderator"]},
    {**SHOP, "user": "1002", "at": LATER, "may_not": ["user.kick"], "roles": []},
    {
        **SHOP,
        "rule": "desk",
        "may": ["1002", {"login": "x@studio.example"}],
        "may_not": ["1001", {"login": "x@y.zz"}],
    },
    {**SHOP, "rules": ["door"], "ip": "10.1.2.3", "may": [{}]},
    {**SHOP, "rules": ["door"], "ip": "11.1.2.3", "may_not": [{}]},
    {**SHOP, "rule": "vault", "may": ["1001", {"tags": ["2step_totp"]}], "may_not": ["1002"]},
    {**SHOP, "user": {"roles": ["moderator"]}, "may": ["user.kick"]},
    {
        "application": 1,
        "user": "1001",
        "project": "mind_games",
        "resource": {"kind": "groups", "id": "Testers"},
        "may": ["group.can_manage_group"],
        "may_not": ["can_administer"],
    },
    {"application": 1, "user": "77", "project": "mg", "may": ["project.can_manage_project"]},
]


@pytest.fixture
def gatehouse(tmp_path: Path) -> CommandLine:
    """The command line without an installation, because none is needed."""
    return CommandLine(("--data", tmp_path / "none"))


def a_file(tmp_path: Path, *cases: Mapping[str, object], **rest: object) -> Path:
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump({"model": dict(MODEL), **rest, "cases": list(cases)}))
    return file


@pytest.mark.parametrize("case", TRUE, ids=str)
def test_true_case_passes_and_its_opposite_fails(
    gatehouse: CommandLine, tmp_path: Path, case: Mapping[str, Any]
) -> None:
    assert gatehouse("test", a_file(tmp_path, case)) == "1 cases, 0 failed.\n"
    rotated = {**case, "may": case.get("may_not", []), "may_not": case.get("may", [])}
    rotated.pop("roles", None)
    count = len(rotated["may"]) + len(rotated["may_not"])
    failed = gatehouse.run("test", a_file(tmp_path, rotated), "--json")
    assert failed.code == 1
    assert len(failed.json()["results"][0]["failures"]) == count


def test_a_failing_case_is_one_line_that_says_why(gatehouse: CommandLine, tmp_path: Path) -> None:
    file = a_file(
        tmp_path,
        {**SHOP, "name": "Bob\nkicks", "user": "1002", "at": LATER, "may": ["user.kick"], "roles": ["moderator"]},
        {**SHOP, "user": "1001", "may": ["seen"]},
    )
    result = gatehouse.run("test", file)
    assert result.code == 1
    line, summary = result.out.splitlines()
    assert line == (
        f"FAIL {file} Bob\\nkicks: user 1002 may user.kick: Denied: private_data.user.kick at the root. "
        "The default in the schema says no, which decides. The role moderator would grant it, but its assignment "
        "at the root expired at 2027-01-15 08:00:00 UTC.; user 1002 has the roles moderator: There are no roles "
        "there."
    )
    assert summary == "2 cases, 1 failed."


def test_may_not_with_an_unknown_rule_fails(gatehouse: CommandLine, tmp_path: Path) -> None:
    file = a_file(
        tmp_path,
        {**SHOP, "user": "1001", "may_not": ["user.kcik", "public_data.user.kick", "desk"]},
    )
    result = gatehouse.run("test", file)
    assert result.code == 1
    unheard_of = "The rule is not in the schema of the application, and no role or entry contains it."
    line, _ = result.out.splitlines()
    assert line == (
        f"FAIL {file} cases[0]: user 1001 may not user.kcik: {unheard_of}; "
        f"user 1001 may not public_data.user.kick: {unheard_of}"
    )


def test_may_not_accepts_a_rule_named_only_in_an_entry(gatehouse: CommandLine, tmp_path: Path) -> None:
    users = {"1002": {"private_data": {"gate": {"value": True}}}}
    [shop] = MODEL["applications"]
    model = {**MODEL, "applications": [{**shop, "users": users}]}
    case = {**SHOP, "rule": "gate", "may": ["1002"], "may_not": ["1001"]}
    assert gatehouse("test", a_file(tmp_path, case, model=model)) == "1 cases, 0 failed.\n"


def test_ci_systems_get_junit(gatehouse: CommandLine, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    file = a_file(tmp_path, {**SHOP, "name": "<kick>", "user": "1001", "may": ["user.kick"]}, TRUE[0])
    assert gatehouse.run("test", file, "--junit", report).code == 1
    root = ET.fromstring(report.read_bytes())  # noqa: S314 - our own
    assert (root.attrib, len(root)) == ({"tests": "2", "failures": "1"}, 1)
    first, second = root[0]
    assert (first.get("name"), second.get("name"), len(second)) == ("<kick>", "cases[1]", 0)
    assert first[0].get("message") == "user 1001 may user.kick"
    assert (first[0].text or "").startswith("Denied: private_data.user.kick at the root.\n")


def test_several_files_and_a_model_beside_them(gatehouse: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "studio.yaml").write_text(yaml.safe_dump(dict(MODEL)))
    first = a_file(tmp_path, TRUE[0], model="studio.yaml")
    second = first.with_name("second.json")
    second.write_text('{"model": "studio.yaml", "cases": [{"application": 50001, "user": "1001", "may": ["seen"]}]}')
    assert gatehouse("test", first, second) == "2 cases, 0 failed.\n"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"cases": []}, "cases: must be a list of at least one case"),
        ({"server": "https://x.example"}, "the file: needs a model or a server"),
        ({"modell": 1}, "modell: unknown field, did you mean model?"),
        ({"model": "nowhere.yaml"}, "cannot be read: No such file or directory"),
        ({"model": {"groups": [{"project_id": "no", "title": "X"}]}}, "groups[0].project_id: no project no"),
        ({"cases": [SHOP]}, "cases[0]: give either a user with a list of rules, or a rule with a list of users"),
        ({"cases": [{**SHOP, "user": "1001"}]}, "cases[0]: no expectation; add may, may_not or roles"),
        ({"cases": [{**SHOP, "user": "9", "may": ["a"]}]}, "cases[0]: the model has no user 9"),
        ({"cases": [{**SHOP, "user": "1001", "may": ["a b"]}]}, "cases[0].may[0]: a b is not a valid rule name"),
        ({"cases": [{**SHOP, "user": "1001", "mai": []}]}, "cases[0].mai: unknown field, did you mean may?"),
        (
            {"cases": [{"application": 7, "user": "1001", "may": ["a"]}]},
            "cases[0].application: the model has no application 7",
        ),
        (
            {"cases": [{**SHOP, "user": "1001", "project": "no", "may": ["a"]}]},
            "cases[0].project: no project no",
        ),
        (
            {"cases": [{**SHOP, "user": "1001", "at": "noon", "may": ["a"]}]},
            "cases[0].at: must be Unix seconds, or a time such as 2026-05-01T12:00:00Z",
        ),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused_with_its_place(
    gatehouse: CommandLine, tmp_path: Path, given: dict[str, Any], problem: str
) -> None:
    file = a_file(tmp_path, *given.pop("cases", [TRUE[0]]), **given)
    assert gatehouse.expect_failure("test", file, code=2) == f"{file}: {problem}\n"


# -- against a running service ------------------------------------------------------------------------


async def run_tests(
    studio: Studio, tmp_path: Path, *cases: Mapping[str, object], **environment: str
) -> CommandResult:
    file = tmp_path / "cases.yaml"
    shop = studio.shop.application_id
    server = {"server": studio.service.base_url, "cases": [{"application": shop, **case} for case in cases]}
    file.write_text(yaml.safe_dump(server))
    commands = CommandLine(("--data", tmp_path / "none"), environment)
    return await asyncio.to_thread(commands.run, "test", file)


async def test_file_of_the_guide_asks_a_running_service(studio: Studio, tmp_path: Path) -> None:
    (shown,) = programs_for(__file__, "test-permissions", "yaml")
    file = tmp_path / "cases.yaml"
    changes = {"https://sso.studio.example": studio.service.base_url, "50020": str(studio.shop.application_id)}
    for word, ours in {**changes, '"1001"': f'"{OTHER_USER}"'}.items():
        shown = shown.replace(word, ours)
    file.write_text(shown)
    jwt = {"GATEHOUSE_TEST_JWT": studio.owner.jwt, "GATEHOUSE_TEST_FACTOR": FACTOR}
    commands = CommandLine(("--data", tmp_path / "none"), jwt)
    denied = await asyncio.to_thread(commands.run, "test", file)
    assert (denied.code, denied.out.splitlines()[-1]) == (1, "1 cases, 1 failed.")
    await put_roles(studio, role_granting("moderator"))
    await set_user_roles(studio, OTHER_USER, {Scope(PROJECT): ["moderator"]})
    allowed = await asyncio.to_thread(commands.run, "test", file)
    assert (allowed.code, allowed.out) == (0, "1 cases, 0 failed.\n"), allowed.err


async def test_a_running_service_is_asked_with_a_jwt_and_a_factor_or_an_access_key(
    studio: Studio, tmp_path: Path
) -> None:
    await put_roles(studio, role_granting("moderator"))
    await set_user_roles(studio, OTHER_USER, {ROOT: ["moderator"]})
    case = {"user": OTHER_USER, "may": ["user.kick"], "may_not": ["user.ban"]}
    jwt = {"GATEHOUSE_TEST_JWT": studio.owner.jwt}
    for more in ({"GATEHOUSE_TEST_FACTOR": FACTOR}, {"GATEHOUSE_TEST_ACCESS_KEY": await studio.access_key()}):
        result = await run_tests(studio, tmp_path, case, **jwt, **more)
        assert (result.code, result.out) == (0, "1 cases, 0 failed.\n"), result.err


async def test_why_a_running_service_says_otherwise_is_told(studio: Studio, tmp_path: Path) -> None:
    await put_roles(studio, role_granting("moderator"))
    by = {"GATEHOUSE_TEST_JWT": studio.owner.jwt, "GATEHOUSE_TEST_FACTOR": FACTOR}
    cases = [
        {"user": OTHER_USER, "may": ["user.kick"], "project": PROJECT},
        {"user": OTHER_USER, "may": ["user.kick"], "ip": "10.0.0.1"},
    ]
    result = await run_tests(studio, tmp_path, *cases, **by)
    assert result.code == 1
    assert "Denied: private_data.user.kick in project mind_games." in result.out.splitlines()[0]
    assert "The role moderator would grant it, but it is not assigned at the root." in result.out.splitlines()[1]


async def test_a_running_service_is_asked_about_an_address(studio: Studio, tmp_path: Path) -> None:
    callers = replace(role_granting("office"), condition=parse_condition({"ip": "10.0.0.0/8"}))
    await put_roles(studio, callers)
    by = {"GATEHOUSE_TEST_JWT": studio.owner.jwt, "GATEHOUSE_TEST_FACTOR": FACTOR}
    cases = [
        {"user": OTHER_USER, "may": ["user.kick"], "ip": "10.0.0.1"},
        {"user": OTHER_USER, "may_not": ["user.kick"], "ip": "11.0.0.1"},
        {"user": OTHER_USER, "may_not": ["user.kick"]},
    ]
    result = await run_tests(studio, tmp_path, *cases, **by)
    assert (result.code, result.out) == (0, "3 cases, 0 failed.\n"), result.err


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        ({"user": OTHER_USER, "may": ["a"], "at": 5}, "cases[0].at: only models can be evaluated at another time"),
        ({"user": {"tags": ["x"]}, "may": ["a"]}, "cases[0]: a server needs user IDs"),
        ({"user": OTHER_USER, "roles": []}, "cases[0].roles: only models can be asked for roles"),
    ],
)
async def test_a_service_is_not_asked_what_only_a_model_knows(
    studio: Studio, tmp_path: Path, case: Mapping[str, object], problem: str
) -> None:
    result = await run_tests(studio, tmp_path, case, GATEHOUSE_TEST_JWT=studio.owner.jwt)
    assert result.code == 2
    assert result.err.endswith(f"{problem}\n")


async def test_a_refusal_of_the_service_is_no_test_result(studio: Studio, tmp_path: Path) -> None:
    case = {"user": OTHER_USER, "may_not": ["user.kick"]}
    refusal = await run_tests(studio, tmp_path, case)
    assert (refusal.code, "set GATEHOUSE_TEST_JWT" in refusal.err) == (2, True)
    wrong = await run_tests(studio, tmp_path, case, GATEHOUSE_TEST_JWT=studio.owner.jwt, GATEHOUSE_TEST_FACTOR="no")
    assert wrong.code == 2
    assert "answered check with 401: invalid token" in wrong.err


def test_non_json_response_is_an_error_and_no_test_result(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        answering = threading.Thread(target=answer_once, args=(listener,))
        answering.start()
        file = tmp_path / "cases.yaml"
        server = f"http://127.0.0.1:{listener.getsockname()[1]}"
        file.write_text(yaml.safe_dump({"server": server, "cases": [{**SHOP, "user": "1", "may": ["a"]}]}))
        commands = CommandLine(("--data", tmp_path), {"GATEHOUSE_TEST_JWT": "a.b.c"})
        assert commands.expect_failure("test", file, code=2).endswith("answered check with 502, not in JSON\n")
        answering.join()


def answer_once(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\nConnection: close\r\n\r\noops")
