"""The guide "Programs without a secret": its file is applied, its command runs, its manifests are parsed (R11)."""

import shlex
from pathlib import Path
from typing import Any, Final

import yaml

from gatehouse.oauth.model import Client
from tests.support.client_documents import run_document_server
from tests.support.console import apply_document
from tests.support.guides import programs_for
from tests.support.oauth import TOKEN, success_body
from tests.support.service import RunningService, running_service
from tests.support.studio import a_studio
from tests.wire.oauth.test_machines import RESOURCE as SHOP_API
from tests.wire.oauth.test_machines import declare_api
from tests.wire.oauth.test_workload_identity import KUBERNETES, Issuer

GUIDE: Final = "workload-identity"
SERVICE: Final = "https://sso.studio.example"


async def applied_client(service: RunningService, document: str, *replaced: tuple[str, str]) -> Client:
    for old, new in replaced:
        document = document.replace(old, new)
    await apply_document(service, document)
    return await service.services.storage.clients.client("worker")


async def test_the_guides_file_is_applied_and_its_command_gets_a_token(installed_url: str, tmp_path: Path) -> None:
    document, manifest, *_ = programs_for(__file__, GUIDE, "yaml")
    (command,) = programs_for(__file__, GUIDE, "sh")
    async with run_document_server(tmp_path) as server:
        given = {name: value for name, value in server.settings.items() if "OUTBOUND" in name}
        async with running_service(installed_url, tmp_path, environment=given) as service:
            studio = await a_studio(service)
            api = {"resource": SHOP_API, "scopes": {"match.report": {"title": "Report"}}}
            success_body(await declare_api(studio, api))
            issuer = Issuer(server=server, service=service)
            issuer.publish()
            keys = "https://kubernetes.default.svc.cluster.local/openid/v1/jwks"
            client = await applied_client(
                service,
                document,
                ("50001", str(studio.shop.application_id)),
                (keys, server.url("/openid/v1/jwks")),
                ("https://kubernetes.default.svc.cluster.local", issuer.url),
            )
            assert [one.issuer_name for one in client.workload_identities] == [
                *(issuer.url, "https://token.actions.githubusercontent.com", "https://gitlab.com"),
                "spiffe://prod.example",
            ]
            assert client.secrets == ()
            token = issuer.token({**KUBERNETES, "aud": [service.base_url]})
            body = fields_of(command, {"$OIDC_CLIENT_ID": "worker", '@"$TOKEN_FILE': f'="{token}'})
            body["resource"] = SHOP_API
            answer = success_body(await service.client.post(TOKEN, data=body))
            assert answer["scope"] == "match.report"
    (volume,) = yaml.safe_load(manifest)["spec"]["volumes"]
    projected = volume["projected"]["sources"][0]["serviceAccountToken"]
    assert (projected["audience"], projected["expirationSeconds"]) == (SERVICE, 3_600)


def fields_of(command: str, replaced: dict[str, str]) -> dict[str, str]:
    """Return the form fields that a curl command sends."""
    for old, new in replaced.items():
        command = command.replace(old, new)
    words = shlex.split(command.replace("\\\n", " "))
    return dict(word.split("=", 1) for word in words if "=" in word and not word.startswith("http"))


def test_the_guides_jobs_send_the_token_of_their_platform() -> None:
    _, _, workflow, pipeline = programs_for(__file__, GUIDE, "yaml")
    job: Any = yaml.safe_load(workflow)
    assert job["permissions"] == {"id-token": "write"}
    (step,) = job["jobs"]["report"]["steps"]
    gitlab = yaml.safe_load(pipeline)["report"]
    assert gitlab["id_tokens"]["JOB_TOKEN"] == {"aud": SERVICE}
    for script in (step["run"], gitlab["script"][1]):
        sent = fields_of(script.replace("$(", " ").replace(")", " "), {})
        assert sent["client_id"] == "worker"
        assert sent["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        assert sent["client_assertion"].startswith("$")
