// What the README of the TypeScript package uses of Express and Node, so that it is compiled without their types.
declare const process: { readonly env: Readonly<Record<string, string | undefined>> };

declare module "express" {
  type Handler = (request: any, response: any, next: any) => unknown;
  interface Application {
    get(path: string, ...handlers: Handler[]): void;
    post(path: string, ...handlers: Handler[]): void;
    listen(port: number, host: string, listening: () => void): { address(): { port: number }; close(): void };
  }
  export default function express(): Application;
}
