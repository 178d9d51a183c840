export interface WelcomeFacts {
  readonly apiUrl: string;
  readonly uiUrl: string | null;
  readonly receiverUrl: string | null;
  /** Set when it was generated just now. */
  readonly apiKey: string | null;
  readonly apiKeyFile: string;
  readonly temporalCli: string;
  readonly temporalAddress: string;
  readonly namespace: string;
  readonly dataDir: string;
  readonly allowHttp: 'on' | 'loopback' | 'off';
}

/** What a newcomer needs next: addresses, the key, commands that work as they stand. */
export function welcome(facts: WelcomeFacts): string {
  const bearer = `-H "Authorization: Bearer $(cat ${facts.apiKeyFile})"`;
  const namespace = facts.namespace === 'default' ? '' : ` --namespace ${facts.namespace}`;
  const lines = [
    '',
    'Posthorn runs.',
    '',
    `  API               ${facts.apiUrl}/v1`,
    `  API docs          ${facts.apiUrl}/docs`,
    ...(facts.uiUrl === null ? [] : [`  Temporal Web UI   ${facts.uiUrl}`]),
    ...(facts.receiverUrl === null ? [] : [`  Sample receiver   ${facts.receiverUrl}  (receives sample.*)`]),
    `  Data              ${facts.dataDir}`,
    facts.apiKey === null
      ? `  API key           in ${facts.apiKeyFile}`
      : `  API key           ${facts.apiKey}  (shown once; kept in ${facts.apiKeyFile})`,
    '',
    'Publish an event:',
    '',
    `  curl -sS ${facts.apiUrl}/v1/events ${bearer} -H 'Content-Type: application/json' -d '{"type":"sample.greeted","data":{"hello":"world"}}'`,
    '',
    'See what became of its delivery:',
    '',
    `  curl -sS "${facts.apiUrl}/v1/webhook-deliveries?limit=1" ${bearer}`,
    '',
    'Redeliver it by hand, past the API:',
    '',
    `  ID=$(curl -sS "${facts.apiUrl}/v1/webhook-deliveries?limit=1" ${bearer} | grep -o 'whd_[0-9A-Z]*' | head -n 1)`,
    `  ${facts.temporalCli} workflow start --address ${facts.temporalAddress}${namespace} --task-queue posthorn --type deliver --workflow-id $ID --input "{\\"deliveryId\\":\\"$ID\\"}"`,
    '',
    ...(facts.allowHttp === 'loopback'
      ? [
          'This trial delivers to http and https addresses on this machine too; in production only https and public addresses are dialled.',
          '',
        ]
      : []),
    'npm run demo plays the whole story. Ctrl-C stops everything.',
    '',
  ];
  return `${lines.join('\n')}\n`;
}
