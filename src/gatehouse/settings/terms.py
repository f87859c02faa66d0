"""The settings of a document that people accept; there is one table of them for each document, by its ID."""

import re
from typing import Annotated, Final, Literal

from msgspec import Struct

from gatehouse.kernel.stored_settings import BadSetting
from gatehouse.kernel.web_urls import parse_web_url
from gatehouse.settings.info import SettingField, text
from gatehouse.settings.providers import application_id

MAX_DOCUMENTS: Final = 100
MAX_TITLE_LENGTH: Final = 80
MAX_URL_LENGTH: Final = 1_000
VERSION: Final = re.compile(r"[A-Za-z0-9._-]{1,40}", re.ASCII)
COUNTRY: Final = re.compile(r"[A-Z]{2}", re.ASCII)
DOCUMENT_ID: Final = re.compile(r"(?!age$)[a-z][a-z0-9]{0,19}", re.ASCII)


def document_title(given: str) -> None:
    if len(given) > MAX_TITLE_LENGTH:
        raise BadSetting(f"must be at most {MAX_TITLE_LENGTH} characters").on_screen(
            "text_most", longest=MAX_TITLE_LENGTH
        )


def document_url(given: str) -> None:
    if parse_web_url(given) is None or len(given) > MAX_URL_LENGTH:
        raise BadSetting("must be a URL, like https://studio.example/terms").on_screen("document_url")


def document_version(given: str) -> None:
    if not VERSION.fullmatch(given):
        raise BadSetting("must be 1 to 40 letters, digits, dots, underscores and hyphens, like 2026-11").on_screen(
            "document_version"
        )


def country_code(given: str) -> None:
    if not COUNTRY.fullmatch(given):
        raise BadSetting("must be a country code of two capital letters, like DE").on_screen("country")


def document_id(given: str) -> None:
    if not DOCUMENT_ID.fullmatch(given):
        raise BadSetting("must be the ID of a document").on_screen("document_id")


class TermsSettings(Struct, frozen=True, kw_only=True):
    """A document that people accept, like terms of use. You choose `<id>` as for a provider; not `age`."""

    title: Annotated[
        str, text("Title on pages, like `Terms of use`.", document_title, without="the ID", stored=True)
    ] = ""
    url: Annotated[str, text("Address of the text.", document_url, stored=True)] = ""
    version: Annotated[
        str, text("Version, like `2026-11`; with a new one people are asked again.", document_version, stored=True)
    ] = ""
    enabled: Annotated[bool, SettingField("Ask for it; turn it off while it is incomplete.", stored=True)] = True
    applications: Annotated[
        tuple[str, ...], text("IDs of the applications that ask for it.", application_id, without="all", stored=True)
    ] = ()
    countries: Annotated[
        tuple[str, ...], text("Country codes of the people it is for.", country_code, without="all", stored=True)
    ] = ()
    replaces: Annotated[
        str, text("ID of the general document that this one replaces where both apply.", document_id, stored=True)
    ] = ""
    minimum_age: Annotated[
        Literal[0, 13, 14, 15, 16, 18, 21],
        SettingField("Minimum age in years, asked once; 0 for none.", stored=True),
    ] = 0
