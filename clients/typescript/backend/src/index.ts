// SPDX-License-Identifier: Apache-2.0

export { Denied, GatehouseError, SignInFailed, Unauthenticated, Unavailable } from "./errors.js";
export { Gatehouse, type GatehouseOptions, requireUser, withUser } from "./gatehouse.js";
export { type Credential, Permissions, type Place, type Resource } from "./permissions.js";
export { type PendingSignIn, SignIn, type SignedIn, type SignInOptions } from "./sign_in.js";
export type { Clock, User } from "./tokens.js";
