"""`gatehouse test`: permission tests from files, for CI."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from msgspec import UNSET

from gatehouse.cli.apply import SecretFileReader
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.client.errors import ClientError
from gatehouse.client.transport import Request, StandardTransport
from gatehouse.kernel.clock import Clock, SystemClock
from gatehouse.kernel.errors import BadInput
from gatehouse.permissions.errors import Malformed
from gatehouse.provision.document import Document, read_document
from gatehouse.provision.file_secrets import FileSecret, SecretResolver, SecretSource
from gatehouse.provision.model import Unfit
from gatehouse.provision.tests.cases import (
    CaseCredentials,
    CaseFailure,
    CaseResult,
    Suite,
    count_failed,
    junit_xml,
    read_suite,
)
from gatehouse.provision.tests.runners import ServiceRunner, build_model_runner
from gatehouse.settings.merge import file_privacy, process_environment

EXIT_FAILED: Final = 1
EXIT_UNREADABLE: Final = 2
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
            for result in run_file(
                file,
                SecretResolver(
                    environment=environment,
                    read_file=SecretFileReader(file, file_privacy(environment, dev=invocation.dev)),
                ),
            )
        ]
    except Unfit as unfit:
        for problem in unfit.problems:
            click.echo(problem, err=True)
        sys.exit(EXIT_UNREADABLE)
    if report is not None:
        write_report(report, results)
    print_results(results, as_json=as_json)
    if count_failed(results):
        sys.exit(EXIT_FAILED)


def write_report(report: Path, results: list[CaseResult]) -> None:
    try:
        report.write_bytes(junit_xml(results))
    except OSError as error:
        raise click.ClickException(f"cannot write {report}: {error.strerror}") from error


def run_file(file: Path, sources: SecretResolver) -> list[CaseResult]:
    try:
        suite = read_suite(read_test_file(file))
        return asyncio.run(run_suite(suite, file, sources, SystemClock()))
    except Unfit as unfit:
        raise Unfit(f"{file}: {problem}" for problem in unfit.problems) from unfit
    except (BadInput, ClientError, ValueError) as error:
        raise Unfit([f"{file}: {error}"]) from error


def read_test_file(file: Path) -> Document:
    try:
        return read_document(file.read_bytes(), file.suffix)
    except OSError as error:
        raise Unfit([f"cannot be read: {error.strerror}"]) from error


async def run_suite(suite: Suite, file: Path, sources: SecretResolver, clock: Clock) -> list[CaseResult]:
    if suite.server is not None:
        return await run_against_server(suite, suite.server, file, sources)
    given = suite.model
    document = read_test_file(file.parent / given) if isinstance(given, str) else given
    model = await build_model_runner(document or {}, clock)
    return [
        CaseResult(file=str(file), place=case.place, name=case.name, failures=tuple(model.failures(case)))
        for case in suite.cases
    ]


async def run_against_server(suite: Suite, server: str, file: Path, sources: SecretResolver) -> list[CaseResult]:
    transport = StandardTransport(server)
    headers, credentials = request_credentials(suite.token, sources)

    async def post(endpoint: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401 - what the endpoint answers
        request = Request(
            method="POST",
            path=f"/api/permissions/{endpoint}",
            headers={"Content-Type": "application/json", **headers},
            body=msgspec.json.encode({**body, **credentials}),
        )
        reply = await transport.send(request)
        answer = decode_answer(reply.body, f"{server} answered {endpoint} with {reply.status}")
        if reply.status != OK or answer.get("status") != "OK":
            raise Malformed(f"{server} answered {endpoint} with {reply.status}: {answer.get('error', '')}")
        return answer["data"]

    service = ServiceRunner(post)
    try:
        return [
            CaseResult(file=str(file), place=case.place, name=case.name, failures=tuple(await service.failures(case)))
            for case in suite.cases
        ]
    finally:
        await transport.close()


def decode_answer(body: bytes, otherwise: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise Malformed(f"{otherwise}, not in JSON") from None


def request_credentials(token: CaseCredentials, sources: SecretResolver) -> tuple[dict[str, str], dict[str, str]]:
    """Headers, and what goes into the body: beside an access key that is the user's JWT (R6)."""
    secrets = {name: read_secret(getattr(token, name), variable, sources) for name, variable in VARIABLES.items()}
    if not secrets["jwt"]:
        raise Malformed(f"token.jwt: questions to a server need a user JWT; set {VARIABLES['jwt']}")
    if secrets["access_key"]:
        return {"Authorization": f"Bearer {secrets['access_key']}"}, {"jwt": secrets["jwt"]}
    return {"Authorization": f"Bearer {secrets['jwt']}", "Factor": secrets["factor"]}, {}


def read_secret(given: FileSecret | msgspec.UnsetType, variable: str, sources: SecretResolver) -> str:
    if given is UNSET:
        return sources.environment.get(variable, "")
    readers: Mapping[SecretSource, Callable[[str], str]] = {
        SecretSource.PLAIN: str,
        SecretSource.ENV: lambda name: sources.environment.get(name, ""),
        SecretSource.FILE: sources.read_file,
    }
    if given.source not in readers:
        raise Malformed("token: must be env, file or text")
    return readers[given.source](given.text)


def print_results(results: list[CaseResult], *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "cases": len(results),
                "failed": count_failed(results),
                "results": [result_entry(result) for result in results],
            }
        )
        return
    for result in results:
        if not result.passed:
            click.secho(result.line, fg="red")
    click.echo(f"{len(results)} cases, {count_failed(results)} failed.")


def result_entry(result: CaseResult) -> dict[str, object]:
    return {
        "file": result.file,
        "place": result.place,
        "name": result.name,
        "passed": result.passed,
        "failures": [failure_entry(failure) for failure in result.failures],
    }


def failure_entry(failure: CaseFailure) -> dict[str, object]:
    return {"expected": failure.expected, "sentences": failure.sentences}
