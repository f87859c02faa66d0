// SPDX-License-Identifier: Apache-2.0

/** Why a request is not served. `status` and `publicMessage` may be shown to the caller; `message` is for the log. */
export class GatehouseError extends Error {
  readonly status: number = 500;
  readonly publicMessage: string = "The request failed.";
}

/** There is no valid token: it is missing, expired, forged, revoked, or sent without its factor. */
export class Unauthenticated extends GatehouseError {
  override readonly status = 401;
  override readonly publicMessage = "invalid token";
}

/** The caller is known and lacks the permission. */
export class Denied extends GatehouseError {
  override readonly status = 403;
  override readonly publicMessage = "You are not allowed to do this.";
}

/** Nothing was decided: Gatehouse cannot be reached, or refuses this application. */
export class Unavailable extends GatehouseError {
  override readonly status = 503;
  override readonly publicMessage = "Permissions cannot be checked right now.";
}

/** A sign-in that did not succeed; `code` is the error of the service or of the check that failed. */
export class SignInFailed extends GatehouseError {
  override readonly status = 400;
  override readonly publicMessage = "The sign-in failed. Try again.";
  readonly code: string;

  constructor(code: string, message: string) {
    super(`${code}: ${message}`);
    this.code = code;
  }
}
