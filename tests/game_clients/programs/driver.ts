// A game for the tests: follows its arguments and prints what the client reports.
import {
  enterCode,
  openBrowser,
  type Options,
  type Result,
  type Session,
  signIn,
  signInGuest,
  signInPlatform,
  upgrade,
} from "./gatehouse_login.js";

declare const process: {
  argv: string[];
  getBuiltinModule(name: "node:fs"): { existsSync(path: string): boolean };
};

const [, , baseUrls = "", ...words] = process.argv;
const asked = new Map(words.map((word) => word.split("=", 2) as [string, string]));
const seconds = (name: string, otherwise: number) => 1_000 * Number(asked.get(name) ?? otherwise);
const abort = new AbortController();

function say(name: string, told: string): void {
  console.log(`${name} ${told}`);
}

function show(session: Session): void {
  say("link", session.url);
  say("code", session.code);
  say("qr", session.qr.slice(0, 26));
  if (asked.has("browser")) openBrowser(session.url);
}

let requestId = ""; // of the last refusal

function tell(result: Result): void {
  if (result.outcome === "refused") requestId = String(result.data["request_id"] ?? requestId);
  say("outcome", result.outcome);
  if (result.outcome === "ok") {
    say("user_id", result.userId);
    say("nick", result.nick);
    say("jwt", result.jwt);
    say("id_token", String(result.data["id_token"] ?? ""));
  }
  if ("error" in result) say("error", result.error);
  if (result.outcome === "refused") say("ban", `${result.reason} ${result.publicText} ${result.until}`);
  else say("ban", "  0");
}

const key = Uint8Array.from(asked.get("key")?.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const options: Options = {
  appId: Number(asked.get("app_id") ?? 0),
  factor: asked.get("factor") ?? "",
  code: asked.has("code"),
  qr: asked.has("qr"),
  idTokenClient: asked.get("id_token_client") ?? "",
  nonce: asked.get("nonce") ?? "",
  more: asked.has("distr") ? { distr: asked.get("distr") } : {},
  signal: abort.signal,
  pollTimeoutMs: seconds("poll_timeout", 40),
  patienceMs: seconds("patience", 60),
  onState: (state) => say("state", state),
  ...(asked.has("default") ? {} : { show }),
};

function act(action: string, baseUrl: string): Promise<Result> {
  if (action === "guest") return signInGuest(baseUrl, key, options);
  if (action === "platform") return signInPlatform(baseUrl, "steam", asked.get("ticket") ?? "", options);
  if (action === "code") return enterCode(baseUrl, requestId, asked.get("otp") ?? "", options);
  return action === "upgrade" ? upgrade(baseUrl, key, options) : signIn(baseUrl, options);
}

const files = process.getBuiltinModule("node:fs");
const cancelFile = asked.get("cancel");
const watching = setInterval(() => {
  if (cancelFile !== undefined && files.existsSync(cancelFile)) abort.abort();
}, 20);
for (const baseUrl of baseUrls.split(",")) {
  for (const action of (asked.get("do") ?? "sign_in").split(",")) {
    try {
      tell(await act(action, baseUrl));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      say("outcome", "invalid");
    }
  }
}
clearInterval(watching);
say("end", "");
