import { z } from 'zod';

/** Free text, as the database can keep it: NUL has no place there, and a lone surrogate has no UTF-8 form. */
export function freeText(name: string, maxLength: number) {
  const rule = `${name} is text of at most ${maxLength} characters, without NUL and lone surrogates`;
  return z
    .string({ error: rule })
    .max(maxLength, rule)
    .refine((text) => !/[\0\p{Cs}]/u.test(text), rule);
}

export const timestamp = () => z.string().meta({ format: 'date-time', example: '2026-01-31T12:00:00.000Z' });
