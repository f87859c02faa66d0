"""The programs that the MCP guide shows are the ones that tests run."""

import re
from typing import Final

from tests.interop.toolchains import MCP_PROGRAMS
from tests.support.find_programs import ROOT

GUIDE: Final = ROOT / "docs" / "guides" / "protect-an-mcp-server.md"


def test_programs_of_the_guide_are_tested() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for language, program in (("python", "server.py"), ("js", "server.mjs")):
        (shown,) = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
        assert shown in (MCP_PROGRAMS / program).read_text(encoding="utf-8"), program
