import ast
import asyncio
import io
import logging
import re
from collections.abc import Callable, Iterator

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from tools.package_index import ROOT

from gatehouse import logs
from tests.support.logs import LogStream, capture_logs


@pytest.fixture
def stream() -> Iterator[LogStream]:
    with capture_logs() as stream:
        yield stream


def test_a_line_is_one_json_object_with_its_time_level_and_logger(stream: LogStream) -> None:
    structlog.get_logger("gatehouse.access").info("request", status=200, ms=1.5)
    line = stream.only_line()
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "request", "level": "info", "logger": "gatehouse.access", "status": 200, "ms": 1.5}


def test_the_request_id_is_bound_to_everything_said_meanwhile(stream: LogStream) -> None:
    logs.current_request_id.set("5eed")
    structlog.get_logger().info("inside")
    assert stream.only_line()["request_id"] == "5eed"


def test_a_key_that_is_not_on_the_list_is_printed_without_its_value(stream: LogStream) -> None:
    structlog.get_logger().info("signed in", password="hunter2", token={"a": "hunter2"}, user_id="1001")
    line = stream.only_line()
    assert (line["password"], line["token"]) == (logs.REDACTED, logs.REDACTED)
    assert line["user_id"] == "1001"
    assert b"hunter2" not in stream.getvalue()


@pytest.fixture(scope="module")
def calls() -> list[tuple[str, ast.Call]]:
    """All calls in the modules that log. The other modules, most of them, need not be parsed."""
    texts = {path: path.read_text() for path in sorted((ROOT / "src" / "gatehouse").glob("**/*.py"))}
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno}", node)
        for path, text in texts.items()
        if re.search(r"get_logger|\blog\.", text)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
    ]


def test_every_logged_key_is_on_the_allow_list(calls: list[tuple[str, ast.Call]]) -> None:
    known = {*logs.ALLOWED_KEYS, "exc_info", "extra"}
    unknown = [
        f"{location}: {keyword.arg}"
        for location, call in calls
        if isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "log"
        for keyword in call.keywords
        if keyword.arg not in known
    ]
    assert unknown == []


def test_every_logger_of_the_service_has_a_name(calls: list[tuple[str, ast.Call]]) -> None:
    """Otherwise a line for people begins with [None]."""
    nameless = [
        location
        for location, call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "get_logger" and not call.args
    ]
    assert nameless == []


def test_an_object_under_a_listed_key_is_printed_as_bounded_text(stream: LogStream) -> None:
    structlog.get_logger().info("refused", detail=["x" * 2_000], count=None, attempt=True)
    line = stream.only_line()
    assert (len(line["detail"]), line["count"], line["attempt"]) == (515, None, True)


@given(st.text(max_size=2_000))
def test_clean_text_is_one_bounded_printable_line(text: str) -> None:
    cleaned = logs.clean_value(text)
    assert cleaned.isprintable()
    assert len(cleaned) <= 10 * (logs.MAX_VALUE + 3)
    assert cleaned == text or len(text) > logs.MAX_VALUE or not text.isprintable()


def test_ordinary_text_stays_as_it_is() -> None:
    assert logs.clean_value("Zoë signed in from 192.0.2.1") == "Zoë signed in from 192.0.2.1"


def test_a_traceback_is_in_the_line_and_its_text_cannot_break_it(stream: LogStream) -> None:
    def fail() -> None:
        hidden = "hunter2"
        raise ValueError("two\nlines \x1b[31m" + "x" * len(hidden))

    try:
        fail()
    except ValueError:
        structlog.get_logger().exception("request failed")
    trace = stream.only_line()["exception"]
    assert "in fail" in trace
    assert "ValueError: two" in trace
    assert "\\x1b[31m" in trace
    assert "\x1b" not in trace


def test_an_endless_exception_text_is_cut(stream: LogStream) -> None:
    error = ValueError("\n".join(["x" * 10_000] * 1_000))
    structlog.get_logger().error("request failed", exc_info=error)
    assert len(stream.getvalue()) < 100_000


def test_library_logs_use_the_same_format(stream: LogStream) -> None:
    logging.getLogger("uvicorn.error").warning("Invalid request from %s\r\n\x1b[2J", "192.0.2.1")
    line = stream.only_line()
    assert (line["logger"], line["level"]) == ("uvicorn.error", "warning")
    assert line["event"] == "Invalid request from 192.0.2.1\\r\\n\\x1b[2J"


def test_a_library_that_brought_its_own_handlers_loses_them(stream: LogStream) -> None:
    own = io.StringIO()
    logger = logging.getLogger("uvicorn")
    logger.addHandler(logging.StreamHandler(own))
    logger.propagate = False
    logs.configure(stream=stream)
    logger.warning("once")
    assert (stream.only_line()["event"], own.getvalue()) == ("once", "")


def test_an_exception_logged_by_a_library_brings_its_traceback(stream: LogStream) -> None:
    logging.getLogger("asyncio").error("Task failed", exc_info=LookupError("nothing"))
    assert "LookupError: nothing" in stream.only_line()["exception"]


def test_a_library_that_logs_wrongly_does_not_break_anything(
    stream: LogStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    logging.getLogger("uvicorn.error").error("%d", "not a number")
    assert stream.lines() == []


def test_access_lines_of_the_server_with_their_queries_are_not_logged(stream: LogStream) -> None:
    logging.getLogger("uvicorn.access").info("GET /?token=hunter2")
    logging.getLogger("python_multipart.multipart").warning("odd form")
    assert stream.lines() == []


def test_levels_below_the_wanted_one_are_silent(stream: LogStream) -> None:
    logs.configure(level="warning", stream=stream)
    structlog.get_logger().info("small talk")
    logging.getLogger("library").info("small talk")
    structlog.get_logger().warning("heard")
    assert stream.only_line()["event"] == "heard"


def test_development_log_lines_are_readable_and_escaped(stream: LogStream) -> None:
    logs.configure(dev=True, stream=stream)
    structlog.get_logger("gatehouse.access").info("request", status=200, detail="a\nb\x1b[31m", password="hunter2")
    (line,) = stream.lines()
    assert b"status=200" in line
    assert b"a\\nb\\x1b[31m" in line
    assert b"hunter2" not in line


A_REQUEST = logs.AccessLogLine(
    endpoint="oauth.token", method="POST", status=200, ms=1.5, source="192.0.2.1", request_id="5eed"
)


def test_the_line_of_a_request_has_the_form_of_all_the_others(stream: LogStream) -> None:
    logs.access_log.write(A_REQUEST)
    line = stream.only_line()
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "request",
        "level": "info",
        "logger": "gatehouse.access",
        "endpoint": "oauth.token",
        "method": "POST",
        "status": 200,
        "ms": 1.5,
        "source": "192.0.2.1",
        "request_id": "5eed",
    }


def test_requests_are_not_told_where_only_warnings_are(stream: LogStream) -> None:
    logs.configure(level="warning", stream=stream)
    logs.access_log.write(A_REQUEST)
    assert stream.lines() == []


def test_a_person_reads_the_line_of_a_request_as_they_read_the_others(stream: LogStream) -> None:
    logs.configure(dev=True, stream=stream)
    logs.access_log.write(A_REQUEST)
    assert b"endpoint=oauth.token" in stream.getvalue()


async def turn_loop_until(is_true: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not is_true():  # noqa: ASYNC110 - nothing announces a write
            await asyncio.sleep(0)


async def test_lines_of_requests_are_written_together_and_before_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO()
    out = logs.BestEffortStream(stream)
    out.write_soon(b"one\n")
    out.write_soon(b"two\n")
    assert stream.getvalue() == b""
    out.write(b"three\n")
    assert stream.getvalue() == b"one\ntwo\nthree\n"
    for _ in range(logs.BATCH_LINES):
        out.write_soon(b"-\n")
    assert stream.getvalue().count(b"-") == logs.BATCH_LINES
    monkeypatch.setattr(logs, "BATCH_SECONDS", 0)
    out.write_soon(b"last\n")
    await turn_loop_until(lambda: stream.getvalue().endswith(b"last\n"))
