"""The sites that an application protects, as requests and files write them (R9)."""

from collections.abc import Mapping
from typing import Final

from gatehouse.kernel.web_urls import DEFAULT_PORTS, WebUrl, parse_web_url
from gatehouse.permissions.documents.fields import printable, read_members
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.protected_site import MAX_PROTECTED_SITES
from gatehouse.permissions.questions.parsing import read_rule

NAMING_APPLICATIONS: Final = 2  # with sites: from then on proxies must name theirs (R9)
SECOND_APPLICATION: Final = (
    "protected_sites: sites of two applications are registered now; name application_id in the configuration of "
    "every proxy, because /proxy/auth is refused without it unless forward_auth.require_application is off"
)
LOOPBACK_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def check_protected_sites(document: object, place: str) -> Mapping[str, str]:
    """Return the rule of each origin. Raises Malformed."""
    members = read_members(document, place)
    if len(members) > MAX_PROTECTED_SITES:
        raise Malformed(f"{place}: at most {MAX_PROTECTED_SITES} entries").on_screen(
            "entries_sites", max_protected_sites=MAX_PROTECTED_SITES
        )
    for origin in members:
        if not is_site_origin(origin):
            raise Malformed(
                f"{place}.{printable(origin)}: must be an origin like https://wiki.example (http on loopback only)"
            )
    return {origin: read_rule(rule, f"{place}.{origin}").text for origin, rule in sorted(members.items())}


def is_site_origin(text: str) -> bool:
    """Whether it is an origin as browsers write it: https, or http on loopback, and no default port."""
    url = parse_web_url(text)
    if url is None or text != origin_text(url):
        return False
    return url.scheme == "https" or url.host in LOOPBACK_HOSTS


def origin_text(url: WebUrl) -> str:
    """Return the origin of a URL in its one form (RFC 6454 §6.2)."""
    host = f"[{url.host}]" if ":" in url.host else url.host
    port = "" if url.port == DEFAULT_PORTS[url.scheme] else f":{url.port}"
    return f"{url.scheme}://{host}{port}"
