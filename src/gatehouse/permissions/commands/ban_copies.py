"""Copies of bans: a ban counts for other accounts of the same person, found by digests (R14)."""

from msgspec.structs import replace

from gatehouse.accounts.bans.model import Ban, BanDigest, BanRank, DigestKind
from gatehouse.accounts.model import login_key
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import hmac_sha256
from gatehouse.kernel.ids import new_record_id
from gatehouse.permissions.commands.bans import ban_details
from gatehouse.permissions.evaluation.effective import evaluate
from gatehouse.permissions.model.facts import ApplicationModel, Facts, Structure
from gatehouse.permissions.rights.ban_ranks import rank_of, without_bans
from gatehouse.permissions.store import BanRules

SERVICE = AuditOrigin(actor="service")  # who copies bans, and lifts copies with their source


class BanCopyRules:
    """The rules that storage copies bans by."""

    def __init__(self, *, key: bytes, recorder: Recorder, clock: Clock) -> None:
        self._key = key
        self._recorder = recorder
        self._clock = clock

    def for_storage(self) -> BanRules:
        return BanRules(
            digest_identity=self.digest_identity,
            digest_address=self.digest_address,
            digest_phone=self.digest_phone,
            make_copy=self.make_copy,
            lift_record=self.lift_record,
            covers=self.covers,
        )

    def digest_identity(self, issuer: str, subject: str) -> BanDigest:
        return self._digest(DigestKind.IDENTITY, issuer, subject)

    def digest_address(self, login: str) -> BanDigest:
        """Return the digest of an address, in its canonical spelling also if it is stored in another one."""
        return self._digest(DigestKind.ADDRESS, login_key(login))

    def digest_phone(self, phone: str) -> BanDigest:
        return self._digest(DigestKind.PHONE, phone)

    def _digest(self, kind: DigestKind, *parts: str) -> BanDigest:
        return BanDigest(kind, hmac_sha256(self._key, "\0".join((kind, *parts)).encode()).hex())

    def make_copy(self, source: Ban, user_id: str) -> tuple[Ban, AuditRecord]:
        now = self._clock.now()
        copy = replace(
            source,
            ban_id=new_record_id(now),
            user_id=user_id,
            source=source.ban_id,
            devices=0,
            created_at=now,
            erased_at=0,
        )
        return copy, self._record(AuditEvent.USER_BANNED, copy)

    def lift_record(self, copy: Ban) -> AuditRecord:
        return self._record(AuditEvent.USER_BAN_LIFTED, copy)

    def covers(
        self, ban: Ban, project_id: str, person: Facts, central: ApplicationModel, structure: Structure
    ) -> bool:
        """Whether the author of the ban could ban the person; `project_id`: where the ban counts."""
        if ban.author_rank == BanRank.ADMINISTRATOR:
            return True
        now, facts = self._clock.now(), without_bans(person)
        effective = evaluate(central, facts, structure, now=now, address=None)
        return rank_of(effective, facts, project_id, now) <= ban.author_rank

    def _record(self, event: AuditEvent, ban: Ban) -> AuditRecord:
        return self._recorder.record(event, SERVICE, subject=ban.user_id, details=ban_details(ban))
