import type { Figures } from '../measure/round.js';
import { type Spread, spreadOf } from '../measure/statistics.js';
import type { SubjectName } from '../subjects/subject.js';

export type ResultName = 'single' | 'batch' | 'steady' | 'ingest-no-endpoint' | 'ingest-paused';

/** All rounds of all that was measured. */
export class Results {
  private readonly rounds = new Map<string, Figures[]>();
  /** Events a second of the steady spells. */
  readonly rates = new Map<SubjectName, number>();

  add(measure: ResultName, subject: SubjectName, figures: Figures): void {
    const key = `${measure}/${subject}`;
    this.rounds.set(key, [...(this.rounds.get(key) ?? []), figures]);
  }

  of(measure: ResultName, subject: SubjectName): readonly Figures[] {
    return this.rounds.get(`${measure}/${subject}`) ?? [];
  }

  /** Null where it was not measured. */
  spread(measure: ResultName, subject: SubjectName, pick: (figures: Figures) => number | null): Spread | null {
    const values = this.of(measure, subject).flatMap((figures) => pick(figures) ?? []);
    return values.length === 0 ? null : spreadOf(values);
  }

  /** Of one subject's figure to another's in the same round: what the machine does beside it touches both. */
  ratio(
    measure: ResultName,
    subject: SubjectName,
    baseline: SubjectName,
    pick: (figures: Figures) => number,
  ): Spread | null {
    const theirs = this.of(measure, baseline);
    const ratios = this.of(measure, subject).flatMap((figures, round) => {
      const other = theirs[round];
      return other ? [pick(figures) / pick(other)] : [];
    });
    // Where one of them delivered nothing in a window there is no ratio, and no target is met.
    if (ratios.some((ratio) => !Number.isFinite(ratio)))
      return { median: Number.NaN, least: Number.NaN, most: Number.NaN };
    return ratios.length === 0 ? null : spreadOf(ratios);
  }

  toJson(): object {
    return Object.fromEntries(this.rounds);
  }
}
