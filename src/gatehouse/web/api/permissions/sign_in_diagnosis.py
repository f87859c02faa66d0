"""What a person would meet at a sign-in, as the API gives it."""

from collections.abc import Sequence

import msgspec

from gatehouse.admin.sign_in_doctor import SignInDiagnosis, SignInFinding


class SignInFindingEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    what: str
    effect: str  # stops, asks or note
    by: str = ""  # the login rule, of what=application
    names: Sequence[str] = ()
    until: int = 0  # of a ban; Unix seconds
    application_id: int = 0  # of a ban
    project_id: str = ""  # of a ban
    seconds: int = 0  # of a lock


class SignInDiagnosisEntry(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str
    application_id: int  # 0 for the account pages
    of_account: bool  # false for readers of an application, who see its own reasons only
    may_sign_in: bool
    findings: Sequence[SignInFindingEntry]


def diagnosis_entry(diagnosis: SignInDiagnosis) -> SignInDiagnosisEntry:
    return SignInDiagnosisEntry(
        user_id=diagnosis.user_id,
        application_id=diagnosis.application_id,
        of_account=diagnosis.of_account,
        may_sign_in=diagnosis.stopped_by is None,
        findings=[finding_entry(finding) for finding in diagnosis.findings],
    )


def finding_entry(finding: SignInFinding) -> SignInFindingEntry:
    return SignInFindingEntry(
        what=finding.what.value,
        effect=finding.effect.value,
        by=finding.by,
        names=finding.names,
        until=finding.until,
        application_id=finding.application_id,
        project_id=finding.project_id,
        seconds=finding.seconds,
    )
