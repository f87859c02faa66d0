"""Records of the API as commands print them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from gatehouse.app.services import Services
from gatehouse.cli.common import print_json
from gatehouse.cli.output import format_value, print_facts, print_table
from gatehouse.cli.services import find_application
from gatehouse.permissions.errors import RoleNotFound
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import Role

NO_FACTS: Final[Mapping[str, object]] = {}


def print_record(record: object, *, as_json: bool, others: Mapping[str, object] = NO_FACTS) -> None:
    """Print a record of the API; people also see `others`."""
    if as_json:
        print_json(record)
    else:
        print_facts({**members_of(record), **others})


def print_records(records: Iterable[object], columns: Sequence[str], *, as_json: bool) -> None:
    """Print records of the API, as a table of some columns for people."""
    found = list(records)
    if as_json:
        print_json(found)
    else:
        rows = [members_of(record) for record in found]
        print_table(columns, [[format_value(row.get(name)) for name in columns] for row in rows])


def members_of(record: object) -> dict[str, object]:
    """Return what JSON would have."""
    members: dict[str, object] = msgspec.to_builtins(record)
    return members


def find_role(model: ApplicationModel, name: str) -> Role:
    found = model.roles.get(name.lower())
    if found is None:
        raise RoleNotFound(f"no role {name}")
    return found


async def load_model(services: Services, application: str) -> ApplicationModel:
    """Return the application of that ID or name, with its roles."""
    number = (await find_application(services, application)).application_id
    return (await services.storage.permissions.application_models([number]))[number]
