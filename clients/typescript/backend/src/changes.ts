// SPDX-License-Identifier: Apache-2.0
//
// Follow the service's change stream (server-sent events), so that cached permissions stay valid until they change.

import { Unavailable } from "./errors.js";
import { asObject, type Fetch } from "./http.js";
import type { Clock } from "./tokens.js";

const OPEN_MS = 5_000; // how long `start` waits for the first connection
const SILENCE_MS = 20_000; // without a byte the stream is lost: heartbeats come every 15 seconds
const FIRST_DELAY_MS = 1_000; // before the second attempt to connect; doubled up to the longest
const LONGEST_DELAY_MS = 30_000;
const MAX_LINE_CHARACTERS = 65_536;
const ABOUT_A_USER: readonly unknown[] = ["record", "user", "service_account"];

/** Whom a change may concern. */
export interface ChangeNotice {
  /** Also for a kind that is not known here. */
  readonly concernsEveryone: boolean;
  readonly userId: string;
  /** The first hex digits of SHA-256 of the user ID, for changes in other applications. */
  readonly userBucket: string;
}

export interface ChangeFollowerOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly handle: (notice: ChangeNotice) => void;
  readonly fetch: Fetch;
  readonly clock: Clock;
}

/** Reads the stream and opens it again when it is cut, after the last event that it has seen. */
export class ChangeFollower {
  readonly #options: ChangeFollowerOptions;
  readonly #closing = new AbortController();
  #connection: AbortController | undefined;
  #lastId = "";
  #liveSince: number | undefined;
  #opened: () => void = () => undefined;
  #running: Promise<void> | undefined;

  constructor(options: ChangeFollowerOptions) {
    this.#options = options;
  }

  /** When the present stream was opened, by the monotonic clock; undefined while there is none. */
  get liveSince(): number | undefined {
    return this.#liveSince;
  }

  /** Begin to follow; return whether the stream was open soon. Otherwise it is tried on. */
  async start(): Promise<boolean> {
    if (this.#liveSince !== undefined) return true;
    const opened = new Promise<void>((resolve) => (this.#opened = resolve));
    this.#running ??= this.#run();
    const waiting = new AbortController();
    await Promise.race([opened, pause(OPEN_MS, waiting.signal)]);
    waiting.abort();
    return this.#liveSince !== undefined;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#connection?.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    let delay = FIRST_DELAY_MS;
    while (!this.#closing.signal.aborted) {
      try {
        await this.#read();
      } catch {
        // Tried again, and until then max_age counts.
      }
      if (this.#liveSince !== undefined) delay = FIRST_DELAY_MS;
      this.#liveSince = undefined;
      await pause(delay * (0.5 + Math.random() / 2), this.#closing.signal); // so that clients do not return together
      delay = Math.min(2 * delay, LONGEST_DELAY_MS);
    }
  }

  /** Read until the stream is cut. */
  async #read(): Promise<void> {
    const connection = (this.#connection = new AbortController());
    let silence = setTimeout(() => connection.abort(), SILENCE_MS);
    try {
      const body = await this.#open(connection.signal);
      const restart = (): void => {
        clearTimeout(silence);
        silence = setTimeout(() => connection.abort(), SILENCE_MS);
      };
      await this.#readEvents(linesOf(body, connection.signal, restart));
    } finally {
      clearTimeout(silence);
    }
  }

  async #readEvents(lines: AsyncIterable<string>): Promise<void> {
    let data = "";
    for await (const line of lines) {
      const [name = "", ...rest] = line.split(":");
      const value = rest.join(":").replace(/^ /, "");
      if (name === "id") this.#lastId = value;
      else if (name === "data") data += value;
      else if (line === "") {
        this.#setLive(); // the first event: the position is known from here on
        if (data !== "") this.#options.handle(parseNotice(data));
        data = "";
      }
      if (data.length > MAX_LINE_CHARACTERS) throw new Unavailable("an event is too long");
    }
  }

  async #open(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const { url, headers, fetch: fetcher } = this.#options;
    const resume: Record<string, string> = this.#lastId === "" ? {} : { "Last-Event-ID": this.#lastId };
    const response = await fetcher(url, {
      headers: { Accept: "text/event-stream", ...headers, ...resume },
      redirect: "error",
      signal,
    });
    if (response.status === 200 && response.body !== null) return response.body;
    if (response.status === 400) this.#lastId = ""; // the ID is not known any more
    await response.body?.cancel();
    throw new Unavailable(`the service answered ${response.status} instead of a stream`);
  }

  #setLive(): void {
    this.#liveSince ??= this.#options.clock.monotonic();
    this.#opened();
  }
}

function parseNotice(data: string): ChangeNotice {
  const { kind, user_id: userId = "", user_bucket: userBucket = "" } = asObject(JSON.parse(data));
  const isAboutAUser = ABOUT_A_USER.includes(kind) && (userId !== "" || userBucket !== "");
  return {
    concernsEveryone: kind !== "credential" && !isAboutAUser,
    userId: String(userId),
    userBucket: String(userBucket),
  };
}

async function* linesOf(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  received: () => void,
): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const reader = body.getReader();
  const stop = (): void => void reader.cancel().catch(() => undefined);
  signal.addEventListener("abort", stop); // fetch of Node 20 may forget its signal while the body is read
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      received();
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > MAX_LINE_CHARACTERS) throw new Unavailable("a line is too long");
      for (const line of lines) yield line.endsWith("\r") ? line.slice(0, -1) : line;
    }
  } finally {
    stop();
  }
}

/** Wait, at most until the signal is aborted. */
async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener("abort", end);
  });
}
