"""Every colour there is can be an accent: what comes of it is readable, in pages and in letters."""

from itertools import product

import pytest

from gatehouse.kernel.colours import BLACK, SHAPE, TEXT, WHITE, Colour, contrast, least_contrast
from gatehouse.mail import inks
from gatehouse.web.branding import DARK_GROUNDS, LIGHT_GROUNDS, on_dark, on_light, swatches

GRID = [Colour(*parts) for parts in product((0, 51, 102, 153, 204, 255), repeat=3)]


def test_contrast_is_that_of_wcag() -> None:
    assert contrast(WHITE, BLACK) == pytest.approx(21)
    assert contrast(Colour.parse("#767676"), WHITE) == pytest.approx(4.54, abs=0.01)


def test_every_shade_that_pages_and_letters_use_is_readable() -> None:
    for accent in GRID:
        check(accent)


def check(accent: Colour) -> None:
    light, dark, letter = on_light(accent), on_dark(accent), inks.inks_of(accent)
    assert min(swatch.contrast for swatch in swatches(accent)) >= TEXT
    for link, grounds in (
        *((shade, LIGHT_GROUNDS) for shade in (light.link, light.link_hover)),
        *((shade, DARK_GROUNDS) for shade in (dark.link, dark.link_hover)),
        *(((letter.link, inks.LIGHT), (letter.link_dark, inks.DARK))),
    ):
        assert least_contrast(link, grounds) >= TEXT
    for button in (light.button, light.button_hover, dark.button, dark.button_hover, letter.button):
        assert contrast(WHITE, button) >= TEXT
    assert least_contrast(dark.button, DARK_GROUNDS[:2]) >= SHAPE


def test_a_colour_that_is_readable_stays_what_it_is() -> None:
    accent = Colour.parse("#1d5f8a")
    assert (on_light(accent).link, on_light(accent).button) == (accent, accent)
