"""A person's own permissions on the account page: where they have what, and why."""

from collections.abc import AsyncIterator

import pytest

from gatehouse.admin.own_permissions import MAX_RULES
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.console import MAX, OLGA, PIA, ConsoleBrowsers, apply_document
from tests.support.service import RunningService

WIKI = """
projects:
  - title: Mind Games
    settings: {services: {"$wiki": {groups: [{group_id: Writers, roles: [author]}]}}}
applications:
  - application_id: $wiki
    name: Wiki
    project_id: $project
    schema: {private_data: {page: {write: {value: false}}}}
    roles: {author: {meta: {private_data: {page: {write: {value: true}}}}}}
"""
GRANTED = (
    WIKI
    + """\
groups:
  - {project_id: $project, title: Writers, users: ["$pia", "$olga"], conditions: []}
"""
)
BY_CONDITION = (
    WIKI
    + """\
  - application_id: 50003
    name: Forum
    schema: {private_data: {thread: {open: {value: false}}}}
    roles:
      tester: {condition: {tag: beta}, meta: {private_data: {thread: {open: {value: true}}}}}
groups:
  - {project_id: $project, title: Writers, users: [], conditions: [{title: Early, condition: {tag: beta}}]}
"""
)
MANY = MAX_RULES + 12


@pytest.fixture
async def console_browsers(service: RunningService) -> AsyncIterator[ConsoleBrowsers]:
    browsers = ConsoleBrowsers(service)
    yield browsers
    await browsers.close()


async def permissions_section(browser_client: HttpBrowser, path: str = "/account") -> str:
    """The section of the page."""
    page = (await browser_client.get(path)).text
    return page.partition('<section id="permissions"')[2].partition("</section>")[0]


async def test_own_permissions_show_the_rules_of_a_role_and_the_role(
    service: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(service)
    pia = await console_browsers(PIA)
    section = await permissions_section(pia)
    assert "<strong>Shop</strong>" in section
    assert "You have the role <bdi>moderator</bdi>" in section
    assert ">user.kick</code>" in section
    assert "You have the role <bdi>beta</bdi> because you meet its condition" in section
    assert "No permissions" not in section
    assert "store.refund" not in section
    assert "Sie haben die Rolle <bdi>moderator</bdi>" in await permissions_section(pia, "/account?lang=de")


async def test_a_role_through_a_group_says_so_and_names_the_group_to_anyone_who_may_view_the_project(
    service: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(service)
    await apply_document(service, GRANTED)
    section = await permissions_section(await console_browsers(OLGA))
    assert "<strong>Wiki</strong> in project Mind Games" in section
    assert "You have the role <bdi>author</bdi> through the group <bdi>Writers</bdi>" in section
    section = await permissions_section(await console_browsers(PIA))
    assert "You have the role <bdi>author</bdi> through a group" in section
    assert ">page.write</code>" in section
    assert "Writers" not in section


async def test_own_permissions_include_those_held_by_a_condition(
    service: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    """In applications without a record about her: by a role's condition, and by a group's."""
    await apply_document(service)
    await apply_document(service, BY_CONDITION)
    section = await permissions_section(await console_browsers(PIA))
    assert "<strong>Forum</strong>" in section
    assert "You have the role <bdi>tester</bdi> because you meet its condition" in section
    assert "<strong>Wiki</strong> in project Mind Games" in section
    assert "You have the role <bdi>author</bdi> through a group" in section
    section = await permissions_section(await console_browsers(MAX))
    assert "Forum" not in section
    assert "Wiki" not in section


async def test_own_permissions_are_truncated_with_a_count_of_the_rest(
    service: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(service)
    rules = ", ".join(f"r{number}: {{value: false}}" for number in range(MANY))
    granted_rules = rules.replace("false", "true")
    await apply_document(
        service,
        f"""
applications:
  - application_id: $shop
    name: Shop
    schema: {{private_data: {{many: {{{rules}}}}}}}
    users: {{"$max": {{private_data: {{many: {{{granted_rules}}}}}}}}}
""",
    )
    section = await permissions_section(await console_browsers(MAX))
    assert "Assigned to you directly" in section
    assert section.count(">many.r") == MAX_RULES
    assert "and 12 more" in section
    assert "in project Mind Games for application 50001" in section  # of application 1: they manage people there


async def test_own_permissions_are_empty_and_name_no_application_without_rights(service: RunningService) -> None:
    await apply_document(service)
    await service.services.accounts.administration.create(
        login="eve@studio.example", nick="Eve", password=PASSWORD, origin=AuditOrigin(actor="test")
    )
    eve = HttpBrowser(service)
    await eve.sign_in("eve@studio.example")
    section = await permissions_section(eve)
    await eve.client.aclose()
    assert "No permissions yet." in section
    assert "<strong>" not in section
