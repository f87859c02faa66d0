import { deviceFactor, signIn } from "./gatehouse_login.js";

declare const process: { argv: [string, string, string, string]; exitCode: number };
const [, , baseUrl, appId] = process.argv;
const result = await signIn(baseUrl, {
  appId: Number(appId),
  factor: deviceFactor("device"),
  onState: (state) => console.log("...", state),
});
console.log(result.outcome === "ok" ? `Hello, ${result.nick}` : result);
process.exitCode = result.outcome === "ok" ? 0 : 1;
