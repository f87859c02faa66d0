"""The guides show what is photographed for them, and nothing else."""

from tools.branding_pictures import BRANDED
from tools.console_pictures import IN_THE_GUIDE, PICTURES


def test_the_guide_shows_the_pictures_that_are_made() -> None:
    guide = (PICTURES.parent / "console.md").read_text()
    assert [name for name in IN_THE_GUIDE if f"](pictures/console-{name}.png)" not in guide] == []
    assert guide.count("](pictures/") == len(IN_THE_GUIDE)
    about_brands = (PICTURES.parent / "branding.md").read_text()
    assert [name for name in BRANDED if f"](pictures/{name}.png)" not in about_brands] == []
    made = {f"console-{name}.png" for name in IN_THE_GUIDE} | {f"{name}.png" for name in BRANDED}
    assert {path.name for path in PICTURES.iterdir()} == made
