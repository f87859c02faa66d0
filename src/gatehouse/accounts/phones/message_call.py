"""One HTTPS call that sends a text message, as the settings describe it (R11). Pure.

What is put into it is encoded for the place where it stands; host and path have no placeholders.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote, quote_plus

import msgspec
from msgspec import Struct

from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.stored_settings import BadSetting
from gatehouse.kernel.text import is_plain_line
from gatehouse.kernel.web_urls import parse_web_url
from gatehouse.outbound.model import OutboundRequest

PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}", re.ASCII)
TO: Final = frozenset({"to", "digits"})  # the number with and without its plus sign
OF_ACCOUNT: Final = frozenset({"from", "account", "secret", "basic"})
KNOWN: Final = TO | {"text"} | OF_ACCOUNT
HEADER_NAME: Final = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)
OWN_HEADERS: Final = frozenset({"host", "content-length", "content-type", "connection", "transfer-encoding"})
FORM_BODY: Final = re.compile(r"[A-Za-z0-9_.~%+&=:@\[\]{}-]*", re.ASCII)
MAX_TEMPLATE_LENGTH: Final = 4_096
JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"


class MessageCall(Struct, frozen=True, kw_only=True):
    url: str
    method: str = "POST"
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: str = ""  # JSON if it begins with a bracket, else a form


class SenderAccount(SecretRecord, frozen=True, kw_only=True):
    """The account at the service that sends messages."""

    account: str = ""
    secret: SecretText = ""
    sender_id: str = ""  # the number or name that messages come from

    def values(self, to: str, text: str) -> Mapping[str, str]:
        basic = base64.b64encode(f"{self.account}:{self.secret}".encode()).decode()
        return {
            "to": to,
            "digits": to.removeprefix("+"),
            "text": text,
            "from": self.sender_id,
            "account": self.account,
            "secret": self.secret,
            "basic": basic,
        }


BASIC: Final = {"Authorization": "Basic {basic}"}
# By the value of phone.sender; the address of `json` is a setting.
SENDERS: Final[Mapping[str, MessageCall]] = {
    "twilio": MessageCall(
        url="https://api.twilio.com/2010-04-01/Accounts/{account}/Messages.json",
        headers=BASIC,
        body="To={to}&From={from}&Body={text}",
    ),
    "vonage": MessageCall(
        url="https://api.nexmo.com/v1/messages",
        headers=BASIC,
        body='{"channel": "sms", "message_type": "text", "to": "{digits}", "from": "{from}", "text": "{text}"}',
    ),
    "messagebird": MessageCall(
        url="https://rest.messagebird.com/messages",
        headers={"Authorization": "AccessKey {secret}"},
        body="recipients={digits}&originator={from}&body={text}&datacoding=auto",
    ),
    "json": MessageCall(
        url="",
        headers={"Authorization": "Bearer {secret}"},
        body='{"to": "{to}", "text": "{text}"}',
    ),
}


def message_request(call: MessageCall, account: SenderAccount, *, to: str, text: str) -> OutboundRequest:
    """Return the call for one message."""
    values = account.values(to, text)
    is_json = call.body.startswith(("{", "["))
    headers = {name: fill(value, values, str) for name, value in call.headers.items()}
    if call.body:
        headers["Content-Type"] = JSON if is_json else FORM
    body = fill(call.body, values, json_text if is_json else quote_plus).encode() if call.body else None
    return OutboundRequest(
        # The account's own ID may stand in the path of a ready-made call; of others no placeholder does.
        url=fill(call.url, values, lambda value: quote(value, safe="")),
        method=call.method,
        headers=headers,
        body=body if call.method != "GET" else None,
    )


def fill(template: str, values: Mapping[str, str], encode: Callable[[str], str]) -> str:
    return PLACEHOLDER.sub(lambda found: encode(values[found[1]]), template)


def json_text(value: str) -> str:
    return json.dumps(value)[1:-1]


# Checks of settings; each raises BadSetting.


def check_call_url(text: str) -> None:
    address, _, query = text.partition("?")
    url = parse_web_url(PLACEHOLDER.sub("x", text), max_length=MAX_TEMPLATE_LENGTH)
    if url is None or url.fragment or "{" in address or "}" in address:
        raise BadSetting("must be an https URL without placeholders before the question mark").on_screen("call_url")
    refuse_unknown(query)


def check_call_headers(text: str) -> None:
    headers = read_headers(text)
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name) or name.lower() in OWN_HEADERS or not is_plain_line(value):
            raise BadSetting(f"cannot set the header {name!r:.60}").on_screen("call_header", name=name[:60])
        refuse_unknown(value)
        if not names_in(value) <= OF_ACCOUNT:
            raise BadSetting("headers contain neither {to}, {digits} nor {text}").on_screen("call_header_message")


def read_headers(text: str) -> Mapping[str, str]:
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, str])
    except msgspec.MsgspecError:
        raise BadSetting('must be a JSON object of texts, like {"Authorization": "Bearer {secret}"}').on_screen(
            "call_headers"
        ) from None


def check_call_body(text: str) -> None:
    refuse_unknown(text)
    if len(text) > MAX_TEMPLATE_LENGTH or not (is_json_template(text) or FORM_BODY.fullmatch(text)):
        raise BadSetting(
            "must be JSON with placeholders inside of texts, or fields like to={to}&text={text}"
        ).on_screen("call_body")


def is_json_template(text: str) -> bool:
    try:
        msgspec.json.decode(PLACEHOLDER.sub("x", text))
    except msgspec.MsgspecError:
        return False
    return text.startswith(("{", "["))


def refuse_unknown(template: str) -> None:
    unknown = sorted(names_in(template) - KNOWN)
    if unknown:
        raise BadSetting(f"has an unknown placeholder {{{unknown[0]}}}").on_screen(
            "call_placeholder", name=unknown[0]
        )


def names_in(template: str) -> frozenset[str]:
    return frozenset(PLACEHOLDER.findall(template))


def is_complete(call: MessageCall) -> bool:
    """Whether a message says something to someone."""
    names = names_in(call.url) | (names_in(call.body) if call.method != "GET" else frozenset())
    return "text" in names and bool(names & TO)
