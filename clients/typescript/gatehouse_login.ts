// SPDX-License-Identifier: Apache-2.0
//
// Sign a player in to a game with Gatehouse: copy this file into your game. Node 20, Electron, browsers; nothing else.
//
//     const factor = deviceFactor("device");
//     const result = await signIn("https://sso.studio.example", { appId: 50001, factor });
//     if (result.outcome === "ok") greet(result.nick);
//
// signIn opens the system browser and ends when the player has confirmed there; abort options.signal when the player
// gives up. A page of another origin cannot call the service: in Electron use this in the main process. Only
// deviceFactor writes a file.
//
// signInGuest and signInPlatform need no browser; upgrade gives a guest an account, through the browser.

/** What the player needs: open `url` on any device; `code` and `qr` (an SVG data URI) are there when asked for. */
export interface Session {
  readonly gsid: string;
  readonly url: string;
  readonly code: string;
  readonly qr: string;
}

export type State = "waiting" | "opened" | "signing_in" | "confirmed" | "cancelled";

export type Result =
  /** Signed in; `data` is everything the service told. */
  | {
      readonly outcome: "ok";
      readonly userId: string;
      readonly nick: string;
      readonly jwt: string;
      readonly token: string;
      readonly data: Readonly<Record<string, unknown>>;
    }
  /**
   * The player said no, or the service did; `error` is a record id that its operators can look up. For a banned player
   * `reason` is "banned": show `publicText`, and `until` (Unix time, 0 for no end). For guests and platforms it can be
   * "second_factor": ask for a code of `data.methods` and call `enterCode`; "wrong_code": ask again; "no_account": sign
   * in through the browser; "terms": open `data.url`, then sign in again; "throttled"; "login_error": the key or ticket
   * is not accepted.
   */
  | {
      readonly outcome: "refused";
      readonly error: string;
      readonly reason: string;
      readonly publicText: string;
      readonly until: number;
      readonly data: Readonly<Record<string, unknown>>;
    }
  /** The game cancelled. */
  | { readonly outcome: "cancelled" }
  /** The service cannot be reached; `error` says how. */
  | { readonly outcome: "unreachable"; readonly error: string };

export interface Options {
  readonly appId?: number;
  readonly factor?: string;
  readonly code?: boolean;
  readonly qr?: boolean;
  /** A client of the application that gets an id_token, and its nonce; the id_token is in `data`. */
  readonly idTokenClient?: string;
  readonly nonce?: string;
  /** Further fields of getGsid. */
  readonly more?: Readonly<Record<string, unknown>>;
  /** Called instead of opening the browser. In Electron: session => shell.openExternal(session.url). */
  readonly show?: (session: Session) => unknown;
  readonly onState?: (state: State) => unknown;
  readonly signal?: AbortSignal;
  /** A poll is held for up to 30 seconds. */
  readonly pollTimeoutMs?: number;
  /** How long without a whole answer until the service counts as unreachable. */
  readonly patienceMs?: number;
}

interface Answer {
  readonly http: number; // 0 when there was no answer
  readonly body: Readonly<Record<string, unknown>>;
  readonly location: string;
  readonly retryAfter: string;
  readonly timedOut: boolean;
  readonly cancelled: boolean;
  readonly error: string;
}

// https anywhere, plain http to this very machine; no user part, no blanks, nothing a command line could misread.
const ADDRESS =
  /^(?:https:\/\/(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])|http:\/\/(?:localhost|127\.0\.0\.1|\[::1\]))(?::[0-9]{1,5})?(?:\/[A-Za-z0-9._~/-]*)?(\?[A-Za-z0-9._~%&=+/-]*)?$/;
const LOCATION = /[?&]location=([A-Za-z0-9._~%+/=-]{1,500})/;
const SHORT_TIMEOUT = 15_000; // for everything that is not held
const LEAST_TIMEOUT = 1_000; // what comes at the end of all patience is still a try
const SESSION_LIVES = 1_200_000; // no session of the service gets older
const LONGEST_PAUSE = 90; // seconds: an unpolled session ends after 120, so a longer Retry-After is an end
const MARGIN = 20; // milliseconds: timers may be early, polls may not
const GAME_SESSION = "/proxy/api/gameSession/";
const GUEST = "/proxy/api/guest";
const PLATFORM_LOGIN = "/proxy/api/platformLogin";
const LOGIN = "/proxy/api/login";
const MOST_PARTS = 64; // of a puzzle
const MOST_BITS = 31;
const AT_ONCE = 512; // digests
// What stands before the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410).
const PKCS8 = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
const DEVICE_FACTOR = /^[0-9a-f]{64}$/;
const REASONS: Readonly<Record<string, string>> = {
  "2STEP": "second_factor", "2STEPERROR": "wrong_code", TERMS: "terms", BLOCKED: "throttled",
  LOGINERROR: "login_error", DENIED: "denied",
};
const NO_ANSWER: Answer = {
  http: 0, body: {}, location: "", retryAfter: "", timedOut: false, cancelled: false, error: "",
};

/** Throws a TypeError when `baseUrl` is neither https nor on this machine; all else is told by the outcome. */
export async function signIn(baseUrl: string, options: Options = {}): Promise<Result> {
  const client = new Client(baseUrl, options);
  const answer = await client.register();
  const found = session(answer);
  if (found === null) return notRegistered(answer);
  const location = LOCATION.exec(answer.location)?.[1] ?? "";
  let closing: "Success" | "Error" | null = "Error"; // also when the game's own callbacks throw
  try {
    await (options.show ?? ((shown: Session) => openBrowser(shown.url)))(found);
    client.tell("waiting");
    const result = await client.wait(found.gsid, location);
    closing = result.outcome === "ok" ? "Success" : result.outcome === "refused" ? null : "Error";
    return result;
  } finally {
    // A refused session has ended by itself.
    if (closing !== null) await client.send(`${GAME_SESSION}closeGsid`, { gsid: found.gsid, status: closing }, location);
  }
}

/** Makes the key of a guest. Store it where only the player can read it: it is the account. */
export function newDeviceKey(): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(32));
}

/**
 * Returns the secret of this device. It is made at the first call, in a file that only the player can read; in a browser,
 * which has no files, in localStorage under that name.
 */
export function deviceFactor(path: string): string {
  const here = globalThis as unknown as Platform;
  const files = here.process?.getBuiltinModule?.("node:fs");
  const kept = files === undefined ? here.localStorage?.getItem(path) : readText(files, path);
  if (kept && DEVICE_FACTOR.test(kept)) return kept;
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  const factor = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (files === undefined) {
    here.localStorage?.setItem(path, factor);
  } else {
    const made = `${path}.${factor.slice(0, 8)}`; // renamed, so that the file is never half-written
    files.writeFileSync(made, factor, { mode: 0o600, flag: "wx" });
    files.renameSync(made, path);
  }
  return factor;
}

function readText(files: Files, path: string): string {
  try {
    return files.readFileSync(path, "utf8");
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return "";
    throw error;
  }
}

/** Signs in without an account. The same key finds the same guest again. */
export async function signInGuest(baseUrl: string, deviceKey: Uint8Array, options: Options = {}): Promise<Result> {
  const client = new Client(baseUrl, options);
  const key = await DeviceKey.from(deviceKey);
  let answer = await client.post(GUEST, { app_id: options.appId ?? 0, device_key: key.publicText });
  for (let attempt = 0; attempt < 2 && text(answer, "challenge") !== ""; attempt++) { // the first may get a puzzle
    const solved = await client.solve(answer.body["puzzle"]);
    if (solved === null) return { outcome: "cancelled" };
    const proved = await key.sign(text(answer, "challenge"));
    answer = await client.post(GUEST, { ...client.registration(), ...proved, ...solved });
  }
  return loggedIn(answer);
}

/** Signs in with a ticket of the player's game platform, such as "steam". */
export async function signInPlatform(
  baseUrl: string,
  platform: string,
  ticket: string,
  options: Options = {},
): Promise<Result> {
  const client = new Client(baseUrl, options);
  return loggedIn(await client.post(PLATFORM_LOGIN, { platform, ticket, ...client.registration() }));
}

/**
 * Continues a sign-in that was refused with the reason "second_factor", with `data.request_id` of that result and the code
 * that the player entered. With the method "email" and an empty code the service sends one.
 */
export async function enterCode(
  baseUrl: string,
  requestId: string,
  otp: string,
  options: Options = {},
  method = "",
): Promise<Result> {
  const asked = { request_id: requestId, ...(otp ? { otp } : {}), ...(method ? { method } : {}) };
  return loggedIn(await new Client(baseUrl, options).post(LOGIN, asked));
}

/**
 * Gives a guest an account, through the browser: the player registers, or signs in to the account that gets everything
 * the guest has. Show the code of the session, the player has to pick it. Afterwards the key no longer works; delete it.
 */
export async function upgrade(baseUrl: string, deviceKey: Uint8Array, options: Options = {}): Promise<Result> {
  const asked = { app_id: options.appId ?? 0, intent: "upgrade" };
  const answer = await new Client(baseUrl, options).post(GUEST, asked);
  if (text(answer, "challenge") === "") return loggedIn(answer);
  const proved = await (await DeviceKey.from(deviceKey)).sign(text(answer, "challenge"));
  return signIn(baseUrl, { ...options, more: { ...options.more, ...proved, intent: "upgrade" } });
}

/** Opens the system browser. No shell ever sees the address. */
export function openBrowser(url: string): boolean {
  if (!ADDRESS.test(url)) return false;
  const here = globalThis as unknown as Platform;
  const node = here.process?.getBuiltinModule?.("node:child_process");
  if (here.process === undefined || node === undefined) return here.open?.(url, "_blank", "noopener") !== undefined;
  const openers: Record<string, readonly string[]> = {
    win32: ["rundll32.exe", "url.dll,FileProtocolHandler"],
    darwin: ["open"],
  };
  const [program = "", ...words] = openers[here.process.platform] ?? ["xdg-open"];
  const child = node.spawn(program, [...words, url], { detached: true, stdio: "ignore" });
  child.on("error", () => undefined); // there is no browser: the player still has the link
  child.unref();
  return true;
}

class DeviceKey {
  readonly publicText: string;
  private readonly key: CryptoKey;

  private constructor(key: CryptoKey, publicText: string) {
    this.key = key;
    this.publicText = publicText;
  }

  static async from(seed: Uint8Array): Promise<DeviceKey> {
    const encoded = new Uint8Array([...PKCS8, ...seed]);
    const key = await crypto.subtle.importKey("pkcs8", encoded, "Ed25519", true, ["sign"]);
    const { x = "" } = await crypto.subtle.exportKey("jwk", key);
    return new DeviceKey(key, x.replace(/-/g, "+").replace(/_/g, "/") + "=");
  }

  /** The fields that prove the key. */
  async sign(challenge: string): Promise<Record<string, string>> {
    const signature = await crypto.subtle.sign("Ed25519", this.key, new TextEncoder().encode(challenge));
    const encoded = btoa(String.fromCharCode(...new Uint8Array(signature)));
    return { device_key: this.publicText, challenge, signature: encoded };
  }
}

class Client {
  private readonly base: string;
  private readonly options: Options;
  private answered = performance.now();
  private state = "";

  constructor(baseUrl: string, options: Options) {
    this.options = options;
    const address = ADDRESS.exec(baseUrl);
    if (address === null || address[1] !== undefined) {
      throw new TypeError("baseUrl must be https, or http on this machine");
    }
    this.base = baseUrl.replace(/\/+$/, "");
  }

  register(): Promise<Answer> {
    return this.post(`${GAME_SESSION}getGsid`, this.registration());
  }

  registration(): Record<string, unknown> {
    const { appId = 0, factor, code, qr, idTokenClient, nonce, more } = this.options;
    return {
      app_id: appId,
      ...(factor ? { factor } : {}),
      ...(code ? { code: "1" } : {}),
      ...(qr ? { qr: "1" } : {}),
      ...(idTokenClient ? { id_token_client: idTokenClient, nonce } : {}),
      ...more,
    };
  }

  post(path: string, asked: object): Promise<Answer> {
    return this.send(path, asked, "", SHORT_TIMEOUT, this.options.signal);
  }

  /** The fields with the solution, if there is a puzzle; null once the game has cancelled. */
  async solve(puzzle: unknown): Promise<Record<string, string> | null> {
    if (typeof puzzle !== "object" || puzzle === null) return {};
    const { puzzle: told, difficulty, parts } = puzzle as Record<string, unknown>;
    const [bits, count] = [Number(difficulty), Number(parts)];
    const numbers: number[] = [];
    if (bits >= 0 && bits <= MOST_BITS && count <= MOST_PARTS) {
      const seed = await sha256(new TextEncoder().encode(String(told)));
      while (numbers.length < count) {
        const found = await solvePart(seed, numbers.length, bits, this.options.signal);
        if (found === null) return null;
        numbers.push(found);
      }
    }
    this.answered = performance.now();
    return { puzzle: String(told), solution: numbers.join(".") };
  }

  async wait(gsid: string, location: string): Promise<Result> {
    const { pollTimeoutMs = 40_000, signal } = this.options;
    const started = (this.answered = performance.now());
    let backoff = 1;
    while (performance.now() - started < SESSION_LIVES) {
      const answer = await this.send(`${GAME_SESSION}getGsidResult`, { gsid, states: "1" }, location, pollTimeoutMs, signal);
      if (answer.http !== 0) this.tell(stateOf(answer));
      const result = ending(answer);
      if (result !== null) return result;
      let seconds = pause(answer);
      if (seconds !== null) {
        this.answered = performance.now();
        backoff = 1;
      } else if (this.patienceLeft() <= 0) {
        return unreachable(answer);
      } else if (answer.timedOut) {
        seconds = 0;
      } else {
        seconds = Math.min(backoff, this.patienceLeft() / 1_000);
        backoff = Math.min(2 * backoff, 8);
      }
      if (!(await rest(seconds, signal))) return { outcome: "cancelled" };
    }
    return { outcome: "unreachable", error: "the session is too old" };
  }

  tell(state: string): void {
    if (state === "" || state === this.state) return;
    this.state = state;
    this.options.onState?.(state as State);
  }

  private patienceLeft(): number {
    return this.answered + (this.options.patienceMs ?? 90_000) - performance.now();
  }

  async send(
    path: string,
    body: object,
    location: string,
    timeout = SHORT_TIMEOUT,
    signal?: AbortSignal,
  ): Promise<Answer> {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), Math.min(timeout, Math.max(this.patienceLeft(), LEAST_TIMEOUT)));
    const cancel = () => limit.abort();
    signal?.addEventListener("abort", cancel);
    if (signal?.aborted) limit.abort();
    try {
      const query = location === "" ? "" : `?location=${location}`;
      return await read(
        await fetch(`${this.base}${path}${query}`, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify(body),
          cache: "no-store",
          credentials: "omit",
          redirect: "manual",
          signal: limit.signal,
        }),
      );
    } catch (error) {
      const cancelled = signal?.aborted ?? false;
      const timedOut = limit.signal.aborted && !cancelled;
      return { ...NO_ANSWER, cancelled, timedOut, error: timedOut ? "timeout" : reason(error) };
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
    }
  }
}

/** The first number that solves a part of a puzzle; null once the game has cancelled. */
async function solvePart(seed: Uint8Array, part: number, bits: number, signal?: AbortSignal): Promise<number | null> {
  for (let start = 0; !signal?.aborted; start += AT_ONCE) {
    const digests = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, at) => {
        const input = new Uint8Array([...seed, part, 0, 0, 0, 0]);
        new DataView(input.buffer).setUint32(33, start + at);
        return sha256(input);
      }),
    );
    const found = digests.findIndex((digest) => bits === 0 || new DataView(digest.buffer).getUint32(0) >>> (32 - bits) === 0);
    if (found >= 0) return start + found;
  }
  return null;
}

async function sha256(bytes: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as BufferSource));
}

async function read(response: Response): Promise<Answer> {
  const said = await response.text();
  return {
    ...NO_ANSWER,
    http: response.status,
    body: members(said),
    location: response.headers.get("Location") ?? "",
    retryAfter: response.headers.get("Retry-After") ?? "",
  };
}

function members(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function reason(error: unknown): string {
  const cause = error instanceof Error ? (error.cause as { code?: unknown } | undefined)?.code : undefined;
  return typeof cause === "string" ? cause : "no connection";
}

function text(answer: Answer, name: string): string {
  const value = answer.body[name];
  return typeof value === "string" ? value : "";
}

function session(answer: Answer): Session | null {
  const [gsid, url] = [text(answer, "gsid"), text(answer, "url")];
  const usable = text(answer, "status") === "OK" && gsid !== "" && ADDRESS.test(url);
  return usable ? { gsid, url, code: text(answer, "code"), qr: text(answer, "qr") } : null;
}

function notRegistered(answer: Answer): Result {
  if (answer.cancelled) return { outcome: "cancelled" };
  if (text(answer, "status") === "ERROR") return refusal(answer);
  return unreachable(answer);
}

function refusal(answer: Answer): Extract<Result, { outcome: "refused" }> {
  const until = answer.body["until"];
  return {
    outcome: "refused",
    error: text(answer, "error"),
    reason: text(answer, "reason"),
    publicText: text(answer, "public_text"),
    until: Number.isSafeInteger(until) ? (until as number) : 0,
    data: answer.body,
  };
}

/** The answer of a login without a browser. */
function loggedIn(answer: Answer): Result {
  const status = text(answer, "status");
  if (answer.cancelled) return { outcome: "cancelled" };
  if (answer.http === 200 && status === "OK") return signedIn(answer);
  const reason = REASONS[status];
  if (answer.http < 200 || answer.http >= 500 || (answer.http === 200 && reason === undefined)) return unreachable(answer);
  const refused = refusal(answer);
  return { ...refused, reason: refused.reason || (answer.http === 429 ? "throttled" : reason ?? "") };
}

function signedIn(answer: Answer): Result {
  return {
    outcome: "ok",
    userId: text(answer, "user_id"),
    nick: text(answer, "nick"),
    jwt: text(answer, "jwt"),
    token: text(answer, "token"),
    data: answer.body,
  };
}

function stateOf(answer: Answer): string {
  const status = answer.http === 200 ? text(answer, "status") : "";
  return status === "OK" ? "confirmed" : status === "CANCELLED" ? "cancelled" : text(answer, "state");
}

/** Null when polling goes on. */
function ending(answer: Answer): Result | null {
  if (answer.cancelled) return { outcome: "cancelled" };
  const status = text(answer, "status");
  const refused = refusal(answer);
  if (answer.http === 429) return (pause(answer) ?? 0) > LONGEST_PAUSE ? refused : null;
  if (answer.http === 403 || (status === "ERROR" && answer.http < 500)) return refused; // 5xx may pass
  if (answer.http === 200 && status === "CANCELLED") return { outcome: "cancelled" };
  return answer.http === 200 && status === "OK" ? signedIn(answer) : null;
}

/** Seconds until the next poll; null when there was no answer. */
function pause(answer: Answer): number | null {
  if (answer.http === 429) return /^[0-9]{1,7}$/.test(answer.retryAfter) ? Number(answer.retryAfter) : 60;
  if (answer.http !== 200 || text(answer, "status") !== "RETRY") return null;
  const delay = answer.body["delay"];
  return Number.isSafeInteger(delay) && (delay as number) >= 0 ? (delay as number) : 1;
}

function unreachable(answer: Answer): Result {
  return { outcome: "unreachable", error: answer.error || `HTTP ${answer.http}` };
}

/** False once the game has cancelled. */
function rest(seconds: number, signal?: AbortSignal): Promise<boolean> {
  return new Promise((done) => {
    if (signal?.aborted) return done(false);
    const cancel = () => {
      clearTimeout(timer);
      done(false);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", cancel);
      done(true);
    }, seconds && 1_000 * seconds + MARGIN);
    signal?.addEventListener("abort", cancel, { once: true });
  });
}

/** The little of Node and of browsers that opens an address and keeps a text. */
interface Platform {
  readonly process?: {
    readonly platform: string;
    getBuiltinModule?(name: "node:child_process"): ChildProcesses | undefined;
    getBuiltinModule?(name: "node:fs"): Files | undefined;
  };
  readonly localStorage?: { getItem(key: string): string | null; setItem(key: string, value: string): void };
  open?(url: string, target: string, features: string): unknown;
}

interface Files {
  readFileSync(path: string, encoding: "utf8"): string;
  writeFileSync(path: string, text: string, how: object): void;
  renameSync(from: string, to: string): void;
}

interface ChildProcesses {
  spawn(program: string, words: readonly string[], how: object): {
    on(event: "error", heard: () => void): unknown;
    unref(): void;
  };
}
