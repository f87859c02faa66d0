"""Groups and roles against a model: after every change, effective permissions are those of the model."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.fuzz.stepped_service import SteppedService, run_machine, stepped_service
from tests.support.permission_builders import a_person, create_application
from tests.support.studio import PROJECT, Studio, a_studio

RULES: Final = ("user.kick", "user.ban", "user.warn")
ROLES: Final = ("guard", "judge")
PEOPLE: Final = ("3000000001", "3000000002", "3000000003")
GROUPS_MOST: Final = 2
SCHEMA: Final = {"private_data": {"user": {rule.partition(".")[2]: {"value": False} for rule in RULES}}}

some_rules = st.frozensets(st.sampled_from(RULES), min_size=1)
some_roles = st.frozensets(st.sampled_from(ROLES))
some_people = st.frozensets(st.sampled_from(PEOPLE))
role_name = st.sampled_from(ROLES)
which = st.integers(0, GROUPS_MOST - 1)


@dataclass(kw_only=True)
class Group:
    group_id: str
    users: frozenset[str] = frozenset()
    grants: frozenset[str] = frozenset()  # roles its members have in the application
    deleted: bool = False


@dataclass(kw_only=True)
class Model:
    """The expected state, in plain Python."""

    roles: dict[str, frozenset[str]] = field(default_factory=dict)
    held: dict[str, frozenset[str]] = field(default_factory=lambda: dict.fromkeys(PEOPLE, frozenset()))
    groups: list[Group] = field(default_factory=list)

    @property
    def live_groups(self) -> list[Group]:
        return [group for group in self.groups if not group.deleted]

    def through_groups(self, person: str) -> frozenset[str]:
        return frozenset[str]().union(*(group.grants for group in self.live_groups if person in group.users))

    def allows(self, roles: frozenset[str], rule_name: str) -> bool:
        return any(rule_name in self.roles.get(role, ()) for role in roles)

    def answers_about(self, person: str) -> list[bool]:
        """Own roles count at the root; roles of a group of the project count in the project."""
        at_the_root = [self.allows(self.held[person], rule_name) for rule_name in RULES]
        return at_the_root + [self.allows(self.through_groups(person), rule_name) for rule_name in RULES]


class GroupsAndRoles(RuleBasedStateMachine):
    bench: SteppedService
    studio: Studio

    @initialize()
    def a_new_application(self) -> None:
        storage = self.bench.service.services.storage
        self.application = self.bench.run(
            create_application(storage, name=f"Shop {self.bench.number()}", project_id=PROJECT)
        ).application_id
        self.model = Model()
        self.ok("meta/schema", {**self.about(), "action": "save", "data": SCHEMA})

    def about(self) -> dict[str, Any]:
        return {"application_id": self.application}

    def ok(self, path: str, body: dict[str, Any]) -> Any:
        return self.bench.run(self.studio.expect_ok(path, body, self.studio.owner.headers))

    def expect_refusal(self, status: int, path: str, body: dict[str, Any]) -> None:
        self.bench.run(self.studio.expect_error(status, path, body, self.studio.owner.headers))

    @rule(name=role_name, rules=some_rules)
    def save_role(self, name: str, rules: frozenset[str]) -> None:
        tree = {rule.partition(".")[2]: {"value": True} for rule in sorted(rules)}
        data = {"name": name, "meta": {"private_data": {"user": tree}}}
        self.ok("roles", {**self.about(), "action": "save", "data": data})
        self.model.roles[name] = rules

    @rule(name=role_name)
    def delete_role(self, name: str) -> None:
        """Its holders lose it, even if a role of the same name is created again (checklist RO-18)."""
        body = {**self.about(), "action": "delete", "data": {"name": name}}
        if name not in self.model.roles:
            self.expect_refusal(404, "roles", body)
            return
        self.ok("roles", body)
        del self.model.roles[name]
        self.model.held = {person: roles - {name} for person, roles in self.model.held.items()}
        for group in self.model.groups:
            group.grants -= {name}

    @rule(person=st.sampled_from(PEOPLE), roles=some_roles)
    def assign(self, person: str, roles: frozenset[str]) -> None:
        body = {**self.about(), "action": "save", "data": {"user_id": person, "roles": sorted(roles)}}
        if roles <= self.model.roles.keys():
            self.ok("meta/data", body)
            self.model.held[person] = roles
        else:
            self.expect_refusal(404, "meta/data", body)

    @precondition(lambda self: len(self.model.groups) < GROUPS_MOST)
    @rule()
    def make_group(self) -> None:
        data = {"project_id": PROJECT, "title": f"Group {self.bench.number()}"}
        created = self.ok("group", {"action": "save", "data": data})["data"]
        self.model.groups.append(Group(group_id=created["id"]))

    @precondition(lambda self: self.model.groups)
    @rule(number=which, users=some_people)
    def put_into_group(self, number: int, users: frozenset[str]) -> None:
        group = self.choose_group(number)
        body = {"group_id": group.group_id, "data": {"users": sorted(users)}}
        if group.deleted:
            self.expect_refusal(403, "group/access", body)
        else:
            self.ok("group/access", body)
            group.users = users

    @precondition(lambda self: self.model.groups)
    @rule(number=which)
    def delete_group(self, number: int) -> None:
        group = self.choose_group(number)
        body = {"action": "delete", "group_id": group.group_id}
        if group.deleted:
            self.expect_refusal(403, "group", body)
        else:
            self.ok("group", body)
            group.deleted = True

    @precondition(lambda self: self.model.groups)
    @rule(number=which, roles=some_roles)
    def set_group_roles(self, number: int, roles: frozenset[str]) -> None:
        """Set the roles that a group of the project has in the application."""
        group = self.choose_group(number)
        if group.deleted:
            return
        wanted = {group.group_id: group.grants for group in self.model.live_groups} | {group.group_id: roles}
        grants = [
            {"group_id": group_id, "roles": sorted(group_roles), "action": "grant"}
            for group_id, group_roles in wanted.items()
            if group_roles
        ]
        settings = {"services": {str(self.application): {"groups": grants}}}
        body = {"action": "save", "data": {"id": PROJECT, "settings": settings}}
        if roles <= self.model.roles.keys():
            self.ok("project", body)
            group.grants = roles
        else:
            self.expect_refusal(400, "project", body)

    def choose_group(self, number: int) -> Group:
        return self.model.groups[number % len(self.model.groups)]

    @invariant()
    def everybody_may_exactly_what_the_model_says(self) -> None:
        for person in PEOPLE:
            assert self.answers_about(person) == self.model.answers_about(person)

    def answers_about(self, person: str) -> list[bool]:
        checks = [
            *({"rule": rule_name} for rule_name in RULES),
            *({"rule": rule_name, "project_id": PROJECT} for rule_name in RULES),
        ]
        rule_name = {**self.about(), "data": {"user_id": person, "checks": checks}}
        data: list[bool] = self.ok("check", rule_name)["data"]
        return data

    @invariant()
    def the_groups_are_those_of_the_model(self) -> None:
        groups = self.ok("group", {"action": "get", "data": {"project_id": PROJECT}})["data"]["groups"]
        shown = {group["id"]: frozenset(group["users"]) for group in groups}
        assert shown.items() >= {group.group_id: group.users for group in self.model.live_groups}.items()
        assert not shown.keys() & {group.group_id for group in self.model.groups if group.deleted}


def test_gr_08_ro_18_groups_and_roles_do_what_their_model_says(fuzzed_url: str, tmp_path: Path) -> None:
    with stepped_service(fuzzed_url, tmp_path) as bench:
        studio = bench.run(a_studio(bench.service))
        for person in PEOPLE:
            bench.run(a_person(bench.service.services.storage, person))
        run_machine(type("Rights", (GroupsAndRoles,), {"bench": bench, "studio": studio}), short=6, steps=15)
