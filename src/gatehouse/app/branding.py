"""How this installation looks, from its settings."""

from pathlib import Path

from gatehouse.kernel.colours import Colour
from gatehouse.kernel.pictures import media_type_of
from gatehouse.settings import Settings
from gatehouse.web.branding import LOGO, LOGO_DARK, BrandFile, Branding


def branding(settings: Settings) -> Branding:
    chosen = settings.branding
    paths = {LOGO: chosen.logo, LOGO_DARK: chosen.logo_dark}
    return Branding(
        name=chosen.name,
        wordmark=chosen.wordmark,
        accent=Colour.parse(chosen.accent) if chosen.accent else None,
        logos={name: picture(Path(path)) for name, path in paths.items() if path},
    )


def picture(path: Path) -> BrandFile:
    """Of a file that the settings have checked."""
    content = path.read_bytes()
    return BrandFile(media_type=media_type_of(content), content=content)
