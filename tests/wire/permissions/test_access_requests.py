"""AuthZEN: an application asks about itself with its own credential (R11)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gatehouse.accounts.bans.model import INSTALLATION
from gatehouse.audit.events import AuditEvent
from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.model.rules import ROOT
from tests.support.builders import NOW, ORIGIN, a_record
from tests.support.guest_racers import a_ban
from tests.support.permission_builders import a_person, a_project, a_service_account, publish, set_project_fields
from tests.support.service import running_service
from tests.support.studio import (
    OTHER_USER,
    OWNER,
    PROJECT,
    P,
    Studio,
    a_studio,
    bearer_headers,
    create_administrator,
    grant_roles_to_group,
    put_group,
    put_roles,
    role_granting,
    set_user_roles,
)

pytestmark = pytest.mark.both_databases

ROBOT = "5000000001"
KICK = {"name": "user.kick"}
HERE = {"type": "project", "id": PROJECT}


def a_subject(user_id: str = OTHER_USER, kind: str = "user") -> dict[str, str]:
    return {"type": kind, "id": user_id}


def the_shop(studio: Studio) -> dict[str, str]:
    return {"type": "application", "id": str(studio.shop.application_id)}


async def ask(studio: Studio, path: str, body: Mapping[str, object], token: str = "") -> Any:
    headers = bearer_headers(token or await studio.service_jwt())
    response = await studio.service.client.post(f"/access/v1/{path}", json=body, headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


async def decide(studio: Studio, resource: object, subject: object = None, token: str = "", **more: object) -> bool:
    body = {"subject": subject or a_subject(), "action": KICK, "resource": resource, **more}
    answer = await ask(studio, "evaluation", body, token)
    assert answer.keys() == {"decision"}
    return bool(answer["decision"])


async def search_all(
    studio: Studio, what: str, body: Mapping[str, object], limit: int, credential: str = ""
) -> list[Any]:
    found: list[Any] = []
    token = ""
    while True:
        page = await ask(studio, f"search/{what}", {**body, "page": {"token": token, "limit": limit}}, credential)
        assert len(page["results"]) <= limit
        found += page["results"]
        token = page["page"]["next_token"]
        if not token:
            return found


async def test_a_role_is_allowed_where_it_is_held(studio: Studio) -> None:
    await put_roles(studio, role_granting("referee"))
    assert not await decide(studio, the_shop(studio))
    await set_user_roles(studio, OTHER_USER, {ROOT: ["referee"]})
    assert await decide(studio, the_shop(studio))
    assert not await decide(studio, HERE)  # what is held in the whole application counts in no project
    await set_user_roles(studio, OTHER_USER, {P: ["referee"]})
    assert await decide(studio, HERE)
    assert not await decide(studio, the_shop(studio))


async def test_pa_19_what_does_not_exist_or_is_foreign_is_denied(studio: Studio) -> None:
    await put_roles(studio, role_granting("referee"))
    await set_user_roles(studio, OTHER_USER, {ROOT: ["referee"], P: ["referee"]})
    shop = the_shop(studio)
    for subject in (
        a_subject("4000000009"),
        a_subject("no one"),
        a_subject(kind="service_account"),
        a_subject(kind="team"),
    ):
        assert not await decide(studio, shop, subject)
    theirs, named = await studio.service_jwt(studio.other), {"application_id": studio.shop.application_id}
    assert (await decide(studio, shop), await decide(studio, HERE)) == (True, True)
    assert not await decide(studio, shop, token=theirs)
    assert not await decide(studio, {**HERE, "properties": named}, token=theirs)
    for resource in (
        {"type": "application", "id": "9223372036854775808"},
        {"type": "application", "id": str(studio.other.application_id)},
        {"type": "application", "id": "shop"},
        {"type": "project", "id": "no_such"},
        {"type": "project", "id": "not a name"},
        {"type": "map", "id": "7"},
        {**HERE, "properties": {"application_id": studio.other.application_id}},
    ):
        assert not await decide(studio, resource)
    for action in ("user.unknown", "not a rule", "a..b"):
        body = {"subject": a_subject(), "action": {"name": action}, "resource": shop}
        assert await ask(studio, "evaluation", body) == {"decision": False}


async def test_pa_20_properties_and_context_never_decide(studio: Studio) -> None:
    await put_roles(studio, role_granting("here", condition=parse_condition({"ip": "192.0.2.0/24"})))
    shop, inside = the_shop(studio), {"ip": "192.0.2.9", "time": "2026-01-01T00:00:00Z"}
    subject = {**a_subject(), "properties": {"roles": ["administrator"]}}
    assert not await decide(studio, shop, subject, context={"admin": True})
    assert not await decide(studio, shop, context=inside)  # a service JWT signs no addresses
    key = await studio.access_key()
    assert await decide(studio, shop, token=key, context=inside)
    assert not await decide(studio, shop, token=key, context={"ip": "198.51.100.1"})
    for no_address in ("nowhere", "", None, ["192.0.2.9"], {"v": 4}, 7):
        for token in (key, ""):
            assert not await decide(studio, shop, token=token, context={"ip": no_address})


async def test_banned_and_blocked_subjects_are_denied(studio: Studio) -> None:
    await put_roles(studio, role_granting("referee"))
    await set_user_roles(studio, OTHER_USER, {ROOT: ["referee"]})
    assert await decide(studio, the_shop(studio))
    storage = studio.service.services.storage
    record = a_record(AuditEvent.USER_BANNED)
    await storage.bans.save_ban(OTHER_USER, INSTALLATION, lambda _: (a_ban(OTHER_USER), record), by="1", now=NOW)
    assert not await decide(studio, the_shop(studio))
    body = {"subject": {"type": "user"}, "action": KICK, "resource": the_shop(studio)}
    assert (await ask(studio, "search/subject", body))["results"] == []


async def test_only_the_credential_of_an_application_is_accepted(studio: Studio) -> None:
    body = {"subject": a_subject(), "action": KICK, "resource": the_shop(studio)}
    for headers in (
        {},
        studio.owner.headers,
        bearer_headers("garbage"),
        bearer_headers("a.b.c"),
        bearer_headers(studio.owner.jwt, Service_Jwt=await studio.service_jwt()),
    ):
        response = await studio.service.client.post("/access/v1/evaluation", json=body, headers=headers)
        assert (response.status_code, "decision" in response.text) == (401, False), headers


async def test_application_1_names_the_application(studio: Studio) -> None:
    await put_roles(studio, role_granting("referee"))
    await set_user_roles(studio, OTHER_USER, {ROOT: ["referee"], P: ["referee"]})
    services = studio.service.services
    central = (await services.permissions.service_tokens.issue(1, origin=ORIGIN)).jwt
    named = {"application_id": studio.shop.application_id}
    assert await decide(studio, the_shop(studio), token=central)
    assert not await decide(studio, HERE, token=central)  # asks about application 1
    assert await decide(studio, {**HERE, "properties": named}, token=central)
    unknown = {"subject": {"type": "user"}, "action": KICK, "resource": {"type": "application", "id": "60999"}}
    assert (await ask(studio, "search/subject", unknown, central))["results"] == []


async def test_pa_19_administrators_are_allowed_in_projects_that_exist(studio: Studio) -> None:
    central = (await studio.service.services.permissions.service_tokens.issue(1, origin=ORIGIN)).jwt
    administrator = await create_administrator(studio)
    administer = {"action": {"name": "can_administer"}, "subject": a_subject(administrator.user_id)}
    storage, others = studio.service.services.storage, ["first_project", "second_project"]
    for project_id in others:
        await publish(storage, a_project(project_id=project_id, title=project_id), owners=[OWNER])
    await storage.projects.edit_project(PROJECT, set_project_fields(aliases=("arena",)))

    async def answers(*names: str) -> list[bool]:
        asked = [{"resource": {"type": "project", "id": name}} for name in names]
        made = await ask(studio, "evaluations", {**administer, "evaluations": asked}, central)
        return [one["decision"] for one in made["evaluations"]]

    async def actions(name: str) -> list[Any]:
        question = {"subject": administer["subject"], "resource": {"type": "project", "id": name}}
        return list((await ask(studio, "search/action", question, central))["results"])

    found = await search_all(studio, "resource", {**administer, "resource": {"type": "project"}}, 1, central)
    assert [one["id"] for one in found] == sorted([PROJECT, *others])
    assert await answers(PROJECT, "arena", *others, "no_such", "not a name") == [True] * 4 + [False] * 2
    assert (administer["action"] in await actions("arena"), await actions("no_such")) == (True, [])
    await storage.projects.edit_project(others[0], set_project_fields(removed=True))
    assert await answers(PROJECT, others[0]) == [True, False]
    found = await search_all(studio, "resource", {**administer, "resource": {"type": "project"}}, 1, central)
    assert [one["id"] for one in found] == sorted([PROJECT, others[1]])
    assert await search_all(studio, "resource", {**administer, "resource": {"type": "project"}}, 1) == []


async def test_several_questions_share_what_they_leave_out(studio: Studio) -> None:
    await put_roles(studio, role_granting("referee"))
    await set_user_roles(studio, OTHER_USER, {ROOT: ["referee"]})
    common = {"subject": a_subject(), "action": KICK, "resource": the_shop(studio)}
    questions = [{}, {"subject": a_subject(OWNER)}, {"action": {"name": "user.unknown"}}, {}]

    async def decisions(**options: object) -> list[bool]:
        answer = await ask(studio, "evaluations", {**common, "evaluations": questions, **options})
        return [one["decision"] for one in answer["evaluations"]]

    assert await decisions() == [True, False, False, True]
    assert await decisions(options={"evaluations_semantic": "deny_on_first_deny"}) == [True, False]
    assert await decisions(options={"evaluations_semantic": "permit_on_first_permit"}) == [True]
    assert await ask(studio, "evaluations", common) == {"decision": True}
    context = {"ip": "192.0.2.1", "time": "2026-01-01T00:00:00Z"}
    resource = {**common["resource"], "properties": {"application_id": studio.shop.application_id, "kind": "shop"}}
    whole = {**common, "resource": resource, "context": context}
    answer = await ask(studio, "evaluations", {"evaluations": [whole] * 1_000})
    assert answer["evaluations"] == [{"decision": True}] * 1_000
    unused = {**common, "resource": {}, "evaluations": [{"subject": {}, "resource": the_shop(studio)}]}
    assert (await ask(studio, "evaluations", unused))["evaluations"] == [{"decision": True}]
    people = [{"subject": a_subject(str(3_000_000_000 + number))} for number in range(150)]
    answer = await ask(studio, "evaluations", {**common, "evaluations": [*people, {}, people[0], {}]})
    assert answer["evaluations"] == [{"decision": False}] * 150 + [
        {"decision": decided} for decided in (True, False, True)
    ]
    applications = [{"resource": {"type": "application", "id": str(60_001 + number)}} for number in range(11)]
    theirs = (await ask(studio, "evaluations", {**common, "evaluations": applications}))["evaluations"]
    assert theirs == [{"decision": False}] * len(applications)


async def test_questions_that_are_too_many_or_incomplete_are_refused(studio: Studio) -> None:
    common = {"subject": a_subject(), "action": KICK, "resource": the_shop(studio)}
    headers = bearer_headers(await studio.service_jwt())

    async def refusal(path: str, body: object) -> str:
        response = await studio.service.client.post(f"/access/v1/{path}", json=body, headers=headers)
        assert response.status_code == 400, response.text
        return str(response.json()["error"])

    assert "evaluations" in await refusal("evaluations", {**common, "evaluations": [{}] * 1_001})
    assert "evaluations[0].action: required" in await refusal(
        "evaluations", {"subject": a_subject(), "evaluations": [{"resource": HERE}]}
    )
    assert "subject" in await refusal("evaluation", {"action": KICK, "resource": HERE})
    for broken in ({"subject": {"type": "user"}}, {"action": {}}, {"resource": {"id": "7"}}):
        assert f"{next(iter(broken))}" in await refusal("evaluation", {**common, **broken})
    assert "page.token" in await refusal("search/subject", {**common, "page": {"token": "guessed"}})


async def test_pa_15_many_questions_in_one_call_count_as_many_requests(installed_url: str, tmp_path: Path) -> None:
    async with running_service(installed_url, tmp_path, environment={"GATEHOUSE__RATES__ADMIN": "40"}) as service:
        studio = await a_studio(service)
        common = {"action": KICK, "resource": the_shop(studio)}
        people = [{"subject": a_subject(str(3_000_000_000 + number))} for number in range(15)]

        async def status(evaluations: list[Any], token: str) -> int:
            body = {**common, "subject": a_subject(), "evaluations": evaluations}
            sent = await service.client.post("/access/v1/evaluations", json=body, headers=bearer_headers(token))
            return sent.status_code

        shop, other = await studio.service_jwt(), await studio.service_jwt(studio.other)
        assert [await status([{}] * 1_000, shop) for _ in range(5)] == [200] * 4 + [429]
        assert [await status(people, other) for _ in range(3)] == [200, 200, 429]
        assert await status([{}] * 10, other) == 200
        central = (await service.services.permissions.service_tokens.issue(1, origin=ORIGIN)).jwt
        eleven = [{"resource": {"type": "application", "id": str(60_001 + number)}} for number in range(11)]
        assert [await status(eleven, central) for _ in range(5)] == [200] * 4 + [429]
        checks = {"data": {"checks": [{"rule": "user.kick"}] * 1_000}, "application_id": studio.shop.application_id}
        answers = [await studio.post("check", checks, studio.owner.headers) for _ in range(5)]
        assert [one.status_code for one in answers] == [200] * 4 + [429]


async def test_searches_are_complete_whatever_the_size_of_a_page(studio: Studio) -> None:
    storage = studio.service.services.storage
    people = [str(3_000_000_001 + number) for number in range(5)]
    for user_id in people:
        await a_person(storage, user_id)
    await storage.service_accounts.create_service_account(a_service_account(ROBOT), (), [a_record()])
    await put_roles(studio, role_granting("referee"))
    for user_id in (*people, ROBOT):
        await set_user_roles(studio, user_id, {ROOT: ["referee"], P: ["referee"]})
    for limit in (1, 2, 1_000):
        question = {"subject": {"type": "user"}, "action": KICK, "resource": the_shop(studio)}
        assert [one["id"] for one in await search_all(studio, "subject", question, limit)] == people
        question = {"subject": {"type": "service_account"}, "action": KICK, "resource": HERE}
        assert await search_all(studio, "subject", question, limit) == [a_subject(ROBOT, "service_account")]
        question = {"subject": a_subject(people[0]), "action": KICK, "resource": {"type": "project"}}
        assert await search_all(studio, "resource", question, limit) == [HERE]
        question = {"subject": a_subject(people[0]), "action": KICK, "resource": {"type": "application"}}
        assert await search_all(studio, "resource", question, limit) == [the_shop(studio)]
        question = {"subject": a_subject(people[0]), "resource": the_shop(studio)}
        actions = await search_all(studio, "action", question, limit)
        assert KICK in actions
        for action in actions:
            body = {"subject": a_subject(people[0]), "action": action, "resource": the_shop(studio)}
            assert await ask(studio, "evaluation", body) == {"decision": True}


async def test_a_page_belongs_to_its_question_and_caller(studio: Studio) -> None:
    await put_roles(studio, role_granting("referee"))
    for user_id in (OWNER, OTHER_USER):
        await set_user_roles(studio, user_id, {ROOT: ["referee"]})
    question = {"subject": {"type": "user"}, "action": KICK, "resource": the_shop(studio)}
    first = await ask(studio, "search/subject", {**question, "page": {"limit": 1}})
    page = {"token": first["page"]["next_token"], "limit": 1}
    assert page["token"]
    headers = bearer_headers(await studio.service_jwt(studio.other))
    for body, sent in (
        ({**question, "page": page}, headers),
        ({**question, "action": {"name": "user.ban"}, "page": page}, bearer_headers(await studio.service_jwt())),
    ):
        response = await studio.service.client.post("/access/v1/search/subject", json=body, headers=sent)
        assert response.status_code == 400


async def test_a_project_is_found_by_what_a_group_grants(studio: Studio) -> None:
    await put_roles(studio, role_granting("granted"))
    await put_group(studio, OTHER_USER)
    await grant_roles_to_group(studio, "granted")
    question = {"subject": a_subject(), "action": KICK, "resource": {"type": "project"}}
    assert (await ask(studio, "search/resource", question))["results"] == [HERE]


async def test_the_configuration_names_every_endpoint(studio: Studio) -> None:
    base_url = studio.service.base_url
    response = await studio.service.client.get("/.well-known/authzen-configuration")
    document = response.json()
    assert document.pop("policy_decision_point") == base_url
    headers = bearer_headers(await studio.service_jwt())
    for url in document.values():
        assert url.startswith(f"{base_url}/access/v1/")
        answer = await studio.service.client.post(url.removeprefix(base_url), json={}, headers=headers)
        assert answer.status_code == 400  # it exists, and wants a question


async def test_an_answer_has_the_request_id_of_its_request(studio: Studio) -> None:
    headers = bearer_headers(await studio.service_jwt())
    body = {"subject": a_subject(), "action": KICK, "resource": the_shop(studio)}

    async def answered(path: str, request_id: str, sent: object = body) -> str:
        more = {**headers, "X-Request-ID": request_id}
        response = await studio.service.client.post(path, json=sent, headers=more)
        return str(response.headers["x-request-id"])

    mine = "bfe9eb29-ab87-4ca3-be83-a1d5d8305716"
    for sent in (body, {}):
        assert await answered("/access/v1/evaluation", mine, sent) == mine
    for path, request_id in (("/access/v1/evaluation", "x" * 257), ("/api/permissions/check", mine)):
        assert await answered(path, request_id) != request_id
