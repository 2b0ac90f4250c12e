#!/usr/bin/env bash
# Builds the image of the servers that the tests of compose.yaml run in place of images of a registry; takes seconds if nothing changed.
#   servers.sh TAG
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../sandbox_images/build_settings.sh
. "$here/../../sandbox_images/build_settings.sh"
base=proofbox-base:trixie

"$here/../../sandbox_images/base.sh"
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
cp "$here"/servers/* "$context"
lend_settings "$context/host"
# shellcheck disable=SC2046 # one argument a word
DOCKER_BUILDKIT=0 docker build --quiet --force-rm --network host --build-arg "BASE=$base" $(proxy_arguments) --tag "$1" "$context"
