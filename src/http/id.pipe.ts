import type { PipeTransform } from '@nestjs/common';
import { notFound } from './problems/problem.js';

/** An id in a path. What can't be one is not looked for: the database would refuse some of it, such as NUL. */
export class IdPipe implements PipeTransform<string, string> {
  constructor(private readonly what: 'delivery' | 'endpoint' | 'secret' | 'replay') {}

  transform(id: string): string {
    if (!/^[A-Za-z0-9_]{1,64}$/.test(id)) throw notFound(this.what, id);
    return id;
  }
}
