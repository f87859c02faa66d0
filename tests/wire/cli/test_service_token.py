"""`gatehouse service-token`: static service JWTs for scripts (R2, R8)."""

import json
from base64 import urlsafe_b64decode
from typing import Any

from tests.support.command_line import CommandLine

DAY = 86_400


def claims_of(jwt: str) -> Any:
    payload = jwt.split(".")[1]
    return json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def test_a_service_jwt_is_printed_alone(gatehouse: CommandLine) -> None:
    output = gatehouse("service-token", "1")
    assert output.count("\n") == 1
    claims = claims_of(output.strip())
    assert (claims["typ"], claims["aud"], claims["iss"]) == ("service_jwt", "1", "http://localhost:8080")
    assert claims["exp"] - claims["iat"] == 90 * DAY


def test_tokens_are_listed_and_revoked_and_all_of_it_is_on_record(gatehouse: CommandLine) -> None:
    output = gatehouse.json("service-token", "1", "--days", "365", "--comment", "nightly")
    claims = claims_of(output["jwt"])
    assert (claims["jti"], claims["exp"]) == (output["jti"], output["created_at"] + 365 * DAY)
    [listed] = gatehouse.json("service-token", "1", "--list")
    assert listed == {name: value for name, value in output.items() if name != "jwt"}
    assert "nightly" in gatehouse("service-token", "1", "--list")
    assert " revoked" in gatehouse("service-token", "1", "--revoke", output["jti"])
    [listed] = gatehouse.json("service-token", "1", "--list")
    assert listed["revoked"]
    events = [record["event"] for record in gatehouse.json("audit", "show", "--subject", "application 1")]
    assert sorted(events) == ["service_token.made", "service_token.revoked"]
    assert output["jwt"] not in json.dumps(gatehouse.json("audit", "show", "--subject", "application 1"))


def test_invalid_input_is_refused_with_an_error_message(gatehouse: CommandLine) -> None:
    assert "Application not found" in gatehouse.expect_failure("service-token", "50001")
    assert "has no service JWT" in gatehouse.expect_failure("service-token", "1", "--revoke", "none")
    for wrong in (("1", "--days", "366"), ("1", "--days", "0"), ("0",), ("x",), ("1", "--list", "--days", "3")):
        gatehouse.expect_failure("service-token", *wrong, code=2)
    jti = gatehouse.json("service-token", "1")["jti"]
    assert "has no service JWT" in gatehouse.expect_failure("service-token", "2", "--revoke", jti)
