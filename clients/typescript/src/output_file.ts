import { createHash } from "node:crypto";
import { DamagedDownloadError } from "./errors.js";
import type { ArtifactResult, ListedArtifact } from "./generated/types.gen.js";
import type { Proofbox } from "./proofbox.js";

/** A stored file of a conversation. */
export class OutputFile {
  constructor(
    private readonly client: Proofbox,
    readonly conversation: string,
    readonly facts: ArtifactResult | ListedArtifact,
  ) {}
  get name(): string {
    return this.facts.physical_path.split("/").slice(2).join("/");
  }
  /** The bytes. A stream of others, such as those of a version that a later call stored, ends in an error. */
  async stream(): Promise<ReadableStream<Uint8Array>> {
    const version = "version" in this.facts ? this.facts.version : undefined;
    const content = await this.client.download(this.conversation, this.facts.logical_path, version);
    return content.pipeThrough(this.#checked());
  }
  async bytes(): Promise<Uint8Array> {
    return new Uint8Array(await new Response(await this.stream()).arrayBuffer());
  }
  async text(): Promise<string> {
    return new TextDecoder().decode(await this.bytes());
  }
  #checked(): TransformStream<Uint8Array, Uint8Array> {
    const { sha256, logical_path } = this.facts;
    const hash = createHash("sha256");
    return new TransformStream({
      transform(piece, controller) {
        hash.update(piece);
        controller.enqueue(piece);
      },
      flush() {
        if (!sha256 || hash.digest("hex") === sha256) return;
        throw new DamagedDownloadError(`${logical_path}: bytes with another SHA-256 arrived; list the files again`);
      },
    });
  }
}
