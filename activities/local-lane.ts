/**
 * Bounds the local first attempts of one endpoint in this process: each holds a workflow task's slot until the endpoint
 * answers, so one that begins to hang must not take them all.
 */
export class LocalLane {
  private readonly inside = new Map<string, number>();

  constructor(private readonly maxPerEndpoint = 16) {}

  /** Answers the function that leaves again, or null when the attempt has to be an ordinary one. */
  enter(endpointId: string): (() => void) | null {
    const count = this.inside.get(endpointId) ?? 0;
    if (count >= this.maxPerEndpoint) return null;
    this.inside.set(endpointId, count + 1);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      const others = (this.inside.get(endpointId) ?? 1) - 1;
      if (others === 0) this.inside.delete(endpointId);
      else this.inside.set(endpointId, others);
    };
  }
}
