"""Permanent deletion of a removed project in the console leaves only the names that stay taken (R5)."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

import pytest
from sqlalchemy import BigInteger, Boolean, ColumnElement, LargeBinary, Table, Text, insert, or_, select

from gatehouse.permissions.errors import LimitReached, NameTaken
from gatehouse.permissions.model.project import Project
from gatehouse.storage.statements import JsonDocument, Row, Statement, Verb
from gatehouse.storage.tables.every_table import metadata
from tests.support.console import ADA, OLGA, PIA, PROJECT, SHOP, WIKI, ConsoleBrowsers, apply_document
from tests.support.images import png_data_url
from tests.support.service import RunningService

PAGE: Final = f"/console/projects/{PROJECT}"
CLIENT: Final = "shop-web"
BOT: Final = "77"
EVERYTHING: Final = """
clients:
  - {client_id: shop-web, name: Shop, redirect_hosts: [localhost], application_id: $shop,
     client_secret: Zq8vK2mX4tR9wLp6sYb3nHc7dJf5gTaU}
projects:
  - {id: $project, title: Mind Games, owners: ["$olga"], administrators: [], aliases: [mg],
     settings: {services: {"$shop": {groups: [{group_id: Testers, roles: [moderator], action: grant}]}}}}
  - {title: Web, owners: ["$olga"], administrators: [],
     settings: {services: {"$shop": {groups: [{group_id: Readers, roles: [moderator], action: grant}]}}}}
applications:
  - {application_id: $shop, name: Shop, project_id: $project, service_meta: {name: Shop, description: "", tags: []},
     logo_uri: "$logo"}
groups:
  - {project_id: web, title: Readers, users: ["$pia"], conditions: []}
memberships:
  - {id: web, users: {"$max": {services: {"$shop": {roles: [service_administrator]}}}}}
service_accounts:
  - {project_id: $project, name: ci, user_id: "77", roles: [project_administrator]}
"""
# Names that stay taken, and rows that expire by themselves.
KEPT: Final = frozenset({"project_names", "application_ids"})
LATER: Final = 4_000_000_000


def columns_about(table: Table) -> dict[str, ColumnElement[bool]]:
    """The columns of the table that link a row to the project, with the condition for it."""
    its: dict[str, Sequence[object]] = {
        "project_id": [PROJECT],
        "application_id": [SHOP, WIKI],
        "client_id": [CLIENT],
        "owner": [f"client:{CLIENT}", f"application:{SHOP}"],  # of an image
    }
    if table.name == "clients":  # its id stays, in a row without an owner
        del its["client_id"]
    conditions = {
        name: or_(*(table.c[name] == value for value in ones)) for name, ones in its.items() if name in table.c
    }
    if "resource_id" in table.c:
        conditions["resource_id"] = or_(*(table.c.resource_id == str(value) for value in (SHOP, WIKI)))
    return conditions


def erasure_statement(table: Table) -> Statement:
    return Statement(lambda: select(*list(table.primary_key)[:1]).where(or_(*columns_about(table).values())))


TABLES: Final = [table for table in metadata.sorted_tables if columns_about(table) and table.name not in KEPT]


def insert_row(table: Table) -> Statement:
    """Insert a row of the project into a table where this studio has none."""
    named = {"project_id": PROJECT, "application_id": SHOP, "client_id": CLIENT, "user_id": PIA}
    named["owner"] = f"client:{CLIENT}"
    values: dict[type, object] = {JsonDocument: {}, Text: "x", BigInteger: LATER, LargeBinary: b"x", Boolean: False}
    fields = {column.name: named.get(column.name, values[type(column.type)]) for column in table.c}
    return Statement(lambda: insert(table).values(fields))


def fill() -> Verb[None]:
    for table in TABLES:
        if table.name == "images" or not (yield erasure_statement(table)()):  # the client's, beside the application's
            yield insert_row(table)()


def with_rows(tables: Collection[Table]) -> Verb[list[str]]:
    filled: list[str] = []
    for table in tables:
        filled += [table.name] if (yield erasure_statement(table)()) else []
    return filled


def rows(table: Table) -> Verb[list[Row]]:
    return (yield Statement(lambda: select(table))())


async def publish(studio: RunningService, title: str, author: str, *, limit: int) -> Project:
    value = Project(project_id=title.lower().replace(" ", "_"), title=title, author=author, created_at=1)
    return await studio.services.storage.projects.publish_project(value, None, limit, (), lambda _: ())


@pytest.mark.both_databases
async def test_a_removed_project_goes_for_good_and_only_its_names_stay(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(studio, EVERYTHING.replace("$logo", png_data_url("navy", (8, 8))))
    runner, projects = studio.services.storage.runner, studio.services.storage.projects
    ada = await console_browsers(ADA)
    await ada.get(f"{PAGE}/remove")
    await ada.post(f"{PAGE}/remove", title="Mind Games")
    await runner.write(fill)
    assert await runner.read(partial(with_rows, TABLES)) == [table.name for table in TABLES]
    author = (await projects.project(PROJECT)).project.author
    with pytest.raises(LimitReached):
        await publish(studio, "Next", author, limit=2)

    assert f'href="{PAGE}/erase"' in (await ada.get(f"{PAGE}/settings")).text
    page = await ada.get(f"{PAGE}/erase")
    for count, words in ((2, "applications"), (3, "roles"), (1, "client"), (2, "groups"), (1, "service account")):
        assert f"<strong>{count}</strong> {words}" in page.text
    assert "<strong>1</strong> connection of an application to another project" in page.text
    assert (await ada.post(f"{PAGE}/erase", project_id="mg")).status_code == 400
    await ada.post(f"{PAGE}/erase", project_id=PROJECT)
    assert "Project permanently deleted" in (await ada.follow()).text

    assert await runner.read(partial(with_rows, TABLES)) == []
    assert (await ada.get(PAGE)).status_code == 404
    assert (await projects.project("web")).project.settings.services == {}
    [member] = await runner.read(partial(rows, metadata.tables["group_members"]))
    assert member.group_id in (await projects.project("web")).groups
    names = {row.name for row in await runner.read(partial(rows, metadata.tables["project_names"]))}
    assert names == {PROJECT, "mg", "web"}
    assert {SHOP, WIKI} <= {row[0] for row in await runner.read(partial(rows, metadata.tables["application_ids"]))}
    assert BOT in {row.user_id for row in await runner.read(partial(rows, metadata.tables["user_ids"]))}
    assert BOT not in {row.user_id for row in await runner.read(partial(rows, metadata.tables["users"]))}
    [client] = await runner.read(partial(rows, metadata.tables["clients"]))
    assert (client.client_id, client.name, client.removed, client.redirect_hosts) == (CLIENT, "", True, [])
    for taken in ("Mind Games", "Mg"):
        with pytest.raises(NameTaken):
            await publish(studio, taken, author, limit=9)
    assert (await publish(studio, "Next", author, limit=2)).project_id == "next"
    [entry] = await studio.services.storage.audit.newest_records(
        subject=f"project {PROJECT}", event="project.erased", limit=9
    )
    assert (entry.actor, entry.details["applications"], entry.details["groups"]) == (ADA, 2, 2)


async def test_only_administrators_erase_and_only_removed_projects(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, olga = await console_browsers(ADA), await console_browsers(OLGA)
    assert "/erase" not in (await ada.get(f"{PAGE}/settings")).text
    early = await ada.get(f"{PAGE}/erase")
    assert (early.status_code, "delete it first" in early.text) == (409, True)
    await ada.get(f"{PAGE}/remove")
    assert (await ada.post(f"{PAGE}/erase", project_id=PROJECT)).status_code == 409
    assert (await olga.get(f"{PAGE}/erase")).status_code == 403
    await olga.get(f"{PAGE}/remove")
    await olga.post(f"{PAGE}/remove", title="Mind Games")
    await olga.get("/console/projects")
    assert (await olga.post(f"{PAGE}/erase", project_id=PROJECT)).status_code == 403
    assert (await studio.services.storage.projects.project(PROJECT)).project.removed
    await studio.clock.advance(601)
    assert (await ada.get(f"{PAGE}/erase")).headers["location"].startswith("/confirm?next=")
