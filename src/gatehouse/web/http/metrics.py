"""Metrics for Prometheus, with label sets that no caller can make grow (checklist HT-17)."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct, field
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


class Durations(Struct, eq=False):
    """A histogram over BUCKETS."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0  # seconds

    def buckets(self) -> list[tuple[str, float]]:
        """The upper bound of each bucket, and how many requests took at most that long."""
        bounds = [*map(floatToGoString, BUCKETS), "+Inf"]
        return list(zip(bounds, accumulate(self.counts), strict=True))


class RequestCount(Struct, eq=False):
    """The requests with the same labels, and the durations of all requests of their endpoint."""

    durations: Durations
    total: int = 0


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
        self._requests: dict[tuple[str, str, int], RequestCount] = {}
        self._seconds: dict[str, Durations] = {}
        self.registry.register(self)

    def observe(self, *, endpoint: str, method: str, status: int, seconds: float) -> None:
        """Count one request; all unknown endpoints share one label, as do all unknown methods."""
        count = self._requests.get((endpoint, method, status)) or self._count_of(endpoint, method, status)
        count.total += 1
        durations = count.durations
        durations.counts[bisect_left(BUCKETS, seconds)] += 1
        durations.total += seconds

    def _count_of(self, endpoint: str, method: str, status: int) -> RequestCount:
        name = endpoint if endpoint in self._names else OTHER
        labels = (name, method if method in METHODS else OTHER, status)
        if labels not in self._requests:
            self._requests[labels] = RequestCount(self._seconds.setdefault(name, Durations()))
        return self._requests[labels]

    def collect(self) -> Iterator[Metric]:
        """Build the request metrics when they are read, so that a request only has to count."""
        requests = CounterMetricFamily(
            "gatehouse_requests", "Completed requests.", labels=("endpoint", "method", "status")
        )
        by_class: Counter[tuple[str, str, str]] = Counter()
        for (name, method, status), count in self._requests.items():
            by_class[name, method, status_class(status)] += count.total
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
