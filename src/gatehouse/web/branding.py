"""How an installation looks: its name, its logo, and a colour that stays readable in light and dark.

Style and pictures are files of this service, so that the policy of its pages needs no exception for them.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.colours import BLACK, SHAPE, TEXT, WHITE, Colour, apart, least_contrast
from gatehouse.kernel.errors import NotFound
from gatehouse.web.dialects import Dialect
from gatehouse.web.responses import cacheable
from gatehouse.web.routes.table import Endpoint, RateClass
from gatehouse.web.static import ASK_AGAIN, DIGEST_DIGITS, FOR_EVER

OURS: Final = "#1d5f8a"  # the colour of gatehouse.css
STYLE: Final = "accent.css"
LOGO: Final = "logo"
LOGO_DARK: Final = "logo-dark"

# What links stand on (static/gatehouse.css): the page, a card, and the grounds of boxes and notices.
LIGHT_GROUNDS: Final = tuple(map(Colour.parse, ("#ffffff", "#f3f5f8", "#eef1f5", "#eaf6f0", "#fdf0ef")))
DARK_GROUNDS: Final = tuple(map(Colour.parse, ("#181e28", "#10141b", "#232b38", "#14301f", "#33191a")))
DEEPER: Final = 0.2  # the share of black or white under the pointer

RULES: Final = Template("""\
  --pico-primary: $link;
  --pico-primary-background: $button;
  --pico-primary-border: $button;
  --pico-primary-underline: $link;
  --pico-primary-hover: $link_hover;
  --pico-primary-hover-background: $button_hover;
  --pico-primary-hover-border: $button_hover;
  --pico-primary-hover-underline: $link_hover;
  --pico-primary-focus: $link;
  --pico-primary-inverse: #fff;
  --gate-focus: $link;
""")
# The selectors of gatehouse.css, which this follows: the later of two equals wins.
SHEET: Final = Template("""\
:root:not([data-theme="dark"]),
[data-theme="light"] {
$light}

@media (prefers-color-scheme: dark) {
:root:not([data-theme]) {
$dark}
}

[data-theme="dark"] {
$dark}
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shades:
    """One colour as one theme can use it: as text on its grounds, and as a ground for white text."""

    link: Colour
    link_hover: Colour
    button: Colour
    button_hover: Colour

    @property
    def rules(self) -> str:
        return RULES.substitute(
            link=self.link, link_hover=self.link_hover, button=self.button, button_hover=self.button_hover
        )


def on_light(accent: Colour) -> Shades:
    link = apart(accent, LIGHT_GROUNDS, least=TEXT, towards=BLACK)
    return shaded(link, apart(accent, (WHITE,), least=TEXT, towards=BLACK), pointed=BLACK)


def on_dark(accent: Colour) -> Shades:
    """A button there is dark enough for white words and light enough to be seen."""
    dark = apart(accent, (WHITE,), least=TEXT, towards=BLACK)
    button = apart(dark, DARK_GROUNDS[:2], least=SHAPE, towards=WHITE)
    return shaded(apart(accent, DARK_GROUNDS, least=TEXT, towards=WHITE), button, pointed=WHITE)


def shaded(link: Colour, button: Colour, *, pointed: Colour) -> Shades:
    """`pointed`: what a link comes nearer to under the pointer; a button is darker there in any case."""
    return Shades(
        link=link,
        link_hover=link.mixed(pointed, DEEPER),
        button=button,
        button_hover=button.mixed(BLACK, DEEPER),
    )


def sheet(accent: Colour) -> bytes:
    return SHEET.substitute(light=on_light(accent).rules, dark=on_dark(accent).rules).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Swatch:
    """A shade in use, for the console."""

    theme: str  # light, dark
    use: str  # link, button
    colour: Colour
    ground: Colour
    contrast: float  # the least of it anywhere
    is_adapted: bool

    @property
    def shown(self) -> Colour:
        """The one of both that comes of the accent."""
        return self.colour if self.use == "link" else self.ground


def swatches(accent: Colour) -> Sequence[Swatch]:
    light, dark = on_light(accent), on_dark(accent)
    uses = (
        ("light", "link", light.link, LIGHT_GROUNDS),
        ("light", "button", WHITE, (light.button,)),
        ("dark", "link", dark.link, DARK_GROUNDS),
        ("dark", "button", WHITE, (dark.button,)),
    )
    return [
        Swatch(
            theme=theme,
            use=use,
            colour=colour,
            ground=grounds[0],
            contrast=least_contrast(colour, grounds),
            is_adapted=accent not in (colour, grounds[0]),
        )
        for theme, use, colour, grounds in uses
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Brand:
    """What templates are told; an empty address means that there is none."""

    name: str = "Gatehouse"
    wordmark: bool = False
    style: str = ""
    logo: str = ""
    logo_dark: str = ""


PLAIN: Final = Brand()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrandFile:
    media_type: str
    content: bytes

    def address(self, name: str) -> str:
        return f"/branding/{self.digest}/{name}"

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()[:DIGEST_DIGITS]


class Branding:
    def __init__(self, *, name: str, wordmark: bool, accent: Colour | None, logos: Mapping[str, BrandFile]) -> None:
        """`logos`: under LOGO and LOGO_DARK, as far as there are any."""
        self.accent: Final = accent
        self._files = dict(logos)
        if accent is not None:
            self._files[STYLE] = BrandFile(media_type="text/css; charset=utf-8", content=sheet(accent))
        logo = self._address(LOGO)
        self.brand: Final = Brand(
            name=name,
            wordmark=wordmark,
            style=self._address(STYLE),
            logo=logo,
            logo_dark=self._address(LOGO_DARK) or logo,
        )

    def _address(self, name: str) -> str:
        file = self._files.get(name)
        return "" if file is None else file.address(name)

    async def serve(self, request: Request) -> Response:
        file = self._files.get(request.path_params["name"])
        if file is None:
            raise NotFound
        kept = FOR_EVER if request.path_params["digest"] == file.digest else ASK_AGAIN
        return cacheable(request, file.content, media_type=file.media_type, cache_control=kept)

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="branding",
            path="/branding/{digest}/{name}",
            methods=("GET",),
            handler=self.serve,
            dialect=Dialect.PLAIN,
            rate_class=RateClass.PUBLIC,
            section="pages",
            summary="Logo and color of this installation",
            hidden=True,
        )
