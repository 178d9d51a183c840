#!/bin/sh
# Creates and updates Temporal's two databases. Safe to run again: an upgrade of the server runs it with the new image.
# Reads SQL_PLUGIN, SQL_HOST, SQL_PORT, SQL_USER, SQL_PASSWORD.
set -eu

for database in temporal temporal_visibility; do
  case $database in
    temporal) schema=postgresql/v12/temporal ;;
    *) schema=postgresql/v12/visibility ;;
  esac
  temporal-sql-tool --database "$database" create-database
  temporal-sql-tool --database "$database" setup-schema --version 0.0
  temporal-sql-tool --database "$database" update-schema --schema-name "$schema"
done
echo "Temporal's schema is up to date."
