import { defineConfig } from "@hey-api/openapi-ts";

export default defineConfig({
  input: process.env.PROOFBOX_OPENAPI ?? "build/openapi.json",
  output: { path: process.env.PROOFBOX_GENERATED ?? "src/generated", module: { extension: ".js" } },
  plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "@hey-api/sdk"],
});
