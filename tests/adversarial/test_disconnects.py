"""Clients that disconnect in the middle of a write (checklist HT-23)."""

import json
from pathlib import Path

from gatehouse.audit.events import AuditEvent
from gatehouse.storage.database import open_storage
from tests.support.raw_http import raw_connection
from tests.support.service import running_service
from tests.support.studio import FACTOR, PROJECT, Person, a_studio


def save_request(owner: Person, words: str) -> bytes:
    body = json.dumps({"action": "save", "data": {"id": PROJECT, "description": words}}).encode()
    head = [
        "POST /api/permissions/project HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {owner.jwt}",
        f"Factor: {FACTOR}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join((*head, "", "")).encode() + body


async def test_ht_23_who_leaves_at_any_byte_leaves_a_whole_write_or_none(installed_url: str, tmp_path: Path) -> None:
    async with running_service(installed_url, tmp_path) as service:
        studio = await a_studio(service)
        port = int(service.base_url.rpartition(":")[2])
        half, whole = save_request(studio.owner, "half"), save_request(studio.owner, "whole")
        places = [*range(0, len(half) - 60, 97), *range(len(half) - 60, len(half), 7), len(half) - 1]
        for place in places:
            for request in (half[:place], whole):  # neither waits for a response
                async with raw_connection(port) as connection:
                    connection.send(request)
                    await connection.drain()
    # The server has stopped: each write has been completed or not begun.
    async with open_storage(installed_url, migrate=False) as storage:
        project = (await storage.projects.project(PROJECT)).project
        records = await storage.audit.newest_records(1_000, f"project {PROJECT}", AuditEvent.PROJECT_CHANGED.value)
    assert project.description in ("", "whole")
    assert 1 <= len(records) == project.version - 1 <= len(places)
