#!/usr/bin/env bash
# Builds a variant of the sandbox image: the same, and packages of Python and Debian that are named here.
#
#   variant.sh TAG [--pip 'NAME…'] [--apt 'NAME…']
#   variant.sh full
#
# makes proofbox-sandbox:TAG from the sandbox image. A Python package may have a version, as pip takes it: 'polars==1.*'.
# The variant full has what is too large for the image itself.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=progress.sh
. "$here/progress.sh"
# shellcheck source=build_settings.sh
. "$here/build_settings.sh"

NAME=proofbox-sandbox
FULL_PIP='audioop-lts geopandas graphviz numba polars<2 pydub pypandoc pytesseract'
FULL_APT='ffmpeg g++ gcc graphviz libc6-dev libreoffice-calc-nogui libreoffice-impress-nogui libreoffice-writer-nogui make pandoc
  tesseract-ocr'
LOG=$(log_file variant)

fail() {
  printf 'variant: %s\n' "$*" >&2
  exit 1
}

prepare_context() { # FOLDER PIP APT
  lend_settings "$1/host"
  cp "$here/variant/Dockerfile" "$here/sbom.py" "$1"
  grep -oE '^[A-Za-z0-9._-]+==[^ ;]+' "$here/requirements.txt" >"$1/constraints.txt"
  printf '%s' "$2" >"$1/python.txt"
  printf '%s' "$3" >"$1/debian.txt"
  chmod -R u=rwX,go=rX "$1"
}

build() { # CONTEXT TAG
  # shellcheck disable=SC2046 # one argument a word
  DOCKER_BUILDKIT=0 docker build --force-rm --network host --build-arg "SANDBOX=$sandbox" --tag "$NAME:$2" $(proxy_arguments) "$1"
}

tag=${1:-}
case $tag in
  '' | -*) fail "name the variant: variant.sh TAG [--pip 'NAME…'] [--apt 'NAME…']" ;;
  latest) fail "'latest' is the image itself; choose another tag" ;;
esac
shift
pip='' apt=''
while [ $# -gt 0 ]; do
  case $1 in
    --pip) pip=${2:-} ;;
    --apt) apt=${2:-} ;;
    *) fail "unknown argument $1: use --pip or --apt" ;;
  esac
  shift 2 || fail "give names of packages after $1"
done
[ "$tag" != full ] || [ -n "$pip$apt" ] || { pip=$FULL_PIP && apt=$FULL_APT; }
[ -n "$pip$apt" ] || fail "name packages: --pip 'NAME…' for Python's, --apt 'NAME…' for Debian's"

"$here/build.sh"
sandbox=$("$here/build.sh" --print-reference)
DOCKER_HOST=$("$here/engine.sh" --print-host) || exit 1
export DOCKER_HOST
context=$(mktemp -d "${TMPDIR:-/tmp}/proofbox-variant.XXXXXX")
trap 'rm -rf "$context"' EXIT
prepare_context "$context" "$pip" "$apt"
progress_run 'image variant' "$LOG" steps build "$context" "$tag" || fail "the build failed: see $LOG"
size=$(docker image inspect --format '{{.Size}}' "$NAME:$tag")
printf 'variant: %s:%s built, %d MB; use it with PROOFBOX_IMAGE=%s:%s\n' "$NAME" "$tag" "$((size / 1000000))" "$NAME" "$tag"
