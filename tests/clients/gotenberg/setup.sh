#!/usr/bin/env bash
# Installs Gotenberg's clients for `make test-gotenberg`: PyPI's gotenberg-client and npm's chromiumly, as locked beside this file.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${GOTENBERG_CLIENTS:-.gotenberg-clients}
locked=$(cat "$here/requirements.txt" "$here/package-lock.json" | sha256sum | cut -d ' ' -f 1)
[ "$(cat "$folder/.done" 2>/dev/null)" != "$locked" ] || exit 0
command -v npm >/dev/null || { echo "test-gotenberg: npm is needed for the client of Node: install nodejs and npm" >&2; exit 1; }
mkdir -p "$folder"
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$here/requirements.txt"
cp "$here/package.json" "$here/package-lock.json" "$folder/"
npm ci --prefix "$folder" --silent --no-audit --no-fund --ignore-scripts
echo "$locked" >"$folder/.done"
