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
  override readonly publicMessage: string = "You are not allowed to do this.";
}

/** The access token lacks a scope that the request needs. */
export class MissingScope extends Denied {
  override readonly publicMessage = "The access token lacks a scope.";
  /** What the request needs. */
  readonly scopes: readonly string[];

  constructor(message: string, scopes: readonly string[]) {
    super(message);
    this.scopes = scopes;
  }
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

/** The service refused a call of the management API: bad data, a conflict, or nothing found. `message` is its answer. */
export class CallRefused extends GatehouseError {
  override readonly status = 400;
  override readonly publicMessage = "The service refused the call.";
  /** The status of HTTP. */
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}
