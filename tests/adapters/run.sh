#!/usr/bin/env bash
# Tests the adapters, each in an environment with its framework: run.sh [NAME...]; run.sh --lock [NAME...] renews the pins.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
python=$PWD/.venv/bin/python
names=()
for file in "$here"/requirements/*.in; do names+=("$(basename "$file" .in)"); done

lock() { # NAME...
  "$python" -m venv .adapters/tools
  .adapters/tools/bin/python -m pip install --quiet --disable-pip-version-check pip-tools
  for name in "$@"; do
    .adapters/tools/bin/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras --no-header \
      --no-emit-index-url --no-emit-find-links --no-emit-trusted-host -o "$here/requirements/$name.txt" \
      "$here/requirements/$name.in"
  done
}

environment() { # NAME: made when its pins changed
  local folder=.adapters/$1 pins=$here/requirements/$1.txt
  cmp --silent "$pins" "$folder/pins.txt" && return
  rm -rf "$folder"
  "$python" -m venv "$folder"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$pins"
  cp "$pins" "$folder/pins.txt"
}

renews=''
if [ "${1:-}" = --lock ]; then
  renews=yes
  shift
fi
[ $# -gt 0 ] || set -- "${names[@]}"
if [ -n "$renews" ]; then
  lock "$@"
  exit
fi
for name in "$@"; do
  environment "$name"
  PYTHONPATH=$PWD SERVICE_PYTHON=$python ".adapters/$name/bin/python" -m pytest -q \
    -c "$here/pytest.ini" --confcutdir "$here" "$here/test_$name.py"
done
