"""Metrics for Prometheus, with label sets that no caller can make grow (checklist HT-17)."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct, field

OTHER: Final = "other"  # every path and method that is not in the table
METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "POST"})
STATUS_CLASSES: Final = ("1xx", "2xx", "3xx", "4xx", "5xx")
NO_RESPONSE: Final = "none"  # the client disconnected before a response began
BUCKETS: Final = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 35.0)  # a poll is held 30 s


class Durations(Struct, eq=False):
    """A histogram over BUCKETS."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0  # seconds

    def cumulative(self) -> list[int]:
        """How many requests took at most as long as each of BUCKETS, and how many there were."""
        return list(accumulate(self.counts))


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


class Metrics:
    """The metrics of one process; metrics_text.py writes them for Prometheus."""

    def __init__(
        self,
        endpoint_names: Iterable[str],
        *,
        figures: Sequence[Figure] = (),
    ) -> None:
        """`figures` are read when the metrics are."""
        self.figures: Final = figures
        self._names = frozenset(endpoint_names)
        self.durations: Final[dict[str, Durations]] = {}  # by endpoint
        self._requests: dict[tuple[str, str, int], RequestCount] = {}

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
            self._requests[labels] = RequestCount(self.durations.setdefault(name, Durations()))
        return self._requests[labels]

    def requests(self) -> Mapping[tuple[str, str, str], int]:
        """The completed requests by endpoint, method and class of status, added up when they are read."""
        by_class: Counter[tuple[str, str, str]] = Counter()
        for (name, method, status), count in self._requests.items():
            by_class[name, method, status_class(status)] += count.total
        return by_class


def status_class(status: int) -> str:
    index = status // 100 - 1
    return STATUS_CLASSES[index] if 0 <= index < len(STATUS_CLASSES) else NO_RESPONSE
