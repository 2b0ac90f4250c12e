export * from "./errors.js";
export * from "./gateway.js";
export * from "./output_file.js";
export * from "./proofbox.js";
export type * from "./options.js";
export type * from "./generated/types.gen.js";
