#!/usr/bin/env bash
# Builds the image of the service, proofbox:VERSION, from the wheel in dist/ (`make dist`).
#
#   build.sh                    builds it; TAG=… names it otherwise, EXTRAS='s3 postgres' takes fewer extras than all
#   build.sh --print-reference  prints its name
#
# As with the sandbox image, there is no download but from the package mirrors of this machine, and nothing of them stays.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=../sandbox_images/build_settings.sh
. "$repository/sandbox_images/build_settings.sh"
python=${PYTHON:-$repository/.venv/bin/python}
base=proofbox-base:trixie
read -r -a extras <<<"${EXTRAS:-memory gateway s3 postgres packages nats otlp}"

fail() {
  printf 'service image: %s\n' "$*" >&2
  exit 1
}

wheel() { # the only one in dist
  local found=("$repository"/dist/proofbox-*.whl)
  [ -f "${found[0]}" ] && [ "${#found[@]}" -eq 1 ] || fail "there is not one wheel in dist: run 'make dist'"
  printf '%s\n' "${found[0]}"
}

reference() {
  local name
  if [ -n "${TAG:-}" ]; then printf '%s\n' "$TAG"; return; fi
  name=$(basename "$(wheel)")
  name=${name#proofbox-}
  printf 'proofbox:%s\n' "${name%%-*}"
}

case ${1:-} in
--print-reference)
  reference
  exit
  ;;
'') ;;
*) fail "unknown argument $1: use no argument or --print-reference" ;;
esac
image=$(reference)
"$repository/sandbox_images/base.sh"
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
mkdir "$context/wheel"
cp "$(wheel)" "$context/wheel"
cp "$repository/deploy/Dockerfile" "$context"
"$python" "$repository/deploy/runtime_requirements.py" "$context" "${extras[@]}"
lend_settings "$context/host"
chmod -R u=rwX,go=rX "$context"
# The classic builder is in every client and every engine.
# shellcheck disable=SC2046 # one argument a word
DOCKER_BUILDKIT=0 docker build --force-rm --network host --build-arg "BASE=$base" $(proxy_arguments) --tag "$image" "$context"
printf 'service image: %s\n' "$image"
