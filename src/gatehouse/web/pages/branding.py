"""The brand of an installation: name, logo, and an accent color that stays readable in light and dark.

Styles and images are files of this service, so that the policy of its pages needs no exception for them.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from string import Template
from typing import Final

from msgspec import Struct
from msgspec.structs import fields
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.errors import NotFound
from gatehouse.kernel.graphics import (
    BLACK,
    SHAPE_CONTRAST,
    TEXT_CONTRAST,
    WHITE,
    Color,
    adjust_for_contrast,
    min_contrast,
)
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.responses import cacheable_response
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.assets import CACHE_FOREVER, CACHE_REVALIDATE, DIGEST_DIGITS
from gatehouse.web.pages.contexts import PageContext

DEFAULT_ACCENT: Final = "#1f66c1"  # the color of tokens.css
STYLE_FILE: Final = "accent.css"
LOGO_FILE: Final = "logo"
DARK_LOGO_FILE: Final = "logo-dark"

# Backgrounds of links (static/tokens.css): a card, the page, boxes and notices. tests/unit/web_http checks that they
# are the ones of the style sheet.
LIGHT_BACKGROUNDS: Final = tuple(map(Color.parse, ("#ffffff", "#f7f8fa", "#eef0f4", "#e7f5ed", "#fdefed", "#fdf3e0")))
DARK_BACKGROUNDS: Final = tuple(map(Color.parse, ("#161a21", "#0f1217", "#21262f", "#122a1e", "#331918", "#2d2411")))
HOVER_SHARE: Final = 0.2  # the share of black or white on hover

CSS_SHEET: Final = Template("""\
:root {
  --link: light-dark($light_link, $dark_link);
  --link-hover: light-dark($light_link_hover, $dark_link_hover);
  --accent: light-dark($light_button, $dark_button);
  --accent-hover: light-dark($light_button_hover, $dark_button_hover);
}
""")


class Shades(Struct, frozen=True, kw_only=True):
    """One color in one theme: as text on its backgrounds, and as a background of white text."""

    link: Color
    link_hover: Color
    button: Color
    button_hover: Color

    def values(self, theme: str) -> dict[str, str]:
        return {f"{theme}_{field.name}": str(getattr(self, field.name)) for field in fields(self)}


def light_shades(accent: Color) -> Shades:
    link = adjust_for_contrast(accent, LIGHT_BACKGROUNDS, min_ratio=TEXT_CONTRAST, towards=BLACK)
    return make_shades(
        link, adjust_for_contrast(accent, (WHITE,), min_ratio=TEXT_CONTRAST, towards=BLACK), hover=BLACK
    )


def dark_shades(accent: Color) -> Shades:
    """Return the shades of the dark theme; a button is dark enough for white text and light enough to be seen."""
    dark = adjust_for_contrast(accent, (WHITE,), min_ratio=TEXT_CONTRAST, towards=BLACK)
    button = adjust_for_contrast(dark, DARK_BACKGROUNDS[:2], min_ratio=SHAPE_CONTRAST, towards=WHITE)
    return make_shades(
        adjust_for_contrast(accent, DARK_BACKGROUNDS, min_ratio=TEXT_CONTRAST, towards=WHITE), button, hover=WHITE
    )


def make_shades(link: Color, button: Color, *, hover: Color) -> Shades:
    """Return the shades; `hover` is the color a link moves towards on hover, and a button always darkens."""
    return Shades(
        link=link,
        link_hover=link.mix(hover, HOVER_SHARE),
        button=button,
        button_hover=button.mix(BLACK, HOVER_SHARE),
    )


def style_sheet(accent: Color) -> bytes:
    shades = light_shades(accent).values("light") | dark_shades(accent).values("dark")
    return CSS_SHEET.substitute(shades).encode()


class Swatch(Struct, frozen=True, kw_only=True):
    """A shade in use, for the console."""

    theme: str  # light, dark
    use: str  # link, button
    colour: Color
    ground: Color
    contrast: float  # the lowest one on any background
    is_adapted: bool

    @property
    def accent_shade(self) -> Color:
        """The one of both that is derived from the accent color."""
        return self.colour if self.use == "link" else self.ground


class ColorPreviewContext(PageContext, frozen=True, kw_only=True):
    """The accent color in use, as a preview in a frame of the console."""

    template = "branding_colors.html"

    swatches: Sequence[Swatch]


def swatches(accent: Color) -> Sequence[Swatch]:
    light, dark = light_shades(accent), dark_shades(accent)
    uses = (
        ("light", "link", light.link, LIGHT_BACKGROUNDS),
        ("light", "button", WHITE, (light.button,)),
        ("dark", "link", dark.link, DARK_BACKGROUNDS),
        ("dark", "button", WHITE, (dark.button,)),
    )
    return [
        Swatch(
            theme=theme,
            use=use,
            colour=colour,
            ground=grounds[0],
            contrast=min_contrast(colour, grounds),
            is_adapted=accent not in (colour, grounds[0]),
        )
        for theme, use, colour, grounds in uses
    ]


class Brand(Struct, frozen=True, kw_only=True):
    """The brand as templates see it; an empty address means none."""

    name: str = "Gatehouse"
    wordmark: bool = False
    style: str = ""
    logo: str = ""
    logo_dark: str = ""


class BrandFile(Struct, frozen=True, kw_only=True):
    media_type: str
    content: bytes

    def address(self, name: str) -> str:
        return f"/branding/{self.digest}/{name}"

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()[:DIGEST_DIGITS]


class BrandAssets:
    def __init__(
        self, *, name: str, wordmark: bool, accent: Color | None, logos: Mapping[str, BrandFile | str]
    ) -> None:
        """`logos` may contain LOGO_FILE and DARK_LOGO_FILE: a file of the operator, or the path of an image."""
        self.accent: Final = accent
        self._addresses = {name: logo for name, logo in logos.items() if isinstance(logo, str)}
        self._files = {name: logo for name, logo in logos.items() if isinstance(logo, BrandFile)}
        if accent is not None:
            self._files[STYLE_FILE] = BrandFile(media_type="text/css; charset=utf-8", content=style_sheet(accent))
        logo = self._address(LOGO_FILE)
        self.brand: Final = Brand(
            name=name,
            wordmark=wordmark,
            style=self._address(STYLE_FILE),
            logo=logo,
            logo_dark=self._address(DARK_LOGO_FILE) or logo,
        )

    def _address(self, name: str) -> str:
        file = self._files.get(name)
        return self._addresses.get(name, "") if file is None else file.address(name)

    async def serve(self, request: Request) -> Response:
        file = self._files.get(request.path_params["name"])
        if file is None:
            raise NotFound
        kept = CACHE_FOREVER if request.path_params["digest"] == file.digest else CACHE_REVALIDATE
        return cacheable_response(request, file.content, media_type=file.media_type, cache_control=kept)


def brand_endpoint(serve: Callable[[Request], Awaitable[Response]]) -> Endpoint:
    return Endpoint(
        name="branding",
        path="/branding/{digest}/{name}",
        methods=("GET",),
        handler=serve,
        dialect=Dialect.PLAIN,
        rate_class=RateClass.PUBLIC,
        section="pages",
        summary="Logo and color of this installation",
        hidden=True,
    )
