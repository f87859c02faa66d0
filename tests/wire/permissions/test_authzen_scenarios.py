"""The scenarios that the AuthZEN working group publishes, with people by their user IDs (R11).

Todos and records are projects, in which people have roles: properties of a request never decide. The guide `authzen`
lists what cannot be asked as the scenarios word it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.support.builders import ORIGIN
from tests.support.console import apply_document
from tests.support.oauth import success_body
from tests.support.service import RunningService
from tests.support.studio import bearer_headers

APPLICATION: Final = 50060
HERE: Final = {"type": "application", "id": str(APPLICATION)}

READ: Final = ("can_read_user", "can_read_todos")
TODO_ROLES: Final = {
    "viewer": READ,
    "editor": (*READ, "can_create_todo", "put_todo", "delete_todo"),
    "admin": (*READ, "can_create_todo", "delete_todo"),
    "evil_genius": (*READ, "can_create_todo", "put_todo"),
    "todo_owner": ("can_update_todo", "can_delete_todo"),  # these three on todos
    "todo_admin": ("can_delete_todo",),
    "todo_evil_genius": ("can_update_todo",),
}
ROUTES: Final = {  # of the gateway: what each asks for, and whether viewers may, too
    ("GET", "/users/{userId}"): ("can_read_user", True),
    ("GET", "/todos"): ("can_read_todos", True),
    ("POST", "/todos"): ("can_create_todo", False),
    ("PUT", "/todos/{todoId}"): ("put_todo", False),
    ("DELETE", "/todos/{todoId}"): ("delete_todo", False),
}
TODO_PEOPLE: Final = {
    "rick": ("admin", "evil_genius"),
    "morty": ("editor",),
    "summer": ("editor",),
    "beth": ("viewer",),
    "jerry": ("viewer",),
}

STAFF: Final = {
    "alice": ("manager", "Sales"),
    "bob": ("employee", "Legal"),
    "carol": ("contractor", "Legal"),
    "dan": ("manager", "Finance"),
    "erin": ("employee", "Finance"),
    "felix": ("contractor", "Accounting"),
}
DEPARTMENTS: Final = (  # of the records 101 to 120, which the people own in turn
    *("Legal", "Legal", "Legal", "Accounting", "Legal", "Accounting", "Sales", "Legal", "Accounting", "Sales"),
    *("Accounting", "Legal", "Sales", "Accounting", "Finance", "Legal", "Legal", "Accounting", "Legal", "Accounting"),
)
RECORDS: Final = {f"record_{101 + place}": place for place in range(len(DEPARTMENTS))}
RECORD_ROLES: Final = {"viewer": ("view",), "editor": ("view", "edit"), "owner": ("view", "edit", "delete")}


def record_role(name: str, place: int) -> str:
    """Return the role that a person gets on a record, by the policies of the scenario; "" for none."""
    kind, department = STAFF[name]
    if place % len(STAFF) == list(STAFF).index(name):
        return "owner"
    is_near, manages = DEPARTMENTS[place] == department, kind == "manager"
    return "editor" if is_near and manages else "viewer" if is_near or manages else ""


def todo_roles(name: str, owner: str) -> list[str]:
    """Return the roles that a person gets on the todo of an owner."""
    own = ["todo_owner"] if name == owner and "viewer" not in TODO_PEOPLE[name] else []
    return own + [f"todo_{role}" for role in TODO_PEOPLE[name] if f"todo_{role}" in TODO_ROLES]


def user_ids(people: Mapping[str, object]) -> dict[str, str]:
    return {name: str(2_000_000_001 + place) for place, name in enumerate(people)}


async def set_up(
    service: RunningService,
    people: Mapping[str, str],
    roles: Mapping[str, Sequence[str]],
    *,
    held: Mapping[str, Sequence[str]],
    held_in: Mapping[str, Mapping[str, Sequence[str]]],
) -> None:
    """Apply a file with these people and roles, and a project for each todo or record.

    `held`: roles in the application by person. `held_in`: those in each project.
    """
    rules = sorted({rule for listed in roles.values() for rule in listed})
    owner, *_ = people.values()
    connected = f'settings: {{services: {{"{APPLICATION}": {{groups: []}}}}}}'
    lines = ["users:"]
    lines += [
        f'  - {{login: {n}@a.example, nick: {n}, user_id: "{one}", email_verified: true}}'
        for n, one in people.items()
    ]
    lines += ["projects:", *(f'  - {{title: {project}, owners: ["{owner}"], {connected}}}' for project in held_in)]
    lines += ["applications:", f"  - application_id: {APPLICATION}", "    name: Scenario"]
    lines += ["    service_meta: {name: Scenario}", "    schema:", "      private_data:"]
    lines += [f"        {rule}: {{value: false, description: {rule}}}" for rule in rules]
    lines += ["    roles:"]
    for role, listed in roles.items():
        given = ", ".join(f"{rule}: {{value: true}}" for rule in listed)
        lines.append(f"      {role}: {{meta: {{private_data: {{{given}}}}}}}")
    lines.append("    users:")
    for name, user_id in people.items():
        access = ", ".join(
            f"{project}: {{roles: [{', '.join(by_name[name])}]}}"
            for project, by_name in held_in.items()
            if by_name[name]
        )
        own = ", ".join(held.get(name, ()))
        lines.append(f'      "{user_id}": {{roles: [{own}], private_data: {{projectAccess: {{{access}}}}}}}')
    await apply_document(service, "\n".join(lines))


async def ask(service: RunningService, path: str, body: Mapping[str, object]) -> Any:
    issued = await service.services.permissions.service_tokens.issue(APPLICATION, origin=ORIGIN)
    answer = await service.client.post(f"/access/v1/{path}", json=body, headers=bearer_headers(issued.jwt))
    return success_body(answer)


async def decisions(service: RunningService, questions: Sequence[Mapping[str, object]]) -> list[bool]:
    """Return the answers, asked one by one and together."""
    alone = [(await ask(service, "evaluation", question))["decision"] for question in questions]
    together = (await ask(service, "evaluations", {"evaluations": questions}))["evaluations"]
    assert [one["decision"] for one in together] == alone
    return alone


def user(user_id: str) -> dict[str, str]:
    return {"type": "user", "id": user_id}


def question(user_id: str, action: str, resource: Mapping[str, str] = HERE) -> dict[str, object]:
    return {"subject": user(user_id), "action": {"name": action}, "resource": resource}


async def set_up_todo(service: RunningService) -> Mapping[str, str]:
    people = user_ids(TODO_PEOPLE)
    todos = {f"todo_{owner}": {name: todo_roles(name, owner) for name in people} for owner in people}
    await set_up(service, people, TODO_ROLES, held=TODO_PEOPLE, held_in=todos)
    return people


async def test_the_todo_scenario_is_decided_as_published(service: RunningService) -> None:
    people = await set_up_todo(service)
    asked, expected = [], []

    def expect(name: str, action: str, decision: bool, resource: Mapping[str, str] = HERE) -> None:  # noqa: FBT001 - the decision
        asked.append(question(people[name], action, resource))
        expected.append(decision)

    for name, roles in TODO_PEOPLE.items():
        is_viewer = "viewer" in roles
        for action, decision in (
            ("read_user", True),
            ("read_user", True),
            ("read_todos", True),
            ("create_todo", not is_viewer),
        ):
            expect(name, f"can_{action}", decision)
        for action in ("can_update_todo", "can_delete_todo"):
            other = "morty" if name == "rick" else "rick"
            for owner in (name, other):
                expect(
                    name,
                    action,
                    name == "rick" or (owner == name and not is_viewer),
                    {"type": "project", "id": f"todo_{owner}"},
                )
    assert len(asked) == 40
    assert await decisions(service, asked) == expected
    for name, owners, decided in (
        ("rick", ("rick", "jerry"), [True, True]),
        ("morty", ("rick", "morty"), [False, True]),
        ("jerry", ("rick", "jerry"), [False, False]),
    ):
        todos = [{"resource": {"type": "project", "id": f"todo_{owner}"}} for owner in owners]
        common = {"subject": user(people[name]), "action": {"name": "can_update_todo"}, "resource": {}, "context": {}}
        answer = await ask(service, "evaluations", {**common, "evaluations": todos})
        assert [one["decision"] for one in answer["evaluations"]] == decided


async def test_the_gateway_scenario_is_decided_as_published(service: RunningService) -> None:
    people = await set_up_todo(service)
    asked = [(name, rule, viewers) for name in people for rule, viewers in ROUTES.values()]
    answers = await decisions(service, [question(people[name], rule) for name, rule, _ in asked])
    assert answers == [viewers or "viewer" not in TODO_PEOPLE[name] for name, _, viewers in asked]
    assert len(answers) == 25


async def test_the_questions_that_cannot_be_expressed_are_denied(service: RunningService) -> None:
    """As the guide lists them: by properties, other resources and subjects, actions that are no rules."""
    people = await set_up_todo(service)
    own = {"type": "todo", "id": "7240d0db", "properties": {"ownerID": "morty@a.example"}}
    morty, route = people["morty"], {"type": "route", "id": "/todos"}
    asked = [
        question(morty, "can_update_todo", own),
        question(morty, "can_update_todo", {**HERE, "properties": {"ownerID": "morty@a.example"}}),  # type: ignore[dict-item]
        question(morty, "can_read_user", {"type": "user", "id": people["beth"]}),
        question(morty, "GET", route),
        question(morty, "can_read_todos", route),
        question(morty, "GET"),
        {**question(morty, "can_read_todos"), "subject": {"type": "identity", "id": morty}},
        question("morty@a.example", "can_read_todos"),
    ]
    assert await decisions(service, asked) == [False] * len(asked)
    assert await decisions(service, [question(morty, "can_read_todos")]) == [True]
    search = {"subject": user(morty), "action": {"name": "can_update_todo"}, "resource": {"type": "todo"}}
    assert (await ask(service, "search/resource", search))["results"] == []


async def test_the_search_scenario_is_decided_as_published(service: RunningService) -> None:
    people = user_ids(STAFF)
    records = {
        record: {name: [role] if (role := record_role(name, place)) else [] for name in people}
        for record, place in RECORDS.items()
    }
    await set_up(service, people, RECORD_ROLES, held={}, held_in=records)

    def may(name: str, record: str) -> Sequence[str]:
        return RECORD_ROLES.get(record_role(name, RECORDS[record]), ())

    async def found(path: str, body: Mapping[str, object], member: str) -> list[str]:
        return sorted(one[member] for one in (await ask(service, f"search/{path}", body))["results"])

    for action in ("view", "edit", "delete"):
        for record in RECORDS:
            asked = {
                "subject": {"type": "user"},
                "action": {"name": action},
                "resource": {"type": "project", "id": record},
            }
            holders = sorted(people[name] for name in people if action in may(name, record))
            assert await found("subject", asked, "id") == holders
        for name, user_id in people.items():
            wanted = {"subject": user(user_id), "action": {"name": action}, "resource": {"type": "project"}}
            assert await found("resource", wanted, "id") == [one for one in RECORDS if action in may(name, one)]
    for name, user_id in people.items():
        for record in RECORDS:
            asked = {"subject": user(user_id), "resource": {"type": "project", "id": record}}
            assert await found("action", asked, "name") == sorted(may(name, record))
