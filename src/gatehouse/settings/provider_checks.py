"""A provider is complete or turned off; the checks of each are made from its settings."""

import re
from functools import partial
from typing import Final

from gatehouse.kernel.stored_settings import BadSetting
from gatehouse.settings.checks import CHECKS, Candidate, Check
from gatehouse.settings.model import Settings
from gatehouse.settings.providers import MAX_PROVIDERS
from gatehouse.settings.terms import MAX_DOCUMENTS

PROVIDER_NEEDS: Final = {
    "oidc": ("issuer", "client_id"),
    "apple": ("client_id", "team_id", "key_id", "private_key"),
    "steam": (),
    "unity": (),
    "jwt": ("issuer", "keys_url"),
}
USUAL_NEEDS: Final = ("client_id", "client_secret")
KINDS_WITHOUT_TICKETS: Final = frozenset({"github", "discord"})  # they have no id_token
MAX_TICKETS: Final = 20  # of a provider
STEAM_APP: Final = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)


def checks_of(settings: Settings) -> list[tuple[str, Check]]:
    """Return all checks, with those of every provider and document."""
    found = list(CHECKS)
    for number, (name, provider) in enumerate(settings.providers.items()):
        if number >= MAX_PROVIDERS:
            found.append((f"providers.{name}.kind", too_many_providers))
        if provider.enabled:
            found += [
                (f"providers.{name}.{key}", partial(provider_has, name, key))
                for key in PROVIDER_NEEDS.get(provider.kind, USUAL_NEEDS)
            ]
        if provider.enabled and provider.tickets:
            found.append((f"providers.{name}.tickets", partial(tickets_are_usable, name)))
            if provider.kind == "steam":
                found.append((f"providers.{name}.publisher_key", partial(publisher_key_is_given, name)))
    for number, (name, document) in enumerate(settings.terms.items()):
        if number >= MAX_DOCUMENTS:
            found.append((f"terms.{name}.version", too_many_documents))
        if document.enabled:
            found += [(f"terms.{name}.{key}", partial(document_has, name, key)) for key in ("url", "version")]
    return found


def document_has(name: str, key: str, candidate: Candidate) -> None:
    if not getattr(candidate.settings.terms[name], key):
        raise BadSetting("is missing; a document needs it, unless enabled is false").on_screen("document_needs")


def too_many_documents(candidate: Candidate) -> None:
    raise BadSetting(f"at most {MAX_DOCUMENTS} documents, not {len(candidate.settings.terms)}").on_screen(
        "documents_most", most=MAX_DOCUMENTS
    )


def tickets_are_usable(name: str, candidate: Candidate) -> None:
    """Refuse tickets of kinds that have none, and what Steam needs beside them."""
    provider = candidate.settings.providers[name]
    if provider.kind in KINDS_WITHOUT_TICKETS:
        raise BadSetting(f"a provider of kind {provider.kind} has no tickets").on_screen(
            "tickets_none", kind=provider.kind
        )
    if len(provider.tickets) > MAX_TICKETS:
        raise BadSetting(f"at most {MAX_TICKETS}, not {len(provider.tickets)}").on_screen(
            "entries_most", most=MAX_TICKETS
        )
    if provider.kind == "steam" and not all(STEAM_APP.fullmatch(one.partition(":")[2]) for one in provider.tickets):
        raise BadSetting("the audience of a Steam ticket is the app ID, which is a number").on_screen(
            "steam_audience"
        )


def publisher_key_is_given(name: str, candidate: Candidate) -> None:
    if not candidate.settings.providers[name].publisher_key:
        raise BadSetting("is missing; Steam verifies tickets only with it").on_screen("publisher_key")


def provider_has(name: str, key: str, candidate: Candidate) -> None:
    provider = candidate.settings.providers[name]
    if not getattr(provider, key):
        raise BadSetting(
            f"is missing; a provider of kind {provider.kind} needs it, unless enabled is false"
        ).on_screen("provider_needs", kind=provider.kind)


def too_many_providers(candidate: Candidate) -> None:
    raise BadSetting(f"at most {MAX_PROVIDERS} providers, not {len(candidate.settings.providers)}").on_screen(
        "providers_most", most=MAX_PROVIDERS
    )
