"""docs/guides/apply.md is right about fields and files."""

import re

import msgspec

from gatehouse.provision.document import read_document
from gatehouse.provision.plan import SECTIONS
from gatehouse.provision.sections.section import read_entries
from tests.support.guides import guide_text, texts_of

GUIDE = guide_text("apply")


def test_every_file_in_the_guide_can_be_read() -> None:
    documents = [read_entries(read_document(file.encode(), ".yaml"), SECTIONS) for file in texts_of("apply", "yaml")]
    section_names = [entries.section.name for file in documents for entries in file]
    assert section_names == [section.name for section in SECTIONS]


def test_the_guide_lists_every_field_of_every_section_and_no_other() -> None:
    for section in SECTIONS:
        chapter = GUIDE.partition(f"## {section.name.replace('_', ' ').capitalize()}\n")[2].partition("\n## ")[0]
        rows = [line.split("|")[1] for line in chapter.splitlines() if line.startswith("| `")]
        named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
        assert named == {field.name for field in msgspec.structs.fields(section.entry)}
