"""The colours of a letter: of links in light and dark, and of the button, always readable."""

from typing import Final, NamedTuple

from gatehouse.kernel.colours import BLACK, TEXT_CONTRAST, WHITE, Color, adjust_for_contrast

# What stands behind links in templates/layout.html: the card and the page around it.
LIGHT_BACKGROUNDS: Final = (WHITE, Color.parse("#eef2f5"))
DARK_BACKGROUNDS: Final = (Color.parse("#1a2430"), Color.parse("#0f1720"))


class MailTheme(NamedTuple):
    link: Color = Color.parse("#1d5f8a")
    link_dark: Color = Color.parse("#8ec5ea")
    button: Color = Color.parse("#1d5f8a")  # under white words


DEFAULT_THEME: Final = MailTheme()


def theme_for_accent(accent: Color) -> MailTheme:
    return MailTheme(
        link=adjust_for_contrast(accent, LIGHT_BACKGROUNDS, min_ratio=TEXT_CONTRAST, towards=BLACK),
        link_dark=adjust_for_contrast(accent, DARK_BACKGROUNDS, min_ratio=TEXT_CONTRAST, towards=WHITE),
        button=adjust_for_contrast(accent, (WHITE,), min_ratio=TEXT_CONTRAST, towards=BLACK),
    )
