import { version } from '../version.js';

export const userAgent = `Posthorn/${version}`;
