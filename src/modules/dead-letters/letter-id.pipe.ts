import type { PipeTransform } from '@nestjs/common';
import { parseLetterId } from '../../domain/letters.js';
import { notFound } from '../../http/problems/problem.js';

export interface LetterKey {
  readonly id: string;
  readonly deliveryId: string;
  readonly round: number;
}

/** A letter's id in a path. What can't be one is not looked for. */
export class LetterIdPipe implements PipeTransform<string, LetterKey> {
  transform(id: string): LetterKey {
    const key = parseLetterId(id);
    if (!key) throw notFound('dead letter', id);
    return { id, ...key };
  }
}
