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
  stream(): Promise<ReadableStream<Uint8Array>> {
    return this.client.download(this.conversation, this.facts.logical_path);
  }
  async bytes(): Promise<Uint8Array> {
    return new Uint8Array(await new Response(await this.stream()).arrayBuffer());
  }
  async text(): Promise<string> {
    return new TextDecoder().decode(await this.bytes());
  }
}
