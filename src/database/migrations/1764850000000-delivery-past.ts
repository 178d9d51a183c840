import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What a delivery went through that neither attempts nor letters tell: when it was held and why, and who opened its rounds. */
export class DeliveryPast1764850000000 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query(`
      alter table deliveries
        -- Null until there is something to tell: of most rows, for ever.
        add column past jsonb,
        -- Why the round was opened; null: the event was published.
        add column round_reason text`);
    // Whichever statement ends a hold or opens a round. What goes well does neither, and so never calls it.
    await db.query(`
      create function keep_past() returns trigger language plpgsql as $$
      begin
        new.past := coalesce(old.past, '[]');
        if old.status = 'held' and new.status <> 'held' then
          new.past := new.past || jsonb_build_object('kind', 'held', 'round', old.round, 'reason', old.reason,
                                                     'at', coalesce(old.held_since, old.updated_at), 'until', now()::timestamptz(3));
        end if;
        if new.round > old.round then
          new.past := new.past || jsonb_build_object('kind', 'redelivery', 'round', new.round, 'reason', new.round_reason,
                                                     'at', now()::timestamptz(3), 'by', new.requested_by, 'note', new.request_reason);
        end if;
        while jsonb_array_length(new.past) > ${mostPast} loop
          new.past := new.past - 0;
        end loop;
        return new;
      end $$`);
    await db.query(`
      create trigger deliveries_past before update of status, round on deliveries for each row
      when ((old.status = 'held' and new.status <> 'held') or new.round > old.round) execute function keep_past()`);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query(`drop trigger deliveries_past on deliveries`);
    await db.query(`drop function keep_past`);
    await db.query(`alter table deliveries drop column round_reason, drop column past`);
  }
}

/** Rows stay small, whatever is done to them. */
const mostPast = 50;
