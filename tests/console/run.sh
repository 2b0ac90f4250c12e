#!/usr/bin/env bash
# Runs the tests of the console in Chromium, or makes its pictures with --screenshots; installs once what they need.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=tests/console
packages=.console/python

chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
if [ -z "$chromium" ]; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || { echo "console: Chromium is needed; install it, or name it in CHROMIUM" >&2; exit 1; }
  echo "console: installing chromium"
  apt-get -qq update
  apt-get -qq -y -o DPkg::Lock::Timeout=300 install --no-install-recommends chromium fonts-dejavu-core >/dev/null
  chromium=$(command -v chromium)
fi

if ! cmp -s "$here/requirements.txt" "$packages/.done"; then
  echo "console: installing Playwright"
  rm -rf "$packages"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --target "$packages" -r "$here/requirements.txt"
  cp "$here/requirements.txt" "$packages/.done"
fi

export CHROMIUM="$chromium" CONSOLE_AXE="$PWD/.console/node_modules/axe-core/axe.min.js"
export PYTHONPATH="$PWD/$packages${PYTHONPATH:+:$PYTHONPATH}"
if [ "${1:-}" = --screenshots ]; then
  exec .venv/bin/python -m pytest -q -p no:cacheprovider "$here/make_screenshots.py"
fi
files=("$here"/check_*.py)
for argument; do [ ! -f "${argument%%::*}" ] || files=(); done
exec .venv/bin/python -m pytest -q "${files[@]}" "$@"
