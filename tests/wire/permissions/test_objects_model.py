"""Decisions about objects compared with a slow second implementation of R12, over random worlds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random  # noqa: TID251 - a failure must be repeatable
from typing import Any, Final

import pytest

from gatehouse.permissions.model.rules import ROOT
from tests.support.permission_builders import GROUP
from tests.support.studio import (
    IN_PROJECT,
    PROJECT,
    Studio,
    create_person,
    put_group,
    question_body,
    rule_leaf,
    set_user_roles,
)

pytestmark = pytest.mark.both_databases

RULES: Final = ("map.edit", "map.view")
TYPES: Final = {
    "world": {"parents": ["world"], "rules": ["map.view"]},
    "map": {"parents": ["map", "world"], "rules": ["map.edit", "map.view"]},
}
ROLES: Final = {
    "editor": {"map.edit": True, "map.view": True},
    "viewer": {"map.view": True},
    "guarded": {"map.edit": False},
    "gated": {"map.edit": True},  # for the first person only
}
PEOPLE: Final = ("1000000101", "1000000102", "1000000103")
MEMBERS: Final = PEOPLE[:2]  # of the group
STEPS: Final = 40
COMPARED_EVERY: Final = 8


@dataclass
class Held:
    key: str
    holder: str
    name: str  # of a role, or a rule
    value: bool
    expired: int = 0
    lives: int = 0  # how often the role was deleted before


@dataclass
class World:
    """R12 in plain Python: every question walks over everything."""

    now: int
    places: dict[str, str] = field(default_factory=dict)  # of objects
    parents: dict[str, str | None] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    root: dict[str, list[str]] = field(default_factory=dict)  # roles of people at the root
    project: dict[str, list[str]] = field(default_factory=dict)
    lives: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ROLES, 0))

    def lineage(self, key: str) -> list[str]:
        """The object and its ancestors, the nearest first."""
        found = [key]
        while (parent := self.parents[found[-1]]) is not None:
            found.append(parent)
        return found

    def path(self, key: str) -> tuple[str, ...]:
        return (self.places[key], *reversed(self.lineage(key)))

    def below(self, key: str) -> list[str]:
        return [other for other in self.places if key in self.lineage(other)]

    def allows(self, person: str, key: str, rule: str) -> bool:
        if key not in self.places or rule not in TYPES[key.partition(":")[0]]["rules"]:
            return False
        for scope in self.lineage(key):
            verdict = self.verdict(person, scope, rule)
            if verdict is not None:
                return verdict
        roles = self.project[person] if self.places[key] else self.root[person]
        return self.roles_verdict(person, roles, rule) or False

    def verdict(self, person: str, scope: str, rule: str) -> bool | None:
        mine = {f"u:{person}"} | ({"g"} if person in MEMBERS and self.places[scope] else set())
        here = [
            each
            for each in self.held
            if each.key == scope and each.holder in mine and not 0 < each.expired <= self.now
        ]
        entries = [each.value for each in here if each.name == rule]
        if entries:
            return all(entries)
        current = [each for each in here if each.name in ROLES and each.lives == self.lives[each.name]]
        revoked = {each.name for each in current if not each.value}
        return self.roles_verdict(person, [each.name for each in current if each.name not in revoked], rule)

    def roles_verdict(self, person: str, names: Sequence[str], rule: str) -> bool | None:
        usable = [name for name in names if name != "gated" or person == PEOPLE[0]]
        values = [ROLES[name][rule] for name in usable if rule in ROLES[name]]
        return all(values) if values else None

    def allowed(self, person: str, rule: str, kind: str) -> list[str]:
        keys = [key for key in self.places if key.startswith(f"{kind}:") and self.allows(person, key, rule)]
        return sorted(keys, key=self.path)


class Player:
    """Does random things to the service and to the model."""

    def __init__(self, studio: Studio, seed: int) -> None:
        self.studio, self.random = studio, Random(seed)  # noqa: S311 - no secret
        self.world = World(now=studio.service.clock.now())
        self.made = 0

    async def call(self, path: str, action: str, **data: object) -> Any:
        body = {"action": action, "application_id": self.studio.shop.application_id, "data": data}
        return (await self.studio.expect_ok(path, body, self.studio.owner.headers)).get("data")

    async def start(self) -> None:
        leaf = {"map": {"edit": rule_leaf(), "view": rule_leaf()}}
        await self.call("meta/schema", "save", private_data=leaf, objects=TYPES)
        for name in ROLES:
            await self.save_role(name)
        for person in PEOPLE:
            await create_person(self.studio.service, person)
            self.world.root[person] = self.some_roles()
            self.world.project[person] = self.some_roles()
            scopes = {ROOT: self.world.root[person], IN_PROJECT: self.world.project[person]}
            await set_user_roles(self.studio, person, scopes)
        await put_group(self.studio, *MEMBERS)

    async def save_role(self, name: str) -> None:
        permissions = [{"name": f"private_data.{rule}", "value": value} for rule, value in ROLES[name].items()]
        condition = {"uid": [PEOPLE[0]]} if name == "gated" else None
        mode = "require" if name == "gated" else "grant"
        await self.call("roles", "save", name=name, permissions=permissions, condition=condition, condition_mode=mode)

    def some_roles(self) -> list[str]:
        return self.random.sample(sorted(ROLES), self.random.choice([0, 0, 1, 2]))

    async def act(self) -> None:
        acts = [self.create, self.create, self.create, self.hold, self.hold, self.hold, self.move, self.delete]
        await self.random.choice([*acts, self.wait, self.renew_role])()

    async def create(self) -> None:
        kind = self.random.choice(sorted(TYPES))
        self.made += 1
        key = f"{kind}:{self.random.choice('aZ9-.~')}{self.made}"
        parent = self.random.choice([None, *self.possible_parents(kind)])
        place = self.world.places[parent] if parent else self.random.choice(["", PROJECT])
        await self.call("object", "save", objects=[{"object": key, "parent": parent, "project_id": place or None}])
        self.world.places[key], self.world.parents[key] = place, parent

    def possible_parents(self, kind: str) -> list[str]:
        allowed = TYPES[kind]["parents"]
        return [
            key for key in self.world.places if key.partition(":")[0] in allowed and len(self.world.lineage(key)) < 5
        ]

    async def hold(self) -> None:
        if not self.world.places:
            return
        key = self.random.choice(sorted(self.world.places))
        person = self.random.choice(PEOPLE)
        group = bool(self.world.places[key]) and self.random.random() < 0.4
        holder = "g" if group else f"u:{person}"
        roles = self.some_roles()
        new = [self.some_end(Held(key, holder, name, value=True)) for name in roles]
        draft: dict[str, object] = {"object": key, "roles": [role_document(each) for each in new]}
        if group:
            revoked = [name for name in self.some_roles() if name not in roles]
            new += [Held(key, holder, name, value=False) for name in revoked]
            draft |= {"group_id": GROUP, "revoked": revoked}
        else:
            entries = [
                self.some_end(Held(key, holder, rule, value=self.random.random() < 0.5))
                for rule in TYPES["map"]["rules"]
                if self.random.random() < 0.2
            ]
            new += entries
            draft |= {"user_id": person, "private_data": entry_tree(entries)}
        await self.call("object/holders", "save", holders=[draft])
        for each in new:
            each.lives = self.world.lives.get(each.name, 0)
        kept = [each for each in self.world.held if (each.key, each.holder) != (key, holder)]
        self.world.held = kept + new

    def some_end(self, each: Held) -> Held:
        each.expired = self.world.now + self.random.choice([5, 20]) if self.random.random() < 0.2 else 0
        return each

    async def move(self) -> None:
        if not self.world.places:
            return
        key = self.random.choice(sorted(self.world.places))
        below = self.world.below(key)
        choices = [
            parent
            for parent in self.possible_parents(key.partition(":")[0])
            if parent not in below and self.world.places[parent] == self.world.places[key]
        ]
        parent = self.random.choice([None, *choices])
        deepest = max(len(self.world.lineage(each)) for each in below) - len(self.world.lineage(key)) + 1
        if deepest + (len(self.world.lineage(parent)) if parent else 0) > 8:
            return
        await self.call("object", "save", objects=[{"object": key, "parent": parent}])
        self.world.parents[key] = parent

    async def delete(self) -> None:
        if len(self.world.places) < 8:
            return
        key = self.random.choice(sorted(self.world.places))
        below = self.world.below(key)
        await self.call("object", "delete", objects=[{"object": key}], recursive=True)
        for each in below:
            del self.world.places[each], self.world.parents[each]
        self.world.held = [each for each in self.world.held if each.key not in below]

    async def wait(self) -> None:
        await self.studio.service.clock.advance(5)
        self.world.now = self.studio.service.clock.now()

    async def renew_role(self) -> None:
        """A role of the same name as a deleted one gives back nothing."""
        name = self.random.choice(["editor", "viewer"])
        if any(name in roles for roles in (*self.world.root.values(), *self.world.project.values())):
            return
        await self.call("roles", "delete", name=name)
        await self.save_role(name)
        self.world.lives[name] += 1

    async def compare(self) -> None:
        keys = [*sorted(self.world.places), "map:unknown"]
        for person in PEOPLE:
            checks = [{"rule": rule, "object": key} for rule in RULES for key in keys]
            body = question_body(self.studio, user_id=person, checks=checks)
            answer = await self.studio.expect_ok("check", body, self.studio.owner.headers)
            expected = [self.world.allows(person, key, rule) for rule in RULES for key in keys]
            assert answer["data"] == expected, self.world
            assert answer["known"] == [key in self.world.places for _ in RULES for key in keys]
            for rule in RULES:
                for kind in TYPES:
                    listed = [key async for key in self.list_allowed(person, rule, kind)]
                    assert listed == self.world.allowed(person, rule, kind), self.world

    async def list_allowed(self, person: str, rule: str, kind: str) -> Any:
        after, limit = None, self.random.choice([1, 2, 3, 100])
        while True:
            data = {"type": kind, "rule": rule, "user_id": person, "after": after, "limit": limit}
            body = {"application_id": self.studio.shop.application_id, "data": data}
            page = (await self.studio.expect_ok("object/allowed", body, self.studio.owner.headers)).get("data")
            assert len(page["objects"]) <= limit
            for each in page["objects"]:
                yield each["object"]
            after = page["after"]
            if after is None:
                return


def role_document(each: Held) -> dict[str, object]:
    return {"name": each.name, "expired": each.expired}


def entry_tree(entries: Sequence[Held]) -> dict[str, object]:
    leaves = {each.name.partition(".")[2]: {"value": each.value, "expired": each.expired} for each in entries}
    return {"map": leaves} if leaves else {}


def seeds() -> Iterator[int]:
    yield from range(1, 4)


@pytest.mark.parametrize("seed", tuple(seeds()))
async def test_ob_04_every_answer_is_that_of_a_model_in_plain_python(studio: Studio, seed: int) -> None:
    player = Player(studio, seed)
    await player.start()
    for step in range(STEPS):
        await player.act()
        if step % COMPARED_EVERY == 0:
            await player.compare()
    await player.compare()
