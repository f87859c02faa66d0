"""A service that sends text messages, as tests see it."""

import json
import re

from tests.support.stub_server import ReceivedRequest, StubServer, http_response

PHONE = "+49 151 2345-6789"
NUMBER = "+4915123456789"
CODE = re.compile(r"\A(\d{6}) is your code for ")


class FakeSender:
    """A service that takes text messages as JSON, and their texts."""

    def __init__(self) -> None:
        self.server = StubServer(respond=self._respond)
        self.texts: list[tuple[str, str]] = []
        self.status = "200 OK"

    def _respond(self, request: ReceivedRequest) -> bytes:
        if self.status == "200 OK":
            assert request.headers["authorization"] == "Bearer s3cret"
            message = json.loads(request.body)
            self.texts.append((message["to"], message["text"]))
        return http_response(status=self.status)

    def code(self) -> str:
        found = CODE.match(self.texts[-1][1])
        assert found is not None, self.texts[-1]
        return found[1]


def phone_settings(sender: FakeSender) -> dict[str, str]:
    return {
        "GATEHOUSE__PHONE__COUNTRIES": "DE,US",
        "GATEHOUSE__PHONE__SENDER": "json",
        "GATEHOUSE__PHONE__URL": f"http://127.0.0.1:{sender.server.port}/messages",
        "GATEHOUSE__PHONE__SECRET": "s3cret",
        "GATEHOUSE__PHONE__MESSAGE_CENTS": "10",
        "GATEHOUSE__PHONE__COST_A_DAY": "200",
        "GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8",
    }
