"""Everything that the console can do has a call of the API."""

from collections.abc import Iterator, Mapping
from typing import Any

from gatehouse.web.console.path_table import CONSOLE_PATHS
from tests.support.service import RunningService

PROJECT = "/projects/{project_id}"
APPLICATION = "/applications/{application_id:int}"
WEBHOOK = "/settings/webhooks/{webhook_id}"

# Each form of the console, and the call that does the same: path and action; "" for a path with one action.
CALLS: Mapping[str, tuple[str, str]] = {
    "/people/new": ("user", "create"),
    "/people/import": ("user/import", "plan"),
    "/people/import/run": ("user/import", "import"),
    "/people/invite": ("user", "invite"),
    "/people/invite/links": ("user", "invite"),  # its answers have the links
    "/people/selected": ("user", "save"),  # and block, unblock; group/access; meta/data
    "/people/{user_id}/edit": ("user", "save"),
    "/people/{user_id}/email": ("user", "save"),
    "/people/{user_id}/act/{act}": ("user", "block"),  # and unblock, end_sessions, invite, erase; roles: meta/data
    "/people/{user_id}/sessions": ("user", "end_sessions"),
    "/people/{user_id}/methods/remove": ("user", "reset_factors"),
    "/people/{user_id}/methods/open-phone": ("user", "open_phone"),
    "/people/{user_id}/access/role": ("simulate", ""),
    "/people/{user_id}/access/group": ("group/access", ""),
    "/people/{user_id}/access/project": ("project/membership", "save"),
    "/people/{user_id}/data": ("user", "export"),
    "/people/{user_id}/bans": ("user/ban", "save"),
    "/people/{user_id}/bans/lift": ("user/ban", "lift"),
    "/projects/new": ("publish", ""),
    f"{PROJECT}/settings": ("project", "save"),
    f"{PROJECT}/remove": ("project", "delete"),
    f"{PROJECT}/erase": ("project", "erase"),
    f"{PROJECT}/members/lists": ("project/membership", "save"),
    f"{PROJECT}/members/invite": ("user", "invite"),
    f"{PROJECT}/members/invite/withdraw": ("project/membership", "save"),
    f"{PROJECT}/members/{{user_id}}": ("project/membership", "save"),
    f"{PROJECT}/members/{{user_id}}/remove": ("project/membership", "save"),
    f"{PROJECT}/bans": ("user/ban", "save"),
    f"{PROJECT}/bans/lift": ("user/ban", "lift"),
    f"{PROJECT}/applications": ("project", "save"),
    f"{PROJECT}/services/{{application_id:int}}": ("project", "save"),
    f"{PROJECT}/services/{{application_id:int}}/disconnect": ("project", "save"),
    f"{PROJECT}/groups": ("group", "save"),
    f"{PROJECT}/groups/{{group_id}}": ("group", "save"),
    f"{PROJECT}/groups/{{group_id}}/remove": ("group", "delete"),
    f"{PROJECT}/groups/{{group_id}}/access": ("group/access", ""),
    f"{PROJECT}/groups/{{group_id}}/conditions/{{number}}": ("group", "save"),
    f"{PROJECT}/service_accounts/new": ("serviceAccount", "save"),
    f"{PROJECT}/service_accounts/{{user_id}}/revoke": ("serviceAccount", "delete"),
    "/roles/new": ("roles", "save"),
    "/roles/{application_id:int}/{role}/settings": ("roles", "save"),
    "/roles/{application_id:int}/{role}/remove": ("roles", "delete"),
    "/applications/new/empty": ("application", "save"),
    "/applications/new/game": ("application", "save"),
    "/applications/new/machine": ("accessKey", "save"),  # after ("application", "save"), like the next three
    "/applications/new/job": ("client", "create"),
    "/applications/new/page": ("client", "create"),
    "/applications/new/product": ("client", "create"),
    "/applications/new/web": ("client", "create"),
    f"{APPLICATION}/settings": ("application", "save"),
    f"{APPLICATION}/settings/service": ("application", "save"),
    f"{APPLICATION}/remove": ("application", "delete"),
    f"{APPLICATION}/rules/login": ("meta/schema", "save"),
    f"{APPLICATION}/rules/import": ("meta/schema", "save"),
    f"{APPLICATION}/rules/new": ("meta/schema", "save"),
    f"{APPLICATION}/rules/several": ("meta/schema", "save"),
    f"{APPLICATION}/rules/{{rule}}": ("meta/schema", "save"),
    f"{APPLICATION}/rules/{{rule}}/remove": ("meta/schema", "save"),
    f"{APPLICATION}/versions/{{version:int}}/restore": ("meta/schema", "save"),
    f"{APPLICATION}/access_keys": ("accessKey", "save"),
    f"{APPLICATION}/access_keys/{{key_id}}/remove": ("accessKey", "delete"),
    f"{APPLICATION}/public_keys": ("application/keys", "save"),
    f"{APPLICATION}/public_keys/{{kid}}/remove": ("application/keys", "delete"),
    f"{APPLICATION}/service_tokens": ("serviceToken", "create"),
    f"{APPLICATION}/service_tokens/email_secret": ("emailSecret", "create"),
    f"{APPLICATION}/service_tokens/email_secret/{{ref}}/revoke": ("emailSecret", "delete"),
    f"{APPLICATION}/service_tokens/{{jti}}/revoke": ("serviceToken", "delete"),
    f"{APPLICATION}/new_client": ("client", "create"),
    f"{APPLICATION}/env": ("client", "rotate"),  # the file of a secret, which the call answers
    f"{APPLICATION}/clients/{{client_id}}": ("client", "save"),
    f"{APPLICATION}/settings/logo": ("application", "save"),
    f"{APPLICATION}/settings/logo/remove": ("application", "save"),
    f"{APPLICATION}/clients/{{client_id}}/logo": ("client", "save"),
    f"{APPLICATION}/clients/{{client_id}}/logo/remove": ("client", "save"),
    f"{APPLICATION}/clients/{{client_id}}/remove": ("client", "delete"),
    f"{APPLICATION}/clients/{{client_id}}/rotate": ("client", "rotate"),
    f"{APPLICATION}/clients/{{client_id}}/revoke": ("client", "revoke"),
    f"{APPLICATION}/api": ("application", "save"),
    f"{APPLICATION}/api/remove": ("application", "save"),
    f"{APPLICATION}/sites": ("application", "save"),
    f"{APPLICATION}/sites/remove": ("application", "save"),
    f"{APPLICATION}/bans": ("user/ban", "save"),
    f"{APPLICATION}/bans/lift": ("user/ban", "lift"),
    f"{APPLICATION}/matrix/review": ("simulate", ""),
    f"{APPLICATION}/matrix/apply": ("roles", "save"),
    f"{APPLICATION}/users/review": ("simulate", ""),
    f"{APPLICATION}/users/apply": ("meta/data", "save"),
    "/access/sign-in": ("user", "check_sign_in"),
    "/games/{ref}/close": ("gameSession", "close"),
    "/settings/webhooks/new": ("webhook", "save"),
    WEBHOOK: ("webhook", "save"),
    f"{WEBHOOK}/rotate": ("webhook", "rotate"),
    f"{WEBHOOK}/test": ("webhook", "test"),
    f"{WEBHOOK}/redeliver": ("webhook", "redeliver"),
    f"{WEBHOOK}/remove": ("webhook", "delete"),
    "/settings/keys/rotate": ("settings", "rotate_key"),
    "/settings/email/test": ("settings", "test_email"),
    "/settings/phone/test": ("settings", "test_message"),
    **dict.fromkeys(
        ("/settings", "/settings/email", "/settings/branding", "/settings/sign-in", "/settings/sessions"),
        ("settings", "save"),
    ),
    "/settings/languages": ("settings", "save"),
    "/settings/phone": ("settings", "save"),
    "/settings/branding/preview": ("settings", "get"),  # of the brand as it is
    "/settings/change": ("settings", "save"),
    "/settings/providers": ("settings", "save"),
    "/settings/terms": ("settings", "save"),
    "/settings/terms/{row}/remove": ("settings", "save"),
    "/settings/providers/{row}/remove": ("settings", "save"),
    "/settings/branding/light": ("settings", "save"),
    "/settings/branding/light/remove": ("settings", "save"),
    "/settings/branding/dark": ("settings", "save"),
    "/settings/branding/dark/remove": ("settings", "save"),
}


# What is about the console itself.
OF_THE_CONSOLE = {"/people/views", "/people/views/remove"}


async def test_everything_the_console_does_has_a_call_of_the_api(service: RunningService) -> None:
    document = (await service.client.get("/openapi.json")).json()
    prefix = "/api/permissions/"
    offered = {
        (path.removeprefix(prefix), action)
        for path, methods in document["paths"].items()
        if path.startswith(prefix) and "post" in methods
        for action in actions_of(document, methods["post"])
    }
    assert set(console_forms()) - OF_THE_CONSOLE == set(CALLS), "a new form needs its call here"
    assert set(CALLS.values()) - offered == set()


def console_forms() -> Iterator[str]:
    return (path for paths in CONSOLE_PATHS.values() for path, methods in paths.items() if "POST" in methods)


def actions_of(document: Mapping[str, Any], operation: Mapping[str, Any]) -> set[str]:
    """Return the values of `action` that a request may have; "" if there is no such member."""
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return set(enum_values(document, schema)) or {""}


def enum_values(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    if "$ref" in schema:
        yield from enum_values(document, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    action = schema.get("properties", {}).get("action", {})
    yield from action.get("enum", [])
    for one in (*schema.get("oneOf", []), *schema.get("anyOf", [])):
        yield from enum_values(document, one)
