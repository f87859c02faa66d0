"""Read the pages of staged tables, and the permissions people really have."""

import re
from html import unescape
from typing import Any, Final

import msgspec

from gatehouse.permissions.evaluation.shapes import DEFAULT_OPTIONS, Shape, render_shape
from gatehouse.permissions.model.facts import ApplicationModel, UserRecord
from tests.support.service import RunningService

ROW: Final = re.compile(r"<tr[^>]*>\s*<th[^>]*>[^<]*<small>(\d+)</small></th>(.*?)</tr>", re.DOTALL)
CHANGE_LINE: Final = re.compile(r'<li class="(plus|minus)"><span[^>]*>[^<]*</span><code>([^<]*)</code>')
FIELD: Final = re.compile(r'<input type="hidden" name="(edits|version|csrf)" value="([^"]*)">')
STAGED_EDITS: Final = re.compile(r'data-edits="([^"]*)"')
SIGNS: Final = {"plus": "+", "minus": "-"}

Changed = dict[str, set[str]]  # by user id: "+user.kick", "-moderator"


def predicted_changes(page: str) -> Changed:
    """Who gains and loses what according to a review page; rules and roles by name."""
    return {
        user_id: {SIGNS[sign] + name for sign, name in CHANGE_LINE.findall(row)} for user_id, row in ROW.findall(page)
    }


def form_of(page: str) -> dict[str, str]:
    """The fields of the last form with edits: that of a review, or Undo."""
    return {name: unescape(value) for name, value in FIELD.findall(page)}


def staged_edits(page: str) -> list[list[Any]]:
    """The pending edits in the page, which the browser stores."""
    match = STAGED_EDITS.search(page)
    assert match is not None
    return msgspec.json.decode(unescape(match[1]), type=list[list[Any]])


async def held_names(service: RunningService, application_id: int, *user_ids: str) -> Changed:
    """The names of all rules and roles that these people have, evaluated as for a request."""
    reading, now = service.services.permissions.loader, service.services.clock.now()
    names = {}
    for user_id in user_ids:
        facts = await reading.load_facts(user_id, (application_id,))
        assert facts is not None
        effective = await reading.evaluate(await reading.load_input(facts), application_id, None)
        rules = render_shape(effective, Shape.LIST, DEFAULT_OPTIONS, now)
        roles = render_shape(effective, Shape.ROLES, DEFAULT_OPTIONS, now)
        names[user_id] = {rule.partition(".")[2] for rule in rules} | set(roles)
    return names


def changes_between(before: Changed, after: Changed) -> Changed:
    signed = {
        user_id: {f"+{one}" for one in after[user_id] - names} | {f"-{one}" for one in names - after[user_id]}
        for user_id, names in before.items()
    }
    return {user_id: changes for user_id, changes in signed.items() if changes}


async def model_of(service: RunningService, application_id: int) -> ApplicationModel:
    return (await service.services.storage.permissions.application_models([application_id]))[application_id]


async def record_of(service: RunningService, application_id: int, user_id: str) -> UserRecord:
    facts = await service.services.storage.permissions.facts(user_id, (application_id,))
    assert facts is not None
    return facts.records[application_id]
