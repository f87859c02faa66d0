"""`gatehouse test`: who may what, as cases in files, for CI."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from msgspec import UNSET

from gatehouse.cli.apply import SecretFile
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.client.errors import ClientError
from gatehouse.client.transport import Request, StandardTransport
from gatehouse.kernel.clock import Clock, SystemClock
from gatehouse.kernel.errors import BadInput
from gatehouse.permissions.errors import Malformed
from gatehouse.provision.document import Document, read_document
from gatehouse.provision.errors import Unfit
from gatehouse.provision.given import GivenSecret, SecretSources, Source
from gatehouse.provision.permission_tests.modelled import model_of
from gatehouse.provision.permission_tests.results import Failure, Result, failed, junit
from gatehouse.provision.permission_tests.served import Service
from gatehouse.provision.permission_tests.suite import Suite, Token, read_suite
from gatehouse.settings import privacy_in, process_environment

FAILED: Final = 1
UNREADABLE: Final = 2
OK: Final = 200
VARIABLES: Final = {  # what the token is taken from when the file does not say
    "jwt": "GATEHOUSE_TEST_JWT",
    "factor": "GATEHOUSE_TEST_FACTOR",
    "access_key": "GATEHOUSE_TEST_ACCESS_KEY",
}


@click.command()
@common_options
@json_option
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--junit", "report", type=click.Path(path_type=Path, dir_okay=False), help="Write JUnit XML to this file."
)
def test(invocation: Invocation, *, files: tuple[Path, ...], report: Path | None, as_json: bool) -> None:
    """Run permission tests from FILES.

    A file names either a model, which is evaluated locally without a database, or a running server.
    Exit codes: 0 all passed, 1 a test failed, 2 a file cannot be read.
    """
    environment = process_environment()
    try:
        results = [
            result
            for file in files
            for result in run(
                file,
                SecretSources(
                    environment=environment,
                    read_file=SecretFile(file, privacy_in(environment, dev=invocation.dev)),
                ),
            )
        ]
    except Unfit as unfit:
        for problem in unfit.problems:
            click.echo(problem, err=True)
        sys.exit(UNREADABLE)
    if report is not None:
        write_report(report, results)
    print_results(results, as_json=as_json)
    if failed(results):
        sys.exit(FAILED)


def write_report(report: Path, results: list[Result]) -> None:
    try:
        report.write_bytes(junit(results))
    except OSError as error:
        raise click.ClickException(f"cannot write {report}: {error.strerror}") from error


def run(file: Path, sources: SecretSources) -> list[Result]:
    try:
        suite = read_suite(read(file))
        return asyncio.run(results_of(suite, file, sources, SystemClock()))
    except Unfit as unfit:
        raise Unfit(f"{file}: {problem}" for problem in unfit.problems) from unfit
    except (BadInput, ClientError, ValueError) as error:
        raise Unfit([f"{file}: {error}"]) from error


def read(file: Path) -> Document:
    try:
        return read_document(file.read_bytes(), file.suffix)
    except OSError as error:
        raise Unfit([f"cannot be read: {error.strerror}"]) from error


async def results_of(suite: Suite, file: Path, sources: SecretSources, clock: Clock) -> list[Result]:
    if suite.server is not None:
        return await served(suite, suite.server, file, sources)
    given = suite.model
    document = read(file.parent / given) if isinstance(given, str) else given
    model = await model_of(document or {}, clock)
    return [
        Result(file=str(file), place=case.place, name=case.name, failures=tuple(model.failures(case)))
        for case in suite.cases
    ]


async def served(suite: Suite, server: str, file: Path, sources: SecretSources) -> list[Result]:
    transport = StandardTransport(server)
    headers, credentials = told(suite.token, sources)

    async def post(endpoint: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401 - what the endpoint answers
        request = Request(
            method="POST",
            path=f"/api/permissions/{endpoint}",
            headers={"Content-Type": "application/json", **headers},
            body=msgspec.json.encode({**body, **credentials}),
        )
        reply = await transport.send(request)
        answer = decoded(reply.body, f"{server} answered {endpoint} with {reply.status}")
        if reply.status != OK or answer.get("status") != "OK":
            raise Malformed(f"{server} answered {endpoint} with {reply.status}: {answer.get('error', '')}")
        return answer["data"]

    service = Service(post)
    try:
        return [
            Result(file=str(file), place=case.place, name=case.name, failures=tuple(await service.failures(case)))
            for case in suite.cases
        ]
    finally:
        await transport.close()


def decoded(body: bytes, otherwise: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise Malformed(f"{otherwise}, not in JSON") from None


def told(token: Token, sources: SecretSources) -> tuple[dict[str, str], dict[str, str]]:
    """Headers, and what goes into the body: beside an access key that is the user's JWT (R6)."""
    secrets = {name: secret(getattr(token, name), variable, sources) for name, variable in VARIABLES.items()}
    if not secrets["jwt"]:
        raise Malformed(f"token.jwt: questions to a server need a user JWT; set {VARIABLES['jwt']}")
    if secrets["access_key"]:
        return {"Authorization": f"Bearer {secrets['access_key']}"}, {"jwt": secrets["jwt"]}
    return {"Authorization": f"Bearer {secrets['jwt']}", "Factor": secrets["factor"]}, {}


def secret(given: GivenSecret | msgspec.UnsetType, variable: str, sources: SecretSources) -> str:
    if given is UNSET:
        return sources.environment.get(variable, "")
    readers: Mapping[Source, Callable[[str], str]] = {
        Source.PLAIN: str,
        Source.ENV: lambda name: sources.environment.get(name, ""),
        Source.FILE: sources.read_file,
    }
    if given.source not in readers:
        raise Malformed("token: must be env, file or text")
    return readers[given.source](given.text)


def print_results(results: list[Result], *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "cases": len(results),
                "failed": failed(results),
                "results": [summary(result) for result in results],
            }
        )
        return
    for result in results:
        if not result.passed:
            click.secho(result.line, fg="red")
    click.echo(f"{len(results)} cases, {failed(results)} failed.")


def summary(result: Result) -> dict[str, object]:
    return {
        "file": result.file,
        "place": result.place,
        "name": result.name,
        "passed": result.passed,
        "failures": [shown(failure) for failure in result.failures],
    }


def shown(failure: Failure) -> dict[str, object]:
    return {"expected": failure.expected, "sentences": failure.sentences}
