#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the peers into an environment of their own, exports the models for them, builds engine_bench, and measures
# Attendant's engine and every peer side by side. Writes peers.md and peers.json; prints the ratios beside the marks.
#
#   tests/bench/peers/compare.sh [--quick] [--output DIR] [--dtypes f32,bf16,int8]
#                                [--models minilm,bert-base,xlm-r-base,mpnet-base,modernbert-base]
#                                [--engines attendant,openvino,onnxruntime,ctranslate2,pytorch]
#                                [--cases uniform,mixed,sorted,latency,accuracy,threads,long] [--add]
#                                [--uniform 32,128,512] [--rounds N] [--seconds S] [--threads N]
#                                [--lengths FILE]
#
# ATTENDANT_BIN_DIR names another build's bin/ folder; then nothing is built.
set -euo pipefail
readonly SCRIPT=peers
here=$(dirname "$(readlink -f "$0")")
root=$(cd "$here/../../.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../../../deploy/common.sh
. "$root/deploy/common.sh"

key_of() { { python3 --version; cat "$@"; } | sha256sum | cut -c1-12; }
venv="$ATTENDANT_CACHE/peers/venv-$(key_of "$here/requirements.txt")"
models="$ATTENDANT_CACHE/peers/models-$(key_of "$here/requirements.txt" "$here/export.py" "$here/../real_texts.py" \
  "$here"/../shapes/*/config.json)"

# All together, so that one set of versions is chosen; where that fails, each that can be had. A peer that is missing
# is reported when it is to be loaded.
install_peers() {
  say "installing the peers into $venv" >&2
  interruptible setsid python3 -m venv "$venv" || die "python3 -m venv failed"
  if interruptible setsid "$venv/bin/pip" install --quiet -r "$here/requirements.txt" >&2; then
    touch "$venv/.complete"
    return
  fi
  while read -r package; do
    interruptible setsid "$venv/bin/pip" install --quiet "$package" >&2 || say "cannot install $package" >&2
  done <"$here/requirements.txt"
}

build_engine_bench() {
  interruptible "$root/deploy/install-deps.sh" build >&2
  say "building engine_bench" >&2
  build_release "$root" engine_bench
}

prepare() {
  [ -e "$venv/.complete" ] || install_peers
  interruptible "$root/deploy/fetch-model.sh" >/dev/null
  minilm=$("$root/deploy/fetch-model.sh")
  if [ -z "${ATTENDANT_BIN_DIR:-}" ] && [ "${1:-}" != --export_only ]; then
    build_engine_bench
    ATTENDANT_BIN_DIR="$root/build/release/bin"
  fi
}

revision=$(git -C "$root" describe --always --dirty 2>/dev/null || echo "an unknown revision")
heed_signals
with_lock "$venv" prepare "$@"
exec "$venv/bin/python" -B "$here/compare.py" --cache "$models" --minilm "$minilm" \
  --engine_bench "${ATTENDANT_BIN_DIR:-}/engine_bench" --command "tests/bench/peers/compare.sh $*" \
  --revision "$revision" --output "$root/build/peers" "$@"
