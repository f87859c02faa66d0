// SPDX-License-Identifier: Apache-2.0
//
// An API that Gatehouse issues access tokens for (RFC 9068): verifies them offline and tells clients where to get one
// (RFC 9728).

import { type GatehouseError, MissingScope, Unauthenticated } from "./errors.js";
import { checkBaseUrl, type Fetch, type Json } from "./http.js";
import { checkTimes, type Clock, KeyCache, SYSTEM_CLOCK, verifySignature } from "./tokens.js";

const WELL_KNOWN = "/.well-known/oauth-protected-resource";
const MAX_ACTORS = 3;
const WEB_RESOURCE = /^(https?:\/\/[^/?#\s"]+)(\/[^?#\s"]*)?$/;

/** A verified access token. */
export class ResourceToken {
  /** A user ID, or `client:` and a client ID. */
  readonly subject: string;
  readonly clientId: string;
  /** Client IDs of the programs that act for the person, the newest first; empty when the person's own client does. */
  readonly actors: readonly string[];
  readonly scopes: ReadonlySet<string>;
  readonly roles: readonly string[];
  readonly groups: readonly string[];
  readonly permissions: readonly string[];
  /** Which of these are missing because of their length. */
  readonly claimsOmitted: readonly string[];
  readonly expiresAt: number;
  readonly claims: Json;

  /** Throws Unauthenticated unless these are the claims of an access token. */
  constructor(claims: Json) {
    this.subject = textIn(claims, "sub");
    this.clientId = textIn(claims, "client_id");
    textIn(claims, "jti");
    this.actors = actorsIn(claims);
    if (this.actors.length > 0 && (this.actors[0] !== this.clientId || this.isMachine)) {
      throw new Unauthenticated("act must name the client of the token, which acts for a person");
    }
    this.scopes = new Set(String(claims["scope"] ?? "").split(" ").filter(Boolean));
    this.roles = textsIn(claims, "roles");
    this.groups = textsIn(claims, "groups");
    this.permissions = textsIn(claims, "permissions");
    this.claimsOmitted = textsIn(claims, "claims_omitted");
    this.expiresAt = Number(claims["exp"]);
    this.claims = claims;
  }

  /** Whether a client acts for itself; a service account has a user ID like a person. */
  get isMachine(): boolean {
    return this.subject.startsWith("client:");
  }

  /** Throws MissingScope unless the token has all of these scopes. */
  require(...scopes: readonly string[]): void {
    const missing = scopes.filter((scope) => !this.scopes.has(scope));
    if (missing.length > 0) throw new MissingScope(`the token lacks ${missing.join(" ")}`, scopes);
  }
}

export interface ProtectedResourceOptions {
  readonly baseUrl: string;
  /** The address of the API, exactly as the application declares it. */
  readonly resource: string;
  /** Named in the metadata document, for clients that ask for all of them. */
  readonly scopes?: readonly string[];
  readonly name?: string;
  readonly documentation?: string;
  readonly fetch?: Fetch;
  readonly clock?: Clock;
}

/** Make one for the whole application. */
export class ProtectedResource {
  /** Where clients look for the metadata document (RFC 9728 §3.1). */
  readonly metadataPath: string;
  readonly #options: ProtectedResourceOptions;
  readonly #origin: string;
  readonly #clock: Clock;
  readonly #keys: KeyCache;

  constructor(options: ProtectedResourceOptions) {
    const baseUrl = checkBaseUrl(options.baseUrl);
    const [, origin, path = ""] = WEB_RESOURCE.exec(options.resource) ?? [];
    if (origin === undefined) throw new TypeError("resource must be an http or https URL without query and fragment");
    this.#options = options;
    this.#origin = origin;
    this.metadataPath = WELL_KNOWN + (path === "/" ? "" : path);
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    this.#keys = new KeyCache(`${baseUrl}/api/permissions/keys`, options.fetch ?? fetch, this.#clock);
  }

  /** The metadata document (RFC 9728 §2). */
  metadata(): Json {
    const { baseUrl, resource, scopes = [], name, documentation } = this.#options;
    return {
      resource,
      authorization_servers: [baseUrl],
      bearer_methods_supported: ["header"],
      ...(scopes.length > 0 ? { scopes_supported: scopes } : {}),
      ...(name ? { resource_name: name } : {}),
      ...(documentation ? { resource_documentation: documentation } : {}),
    };
  }

  /** The value of WWW-Authenticate for a refused request (RFC 6750 §3, RFC 9728 §5.1). */
  challenge(error: GatehouseError): string {
    const where = `resource_metadata="${this.#origin}${this.metadataPath}"`;
    if (error instanceof MissingScope) {
      return `Bearer error="insufficient_scope", scope="${error.scopes.join(" ")}", ${where}`;
    }
    return error.message === "" ? `Bearer ${where}` : `Bearer error="invalid_token", ${where}`;
  }

  /** Verify a token for this API. Throws Unauthenticated, MissingScope, Unavailable while the keys are unknown. */
  async verify(token: string, ...scopes: readonly string[]): Promise<ResourceToken> {
    if (token === "") throw new Unauthenticated(); // without a message: no token was sent
    const claims = await verifySignature(token, this.#keys, ["RS256"], "at+jwt");
    checkTimes(claims, this.#options.baseUrl, this.#clock.now());
    const { aud } = claims;
    const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
    if (!audiences.includes(this.#options.resource)) throw new Unauthenticated("the token is for another API");
    const verified = new ResourceToken(claims);
    verified.require(...scopes);
    return verified;
  }
}

/** The client IDs in `act` (RFC 8693 §4.1), the newest first. */
function actorsIn(claims: Json): readonly string[] {
  const actors: string[] = [];
  for (let act = claims["act"]; act !== undefined; ) {
    if (typeof act !== "object" || act === null || Array.isArray(act)) throw new Unauthenticated("act is malformed");
    const actor: Json = act as Json;
    const clientId = textIn(actor, "client_id");
    if (textIn(actor, "sub") !== `client:${clientId}`) throw new Unauthenticated("sub of act must be the client");
    actors.push(clientId);
    if (actors.length > MAX_ACTORS) throw new Unauthenticated("too many programs in act");
    act = actor["act"];
  }
  return actors;
}

function textIn(claims: Json, name: string): string {
  const value = claims[name];
  if (typeof value !== "string" || value === "") throw new Unauthenticated(`${name} is missing`);
  return value;
}

function textsIn(claims: Json, name: string): readonly string[] {
  const value = claims[name] ?? [];
  if (!Array.isArray(value)) throw new Unauthenticated(`${name} is not a list`);
  return value.map(String);
}
