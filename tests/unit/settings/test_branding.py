"""The branding section: safe images, readable colors, names that fit."""

import pytest

from gatehouse.kernel.graphics import Color
from tests.support.png import png
from tests.unit.settings.installation import SOUND, TemporaryInstallation

LOGO = "GATEHOUSE__BRANDING__LOGO"
PIXELS = png(2, 2, Color(1, 2, 3))
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def test_default_branding_is_gatehouse(installation: TemporaryInstallation) -> None:
    settings = installation.load().settings
    assert (settings.branding.name, settings.branding.logo, settings.branding.accent) == ("Gatehouse", "", "")


def test_mail_comes_from_the_name_that_pages_show_unless_it_is_told_another(
    installation: TemporaryInstallation,
) -> None:
    named = SOUND | {"GATEHOUSE__BRANDING__NAME": "Sky Studio"}
    assert installation.load(named).settings.mail.from_name == "Sky Studio"
    with_sender_name = named | {"GATEHOUSE__MAIL__FROM_NAME": "Sky Studio accounts"}
    assert installation.load(with_sender_name).settings.mail.from_name == "Sky Studio accounts"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (SVG, "{path} is not a PNG, JPEG or WebP image"),
        (b"GIF89a", "{path} is not a PNG, JPEG or WebP image"),
        (b"", "{path} is not a PNG, JPEG or WebP image"),
        (PIXELS + bytes(256 * 1024), "{path} is larger than 256 KiB"),
        (None, "cannot read {path}"),
    ],
)
def test_a_logo_is_a_small_picture_of_pixels(
    installation: TemporaryInstallation, content: bytes | None, complaint: str
) -> None:
    path = installation.data / "logo.png"
    if content is not None:
        path.write_bytes(content)
    [problem] = installation.problems(SOUND | {LOGO: str(path)})
    assert problem.startswith(f"{LOGO}: {complaint.format(path=path)}")


@pytest.mark.parametrize("content", [PIXELS, b"\xff\xd8\xff\xe0JFIF", b"RIFF\0\0\0\0WEBPVP8 "])
def test_png_jpeg_and_webp_are_such_pictures(installation: TemporaryInstallation, content: bytes) -> None:
    path = installation.data / "logo"
    path.write_bytes(content)
    assert installation.load(SOUND | {LOGO: str(path)}).settings.branding.logo == str(path)


@pytest.mark.parametrize(
    ("setting", "given", "complaint"),
    [
        ("ACCENT", "blue", "must be a color like #1d5f8a"),
        ("ACCENT", "#fff", "must be a color like #1d5f8a"),
        ("ACCENT", "#12345g; } body { display: none", "must be a color like #1d5f8a"),
        ("NAME", "", "must be a name"),
        ("NAME", "n" * 41, "must be a name"),
        ("WORDMARK", "true", "needs a branding.logo"),
        ("LOGO", "logo.png", "must be an absolute path"),
    ],
)
def test_invalid_branding_value_is_refused(
    installation: TemporaryInstallation, setting: str, given: str, complaint: str
) -> None:
    [problem] = installation.problems(SOUND | {f"GATEHOUSE__BRANDING__{setting}": given})
    assert complaint in problem


def test_a_logo_for_dark_pages_alone_is_refused(installation: TemporaryInstallation) -> None:
    path = installation.data / "dark.png"
    path.write_bytes(PIXELS)
    [problem] = installation.problems(SOUND | {f"{LOGO}_DARK": str(path)})
    assert "needs branding.logo too" in problem
