export { toUtcMilliseconds } from '../../domain/date-time.js';
