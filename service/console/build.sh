#!/usr/bin/env bash
# Bundles the console from its lock file. CHECK=1: reports whether the committed bundle is what the sources give.
set -euo pipefail
cd "$(dirname "$0")/../.."
source=service/console/source
modules=.console/node_modules
node_min="20"

if [ "$(printf '%s\n' "v$node_min" "$(node --version 2>/dev/null || echo v0)" | sort -V | head -1)" != "v$node_min" ]; then
  echo "console: Node.js $node_min or newer is needed; install Debian's packages nodejs and npm" >&2
  exit 1
fi

if ! cmp -s "$source/package-lock.json" "$modules/.lock"; then
  echo "console: installing the locked packages"
  mkdir -p .console
  cp "$source/package.json" "$source/package-lock.json" .console
  (cd .console && npm ci --silent --no-audit --no-fund)
  cp "$source/package-lock.json" "$modules/.lock"
fi

if [ -z "${CHECK:-}" ]; then
  node "$source/build.mjs" "$modules" service/console/static
  du -bc service/console/static/* | awk 'END { printf "console: built %d KB\n", $1 / 1000 }'
  exit
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
node "$source/build.mjs" "$modules" "$work"
if ! diff -rq "$work" service/console/static; then
  echo "console: the committed bundle is not what the sources give; run 'make console' and commit service/console/static" >&2
  exit 1
fi
echo "console: the committed bundle is what the sources give"
