import 'reflect-metadata';
import { Global, Module, type DynamicModule, type LoggerService } from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { SwaggerModule } from '@nestjs/swagger';
import type { Core } from '../core.js';
import { EndpointCaller } from '../contact/endpoint-caller.js';
import { ApiKeyStore } from '../database/api-key-store.js';
import { DeliveryStore } from '../database/delivery-store.js';
import { EndpointSecretStore } from '../database/endpoint-secret-store.js';
import { EndpointHealthStore } from '../database/endpoint-health-store.js';
import { EndpointStore } from '../database/endpoint-store.js';
import { EventFeedStore } from '../database/event-feed-store.js';
import { EventTypeStore } from '../database/event-type-store.js';
import { PublishRules } from '../database/publish-rules.js';
import { EventStore } from '../database/event-store.js';
import { LetterStore } from '../database/letter-store.js';
import { NoticeStore } from '../database/notice-store.js';
import { ReplayStore } from '../database/replay-store.js';
import { StatsStore } from '../database/stats-store.js';
import { WaitingDeliveries } from '../database/waiting-deliveries.js';
import { AccessGuard } from './access/access.guard.js';
import { DeadLettersController } from '../modules/dead-letters/dead-letters.controller.js';
import { DeadLettersService } from '../modules/dead-letters/dead-letters.service.js';
import { DeliveriesController } from '../modules/deliveries/deliveries.controller.js';
import { DeliveriesService } from '../modules/deliveries/deliveries.service.js';
import { ConsentController } from '../modules/endpoints/consent.controller.js';
import { EndpointActionsController } from '../modules/endpoints/endpoint-actions.controller.js';
import { EndpointCallsService } from '../modules/endpoints/endpoint-calls.service.js';
import { EndpointSecretsController } from '../modules/endpoints/endpoint-secrets.controller.js';
import { EndpointSecretsService } from '../modules/endpoints/endpoint-secrets.service.js';
import { WebhookKeysController } from '../modules/endpoints/webhook-keys.controller.js';
import { EndpointsController } from '../modules/endpoints/endpoints.controller.js';
import { EndpointsService } from '../modules/endpoints/endpoints.service.js';
import { CataloguePageController } from '../modules/event-types/catalogue-page.controller.js';
import { EventTypesController } from '../modules/event-types/event-types.controller.js';
import { EventTypesService } from '../modules/event-types/event-types.service.js';
import { ApiVersionController } from '../modules/endpoints/api-version.controller.js';
import { ApiVersionService } from '../modules/endpoints/api-version.service.js';
import { EventAdmission } from '../modules/events/event-admission.js';
import { EventsController } from '../modules/events/events.controller.js';
import { EventFeedService } from '../modules/events/event-feed.service.js';
import { EventsService } from '../modules/events/events.service.js';
import { HealthController, type Readiness } from '../modules/health/health.controller.js';
import { MetricsController } from '../modules/metrics/metrics.controller.js';
import { NoticesController } from '../modules/notices/notices.controller.js';
import { NoticesService } from '../modules/notices/notices.service.js';
import { StatsController } from '../modules/stats/stats.controller.js';
import { StatsService } from '../modules/stats/stats.service.js';
import { LetterReplaysController } from '../modules/replays/letter-replays.controller.js';
import { RecoverController } from '../modules/replays/recover.controller.js';
import { ReplaysController } from '../modules/replays/replays.controller.js';
import { ReplaysService } from '../modules/replays/replays.service.js';
import { ApiAdapter } from './api-adapter.js';
import { createOpenApi } from './openapi.js';
import { ProblemFilter } from './problems/problem.filter.js';
import { validation } from './problems/validation.js';
import { addressPolicyToken, configToken, readinessToken } from './tokens.js';
import { Sandbox } from '../payload/sandbox.js';
import { SecretBox } from '../security/secret-box.js';
import type { Logger } from '../telemetry/logger.js';
import { Metrics } from '../telemetry/metrics.js';
import { MetricsPage } from '../telemetry/metrics-page.js';
import { Tracing } from '../telemetry/tracing.js';
import { TemporalAnnouncer } from '../temporal/announcer.js';
import { Dispatcher } from '../temporal/dispatcher.js';
import { FirstAttempts } from '../express/first-attempts.js';

/** Hands the core to Nest: plain objects, made once, outside of any container. */
@Global()
@Module({})
class CoreModule {
  static of(core: Core): DynamicModule {
    const readiness: Readiness = {
      database: () => core.databaseAnswers(),
      temporal: () => core.temporal.isHealthy(),
      reconciliation: () => core.lastReconciliation(),
    };
    const providers = [
      { provide: ApiKeyStore, useValue: core.apiKeys },
      { provide: DeliveryStore, useValue: core.deliveries },
      { provide: EndpointStore, useValue: core.endpoints },
      { provide: EndpointSecretStore, useValue: new EndpointSecretStore(core.db) },
      { provide: EndpointHealthStore, useValue: core.health },
      { provide: EndpointCaller, useValue: core.caller },
      { provide: EventStore, useValue: core.events },
      { provide: EventTypeStore, useValue: core.eventTypes },
      { provide: PublishRules, useValue: core.publishRules },
      { provide: Sandbox, useValue: core.sandbox },
      { provide: EventFeedStore, useValue: core.feed },
      { provide: StatsStore, useValue: core.stats },
      { provide: LetterStore, useValue: core.letterLists },
      { provide: NoticeStore, useValue: core.notices },
      { provide: ReplayStore, useValue: core.replays },
      { provide: WaitingDeliveries, useValue: core.waiting },
      { provide: Metrics, useValue: core.metrics },
      { provide: MetricsPage, useValue: core.metricsPage },
      { provide: Tracing, useValue: core.tracing },
      { provide: SecretBox, useValue: core.secrets },
      { provide: TemporalAnnouncer, useValue: core.announcer },
      { provide: Dispatcher, useValue: core.dispatcher },
      { provide: FirstAttempts, useValue: core.firstAttempts },
      { provide: addressPolicyToken, useValue: core.addresses },
      { provide: configToken, useValue: core.options.config },
      { provide: readinessToken, useValue: readiness },
    ];
    return { module: CoreModule, providers, exports: providers };
  }
}

@Module({
  controllers: [
    EventsController,
    EndpointsController,
    EndpointActionsController,
    EndpointSecretsController,
    ApiVersionController,
    WebhookKeysController,
    ConsentController,
    DeliveriesController,
    DeadLettersController,
    ReplaysController,
    LetterReplaysController,
    RecoverController,
    NoticesController,
    StatsController,
    EventTypesController,
    HealthController,
  ],
  providers: [
    EventsService,
    EventAdmission,
    EventTypesService,
    ApiVersionService,
    EventFeedService,
    EndpointsService,
    EndpointSecretsService,
    EndpointCallsService,
    DeliveriesService,
    DeadLettersService,
    ReplaysService,
    NoticesService,
    StatsService,
    { provide: APP_GUARD, useClass: AccessGuard },
  ],
})
class ApiModule {
  static of(core: Core): DynamicModule {
    const { metrics, catalogue } = core.options.config;
    const controllers = [
      ...(metrics.enabled ? [MetricsController] : []),
      ...(catalogue.page ? [CataloguePageController] : []),
    ];
    return { module: ApiModule, imports: [CoreModule.of(core)], controllers };
  }
}

/** The REST API over a started core. Not listening yet. */
export async function createHttpApp(core: Core): Promise<NestFastifyApplication> {
  const { config, log } = core.options;
  const filter = new ProblemFilter(log);
  const app = await NestFactory.create<NestFastifyApplication>(
    ApiModule.of(core),
    new ApiAdapter(config.http, filter),
    {
      bodyParser: false,
      logger: nestLogger(log),
      abortOnError: false,
    },
  );
  app.useGlobalFilters(filter);
  app.useGlobalPipes(validation);
  const document = createOpenApi(app);
  SwaggerModule.setup('docs', app, document, { jsonDocumentUrl: 'openapi.json', customSiteTitle: 'Posthorn API' });
  await app.init();
  return app;
}

function nestLogger(log: Logger): LoggerService {
  return {
    log: (message) => log.debug({}, String(message)),
    warn: (message) => log.warn({}, String(message)),
    error: (message) => log.error({}, String(message)),
  };
}
