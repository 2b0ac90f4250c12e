#!/usr/bin/env bash
# Sets up what `make bench` measures ours against: llm-sandbox and epicbox in an environment of their own, and, on Debian
# or Ubuntu as root, the packages bubblewrap and crun. Returns at once when nothing changed.
#
#   sandboxes.sh           sets up what is missing
#   sandboxes.sh --clean   removes the environment; packages stay
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
VENV=$here/.venv
PINS=$here/sandboxes.txt
FLOORS=(bubblewrap:bwrap crun:crun)

fail() {
  printf 'peers: %s\n' "$*" >&2
  exit 1
}

# llm-sandbox fetches files only with Python's filter of archives (3.11.4 and later; Debian 12 has an older one).
find_python() {
  local python
  for python in "${PYTHON:-python3}" python3 python3.13 python3.12; do
    if "$python" -c 'import tarfile; tarfile.data_filter' 2>/dev/null; then
      printf '%s\n' "$python"
      return
    fi
  done
  printf '%s\n' "${PYTHON:-python3}"
}

missing_packages() {
  local floor
  for floor in "${FLOORS[@]}"; do
    command -v "${floor#*:}" >/dev/null || printf '%s\n' "${floor%:*}"
  done
}

case ${1:-} in
  '') ;;
  --clean)
    rm -rf "$VENV"
    exit 0
    ;;
  *) fail "unknown argument $1: use no argument or --clean" ;;
esac

if ! cmp -s "$PINS" "$VENV/installed.txt"; then
  printf 'peers: installing llm-sandbox and epicbox into bench/peers/.venv\n'
  rm -rf "$VENV"
  "$(find_python)" -m venv "$VENV"
  "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$PINS"
  cp "$PINS" "$VENV/installed.txt"
fi

mapfile -t missing < <(missing_packages)
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    printf 'peers: installing %s\n' "${missing[*]}"
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null ||
      printf 'peers: %s could not be installed and will be left out\n' "${missing[*]}"
  else
    printf 'peers: without %s, which will be left out\n' "${missing[*]}"
  fi
fi
