"""The kinds of applications: chosen for a new one, and told by what an existing one has."""

from enum import StrEnum
from typing import Final

from gatehouse.admin.applications import ApplicationListItem
from gatehouse.web.console.applications.snippets import SNIPPETS, SnippetKind

PRODUCTS: Final = tuple(one for one in SNIPPETS if one.kind is SnippetKind.PRODUCT and one.callback)


class ApplicationKind(StrEnum):
    """The texts are `applications.kind_<value>` and `…_text`."""

    WEB = "web"  # a client with a secret
    PAGE = "page"  # a public client
    GAME = "game"  # game login
    MACHINE = "machine"  # an access key
    JOB = "job"  # a client that acts for itself
    PRODUCT = "product"  # a client with a secret and the redirect URI of the product
    EMPTY = "empty"


def kind_of(line: ApplicationListItem) -> ApplicationKind:
    """Tell the kind of an existing application by what it has."""
    if line.is_game:
        return ApplicationKind.GAME
    if any(uri.endswith(product.callback) for uri in line.redirect_uris for product in PRODUCTS):
        return ApplicationKind.PRODUCT
    if line.clients > line.public_clients + line.machine_clients:
        return ApplicationKind.WEB
    if line.public_clients:
        return ApplicationKind.PAGE
    if line.machine_clients:
        return ApplicationKind.JOB
    return ApplicationKind.MACHINE if line.access_keys else ApplicationKind.EMPTY
