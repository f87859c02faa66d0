import { signIn } from "./gatehouse_login.js";

declare const process: { argv: [string, string, string, string, string]; exitCode: number };
const [, , baseUrl, appId, factor] = process.argv;
const result = await signIn(baseUrl, {
  appId: Number(appId),
  factor,
  onState: (state) => console.log("...", state),
});
console.log(result.outcome === "ok" ? `Hello, ${result.nick}` : result);
process.exitCode = result.outcome === "ok" ? 0 : 1;
