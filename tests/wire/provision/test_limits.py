"""A file has the limits of the API, with the same error messages (R7)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from gatehouse.app.services.provisioning import build_provisioning
from gatehouse.keys.key_objects import public_pem
from gatehouse.permissions.documents import conditions
from gatehouse.permissions.errors import GroupListed
from gatehouse.permissions.model.limits import MAX_GROUPS
from gatehouse.provision.file_secrets import SecretResolver
from gatehouse.provision.model import Unfit
from gatehouse.provision.plan import SECTIONS
from gatehouse.provision.sections.section import Options, read_entries
from tests.support.builders import ORIGIN
from tests.support.oauth import REDIRECT
from tests.support.studio import OTHER_USER, PROJECT, Person, Studio, create_administrator

PLACE: Final = re.compile(r"^(?:(?:data|role|name|description|condition|meta|params|user_limit)\b[^:]*: )+")
ON: Final = {"value": True}
URL: Final = "https://x.example/"

Body = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """One save, as a request of the API and as an entry of a file."""

    path: str
    body: Body
    file: Body


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    shop: int
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    name: str
    save: Callable[[Ids, Any], Save]
    most: object = None  # None: there is no valid value of that size
    more: object
    first: Body = field(default_factory=dict)  # a file that creates what the values refer to


async def apply_file(studio: Studio, document: Body) -> None:
    options = Options(secrets=SecretResolver(environment={}, read_file=str))
    entries = read_entries(dict(document), SECTIONS)
    await build_provisioning(studio.service.services).apply(entries, options, ORIGIN)


async def expect_same_refusal(studio: Studio, boss: Person, save: Save) -> None:
    response = await studio.post(save.path, save.body, boss.headers)
    assert response.status_code in (400, 403, 409, 413), (save.path, response.text[:200])
    words = PLACE.sub("", response.json()["error"])
    with pytest.raises(Unfit) as error:
        await apply_file(studio, save.file)
    problems = error.value.problems
    assert any(words in problem for problem in problems), (words, [problem[:200] for problem in problems])


def texts(count: int, template: str = "t{}") -> list[str]:
    return [template.format(number) for number in range(count)]


def user_ids(count: int) -> list[str]:
    return [str(number + 1) for number in range(count)]


def tags_of_length(total: int) -> list[str]:
    """Tags that are this long when joined by commas."""
    full, rest = divmod(total, 65)
    return [f"{number:02}".ljust(64, "t") for number in range(full)] + ["r" * rest]


def any_tag(count: int) -> dict[str, object]:
    """A condition with this many members, one of them `or`."""
    return {"or": [{"tag": tag} for tag in texts(count - 1)]}


def nest_schema(depth: int) -> dict[str, object]:
    condition: dict[str, object] = {"everyone": True}
    for _ in range(depth - 1):
        condition = {"and": [condition]}
    return condition


def rule_path(segments: int) -> dict[str, object]:
    tree: dict[str, object] = ON
    for _ in range(segments):
        tree = {"a": tree}
    return tree


def config_schema(depth: int) -> dict[str, object]:
    document: dict[str, object] = {}
    for _ in range(depth - 1):
        document = {"a": document}
    return document


def roles_with_conditions(*documents: object) -> dict[str, object]:
    return {f"r{number}": {"condition": condition} for number, condition in enumerate(documents)}


def application(name: str, wrap: Callable[[Any], object] = lambda value: value) -> Callable[[Ids, Any], Save]:
    def save(ids: Ids, value: object) -> Save:
        data = {"application_id": ids.shop, name: wrap(value)}
        return Save(path="application", body={"action": "save", "data": data}, file={"applications": [data]})

    return save


def service_meta(name: str) -> Callable[[Ids, Any], Save]:
    return application("service_meta", lambda value: {name: value})


def schema(name: str) -> Callable[[Ids, Any], Save]:
    """In a file roles are beside the schema, in the API within it."""

    def save(ids: Ids, value: object) -> Save:
        body = {"action": "save", "application_id": ids.shop, "data": {name: value}}
        fields = {name: value} if name == "roles" else {"schema": {name: value}}
        return Save(path="meta/schema", body=body, file={"applications": [{"application_id": ids.shop, **fields}]})

    return save


def role(name: str) -> Callable[[Ids, Any], Save]:
    def save(ids: Ids, value: object) -> Save:
        title = str(value) if name == "name" else "Mod"
        fields = {} if name == "name" else {name: value}
        body = {"action": "save", "application_id": ids.shop, "data": {"name": title, **fields}}
        entry = {"application_id": ids.shop, "roles": {title: fields}}
        return Save(path="roles", body=body, file={"applications": [entry]})

    return save


def record(name: str) -> Callable[[Ids, Any], Save]:
    def save(ids: Ids, value: object) -> Save:
        data = {"user_id": OTHER_USER, name: value}
        body = {"action": "save", "application_id": ids.shop, "data": data}
        entry = {"application_id": ids.shop, "users": {OTHER_USER: {name: value}}}
        return Save(path="meta/data", body=body, file={"applications": [entry]})

    return save


def key_comment(ids: Ids, value: object) -> Save:
    body = {"action": "save", "application_id": ids.shop, "data": {"comment": value}}
    entry = {"application_id": ids.shop, "access_keys": [{"comment": value}]}
    return Save(path="accessKey", body=body, file={"applications": [entry]})


def project(name: str, wrap: Callable[[Ids, Any], object] = lambda _, value: value) -> Callable[[Ids, Any], Save]:
    def save(ids: Ids, value: object) -> Save:
        data = {"id": PROJECT, name: wrap(ids, value)}
        action = {} if name == "tags" else {"action": "save"}
        path = "project/tags" if name == "tags" else "project"
        return Save(path=path, body={**action, "data": data}, file={"projects": [data]})

    return save


def grants(ids: Ids, entries: Sequence[Body]) -> dict[str, object]:
    groups = [{"group_id": ids.group, "roles": [], "action": "grant", **entry} for entry in entries]
    return {"services": {str(ids.shop): {"groups": groups}}}


def membership(name: str) -> Callable[[Ids, Any], Save]:
    def save(ids: Ids, value: int) -> Save:
        data = {"id": PROJECT, name: [ids.group] * value}
        return Save(path="project/membership", body={"action": "save", "data": data}, file={"memberships": [data]})

    return save


def service_account(name: str) -> Callable[[Ids, Any], Save]:
    """The two create different accounts, because a name is used once."""

    def save(_: Ids, value: Any) -> Save:
        ours = {"project_id": PROJECT, "name": "api", name: value}
        theirs = {"project_id": PROJECT, "name": "file", name: f"y{value[1:]}" if name == "name" else value}
        return Save(path="serviceAccount", body={"action": "save", "data": ours}, file={"service_accounts": [theirs]})

    return save


def group(name: str) -> Callable[[Ids, Any], Save]:
    paths = {"tags": "group/tags", "users": "group/access", "conditions": "group/access"}

    def save(ids: Ids, value: object) -> Save:
        path = paths.get(name, "group")
        action = {"action": "save"} if path == "group" else {}
        entry = {"project_id": PROJECT, "group_id": ids.group, name: value}
        return Save(
            path=path, body={**action, "group_id": ids.group, "data": {name: value}}, file={"groups": [entry]}
        )

    return save


def user(name: str) -> Callable[[Ids, Any], Save]:
    def save(_: Ids, value: object) -> Save:
        data = {"user_id": OTHER_USER, name: value}
        return Save(path=f"user/{name}", body={"data": data}, file={"users": [data]})

    return save


def client(name: str) -> Callable[[Ids, Any], Save]:
    """The two create different clients, because an id is used once."""

    def save(ids: Ids, value: Any) -> Save:
        fixed = {"name": "New", "profile": "oidc", "redirect_uris": [REDIRECT]}
        names = (
            {one: {**claim, "application_id": ids.shop} for one, claim in value.items()}
            if name == "claims"
            else value
        )
        ours = {**fixed, "client_id": "api", name: names}
        theirs = {**fixed, "client_id": "file", name: f"y{value[1:]}" if name == "client_id" else names}
        body = {"action": "create", "application_id": ids.shop, "data": ours}
        return Save(path="client", body=body, file={"clients": [{"application_id": ids.shop, **theirs}]})

    return save


def titled_condition(condition: object, title: str = "Some") -> dict[str, object]:
    return {"title": title, "condition": condition}


def claims(count: int) -> dict[str, object]:
    return {name: {"told": "roles"} for name in texts(count, "c{}")}


MANY_ROLES: Final = {"applications": [{"application_id": 50001, "roles": {name: {} for name in texts(1_000, "r{}")}}]}
MANY_USERS: Final = {
    "users": [{"user_id": user_id, "login": f"u{user_id}@x.example", "nick": "U"} for user_id in user_ids(100)]
}
MANY_APPLICATIONS: Final = {
    "applications": [
        {"application_id": 60_000 + number, "name": f"A{number}", "project_id": PROJECT} for number in range(200)
    ]
}


def application_limits() -> Iterator[Limit]:
    yield Limit(name="name", save=application("name"), most="x" * 128, more="x" * 129)
    yield Limit(name="description", save=application("description"), most="x" * 1_024, more="x" * 1_025)
    domains = application("settings", lambda value: {"restricted_domains": texts(value, "d{}.example")})
    yield Limit(name="restricted domains", save=domains, most=100, more=101)
    sources = application("settings", lambda value: {"gdpr": {"char_sources": value}})
    yield Limit(name="char sources", save=sources, most=texts(20, URL + "{}"), more=texts(21, URL + "{}"))
    yield Limit(name="char source length", save=sources, most=[URL.ljust(2_048, "y")], more=[URL.ljust(2_049, "y")])
    pairs = application("settings", lambda value: {"gdpr": {"data_sources": [{"fetch": URL, "remove": URL}] * value}})
    yield Limit(name="data sources", save=pairs, most=20, more=21)
    yield Limit(name="service name", save=service_meta("name"), most="x" * 32, more="x" * 33)
    yield Limit(name="service description", save=service_meta("description"), most="x" * 1_024, more="x" * 1_025)
    yield Limit(name="service env", save=service_meta("env"), most="x" * 64, more="x" * 65)
    yield Limit(name="service tags", save=service_meta("tags"), most=texts(10), more=texts(11))
    yield Limit(name="service tag length", save=service_meta("tags"), most=["t" * 64], more=["t" * 65])
    yield Limit(name="service url", save=service_meta("url"), most=URL.ljust(2_048, "y"), more=URL.ljust(2_049, "y"))
    yield Limit(name="private key", save=service_meta("private_key"), most="x" * 16_384, more="x" * 16_385)
    texts_of = service_meta("config_schema")
    yield Limit(
        name="config schema length", save=texts_of, most={"title": "x" * 65_531}, more={"title": "x" * 65_532}
    )
    yield Limit(name="config schema depth", save=texts_of, most=config_schema(32), more=config_schema(33))
    yield Limit(name="config schema values", save=texts_of, most={"enum": [0] * 4_998}, more={"enum": [0] * 4_999})
    yield Limit(name="access key comment", save=key_comment, most="x" * 256, more="x" * 257)


def rule_limits() -> Iterator[Limit]:
    yield Limit(name="role name", save=role("name"), most="r" * 64, more="r" * 65)
    yield Limit(name="role description", save=role("description"), most="x" * 1_024, more="x" * 1_025)
    yield Limit(name="role params", save=role("params"), most=",".join(texts(64)), more=",".join(texts(65)))
    yield Limit(name="role param length", save=role("params"), most="p" * 64, more="p" * 65)
    yield Limit(name="role user limit", save=role("user_limit"), most=2**31 - 1, more=2**31)
    meta = role("meta")
    yield Limit(name="rule path", save=meta, most={"private_data": rule_path(8)}, more={"private_data": rule_path(9)})
    yield Limit(
        name="rule segment",
        save=meta,
        most={"private_data": {"s" * 64: ON}},
        more={"private_data": {"s" * 65: ON}},
    )
    condition = role("condition")
    yield Limit(name="condition depth", save=condition, most=nest_schema(16), more=nest_schema(17))
    yield Limit(name="condition members", save=condition, most=any_tag(256), more=any_tag(257))
    yield Limit(name="condition users", save=condition, most={"uid": user_ids(1_000)}, more={"uid": user_ids(1_001)})
    yield Limit(name="condition tag", save=condition, most={"tag": "t" * 255}, more={"tag": "t" * 256})
    roles = schema("roles")
    yield Limit(
        name="roles",
        save=roles,
        most={name: {} for name in texts(1_000)},
        more={name: {} for name in texts(1_001)},
    )
    yield Limit(
        name="members of role conditions",
        save=roles,
        most=roles_with_conditions(*[any_tag(250)] * 20),
        more=roles_with_conditions(*[any_tag(250)] * 20, {"everyone": True}),
    )
    yield Limit(
        name="users of role conditions",
        save=roles,
        most=roles_with_conditions(*[{"uid": user_ids(1_000)}] * 10),
        more=roles_with_conditions(*[{"uid": user_ids(1_000)}] * 10, {"uid": ["1"]}),
    )
    yield Limit(
        name="rule description",
        save=schema("public_data"),
        most={"a": {**ON, "description": "x" * 1_024}},
        more={"a": {**ON, "description": "x" * 1_025}},
    )


def record_limits() -> Iterator[Limit]:
    yield Limit(
        name="roles of a user",
        save=record("roles"),
        most=texts(1_000, "r{}"),
        more=texts(1_001, "r{}"),
        first=MANY_ROLES,
    )
    yield Limit(
        name="roles of a user in a project",
        save=record("private_data"),
        most={"projectAccess": {PROJECT: {"roles": texts(1_000, "r{}")}}},
        more={"projectAccess": {PROJECT: {"roles": texts(1_001, "r{}")}}},
        first=MANY_ROLES,
    )
    entry = record("public_data")
    yield Limit(
        name="entry param", save=entry, most={"a": {**ON, "params": "p" * 64}}, more={"a": {**ON, "params": "p" * 65}}
    )
    yield Limit(
        name="entry end",
        save=entry,
        most={"a": {**ON, "expired": 253_402_300_799}},
        more={"a": {**ON, "expired": 253_402_300_800}},
    )
    yield Limit(name="entry ttl", save=entry, most={"a": {**ON, "ttl": 2**31 - 1}}, more={"a": {**ON, "ttl": 2**31}})


def project_limits() -> Iterator[Limit]:
    yield Limit(name="title", save=project("title"), most="x" * 32, more="x" * 33)
    yield Limit(name="description", save=project("description"), most="x" * 1_024, more="x" * 1_025)
    yield Limit(name="aliases", save=project("aliases"), most=texts(10), more=texts(11))
    yield Limit(name="alias length", save=project("aliases"), most=["a" * 32], more=["a" * 33])
    yield Limit(name="tags", save=project("tags"), most=texts(10), more=texts(11))
    yield Limit(name="tag length", save=project("tags"), most=["t" * 64], more=["t" * 65])
    domains = project("settings", lambda _, value: {"allowed_domains": value})
    yield Limit(name="allowed domains", save=domains, most=texts(100, "d{}.example"), more=texts(101, "d{}.example"))
    label = "d" * 63
    yield Limit(
        name="domain length",
        save=domains,
        most=[".".join([label, label, label, "d" * 61])],
        more=[".".join([label, label, label, "d" * 62])],
    )
    services = project("settings", lambda _, value: {"services": {str(60_000 + n): {} for n in range(value)}})
    yield Limit(name="services", save=services, most=200, more=201, first=MANY_APPLICATIONS)
    yield Limit(
        name="grants of a service",
        save=project("settings", lambda ids, value: grants(ids, [{}] * value)),
        most=200,
        more=201,
    )
    yield Limit(
        name="roles of a grant",
        save=project("settings", lambda ids, value: grants(ids, [{"roles": texts(value, "r{}")}])),
        most=100,
        more=101,
        first=MANY_ROLES,
    )
    yield Limit(name="allow", save=membership("allow"), most=500, more=501)
    yield Limit(name="disallow", save=membership("disallow"), most=500, more=501)
    yield Limit(name="service account name", save=service_account("name"), most="x" * 64, more="x" * 65)
    yield Limit(name="service account comment", save=service_account("comment"), most="x" * 256, more="x" * 257)
    ranges = service_account("ip_ranges")
    yield Limit(name="ranges", save=ranges, most=texts(32, "10.0.{}.0/24"), more=texts(33, "10.0.{}.0/24"))
    yield Limit(name="range length", save=ranges, more=["1" * 65])


def group_limits() -> Iterator[Limit]:
    yield Limit(name="title", save=group("title"), most="x" * 32, more="x" * 33)
    yield Limit(name="description", save=group("description"), most="x" * 1_024, more="x" * 1_025)
    yield Limit(name="tags", save=group("tags"), most=texts(10), more=texts(11))
    yield Limit(name="tag length", save=group("tags"), most=["t" * 64], more=["t" * 65])
    yield Limit(name="users", save=group("users"), most=user_ids(100), more=user_ids(101), first=MANY_USERS)
    condition_limits = group("conditions")
    yield Limit(
        name="conditions",
        save=condition_limits,
        most=[titled_condition({"everyone": True})] * 50,
        more=[titled_condition({"everyone": True})] * 51,
    )
    yield Limit(
        name="condition title",
        save=condition_limits,
        most=[titled_condition({"everyone": True}, "x" * 64)],
        more=[titled_condition({"everyone": True}, "x" * 65)],
    )
    yield Limit(
        name="condition depth",
        save=condition_limits,
        most=[titled_condition(nest_schema(16))],
        more=[titled_condition(nest_schema(17))],
    )
    yield Limit(
        name="condition members",
        save=condition_limits,
        most=[titled_condition(any_tag(256))],
        more=[titled_condition(any_tag(257))],
    )
    yield Limit(
        name="condition users",
        save=condition_limits,
        most=[titled_condition({"uid": user_ids(1_000)})],
        more=[titled_condition({"uid": user_ids(1_001)})],
    )


def account_limits() -> Iterator[Limit]:
    for name in ("tags", "purchases"):
        yield Limit(name=name, save=user(name), most=texts(100), more=texts(101))
        yield Limit(name=f"length of {name}", save=user(name), most=["t" * 64], more=["t" * 65])
    yield Limit(name="all tags", save=user("tags"), most=tags_of_length(896), more=tags_of_length(897))
    yield Limit(name="client name", save=client("name"), most="x" * 64, more="x" * 65)
    yield Limit(name="client id", save=client("client_id"), most="x" * 64, more="x" * 65)
    uris = client("redirect_uris")
    yield Limit(name="redirect uri length", save=uris, most=[URL.ljust(2_048, "y")], more=[URL.ljust(2_049, "y")])
    yield Limit(name="redirect uris", save=uris, most=texts(100, URL + "{}"), more=texts(101, URL + "{}"))
    yield Limit(name="claims", save=client("claims"), most=claims(16), more=claims(17))


LIMITS: Final = {
    "application": application_limits(),
    "rule": rule_limits(),
    "record": record_limits(),
    "project": project_limits(),
    "group": group_limits(),
    "account": account_limits(),
}


@pytest.mark.parametrize(
    "limit", [pytest.param(limit, id=f"{kind}-{limit.name}") for kind, limits in LIMITS.items() for limit in limits]
)
@pytest.mark.parametrize("installed_url", ["sqlite"], indirect=True)
async def test_ap_95_file_and_api_have_the_same_limit_and_the_same_words(studio: Studio, limit: Limit) -> None:
    boss, ids = await create_administrator(studio), await some_ids(studio)
    await apply_file(studio, limit.first)
    await expect_same_refusal(studio, boss, limit.save(ids, limit.more))
    if limit.most is not None:
        save = limit.save(ids, limit.most)
        await apply_file(studio, save.file)
        await studio.expect_ok(save.path, save.body, boss.headers)


async def some_ids(studio: Studio) -> Ids:
    new = {"project_id": PROJECT, "title": "Testers"}
    body = {"action": "save", "data": new}
    answer = await studio.expect_ok("group", body, (await create_administrator(studio)).headers)
    return Ids(shop=studio.shop.application_id, group=answer["data"]["id"])


async def test_ap_95_new_application_of_a_file_has_the_same_limit(studio: Studio) -> None:
    boss, shop = await create_administrator(studio), studio.shop.application_id
    roles = roles_with_conditions(*[any_tag(250)] * 20, {"everyone": True})
    save = Save(
        path="meta/schema",
        body={"action": "save", "application_id": shop, "data": {"roles": roles}},
        file={"applications": [{"name": "New", "roles": roles}]},
    )
    await expect_same_refusal(studio, boss, save)


async def test_ap_95_an_application_gets_no_more_keys_by_a_file(studio: Studio) -> None:
    boss, shop = await create_administrator(studio), studio.shop.application_id
    pems = [public_pem(generate_private_key(65537, 2048).public_key()) for _ in range(11)]
    keys = {"access_keys": [{}, {"comment": "b"}], "public_keys": pems[:10]}
    await apply_file(studio, {"applications": [{"application_id": shop, **keys}]})
    about = {"action": "save", "application_id": shop}
    key, public = {"comment": "third"}, {"public_key": pems[10]}
    for path, data, fields in (
        ("accessKey", key, {"access_keys": [key]}),
        ("application/keys", public, {"public_keys": [pems[10]]}),
    ):
        file = {"applications": [{"application_id": shop, **fields}]}
        await expect_same_refusal(studio, boss, Save(path=path, body={**about, "data": data}, file=file))


async def test_ap_95_a_project_gets_no_more_groups_by_a_file(studio: Studio) -> None:
    boss = await create_administrator(studio)
    groups = [{"project_id": PROJECT, "title": f"G{n}"} for n in range(MAX_GROUPS)]
    await apply_file(studio, {"groups": groups[1:]})
    await studio.expect_ok("group", {"action": "save", "data": groups[0]}, boss.headers)
    more = {"project_id": PROJECT, "title": "More"}
    save = Save(path="group", body={"action": "save", "data": more}, file={"groups": [more]})
    await expect_same_refusal(studio, boss, save)
    await apply_file(studio, {"groups": [{**groups[0], "description": "Changed"}]})


@pytest.mark.parametrize(
    ("condition", "groups"),
    [
        ({"uid": user_ids(conditions.MAX_CONDITION_USERS)}, conditions.MAX_TOTAL_USERS // 1_000),
        (any_tag(250), conditions.MAX_TOTAL_MEMBERS // 250),
    ],
    ids=["users", "members"],
)
async def test_ap_95_the_conditions_of_a_project_grow_no_further_by_a_file(
    studio: Studio, condition: dict[str, Any], groups: int
) -> None:
    boss = await create_administrator(studio)
    conditions_given = [titled_condition(condition)]
    whole = [{"project_id": PROJECT, "title": f"G{n}", "conditions": conditions_given} for n in range(groups)]
    last = {"project_id": PROJECT, "title": "Last"}
    await apply_file(studio, {"groups": [*whole, last]})
    last_id = await group_id_of(studio, boss, "Last")
    one_more = [titled_condition({"uid": ["1"]})]
    save = Save(
        path="group/access",
        body={"group_id": last_id, "data": {"conditions": one_more}},
        file={"groups": [{**last, "conditions": one_more}]},
    )
    await expect_same_refusal(studio, boss, save)
    await apply_file(studio, {"groups": [{**whole[0], "conditions": []}, {**last, "conditions": one_more}]})
    await apply_file(studio, {"groups": [{**last, "conditions": conditions_given}]})


async def group_id_of(studio: Studio, who: Person, title: str) -> str:
    answer = await studio.expect_ok("group", {"action": "get", "data": {"project_id": PROJECT}}, who.headers)
    (group_id,) = [one["id"] for one in answer["data"]["groups"] if one["title"] == title]
    return str(group_id)


@pytest.mark.parametrize("name", ["allow", "disallow"])
async def test_ap_95_listed_group_keeps_its_tag(studio: Studio, name: str) -> None:
    boss, ids = await create_administrator(studio), await some_ids(studio)
    await apply_file(studio, {"memberships": [{"id": PROJECT, name: ["Testers"]}]})
    untagged = {"project_id": PROJECT, "group_id": ids.group, "tags": []}
    body = {"group_id": ids.group, "data": {"tags": []}}
    assert await studio.expect_error(409, "group/tags", body, boss.headers) == GroupListed.public
    with pytest.raises(Unfit, match=re.escape(f"project {PROJECT}: {GroupListed.public}")):
        await apply_file(studio, {"groups": [untagged]})
    await apply_file(studio, {"groups": [untagged], "memberships": [{"id": PROJECT, name: []}]})


def project_save(**settings: object) -> tuple[str, Body, Body]:
    data = {"id": PROJECT, "settings": settings}
    return "project", {"action": "save", "data": data}, {"projects": [data]}


def membership_save(**fields: object) -> tuple[str, Body, Body]:
    data = {"id": PROJECT, **fields}
    return "project/membership", {"action": "save", "data": data}, {"memberships": [data]}


def account_save(**fields: object) -> tuple[str, Body, Body]:
    data = {"project_id": PROJECT, "name": "ci", **fields}
    return "serviceAccount", {"action": "save", "data": data}, {"service_accounts": [data]}


def central_save(path: str, data: Body, **entry: object) -> tuple[str, Body, Body]:
    body = {"action": "save", "application_id": 1, "data": data}
    return path, body, {"applications": [{"application_id": 1, **entry}]}


DENY: Final = {"meta": {"private_data": {"can_administer": {"value": False}}}}
RULES: Final = {
    "application 1 is no service": project_save(services={"1": {}}),
    "a service needs an application": project_save(services={"77": {}}),
    "a protected role is held at the root": membership_save(users={OTHER_USER: {"roles": ["administrator"]}}),
    "application 1 has no other rules": membership_save(users={OTHER_USER: {"private_data": {"other": ON}}}),
    "a service account owns no project": account_save(roles=["project_owner"]),
    "nor holds other rules": account_save(applications={"50001": {"private_data": {"other": ON}}}),
    "the rules of application 1 stay": central_save("meta/schema", {"private_data": {}}, schema={"private_data": {}}),
    "no role denies can_administer": central_save("roles", {"name": "Mod", **DENY}, roles={"Mod": DENY}),
    "built-in roles stay": central_save(
        "roles", {"name": "administrator", "default": True}, roles={"administrator": {"default": True}}
    ),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("installed_url", ["sqlite"], indirect=True)
async def test_ap_95_file_and_api_refuse_a_broken_rule_in_the_same_words(studio: Studio, rule: str) -> None:
    path, body, file = RULES[rule]
    save = Save(path=path, body=body, file=file)
    await expect_same_refusal(studio, await create_administrator(studio), save)
