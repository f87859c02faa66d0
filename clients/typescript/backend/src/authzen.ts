// SPDX-License-Identifier: Apache-2.0
//
// AuthZEN 1.0: an application asks about any person or service account, and searches. For the owner of a JWT that a
// request brings, `Gatehouse` is faster: it caches.

import { Unavailable } from "./errors.js";
import { asObject, checkBaseUrl, type Fetch, type Json, readJson, send } from "./http.js";
import { refusal } from "./management.js";
import { type Credential, ownHeaders } from "./permissions.js";
import { TokenSource } from "./token_source.js";

const MAX_EVALUATIONS = 1_000; // of one request
const PAGE_SIZE = 1_000;

/** A subject (`user`, `service_account`) or a resource (`application`, `project`). */
export interface Entity {
  readonly type: string;
  readonly id: string;
  readonly properties?: Json;
}

export interface Evaluation {
  readonly subject: Entity;
  readonly action: string;
  readonly resource: Entity;
  readonly context?: Json;
}

export type Semantic = "execute_all" | "deny_on_first_deny" | "permit_on_first_permit";

export interface AuthzenOptions {
  readonly baseUrl: string;
  /** Of the application; or a source of tokens for the scope `authzen`. */
  readonly credential: Credential | TokenSource;
  /** How many results a search reads with one request. */
  readonly pageSize?: number;
  readonly fetch?: Fetch;
}

/**
 * Every method throws Unauthenticated or Denied when the credential is refused, CallRefused for a bad question, and
 * Unavailable when nothing was decided.
 */
export class Authzen {
  readonly #prefix: string;
  readonly #options: AuthzenOptions;

  constructor(options: AuthzenOptions) {
    this.#prefix = `${checkBaseUrl(options.baseUrl)}/access/v1/`;
    this.#options = options;
  }

  /** Whether the subject may do this; no for whatever does not exist. */
  async evaluate(evaluation: Evaluation): Promise<boolean> {
    return decisionOf(await this.#ask("evaluation", membersOf(evaluation)));
  }

  /** The decisions in order; with another semantic than `execute_all` they end at the one that decides. */
  async evaluations(evaluations: readonly Evaluation[], semantic: Semantic = "execute_all"): Promise<boolean[]> {
    const endsWith = { execute_all: undefined, deny_on_first_deny: false, permit_on_first_permit: true }[semantic];
    const decisions: boolean[] = [];
    for (let start = 0; start < evaluations.length; start += MAX_EVALUATIONS) {
      const answer = await this.#ask("evaluations", {
        evaluations: evaluations.slice(start, start + MAX_EVALUATIONS).map(membersOf),
        options: { evaluations_semantic: semantic },
      });
      decisions.push(...listOf(answer, "evaluations").map(decisionOf));
      if (endsWith !== undefined && decisions.includes(endsWith)) break;
    }
    return decisions;
  }

  /** Everyone who may do the action on the resource, page by page. */
  async *searchSubjects(action: string, resource: Entity, type = "user"): AsyncGenerator<Entity, void, undefined> {
    yield* this.#pages("subject", { subject: { type }, action: { name: action }, resource }, entityOf);
  }

  /** What the subject may do on the resource, page by page. */
  async *searchActions(
    subject: Entity,
    resource: Entity,
    context?: Json,
  ): AsyncGenerator<string, void, undefined> {
    yield* this.#pages("action", { subject, resource, context }, ({ name }) => String(name));
  }

  /** Where the subject may do the action, page by page. */
  async *searchResources(
    subject: Entity,
    action: string,
    { type = "project", properties, context }: { type?: string; properties?: Json; context?: Json } = {},
  ): AsyncGenerator<Entity, void, undefined> {
    const resource = { type, properties };
    yield* this.#pages("resource", { subject, action: { name: action }, resource, context }, entityOf);
  }

  async *#pages<T>(path: string, asked: object, read: (found: Json) => T): AsyncGenerator<T, void, undefined> {
    let token: unknown;
    do {
      const answer = await this.#ask(`search/${path}`, {
        ...asked,
        page: { limit: this.#options.pageSize ?? PAGE_SIZE, token }, // undefined is left out
      });
      yield* listOf(answer, "results").map(read);
      token = asObject(answer["page"] ?? {})["next_token"];
    } while (typeof token === "string" && token !== "");
  }

  async #ask(path: string, body: object): Promise<Json> {
    const { credential, fetch: fetcher = fetch } = this.#options;
    const own =
      credential instanceof TokenSource
        ? { Authorization: `Bearer ${await credential.token()}` }
        : ownHeaders(credential);
    const response = await send(fetcher, this.#prefix + path, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...own },
      body: JSON.stringify(body),
    });
    const answer = await readJson(response);
    if (response.status !== 200) throw refusal(response.status, String(answer["error"] ?? ""));
    return answer;
  }
}

function membersOf({ action, ...more }: Evaluation): object {
  return { ...more, action: { name: action } };
}

function listOf(answer: Json, name: string): Json[] {
  const list = answer[name];
  if (!Array.isArray(list)) throw new Unavailable(`${name} is missing in the answer`);
  return list.map(asObject);
}

function decisionOf(answer: Json): boolean {
  const { decision } = answer;
  if (typeof decision !== "boolean") throw new Unavailable("no decision in the answer");
  return decision;
}

function entityOf({ type, id }: Json): Entity {
  return { type: String(type), id: String(id) };
}
