"""Metrics for Prometheus, with label sets that no caller can make grow (checklist HT-17)."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

OTHER: Final = "other"  # every path and method that is not in the table
METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "POST"})
STATUS_CLASSES: Final = ("1xx", "2xx", "3xx", "4xx", "5xx")
NO_RESPONSE: Final = "none"  # the client disconnected before a response began
BUCKETS: Final = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 35.0)  # a poll is held 30 s
MEDIA_TYPE: Final = CONTENT_TYPE_LATEST


class Durations:
    """A histogram over BUCKETS."""

    __slots__ = ("_counts", "total")

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0  # seconds

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """The upper bound of each bucket, and how many requests took at most that long."""
        bounds = [*map(floatToGoString, BUCKETS), "+Inf"]
        return list(zip(bounds, accumulate(self._counts), strict=True))


class Figure(Struct, frozen=True, kw_only=True):
    """A metric that a service keeps itself: values by their labels, or one value without any."""

    name: str
    help: str
    read: Callable[[], Mapping[tuple[str, ...], float]]
    labels: tuple[str, ...] = ()
    counts: bool = False  # a counter, which only grows; otherwise a gauge

    def collect(self) -> Metric:
        family = (CounterMetricFamily if self.counts else GaugeMetricFamily)(self.name, self.help, labels=self.labels)
        for labels, value in self.read().items():
            family.add_metric(labels, value)
        return family


class Metrics(Collector):
    """The metrics of one process, in a registry of their own."""

    def __init__(
        self,
        endpoint_names: Iterable[str],
        *,
        figures: Sequence[Figure] = (),
    ) -> None:
        """`figures` are read when the metrics are."""
        self.figures: Final = figures
        self._names = frozenset(endpoint_names)
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests: dict[tuple[str, str, int], int] = {}
        self._seconds: dict[str, Durations] = {}
        self.registry.register(self)

    def observe(self, *, endpoint: str, method: str, status: int, seconds: float) -> None:
        """Count one request; all unknown endpoints share one label, as do all unknown methods."""
        name = endpoint if endpoint in self._names else OTHER
        labels = (name, method if method in METHODS else OTHER, status)
        self._requests[labels] = self._requests.get(labels, 0) + 1
        durations = self._seconds.get(name)
        if durations is None:
            durations = self._seconds[name] = Durations()
        durations.add(seconds)

    def collect(self) -> Iterator[Metric]:
        """Build the request metrics when they are read, so that a request only has to count."""
        requests = CounterMetricFamily(
            "gatehouse_requests", "Completed requests.", labels=("endpoint", "method", "status")
        )
        by_class: Counter[tuple[str, str, str]] = Counter()
        for (name, method, status), count in self._requests.items():
            by_class[name, method, status_class(status)] += count
        for labels, total in by_class.items():
            requests.add_metric(labels, total)
        seconds = HistogramMetricFamily(
            "gatehouse_request_seconds", "Time from request to end of response.", labels=("endpoint",)
        )
        for name, durations in self._seconds.items():
            seconds.add_metric((name,), durations.buckets(), durations.total)
        yield from (requests, seconds)
        yield from (figure.collect() for figure in self.figures)

    def text(self) -> bytes:
        return generate_latest(self.registry)


def status_class(status: int) -> str:
    index = status // 100 - 1
    return STATUS_CLASSES[index] if 0 <= index < len(STATUS_CLASSES) else NO_RESPONSE
