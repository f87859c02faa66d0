"""The import: rows in batches, each one transaction, so that an interrupted run continues where it stopped (R10)."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct, field

from gatehouse.accounts.decoys import DecoyHashes
from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.importing.checks import ProviderIssuer, RowChecker
from gatehouse.accounts.importing.model import (
    MAX_IMPORT_ID,
    AccountCandidate,
    BatchFunction,
    EmailState,
    FileRow,
    ImportedId,
    ImportFormat,
    ImportOutcome,
    RefusedRow,
    Verdict,
)
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Conflict
from gatehouse.kernel.sealing import SecretSealer
from gatehouse.kernel.text import is_plain_line

BATCH_SIZE: Final = 500  # accounts of one transaction; on SQLite other writers wait that long
MAX_ATTEMPTS: Final = 5  # at a batch, against concurrent registrations and used IDs


class ImportJob(Struct, frozen=True, kw_only=True):
    source: ImportFormat
    import_id: str  # the same for every run of the same import
    origin: AuditOrigin
    dry_run: bool = False
    emails: EmailState = EmailState.UNVERIFIED  # addresses that the file says nothing about
    providers: Mapping[str, str] = field(default_factory=dict)  # names of providers in the file, and their IDs here


class ImportTotals(Struct):
    rows: int = 0
    imported: int = 0  # with a dry run: what would be
    known: int = 0  # imported by an earlier run
    refused: int = 0
    hashes: Counter[str] = field(default_factory=Counter)  # kinds of password hashes among the imported
    totp: int = 0
    without_password: int = 0
    identities: int = 0
    left_out: int = 0  # imported accounts without one of their identities
    unverified: int = 0  # with an unverified address
    loses_methods: int = 0  # of them with a second factor or identity, which the first mailed proof ends (R10)

    def count(self, candidate: AccountCandidate) -> None:
        self.imported += 1
        self.totp += candidate.user.sealed_totp is not None
        self.identities += len(candidate.identities)
        self.left_out += bool(candidate.left_out)
        is_unverified = candidate.user.login is not None and not candidate.user.email_verified
        self.unverified += is_unverified
        self.loses_methods += is_unverified and bool(candidate.user.has_second_factor or candidate.identities)
        if candidate.hash_kind:
            self.hashes[candidate.hash_kind] += 1
        else:
            self.without_password += 1


class Importer:
    def __init__(
        self,
        *,
        judge: BatchFunction,
        store: BatchFunction,
        issuers: Callable[[], Mapping[str, ProviderIssuer]],
        decoys: DecoyHashes,
        sealer: SecretSealer,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        """`issuers`: of the configured providers, by their IDs and by the names that exports have for them."""
        self._judge = judge
        self._store = store
        self._issuers = issuers
        self._decoys = decoys
        self._sealer = sealer
        self._recorder = recorder
        self._clock = clock

    async def run(
        self,
        rows: Iterator[FileRow],
        job: ImportJob,
        *,
        report: Callable[[RefusedRow], object],
        report_id: Callable[[ImportedId], object] = lambda _: None,
        progress: Callable[[int], object] = lambda _: None,
    ) -> ImportTotals:
        """Import the rows; what is not taken goes to `report`, in the order of the file, and new IDs to `report_id`.

        `rows` is read in a worker thread, a batch at a time. Raises BadImportFile when it does.
        """
        check_import_id(job.import_id)
        run = ImportRun(self._checker(job))
        while batch := await run_off_loop(OFF_LOOP_WEIGHT, run.next_batch, rows):
            candidates, refused = batch
            refused += await self._store_batch(candidates, job, run)
            run.totals.refused += len(refused)
            for row in sorted(refused + run.take_left_out(), key=lambda row: row.number):
                report(row)
            for imported in run.take_ids():
                report_id(imported)
            progress(run.totals.rows)
        if run.totals.hashes and not job.dry_run:
            await self._decoys.count()
        return run.totals

    def _checker(self, job: ImportJob) -> RowChecker:
        return RowChecker(
            sealer=self._sealer,
            recorder=self._recorder,
            origin=job.origin,
            source=job.source.value,
            import_id=job.import_id,
            now=self._clock.now(),
            issuers=self._named_issuers(job),
            emails=job.emails,
        )

    def _named_issuers(self, job: ImportJob) -> Mapping[str, ProviderIssuer]:
        known = self._issuers()
        for provider_id in job.providers.values():
            if provider_id not in known:
                raise BadAccount(f"no provider {provider_id} is configured")
        return {**known, **{name: known[provider_id] for name, provider_id in job.providers.items()}}

    async def _store_batch(
        self, candidates: list[AccountCandidate], job: ImportJob, run: "ImportRun"
    ) -> list[RefusedRow]:
        """Store what can be stored and return the rest; a used generated ID is replaced by another one."""
        refused: list[RefusedRow] = []
        for _ in range(MAX_ATTEMPTS):
            again: list[AccountCandidate] = []
            for candidate, verdict in zip(candidates, await self._verdicts(candidates, job), strict=True):
                match verdict.outcome:
                    case ImportOutcome.IMPORTED:
                        run.count(candidate)
                        run.keep_id(candidate, candidate.user.user_id)
                    case ImportOutcome.KNOWN:
                        run.totals.known += 1
                        run.keep_id(candidate, verdict.user_id)
                    case ImportOutcome.REFUSED:
                        refused.append(RefusedRow(candidate.number, candidate.title, verdict.reason))
                    case ImportOutcome.ID_USED:
                        again.append(candidate)
            candidates = run.with_new_ids(again)
            if not candidates:
                break
        return refused + [
            RefusedRow(unplaced.number, unplaced.title, "no free user ID was found") for unplaced in candidates
        ]

    async def _verdicts(self, candidates: Sequence[AccountCandidate], job: ImportJob) -> Sequence[Verdict]:
        if not candidates:
            return ()
        if job.dry_run:
            return await self._judge(candidates, job.import_id)
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                return await self._store(candidates, job.import_id)
            except Conflict:  # someone registered one of the names meanwhile: the next attempt finds it
                continue
        return await self._store(candidates, job.import_id)


class ImportRun:
    """What one run remembers of the rows it has read."""

    def __init__(self, checker: RowChecker) -> None:
        self._checker = checker
        self._seen: dict[str, int] = {}  # the row of each name, to refuse a second one
        self._rows: dict[int, FileRow] = {}  # of the current batch
        self._left_out: list[RefusedRow] = []
        self._ids: list[ImportedId] = []
        self.totals = ImportTotals()

    def count(self, candidate: AccountCandidate) -> None:
        self.totals.count(candidate)
        if candidate.left_out:
            reason = f"imported without {'; '.join(candidate.left_out)}"
            self._left_out.append(RefusedRow(candidate.number, candidate.title, reason))

    def take_left_out(self) -> list[RefusedRow]:
        """Return what is missing from the accounts counted since the last call."""
        taken, self._left_out = self._left_out, []
        return taken

    def keep_id(self, candidate: AccountCandidate, user_id: str) -> None:
        self._ids.append(
            ImportedId(number=candidate.number, title=candidate.title, source_id=candidate.source_id, user_id=user_id)
        )

    def take_ids(self) -> list[ImportedId]:
        """Return the IDs of the accounts since the last call."""
        taken, self._ids = self._ids, []
        return taken

    def next_batch(self, rows: Iterator[FileRow]) -> tuple[list[AccountCandidate], list[RefusedRow]] | None:
        batch = list(islice(rows, BATCH_SIZE))
        self._rows = {row.number: row for row in batch}
        self.totals.rows += len(batch)
        checked = [self._check(row) for row in batch]
        return (
            (
                [result for result in checked if isinstance(result, AccountCandidate)],
                [result for result in checked if isinstance(result, RefusedRow)],
            )
            if batch
            else None
        )

    def with_new_ids(self, candidates: Sequence[AccountCandidate]) -> list[AccountCandidate]:
        checked = [self._checker.check(self._rows[candidate.number]) for candidate in candidates]
        return [result for result in checked if isinstance(result, AccountCandidate)]

    def _check(self, row: FileRow) -> AccountCandidate | RefusedRow:
        checked = self._checker.check(row)
        if isinstance(checked, RefusedRow):
            return checked
        for name in names_of(checked):
            earlier = self._seen.setdefault(name, row.number)
            if earlier != row.number:
                return RefusedRow(
                    row.number, checked.title, f"has the same {name.partition(':')[0]} as row {earlier}"
                )
        return checked


def names_of(candidate: AccountCandidate) -> Iterator[str]:
    """Yield what no other account may have."""
    user = candidate.user
    if candidate.has_own_id:
        yield f"user_id:{user.user_id}"
    if user.login_key is not None:
        yield f"login:{user.login_key}"
    if user.username is not None:
        yield f"username:{user.username}"
    if user.phone_verified:
        yield f"phone:{user.phone}"
    for identity in candidate.identities:
        yield f"identity:{identity.issuer} {identity.subject}"


def check_import_id(text: str) -> str:
    if not 0 < len(text) <= MAX_IMPORT_ID or not is_plain_line(text):
        raise BadAccount(f"the import ID must be 1 to {MAX_IMPORT_ID} visible characters on one line")
    return text
