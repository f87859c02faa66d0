"""Metrics for Prometheus, with label sets that no caller can make grow (checklist HT-17)."""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

OTHER: Final = "other"  # every path and method that is not in the table
METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "POST"})
STATUS_CLASSES: Final = ("1xx", "2xx", "3xx", "4xx", "5xx")
NO_RESPONSE: Final = "none"  # the client disconnected before a response began
BUCKETS: Final = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 35.0)  # a poll is held 30 s
MEDIA_TYPE: Final = CONTENT_TYPE_LATEST


class Metrics:
    """The metrics of one process, in a registry of their own."""

    def __init__(
        self,
        endpoint_names: Iterable[str],
        *,
        held_requests: Callable[[], int] = lambda: 0,
        permission_cache: Callable[[], int] = lambda: 0,
    ) -> None:
        """`held_requests` counts the requests that are held open now, `permission_cache` bytes."""
        self._names = frozenset(endpoint_names)
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "gatehouse_requests",
            "Completed requests.",
            ("endpoint", "method", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "gatehouse_request_seconds",
            "Time from request to end of response.",
            ("endpoint",),
            buckets=BUCKETS,
            registry=self.registry,
        )
        # Finding the series of a label set costs more than counting, so each is found once.
        self._series_cache: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}
        Gauge(
            "gatehouse_held_requests", "Requests being held open (long polling).", registry=self.registry
        ).set_function(held_requests)
        Gauge(
            "gatehouse_permission_cache_bytes",
            "Estimated memory of cached permission models and evaluations.",
            registry=self.registry,
        ).set_function(permission_cache)

    def observe(self, *, endpoint: str, method: str, status: int, seconds: float) -> None:
        """Count one request; all unknown endpoints and methods share one label."""
        name = endpoint if endpoint in self._names else OTHER
        labels = (name, method if method in METHODS else OTHER, status_class(status))
        known = self._series_cache.get(labels)
        if known is None:
            known = self._series_cache[labels] = (self._requests.labels(*labels), self._seconds.labels(name))
        known[0].inc()
        known[1].observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self.registry)


def status_class(status: int) -> str:
    index = status // 100 - 1
    return STATUS_CLASSES[index] if 0 <= index < len(STATUS_CLASSES) else NO_RESPONSE
