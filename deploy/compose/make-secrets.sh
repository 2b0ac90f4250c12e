#!/usr/bin/env bash
# Makes the secrets of compose.yaml and compose.workers.yaml below ./secrets, which only you can enter. Existing ones stay. metrics_key
# is made by the service: docs/deploy.md has the command.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
umask 077
mkdir -p secrets

random() { # 40 letters and digits
  head -c 512 /dev/urandom | base64 | tr -dc 'A-Za-z0-9' | cut -c 1-40
}
keep() { # NAME: writes standard input unless there is such a secret. Containers read it as users of their own
  local value
  value=$(cat)
  [ -s "secrets/$1" ] || printf '%s\n' "$value" >"secrets/$1"
  chmod 644 "secrets/$1"
}

random | keep postgres_password
random | keep s3_access_key
random | keep s3_secret_key
random | keep grafana_password
random | keep nats_password
touch secrets/metrics_key
chmod 644 secrets/metrics_key
printf 'postgresql://proofbox:%s@postgres/proofbox\n' "$(cat secrets/postgres_password)" | keep database_url
printf 'authorization { user: proofbox, password: "%s" }\n' "$(cat secrets/nats_password)" | keep nats_user
printf '{"identities": [{"name": "proofbox", "credentials": [{"accessKey": "%s", "secretKey": "%s"}], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}\n' \
  "$(cat secrets/s3_access_key)" "$(cat secrets/s3_secret_key)" | keep s3_identities
printf 'secrets: %s\n' "$PWD/secrets"
