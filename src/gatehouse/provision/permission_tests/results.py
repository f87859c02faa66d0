"""What came of the cases, for people, scripts and CI systems."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from gatehouse.provision.errors import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFailure:
    expected: str  # "user 1001 may user.kick"
    sentences: tuple[str, ...]  # why it is otherwise

    @property
    def line(self) -> str:
        return one_line(f"{self.expected}: {' '.join(self.sentences)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    file: str
    place: str
    name: str
    failures: tuple[CaseFailure, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def line(self) -> str:
        """One honest line, whatever the case is called."""
        told = "; ".join(failure.line for failure in self.failures)
        return one_line(f"{'ok' if self.passed else 'FAIL'} {self.file} {self.name}{': ' if told else ''}{told}")


def junit_xml(results: Sequence[CaseResult]) -> bytes:
    """JUnit XML as CI systems read it: a suite a file."""
    root = Element("testsuites", tests=str(len(results)), failures=str(count_failed(results)))
    for file in dict.fromkeys(result.file for result in results):
        own = [result for result in results if result.file == file]
        suite = SubElement(
            root, "testsuite", name=one_line(file), tests=str(len(own)), failures=str(count_failed(own)), errors="0"
        )
        for result in own:
            case = SubElement(suite, "testcase", classname=one_line(file), name=one_line(result.name))
            for failure in result.failures:
                told = SubElement(case, "failure", message=one_line(failure.expected))
                told.text = "\n".join(map(one_line, failure.sentences))
    indent(root)
    written: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def count_failed(results: Sequence[CaseResult]) -> int:
    return sum(not result.passed for result in results)
