import { Client, Connection } from '@temporalio/client';
import { createDatabase, type Engines } from './engines/engines.js';
import { Meter } from './measure/round.js';
import { PostgresMeter } from './measure/postgres-counters.js';
import type { Options } from './options.js';
import { Receiver } from './receiver/receiver.js';
import { startBare } from './subjects/bare.js';
import { startMinimalLoop } from './subjects/minimal-loop.js';
import { LoadOverHttp } from './subjects/over-http.js';
import { NoSuchLaneError, type PosthornSubject, startPosthorn } from './subjects/posthorn.js';
import { preparePosthornDatabase } from './baselines/posthorn-database.js';
import { type Subject, type SubjectName, titles } from './subjects/subject.js';

/**
 * Everything that takes part in a run. All subjects stay up for all of it: each round then finds them warm, and what they cost while
 * they wait, some polls a second, costs every other one the same.
 */
export class Stage {
  private readonly subjects = new Map<SubjectName, Subject>();
  private readonly ends: (() => Promise<unknown>)[] = [];
  readonly posthorns: PosthornSubject[] = [];

  private constructor(
    readonly receiver: Receiver,
    readonly http: LoadOverHttp,
    readonly meter: Meter,
  ) {}

  static async set(options: Options, engines: Engines, say: (text: string) => void): Promise<Stage> {
    const receiver = await Receiver.start();
    const http = await LoadOverHttp.start(receiver);
    const postgres = await PostgresMeter.open(engines.postgresUrl);
    const connection = await Connection.connect({ address: engines.temporalAddress });
    const meter = new Meter(
      { postgres: engines.postgresPid, temporal: engines.temporalPid, receiver: receiver.pid, generator: http.pid },
      postgres,
      (namespace) => new Client({ connection, namespace }),
    );
    const stage = new Stage(receiver, http, meter);
    stage.ends.push(
      () => receiver.stop(),
      () => http.stop(),
      () => postgres.close(),
      () => connection.close(),
    );
    try {
      await stage.startAll(options, engines, say);
    } catch (error) {
      await stage.strike();
      throw error;
    }
    return stage;
  }

  get names(): SubjectName[] {
    return (Object.keys(titles) as SubjectName[]).filter((name) => this.subjects.has(name));
  }

  subject(name: SubjectName): Subject {
    const subject = this.subjects.get(name);
    if (!subject) throw new Error(`${name} takes no part in this run`);
    return subject;
  }

  /** Ends what was started, in the opposite order. */
  async strike(): Promise<void> {
    for (const end of this.ends.splice(0).toReversed())
      await end().catch((error: unknown) => process.stderr.write(`While stopping: ${String(error)}\n`));
  }

  private add(subject: Subject): void {
    this.subjects.set(subject.name, subject);
    this.ends.push(() => subject.stop());
  }

  private async startAll(options: Options, engines: Engines, say: (text: string) => void): Promise<void> {
    const { receiver, http } = this;
    const bare = { temporalAddress: engines.temporalAddress, namespace: 'default' };
    for (const name of options.subjects) {
      say(`starting ${titles[name]}`);
      switch (name) {
        case 'a':
        case 'b':
          this.add(await startBare(name, bare, receiver));
          break;
        case 'b-prime': {
          const databaseUrl = await createDatabase(engines, 'bench_b_prime');
          await preparePosthornDatabase(databaseUrl, receiver.url);
          const settings = { ...bare, databaseUrl, receiverUrl: receiver.url };
          this.add(await startBare(name, settings, receiver));
          break;
        }
        case 'c':
          this.add(await startMinimalLoop(await createDatabase(engines, 'bench_c'), receiver, http));
          break;
        case 'default':
        case 'express':
          try {
            const posthorn = await startPosthorn({ lane: name, engines, receiver, http, endpoints: options.endpoints });
            this.posthorns.push(posthorn);
            this.add(posthorn);
          } catch (error) {
            if (!(error instanceof NoSuchLaneError)) throw error;
            say(`left out: ${error.message}`);
          }
          break;
      }
    }
  }
}
