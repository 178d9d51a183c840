import type { DeadLetterActivities } from './contracts/dead-letter-activities.js';
import type { ActivityDependencies } from './ports.js';

export function createDeadLetterActivities({ letters, log }: ActivityDependencies): DeadLetterActivities {
  return {
    async announceDeadLetters({ endpointId }) {
      const result = await letters.announce(endpointId);
      if (result.announced > 0) {
        log.warn(
          { endpoint_id: endpointId, announced: result.announced, open: result.open },
          'deliveries became dead letters',
        );
      }
      return result;
    },
  };
}
