"""Every color can be an accent: the derived colors are readable on pages and in emails."""

from itertools import product

import pytest

from gatehouse.kernel.graphics import BLACK, SHAPE_CONTRAST, TEXT_CONTRAST, WHITE, Color, contrast, min_contrast
from gatehouse.mail import composer
from gatehouse.web.pages.branding import DARK_BACKGROUNDS, LIGHT_BACKGROUNDS, dark_shades, light_shades, swatches

GRID = [Color(*parts) for parts in product((0, 51, 102, 153, 204, 255), repeat=3)]


def test_contrast_is_that_of_wcag() -> None:
    assert contrast(WHITE, BLACK) == pytest.approx(21)
    assert contrast(Color.parse("#767676"), WHITE) == pytest.approx(4.54, abs=0.01)


def test_every_shade_used_by_pages_and_emails_is_readable() -> None:
    for accent in GRID:
        check(accent)


def check(accent: Color) -> None:
    light, dark, message = light_shades(accent), dark_shades(accent), composer.theme_for_accent(accent)
    assert min(swatch.contrast for swatch in swatches(accent)) >= TEXT_CONTRAST
    for link, grounds in (
        *((shade, LIGHT_BACKGROUNDS) for shade in (light.link, light.link_hover)),
        *((shade, DARK_BACKGROUNDS) for shade in (dark.link, dark.link_hover)),
        *(((message.link, composer.LIGHT_BACKGROUNDS), (message.link_dark, composer.DARK_BACKGROUNDS))),
    ):
        assert min_contrast(link, grounds) >= TEXT_CONTRAST
    for button in (light.button, light.button_hover, dark.button, dark.button_hover, message.button):
        assert contrast(WHITE, button) >= TEXT_CONTRAST
    assert min_contrast(dark.button, DARK_BACKGROUNDS[:2]) >= SHAPE_CONTRAST


def test_a_colour_that_is_readable_stays_what_it_is() -> None:
    accent = Color.parse("#1d5f8a")
    assert (light_shades(accent).link, light_shades(accent).button) == (accent, accent)
