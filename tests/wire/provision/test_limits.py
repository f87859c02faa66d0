"""A file is bound by the limits of the API, in the words of the API (R7)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from gatehouse.app.services.provisioning import build_provisioning
from gatehouse.keys.encoding import public_pem
from gatehouse.permissions.documents import conditions
from gatehouse.permissions.model.project import MAX_GROUPS
from gatehouse.provision.file_secrets import SecretResolver
from gatehouse.provision.model import Unfit
from gatehouse.provision.plan import SECTIONS
from gatehouse.provision.sections.section import Options, read_entries
from tests.support.builders import ORIGIN
from tests.support.oauth import REDIRECT
from tests.support.studio import PROJECT, STRANGER, Person, Studio, create_administrator

PLACE = re.compile(r"^(?:(?:data|role|name|description|condition|meta|params|user_limit)\b[^:]*: )+")
Case = tuple[str, Mapping[str, object], Mapping[str, object]]

ON = {"value": True}
LONG_TEXT = "x" * 1_025
DEEP: dict[str, object] = {"everyone": True}
for _ in range(16):
    DEEP = {"and": [DEEP]}


async def applied(studio: Studio, **document: object) -> None:
    terms = Options(secrets=SecretResolver(environment={}, read_file=str))
    asked = read_entries(document, SECTIONS)
    await build_provisioning(studio.service.services).apply(asked, terms, ORIGIN)


async def refused_by_both(studio: Studio, boss: Person, case: Case) -> None:
    path, body, file = case
    answer = await studio.post(path, body, boss.headers)
    assert answer.status_code in (400, 409, 413), (path, body.keys(), answer.text[:200])
    words = PLACE.sub("", answer.json()["error"])
    with pytest.raises(Unfit) as unfit:
        await applied(studio, **file)
    problems = unfit.value.problems
    assert any(words in problem for problem in problems), (words, [one[:200] for one in problems])


def of_applications(shop: int) -> Iterator[Case]:
    def entry(**fields: object) -> dict[str, object]:
        return {"applications": [{"application_id": shop, **fields}]}

    def saved(**fields: object) -> tuple[str, dict[str, object], dict[str, object]]:
        return "application", {"action": "save", "data": {"application_id": shop, **fields}}, entry(**fields)

    def role(**fields: object) -> Case:
        body = {"action": "save", "application_id": shop, "data": {"name": "Mod", **fields}}
        return "roles", body, entry(roles={"Mod": fields})

    def record(**fields: object) -> Case:
        data = {"user_id": STRANGER, **fields}
        body = {"action": "save", "application_id": shop, "data": data}
        return "meta/data", body, entry(users={STRANGER: fields})

    def schema(**fields: object) -> dict[str, object]:
        return {"action": "save", "application_id": shop, "data": fields}

    yield saved(name="x" * 129)
    yield saved(description=LONG_TEXT)
    yield saved(settings={"restricted_domains": [f"d{n}.example" for n in range(101)]})
    yield saved(settings={"gdpr": {"char_sources": [f"https://x.example/{n}" for n in range(21)]}})
    yield saved(settings={"gdpr": {"char_sources": [f"https://x.example/{'y' * 2_048}"]}})
    yield saved(service_meta={"name": "x" * 33})
    yield saved(service_meta={"description": LONG_TEXT})
    yield saved(service_meta={"env": "x" * 65})
    yield saved(service_meta={"tags": [f"t{n}" for n in range(11)]})
    yield saved(service_meta={"tags": ["t" * 65]})
    yield saved(service_meta={"url": f"https://x.example/{'y' * 2_048}"})
    yield saved(service_meta={"private_key": "x" * 16_385})
    yield saved(service_meta={"config_schema": {"title": "x" * 40_000, "description": "x" * 40_000}})
    yield role(description=LONG_TEXT)
    yield role(params=",".join(f"p{n}" for n in range(65)))
    yield role(params="p" * 65)
    yield role(user_limit=2**31)
    yield role(meta={"private_data": {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": ON}}}}}}}}}})
    yield role(meta={"private_data": {"s" * 65: ON}})
    yield role(condition=DEEP)
    yield role(condition={"or": [{"tag": f"t{n}"} for n in range(256)]})
    yield role(condition={"uid": [str(n + 1) for n in range(1_001)]})
    yield role(condition={"tag": "t" * 256})
    yield "roles", {**schema(name="r" * 65)}, entry(roles={"r" * 65: {}})
    many = {f"role{n}": {} for n in range(1_001)}
    yield "meta/schema", schema(roles=many), entry(roles=many)
    described = {"a": {"value": True, "description": LONG_TEXT}}
    yield "meta/schema", schema(public_data=described), entry(schema={"public_data": described})
    grown = {f"r{n}": {"condition": {"or": [{"tag": f"t{i}"} for i in range(250)]}} for n in range(20)}
    yield "meta/schema", schema(roles=grown), entry(roles=grown)
    yield "meta/schema", schema(roles=grown), {"applications": [{"name": "New", "roles": grown}]}
    yield record(roles=[f"role{n}" for n in range(1_001)])
    yield record(public_data={"a": {"value": True, "params": "p" * 65}})
    yield record(public_data={"a": {"value": True, "expired": 253_402_300_800}})
    yield record(private_data={"projectAccess": {PROJECT: {"roles": [f"role{n}" for n in range(1_001)]}}})
    key = {"action": "save", "application_id": shop, "data": {"comment": "x" * 257}}
    yield "accessKey", key, entry(access_keys=[{"comment": "x" * 257}])


def of_projects(shop: int) -> Iterator[Case]:
    def saved(**fields: object) -> Case:
        body = {"action": "save", "data": {"id": PROJECT, **fields}}
        return "project", body, {"projects": [{"id": PROJECT, **fields}]}

    grant = {"group_id": "0" * 24, "roles": [], "action": "grant"}
    yield saved(title="x" * 33)
    yield saved(description=LONG_TEXT)
    yield saved(aliases=[f"a{n}" for n in range(11)])
    yield saved(aliases=["a" * 33])
    yield saved(settings={"allowed_domains": [f"d{n}.example" for n in range(101)]})
    yield saved(settings={"allowed_domains": [f"{'d' * 254}.example"]})
    yield saved(settings={"services": {str(n + 1): {} for n in range(201)}})
    tags = [f"t{n}" for n in range(11)]
    yield "project/tags", {"data": {"id": PROJECT, "tags": tags}}, {"projects": [{"id": PROJECT, "tags": tags}]}
    group = {"project_id": PROJECT, "title": "Testers"}
    too_many = {"services": {str(shop): {"groups": [{**grant, "group_id": "Testers"}] * 201}}}
    yield (
        "project",
        {"action": "save", "data": {"id": PROJECT, "settings": {"services": {str(shop): {"groups": [grant] * 201}}}}},
        {"projects": [{"id": PROJECT, "settings": too_many}], "groups": [group]},
    )

    def account(**fields: object) -> Case:
        whole = {"project_id": PROJECT, "name": "ci", **fields}
        return "serviceAccount", {"action": "save", "data": whole}, {"service_accounts": [whole]}

    yield account(name="x" * 65)
    yield account(comment="x" * 257)
    yield account(ip_ranges=[f"10.0.{n}.0/24" for n in range(33)])
    yield account(ip_ranges=["1" * 65])


def of_groups(group_id: str) -> Iterator[Case]:
    def entry(**fields: object) -> dict[str, object]:
        return {"groups": [{"project_id": PROJECT, "group_id": group_id, **fields}]}

    def saved(**fields: object) -> Case:
        return "group", {"action": "save", "group_id": group_id, "data": fields}, entry(**fields)

    def access(**fields: object) -> Case:
        return "group/access", {"group_id": group_id, "data": fields}, entry(**fields)

    everyone = {"title": "All", "condition": {"everyone": True}}
    tags = [f"t{n}" for n in range(11)]
    yield saved(title="x" * 33)
    yield saved(description=LONG_TEXT)
    yield "group/tags", {"group_id": group_id, "data": {"tags": tags}}, entry(tags=tags)
    yield access(users=[str(n + 1) for n in range(101)])
    yield access(conditions=[everyone] * 51)
    yield access(conditions=[{**everyone, "title": "x" * 65}])
    yield access(conditions=[{"title": "Deep", "condition": DEEP}])
    yield access(conditions=[{"title": "Wide", "condition": {"or": [{"tag": f"t{n}"} for n in range(256)]}}])
    yield access(conditions=[{"title": "Long", "condition": {"uid": [str(n + 1) for n in range(1_001)]}}])


def of_people_and_clients(shop: int) -> Iterator[Case]:
    for words in (sorted(f"t{n}" for n in range(101)), ["t" * 65]):
        for name in ("tags", "purchases"):
            body = {"data": {"user_id": STRANGER, name: words}}
            yield f"user/{name}", body, {"users": [{"user_id": STRANGER, name: words}]}

    def client(**fields: object) -> Case:
        whole = {"client_id": "new", "name": "New", "profile": "oidc", "redirect_uris": [REDIRECT], **fields}
        body = {"action": "create", "application_id": shop, "data": whole}
        return "client", body, {"clients": [{"application_id": shop, **whole}]}

    yield client(name="x" * 65)
    yield client(client_id="x" * 65)
    yield client(redirect_uris=[f"https://x.example/{'y' * 2_048}"])
    yield client(claims={f"c{n}": {"application_id": shop, "told": "roles"} for n in range(17)})


async def test_ap_95_every_limit_of_the_api_binds_a_file_in_the_same_words(studio: Studio) -> None:
    boss, shop = await create_administrator(studio), studio.shop.application_id
    new = {"action": "save", "data": {"project_id": PROJECT, "title": "Testers"}}
    group = (await studio.expect_ok("group", new, boss.headers))["data"]
    for case in (
        *of_applications(shop),
        *of_projects(shop),
        *of_groups(group["id"]),
        *of_people_and_clients(shop),
    ):
        await refused_by_both(studio, boss, case)


async def test_ap_95_an_application_gets_no_more_keys_by_a_file(studio: Studio) -> None:
    boss, shop = await create_administrator(studio), studio.shop.application_id
    pems = [public_pem(generate_private_key(65537, 2048).public_key()) for _ in range(11)]
    await applied(
        studio,
        applications=[{"application_id": shop, "access_keys": [{}, {"comment": "b"}], "public_keys": pems[:10]}],
    )
    about = {"action": "save", "application_id": shop}
    key, public = {"comment": "third"}, {"public_key": pems[10]}
    for path, data, file in (
        ("accessKey", key, {"access_keys": [key]}),
        ("application/keys", public, {"public_keys": [pems[10]]}),
    ):
        entry = {"applications": [{"application_id": shop, **file}]}
        await refused_by_both(studio, boss, (path, {**about, "data": data}, entry))


async def test_ap_95_a_project_gets_no_more_groups_by_a_file(studio: Studio) -> None:
    boss = await create_administrator(studio)
    groups = [{"project_id": PROJECT, "title": f"G{n}"} for n in range(MAX_GROUPS)]
    await applied(studio, groups=groups)
    more = {"project_id": PROJECT, "title": "More"}
    await refused_by_both(studio, boss, ("group", {"action": "save", "data": more}, {"groups": [more]}))
    await applied(studio, groups=[{**groups[0], "description": "Changed"}])


@pytest.mark.parametrize(
    ("condition", "groups"),
    [
        ({"uid": [str(n + 1) for n in range(conditions.MAX_CONDITION_USERS)]}, conditions.MAX_TOTAL_USERS // 1_000),
        ({"or": [{"tag": f"t{n}"} for n in range(249)]}, conditions.MAX_TOTAL_MEMBERS // 250),
    ],
    ids=["users", "members"],
)
async def test_ap_95_the_conditions_of_a_project_grow_no_further_by_a_file(
    studio: Studio, condition: dict[str, Any], groups: int
) -> None:
    boss = await create_administrator(studio)
    given = [{"title": "Some", "condition": condition}]
    whole = [{"project_id": PROJECT, "title": f"G{n}", "conditions": given} for n in range(groups)]
    last = {"project_id": PROJECT, "title": "Last"}
    await applied(studio, groups=[*whole, last])
    listed = {"action": "get", "data": {"project_id": PROJECT}}
    found = (await studio.expect_ok("group", listed, boss.headers))["data"]["groups"]
    (last_id,) = [one["id"] for one in found if one["title"] == "Last"]
    one_more = [{"title": "One", "condition": {"uid": ["1"]}}]
    body = {"group_id": last_id, "data": {"conditions": one_more}}
    await refused_by_both(studio, boss, ("group/access", body, {"groups": [{**last, "conditions": one_more}]}))
    moved = [{**whole[0], "conditions": []}, {**last, "conditions": one_more}]
    await applied(studio, groups=moved)
    await applied(studio, groups=[{**last, "conditions": given}])
