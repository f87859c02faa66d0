"""Settings of what people see: the brand and the languages."""

from typing import Annotated

from msgspec import Struct

from gatehouse.languages import FALLBACK_LANG, LANGUAGES
from gatehouse.settings import grammar
from gatehouse.settings.info import SettingField, image, text


class BrandingSettings(Struct, frozen=True, kw_only=True):
    """Name, logo and color on pages, in emails and in the console."""

    name: Annotated[
        str, text("Name of the service on pages and in authenticator apps.", grammar.brand_name, stored=True)
    ] = "Gatehouse"
    logo: Annotated[
        str,
        image(
            "PNG, JPEG or WebP file up to 256 KiB, shown 28 pixels high; SVG is not accepted.",
            without="Gatehouse logo",
        ),
    ] = ""
    logo_dark: Annotated[str, image("Logo for the dark theme.", without="`branding.logo`")] = ""
    wordmark: Annotated[bool, SettingField("The logo contains the name, so pages don't repeat it.", stored=True)] = (
        False
    )
    accent: Annotated[
        str,
        text(
            "Color of links and buttons, like `#1d5f8a`; adjusted where contrast would be too low.",
            grammar.color,
            without="Gatehouse blue",
            stored=True,
        ),
    ] = ""


class LanguageSettings(Struct, frozen=True, kw_only=True):
    """Languages of pages and emails."""

    default: Annotated[
        str,
        SettingField(
            "Language when neither person nor browser asks for an offered one.", choices=LANGUAGES, stored=True
        ),
    ] = FALLBACK_LANG
    offered: Annotated[
        tuple[str, ...],
        text("Languages people can choose, like `en` and `de`.", grammar.language, without="all", stored=True),
    ] = ()
