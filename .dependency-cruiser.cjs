/** Architecture rules. Every rule's comment says why; docs/architecture/boundaries.md repeats them in prose.
 *  @type {import('dependency-cruiser').IConfiguration} */
const runtime = { dependencyTypesNot: ['type-only'] };
module.exports = {
  forbidden: [
    {
      name: 'no-runtime-cycle',
      severity: 'error',
      comment: 'ESM cycles crash at load',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    { name: 'no-unresolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'no-dev-deps-in-product',
      severity: 'error',
      from: { path: '^(src|workflows|activities)/' },
      to: { dependencyTypes: ['npm-dev'], ...runtime },
    },

    {
      name: 'domain-is-pure',
      severity: 'error',
      comment: 'domain runs in the workflow sandbox too',
      from: { path: '^src/domain/' },
      to: { pathNot: '^src/domain/' },
    },

    {
      name: 'workflow-runtime-surface',
      severity: 'error',
      comment: 'what may end up in the bundle',
      from: { path: '^workflows/' },
      to: { pathNot: ['^workflows/', '^src/domain/', '^node_modules/@temporalio/(workflow|common)/'], ...runtime },
    },
    {
      name: 'workflow-type-surface',
      severity: 'error',
      comment: 'types too come only from contracts and domain, so workflows/tsconfig stays free of node types',
      from: { path: '^workflows/' },
      to: { path: '^(src|activities)/', pathNot: ['^src/domain/', '^activities/contracts/'] },
    },
    {
      name: 'workflow-contract-surface',
      severity: 'error',
      comment: 'contracts are loaded by the API process',
      from: { path: '^workflows/contracts/' },
      to: { path: '^(workflows|activities|src)/', pathNot: ['^workflows/contracts/', '^src/domain/'] },
    },
    {
      name: 'workflow-impl-is-private',
      severity: 'error',
      comment:
        'only tests and the bundler load implementations; types may be imported by nobody outside workflows/ but contracts',
      from: { path: '^(src|activities)/' },
      to: { path: '^workflows/', pathNot: '^workflows/contracts/' },
    },

    {
      name: 'activity-contracts-are-types',
      severity: 'error',
      from: { path: '^activities/contracts/' },
      to: { pathNot: ['^activities/contracts/', '^src/domain/'] },
    },
    {
      name: 'activities-use-ports',
      severity: 'error',
      comment: 'activities get adapters injected; they never meet Nest, TypeORM or HTTP controllers',
      from: { path: '^activities/', pathNot: '^activities/contracts/' },
      to: { path: ['^src/(modules|temporal|embedded)/', '^node_modules/(@nestjs|typeorm|undici)/'] },
    },

    {
      name: 'modules-not-to-worker',
      severity: 'error',
      from: { path: '^src/modules/' },
      to: { path: ['^src/(worker|standalone|doctor)', '^activities/'] },
    },
    {
      name: 'module-internals-are-private',
      severity: 'error',
      comment: 'another feature is reached through its module or service file',
      from: { path: '^src/modules/([^/]+)/' },
      to: { path: '^src/modules/([^/]+)/', pathNot: ['^src/modules/$1/', '\\.(module|service)\\.ts$'] },
    },
    {
      name: 'controllers-are-thin',
      severity: 'error',
      from: { path: '\\.controller\\.ts$' },
      to: { path: ['^src/(database|delivery|temporal|mail|embedded)/', '^node_modules/(typeorm|@temporalio)/'] },
    },
    {
      name: 'typeorm-stays-in-database',
      severity: 'error',
      from: { path: '^(src|activities)/', pathNot: '^src/database/' },
      to: { path: '^node_modules/(typeorm|@nestjs/typeorm)/' },
    },
    {
      name: 'undici-stays-in-delivery-http',
      severity: 'error',
      from: { path: '^(src|activities)/', pathNot: '^src/delivery/' },
      to: { path: '^node_modules/undici/' },
    },
    {
      name: 'temporal-client-stays-in-gateway',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/temporal/' },
      to: { path: '^node_modules/@temporalio/(client|worker)/' },
    },
    {
      name: 'product-not-to-test',
      severity: 'error',
      from: { path: '^(src|workflows|activities)/' },
      to: { path: '^(test|scripts)/' },
    },
  ],
  options: {
    tsPreCompilationDeps: 'specify',
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
      extensions: ['.ts', '.js', '.cjs', '.mjs'],
    },
  },
};
