"""Run Schemathesis on our OpenAPI document: every response is documented and quick."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.fuzz.conftest import FACTOR, IS_LONG, SEED
from tests.support.find_programs import ROOT
from tests.support.oauth import RelyingPartyClient, a_native_client
from tests.support.service import RunningService, running_service
from tests.support.studio import OTHER_USER, OWNER, PROJECT, Studio, a_studio, create_administrator

LONGEST: Final = 5  # seconds a response may take
EXAMPLES: Final = 2  # per operation, in `make test`
PHASES: Final = "examples,coverage,fuzzing,stateful" if IS_LONG else "fuzzing"
A_MOMENT: Final = 0.5  # real seconds per half minute of a held poll
HELD: Final = 31
UNLIMITED: Final = {"GATEHOUSE__RATES__ENABLED": "false"}
CALLERS: Final = ("no_one", "administrator", "access key", "client")
EVERY_PAIR: Final = [(kind, caller) for kind in ("sqlite", "postgres") for caller in CALLERS]
SHORT: Final = [*(("sqlite", caller) for caller in CALLERS), ("postgres", "administrator")]

# Schemathesis needs existing ids, or almost every request fails with "unknown application".
CONFIGURATION: Final = """\
continue-on-failure = true
request-timeout = 20.0
hooks = "tests.fuzz.leaks"
cache.enabled = false

[dictionaries]
applications = {{ values = {applications} }}
shown_applications = {{ values = {shown_applications} }}
projects = {{ values = ["{project}"] }}
people = {{ values = {people} }}
groups = {{ values = ["{group}"] }}
roles = {{ values = ["moderator", "project_owner"] }}
rules = {{ values = ["can.ban", "can_create_projects"] }}
clients = {{ values = ["{client}"] }}
addresses = {{ values = ["{address}"] }}

[parameters]
"path.appID" = {{ dictionary = "shown_applications", probability = 0.5 }}
"query.client_id" = {{ dictionary = "clients", probability = 0.7 }}
"query.redirect_uri" = {{ dictionary = "addresses", probability = 0.7 }}
"body.client_id" = {{ dictionary = "clients", probability = 0.5 }}
"body.redirect_uri" = {{ dictionary = "addresses", probability = 0.7 }}
"body.application_id" = {{ dictionary = "applications", probability = 0.8 }}
"body.group_id" = {{ dictionary = "groups", probability = 0.8 }}
"body.data.application_id" = {{ dictionary = "applications", probability = 0.8 }}
"body.data.id" = {{ dictionary = "projects", probability = 0.5 }}
"body.data.project_id" = {{ dictionary = "projects", probability = 0.8 }}
"body.data.user_id" = {{ dictionary = "people", probability = 0.8 }}
"body.data.client_id" = {{ dictionary = "clients", probability = 0.7 }}
"body.data.users[*]" = {{ dictionary = "people", probability = 0.8 }}
"body.data.name" = {{ dictionary = "roles", probability = 0.5 }}
"body.data.role" = {{ dictionary = "roles", probability = 0.5 }}
"body.data.rule" = {{ dictionary = "rules", probability = 0.8 }}
"body.data.checks[*].rule" = {{ dictionary = "rules", probability = 0.8 }}
"body.data.checks[*].project_id" = {{ dictionary = "projects", probability = 0.8 }}
"body.options.project_id" = {{ dictionary = "projects", probability = 0.8 }}

[generation]
database = "none"
deterministic = {deterministic}

[checks]
enabled = false
not_a_server_error.enabled = true
status_code_conformance.enabled = true
content_type_conformance.enabled = true
response_schema_conformance.enabled = true
unsupported_method.enabled = true
negative_data_rejection.enabled = true
max_response_time = {longest}

[[operations]]  # a form is passed on as it is to the address with the same meaning, which refuses
include-operation-id = ["oauth.authorize_post", "oauth.logout_post"]
checks.negative_data_rejection.enabled = false

[[operations]]  # it says that the clock of the tests is not the database's, which is so
include-operation-id = "health.ready"
checks.not_a_server_error.expected-statuses = ["2xx", "4xx", "503"]

[[operations]]  # the second step of a sign-in looks at its code alone
include-operation-id = ["login", "platform_login"]
checks.negative_data_rejection.enabled = false

[[operations]]  # a stream does not end (tests/wire/permissions/test_changes.py)
include-operation-id = "permissions.changes"
enabled = false
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzedService:
    """A service with data, and its callers."""

    studio: Studio
    client: RelyingPartyClient
    group: str
    headers: Mapping[str, Mapping[str, str]]

    @property
    def service(self) -> RunningService:
        return self.studio.service

    def configuration(self) -> str:
        numbers = [self.studio.shop.application_id, self.studio.other.application_id, 1]
        return CONFIGURATION.format(
            applications=numbers,
            shown_applications=json.dumps(list(map(str, numbers))),
            project=PROJECT,
            people=json.dumps([OWNER, OTHER_USER]),
            group=self.group,
            client=self.client.client.client_id,
            address=self.client.redirect_uri,
            deterministic="false" if IS_LONG else "true",
            longest=float(LONGEST),
        )


async def a_fuzzed_service(service: RunningService) -> FuzzedService:
    studio = await a_studio(service)
    owner = studio.owner.headers
    created = {"action": "save", "data": {"project_id": PROJECT, "title": "Testers"}}
    group = (await studio.expect_ok("group", created, owner))["data"]["id"]
    role = {"action": "save", "application_id": studio.shop.application_id, "data": {"name": "moderator"}}
    await studio.expect_ok("roles", role, owner)
    client = await a_native_client(service)
    headers = {
        "no_one": {},
        "administrator": (await create_administrator(studio)).headers,
        "access key": {"Authorization": f"Bearer {await studio.access_key()}"},
        "client": client.headers,
    }
    return FuzzedService(studio=studio, client=client, group=group, headers=headers)


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    installed_url: str = request.getfixturevalue(f"installed_{request.param}_url")
    return installed_url


@pytest.mark.parametrize(("url", "caller"), EVERY_PAIR if IS_LONG else SHORT, indirect=["url"])
async def test_ht_25_every_answer_is_one_the_document_foretells_and_none_is_a_failure_or_late(
    url: str, tmp_path: Path, caller: str
) -> None:
    async with running_service(url, tmp_path, environment=UNLIMITED) as service:
        fuzzed = await a_fuzzed_service(service)
        settings = tmp_path / "schemathesis.toml"
        settings.write_text(fuzzed.configuration())
        code, output = await run_schemathesis(service, settings, fuzzed.headers[caller])
    assert code == 0, output


async def run_schemathesis(
    service: RunningService, configuration: Path, headers: Mapping[str, str]
) -> tuple[int, str]:
    base = str(service.client.base_url).rstrip("/")
    header_options = [word for name, value in headers.items() for word in ("--header", f"{name}: {value}")]
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(configuration)),
        *("run", f"{base}/openapi.json", "--url", base, *header_options),
        *("--phases", PHASES, "--max-examples", str(EXAMPLES * FACTOR), "--seed", str(SEED), "--no-color"),
        *("--warnings", "off", "--report-dir", str(configuration.parent)),
    ]
    return await run_with_moving_clock(service, command)


async def run_with_moving_clock(service: RunningService, command: Sequence[str]) -> tuple[int, str]:
    """End a held poll after a short time; the clock is advanced only for this request."""
    child = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    ended = asyncio.ensure_future(child.communicate())
    try:
        while not ended.done():
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(ended), A_MOMENT)
            if len(service.services.games.waiters):
                await service.clock.advance(HELD)
    finally:
        if child.returncode is None:
            child.kill()
    output, _ = await ended
    return child.returncode or 0, output.decode()
