#!/bin/sh
# Runs once, when the volume is new: Temporal gets a role of its own that sees nothing of Posthorn's data.
set -eu

psql --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
\getenv password TEMPORAL_POSTGRES_PASSWORD
CREATE ROLE temporal LOGIN CREATEDB PASSWORD :'password';
\getenv database POSTGRES_DB
REVOKE CONNECT ON DATABASE :"database" FROM PUBLIC;
SQL
