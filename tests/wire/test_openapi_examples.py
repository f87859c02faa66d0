"""Every operation has a description and an example, and every example works as the documentation shows it.

The line for a shell is what is sent: with the credentials of its variables, and with placeholders replaced. What the
service answers is compared with the documented response; `--write-responses` writes all of them anew.
"""

import json
import re
import shlex
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import httpx2
import jsonschema_rs
import msgspec
import pytest

import gatehouse.web.http
from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.demo.accounts import BY_NAME, DemoSecrets, new_secrets
from gatehouse.demo.seeding import apply_studio
from gatehouse.web.http.operation_texts import (
    RESPONSES_FILE,
    ExampleResponse,
    example_responses,
    operation_texts,
)
from tests.support.browser import AccountBrowser, HttpBrowser, totp_code
from tests.support.builders import NOW, ORIGIN, PASSKEY_HOST, a_passkey, a_record
from tests.support.game import approve_in_storage, register_game
from tests.support.guests import Device, ask_challenge, turn_guests_on
from tests.support.oauth import RelyingPartyClient, success_body
from tests.support.platforms import SteamWebApi, run_steam
from tests.support.service import RunningService, running_service
from tests.support.tls import NO_TRUST_STORE

FACTOR: Final = "9d5c1a"  # of every example
CLIENT: Final = "raiders-hub"
REDIRECT: Final = "http://localhost:8090/callback"
GAME: Final = 50001
API: Final = "https://api.lanternfish.example/matches"  # of the game
VERIFIER: Final = {
    "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    "code_challenge_method": "S256",
}
PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")
NAMED_ID: Final = re.compile(r'"(\w+)": "\{id\}"')  # of the same operation
# Where an ID comes from, if the operation itself does not answer with it under the name of the field.
ID_SOURCES: Final = {
    ("permissions.application.public_key", "id"): ("permissions.application_keys", "id"),
    ("permissions.group", "group_id"): ("permissions.group", "id"),
    ("permissions.group_access", "group_id"): ("permissions.group", "id"),
    ("permissions.group_tags", "group_id"): ("permissions.group", "id"),
    ("permissions.game_session", "ref"): ("game.get_gsid", "gsid"),
}
REF_LENGTH: Final = 13  # of a gsid, in `ref`
SUCCESS: Final = {"OK", "ok", "CHALLENGE"}  # of the field `status`, where an answer has it
LAST: Final = ("delete", "erase")
PROXY: Final = "127.0.0.2"
ENVIRONMENT: Final = {
    "GATEHOUSE__SERVER__TRUSTED_PROXIES": f"{PROXY}/32",
    "GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8",
}
WRITE_RESPONSES: Final = "--write-responses"
RESPONSES: Final = Path(gatehouse.web.http.__file__).with_name(RESPONSES_FILE)
BASE_URL: Final = "http://localhost:8080"  # of the documented responses
DAY: Final = 86_400  # seconds; the clock goes on between examples
MAX_LISTED: Final = 2  # entries of a list that a documented response has
CHANGING: Final = re.compile(
    r"(?<=eyJ)[\w.-]+"  # a JWT
    r"|(?<=whsec_).+"
    r"|(?<=image/svg).+"
    r"|(?<=KEY-----\n)[^-]+(?=\n-----END)"
    r"|(?<![\w-])(?!whsec_)(?=[\w-]*\d)[\w-]{20,}(\.[\w-]{20,})*(?![\w-])"  # an ID, a token or a hash
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}\b"  # the beginning of a gsid
    r"|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b"  # a short one
    r"|\b(?!10000000)[1-9]\d{9}\b"  # the ID of a new user
    r"|\b[B-Z]{4}-[B-Z]{4}\b"  # the code of a device
    r"|(?<![\d.])\d+\.\d+\.\d+(?![\d./])"  # a version of a program
    r"|\b00\d\d\b"  # of the schema
    r"|^\d\d$"  # the code of a game
    r"|(?<=T)\d\d:\d\d:\d\d(?=Z)"
    r"|(?<=[a-z]:)\d{5,}"  # seconds that a permission lasts
    r"|(?<=\Aws://localhost:)\d+"
    r"|(?<=\AGuest )\w+"
)
STREAMS: Final = {"permissions.changes"}  # its answer has no end: the beginning is read


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    operation_id: str
    operation: Mapping[str, Any]
    title: str
    curl: str


def examples_in(document: Mapping[str, Any]) -> Iterator[Example]:
    for item in document["paths"].values():
        for operation in item.values():
            for sample in operation.get("x-codeSamples", ()):
                yield Example(
                    operation_id=operation["operationId"],
                    operation=operation,
                    title=sample["label"],
                    curl=sample["source"],
                )


def as_request(client: httpx2.AsyncClient, curl: str) -> httpx2.Request:
    """The request that curl would send for this line."""
    program, *rest = shlex.split(curl.replace("\\\n", " "))
    assert program == "curl"
    method, url, auth, content = "GET", "", None, None
    headers: dict[str, str] = {}
    form: list[tuple[str, str]] = []
    arguments = iter(rest)
    for argument in arguments:
        match argument:
            case "-X":
                method = next(arguments)
            case "-H":
                name, _, value = next(arguments).partition(": ")
                headers[name] = value
            case "-u":
                auth = httpx2.BasicAuth(*next(arguments).split(":"))
            case "-d":
                content = next(arguments)
            case "--data-urlencode":
                name, _, value = next(arguments).partition("=")
                form.append((name, value))
            case _:
                assert argument.startswith("http")
                url = argument
    if form:
        content, headers["Content-Type"] = urlencode(form), "application/x-www-form-urlencoded"
    request = client.build_request(method, url, headers=headers, content=content)
    return request if auth is None else next(auth.sync_auth_flow(request))


@dataclass(slots=True, kw_only=True)
class DemoStudio:
    """The studio of the demo, and the values that its examples leave open."""

    service: RunningService
    secrets: DemoSecrets
    steam: SteamWebApi
    client: RelyingPartyClient
    variables: Mapping[str, str]
    device: Device = field(default_factory=Device)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)  # by operation and title

    async def user(self, name: str) -> User:
        return await self.service.services.storage.accounts.user(BY_NAME[name].user_id)

    async def fill(self, example: Example) -> str:
        """The line with a value for each variable and placeholder."""
        text = example.curl
        for name, value in self.variables.items():
            text = re.sub(rf"\${name}\b", value, text)
        text = NAMED_ID.sub(lambda found: f'"{found[1]}": "{self.id_in_answers(example, found[1])}"', text)
        wanted = list(dict.fromkeys(PLACEHOLDER.findall(text)))
        values = await self.values_for(wanted, example)
        return PLACEHOLDER.sub(lambda found: values[found[1]], text)

    async def send(self, example: Example) -> httpx2.Response:
        """Send the example; remember the answer, which later examples refer to."""
        async with AsyncExitStack() as stack:
            client = self.service.client
            if example.operation_id == "forward_auth":
                client = await stack.enter_async_context(client_at(PROXY, client))
            request = as_request(client, await self.fill(example))
            response = await client.send(request, stream=example.operation_id in STREAMS)
            if example.operation_id in STREAMS:
                await response.aclose()
            elif response.headers.get("content-type") == "application/json":
                self.answers.setdefault(example.operation_id, {})[example.title] = response.json()
            return response

    async def values_for(self, wanted: list[str], example: Example) -> Mapping[str, str]:
        """A value for each placeholder; those of one step come together."""
        values: dict[str, str] = {}
        for name in wanted:
            if name not in values:
                values |= await self.value_of(name, example)
        return values

    async def value_of(self, name: str, example: Example) -> Mapping[str, str]:
        match name:
            case "access_token" | "refresh_token" | "id_token":
                return await self.tokens(resource=API if f"resource={API}" in example.curl else "")
            case "request_id":
                return await self.second_step()
            case "device_key" | "challenge" | "signature":
                return self.device.sign(await ask_challenge(self.service, app_id=GAME))
            case "id":
                return {name: self.id_in_answers(example, name)}
            case "gsid":
                return {name: await self.gsid(polled=example.operation_id == "game.close_gsid")}
        alone = {
            "password": self.password,
            "client_secret": self.client_secret,
            "user_jwt": self.user_jwt,
            "code": self.code,
            "device_code": self.device_code,
            "ticket": self.ticket,
        }
        return {name: await alone[name]()}

    async def password(self) -> str:
        return self.secrets.passwords["jonas"]

    async def client_secret(self) -> str:
        return self.secrets.client_secret

    async def ticket(self) -> str:
        return self.steam.ticket()

    async def user_jwt(self) -> str:
        return await self.service.services.accounts.user_tokens.issue(
            await self.user("mara"), auth="login", factor=FACTOR
        )

    async def code(self, **changes: str) -> str:
        jonas = BY_NAME["jonas"]
        return await self.client.sign_in(jonas.login, self.secrets.passwords["jonas"], **{**VERIFIER, **changes})

    async def tokens(self, *, resource: str = "") -> Mapping[str, str]:
        scope = "openid profile email offline_access" + " match.read" * bool(resource)
        code = await self.code(scope=scope, resource=resource)
        return await self.client.tokens(code, code_verifier="dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")

    async def device_code(self) -> str:
        asked = await self.service.client.post(
            "/proxy/oauth/device_authorization", data={"scope": "openid"}, headers=self.client.headers
        )
        device = success_body(asked)
        browser = HttpBrowser(self.service)
        await browser.sign_in(BY_NAME["noor"].login, self.secrets.passwords["noor"])
        await browser.get("/device")
        await browser.post("/device", user_code=device["user_code"])
        page = await browser.follow()
        await browser.post(page.url.path, decision="confirm")
        await browser.client.aclose()
        return str(device["device_code"])

    async def gsid(self, *, polled: bool) -> str:
        game = await register_game(self.service, app_id=GAME, factor=FACTOR)
        await approve_in_storage(game, await self.user("jonas"))
        if polled:
            assert success_body(await game.poll())["status"] == "OK"
        return game.gsid

    async def second_step(self) -> Mapping[str, str]:
        """Of a person with an authenticator app, who has typed the password."""
        chloe, password = BY_NAME["chloe"], self.secrets.passwords["chloe"]
        browser = AccountBrowser(self.service)
        await browser.sign_in_and_open_account(chloe.login, password)
        secret, _ = await browser.set_up_totp(self.service)
        await browser.client.aclose()
        await self.service.clock.advance(30)  # a code works once
        fields = {"login": chloe.login, "password": password}
        first = success_body(await self.service.client.post("/proxy/api/login", json=fields))
        return {"request_id": first["request_id"], "otp": totp_code(secret, self.service)}

    def id_in_answers(self, example: Example, member: str) -> str:
        """The ID that the last example of this operation, or of another one, was answered with."""
        operation_id, member = ID_SOURCES.get((example.operation_id, member), (example.operation_id, member))
        for answer in reversed(self.answers.get(operation_id, {}).values()):
            data = answer.get("data", answer)
            for entry in data if isinstance(data, list) else [data]:
                if isinstance(entry, dict) and member in entry:
                    found = str(entry[member])
                    return found[:REF_LENGTH] if member == "gsid" else found
        raise AssertionError(f"no {member} in the answers of {operation_id}")

    async def call(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.variables['JWT']}", "Factor": FACTOR}
        return success_body(await self.service.client.post(f"/api/permissions/{path}", json=body, headers=headers))

    async def document(self) -> Mapping[str, Any]:
        return success_body(await self.service.client.get("/openapi.json"))


def client_at(address: str, other: httpx2.AsyncClient) -> httpx2.AsyncClient:
    transport = httpx2.AsyncHTTPTransport(local_address=address, verify=NO_TRUST_STORE)
    return httpx2.AsyncClient(transport=transport, base_url=other.base_url)


@pytest.fixture
async def studio(installed_sqlite_url: str, tmp_path: Path) -> AsyncIterator[DemoStudio]:
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(
            running_service(installed_sqlite_url, tmp_path, environment=ENVIRONMENT)
        )
        secrets = new_secrets()
        await apply_studio(service.services, secrets, port=8090, now=service.clock.now())
        steam = await stack.enter_async_context(run_steam())
        await service.services.settings_editor.save(steam.settings(GAME), ORIGIN)
        await turn_guests_on(service)
        client = await service.services.storage.clients.client(CLIENT)
        passkey = a_passkey(user_id=BY_NAME["mara"].user_id)  # without one, no one can create a project
        await service.services.storage.passkeys.add_passkey(
            passkey, (), a_record(AuditEvent.FACTOR_ADDED), (), host=PASSKEY_HOST
        )
        mara = await service.services.storage.accounts.user(BY_NAME["mara"].user_id)
        studio = DemoStudio(
            service=service,
            secrets=secrets,
            steam=steam,
            client=RelyingPartyClient(
                service=service, client=client, secret=secrets.client_secret, redirect_uri=REDIRECT
            ),
            variables={
                "JWT": await service.services.accounts.user_tokens.issue(mara, auth="login", factor=FACTOR),
                "FACTOR": FACTOR,
                "ACCESS_KEY": "",
                "ACCESS_TOKEN": "",
                "CLIENT_ID": CLIENT,
                "CLIENT_SECRET": secrets.client_secret,
            },
        )
        key = await studio.call("accessKey", {"action": "save", "application_id": 50003, "data": {"comment": ""}})
        await studio.call(
            "client",
            {
                "action": "save",
                "application_id": 50002,
                "data": {
                    "client_id": CLIENT,
                    "device_grant": True,
                    "scopes": ["openid", "profile", "email", "offline_access"],
                },
            },
        )
        for_hub = {"access": "listed", "clients": [CLIENT]}
        game = await studio.call(
            "application", {"action": "get", "data": {"application_id": GAME}, "options": {"full": True}}
        )
        api = {**game["data"]["api"], **for_hub}
        await studio.call("application", {"action": "save", "data": {"application_id": GAME, "api": api}})
        tokens = await studio.tokens()
        studio.variables = {
            **studio.variables,
            "ACCESS_KEY": key["data"]["hash"],
            "ACCESS_TOKEN": tokens["access_token"],
        }
        yield studio


async def test_every_operation_has_a_description_and_examples_that_work(
    studio: DemoStudio, pytestconfig: pytest.Config
) -> None:
    document = await studio.document()
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    bare = [one["operationId"] for one in operations if not (one.get("description") and one.get("x-codeSamples"))]
    assert bare == []
    problems: list[str] = []
    responses: dict[str, dict[str, ExampleResponse]] = {endpoint_of(one): {} for one in operations}
    for example in sorted(examples_in(document), key=lambda one: one.title in LAST):
        try:
            response = await studio.send(example)
            check_answer(document, example, response)
            real = response_of(response, studio.service.base_url)
            responses[endpoint_of(example.operation)][example.title] = shorten_response(real)
            if not pytestconfig.getoption(WRITE_RESPONSES):
                documented = operation_texts().operations[endpoint_of(example.operation)].responses.get(example.title)
                assert documented is not None, "no response is documented"
                assert fits(msgspec.to_builtins(documented), msgspec.to_builtins(real)), (documented, real)
        except AssertionError as error:
            problems.append(f"{example.operation_id} {example.title}: {str(error)[:400]}")
    assert not problems, "\n".join(problems)
    assert set(operation_texts().operations) == {endpoint_of(one) for one in operations}
    if pytestconfig.getoption(WRITE_RESPONSES):
        RESPONSES.write_text(response_lines(responses), "utf-8")
    assert {name: set(ones) for name, ones in example_responses().items()} == {
        name: set(ones) for name, ones in responses.items()
    }


def response_of(response: httpx2.Response, base_url: str) -> ExampleResponse:
    is_json = response.headers.get("content-type") == "application/json"
    body = json.loads(response.text.replace(base_url, BASE_URL)) if is_json else msgspec.UNSET
    return ExampleResponse(
        status=response.status_code,
        location=response.headers.get("location", "").replace(base_url, BASE_URL),
        body=body,
    )


def shorten_response(real: ExampleResponse) -> ExampleResponse:
    body = real.body if real.body is msgspec.UNSET else shorten(real.body)
    return ExampleResponse(status=real.status, location=shorten(real.location), body=body)


def shorten(value: Any) -> Any:
    """Without what is different in each run, and with the first entries of a list."""
    match value:
        case str():
            return CHANGING.sub("…", value)
        case list():
            return [shorten(one) for one in value[:MAX_LISTED]]
        case dict():
            return {CHANGING.sub("…", name): shorten(one) for name, one in value.items()}
        case _:
            return value


def fits(documented: Any, real: Any) -> bool:
    """Whether this is the response that is documented: "…" is any text, lists are cut, times are near."""
    match documented, real:
        case str(), str():
            return re.fullmatch(".+".join(map(re.escape, documented.split("…"))), real, re.DOTALL) is not None
        case list(), list():
            is_whole = len(documented) == min(len(real), MAX_LISTED)
            return is_whole and all(any(fits(one, other) for other in real) for one in documented)
        case dict(), dict():
            return len(documented) == len(real) and all(
                fits(name, other) and fits(one, real[other])
                for (name, one), other in zip(documented.items(), real, strict=True)
            )
        case int(), int() if documented > NOW - DAY:
            return abs(documented - real) < DAY
        case _:
            return bool(documented == real)


def response_lines(responses: Mapping[str, Mapping[str, ExampleResponse]]) -> str:
    """JSON with one response per line."""
    parts = []
    for name, ones in responses.items():
        lines = (f"    {json.dumps(title)}: {msgspec.json.encode(one).decode()}" for title, one in ones.items())
        parts.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def endpoint_of(operation: Mapping[str, Any]) -> str:
    """The name of its endpoint: one with several methods has an operation for each."""
    name: str = operation["operationId"]
    return name.removesuffix(".get").removesuffix(".post") if name.startswith("oauth.userinfo") else name


def check_answer(document: Mapping[str, Any], example: Example, response: httpx2.Response) -> None:
    documented = {int(status) for status in example.operation["responses"]}
    assert response.status_code < 400, (response.status_code, response.text)
    assert response.status_code in documented
    content = example.operation["responses"][str(response.status_code)].get("content", {})
    media_type = response.headers.get("content-type", "").partition(";")[0]
    if not content:
        assert response.text == ""
        return
    assert media_type in content
    if media_type == "application/json":
        body = response.json()
        assert body.get("status", "OK") in SUCCESS, body
        schema = {**content[media_type]["schema"], "components": document["components"]}
        errors = [error.message for error in jsonschema_rs.Draft202012Validator(schema).iter_errors(body)]
        assert errors == []
