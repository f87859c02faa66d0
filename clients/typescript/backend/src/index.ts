// SPDX-License-Identifier: Apache-2.0

export { Authzen, type AuthzenOptions, type Entity, type Evaluation, type Semantic } from "./authzen.js";
export { CallRefused, Denied, GatehouseError, MissingScope, SignInFailed, Unauthenticated, Unavailable } from "./errors.js";
export { Gatehouse, type GatehouseOptions } from "./gatehouse.js";
export {
  type CallOptions,
  type ListedKind,
  Management,
  type ManagementOptions,
  type Person,
  type PersonFields,
  type PersonFilters,
} from "./management.js";
export { metadataResponse, requireToken, requireUser, sendMetadata, withToken, withUser } from "./middleware.js";
export { type Credential, Permissions, type Place, type Resource } from "./permissions.js";
export { ProtectedResource, type ProtectedResourceOptions, ResourceToken } from "./protected_resource.js";
export { type PendingSignIn, SignIn, type SignedIn, type SignInOptions } from "./sign_in.js";
export { TokenSource, type TokenSourceOptions } from "./token_source.js";
export type { Clock, User } from "./tokens.js";
