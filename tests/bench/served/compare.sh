#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs Triton (the server inside nvidia-pytriton) with OpenVINO behind its Python back end into an environment of their
# own, builds Attendant's server, and measures both with perf_analyzer on real English texts; then Attendant's server beside
# its own engine. Writes served.md and served.json; prints the ratios beside the marks. Two more cases by name: http, with
# infinity, which is installed then (PyTorch, 3 GB), and doors.
#
#   tests/bench/served/compare.sh [--output DIR] [--cases triton,overhead,http,doors] [--rounds N] [--seconds S]
#                                 [--threads N] [--concurrency 1,8,32] [--load_concurrency 64] [--triton 4,1,sorted]
#                                 [--dtype bf16]
#
# ATTENDANT_BIN_DIR names another build's bin/ folder; then nothing is built.
set -euo pipefail
readonly SCRIPT=served
here=$(dirname "$(readlink -f "$0")")
root=$(cd "$here/../../.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../../../deploy/common.sh
. "$root/deploy/common.sh"

key_of() { { python3 --version; cat "$1"; } | sha256sum | cut -c1-12; }

# install_into FOLDER REQUIREMENTS TITLE: makes FOLDER/venv, once.
install_into() {
  [ ! -e "$1/.complete" ] || return 0
  say "installing $3 into $1" >&2
  mkdir -p "$1"
  interruptible setsid python3 -m venv "$1/venv" || die "python3 -m venv failed"
  interruptible setsid "$1/venv/bin/pip" install --quiet -r "$2" >&2 || die "pip failed"
  touch "$1/.complete"
}

# prepare ARGUMENT...: those of this script.
prepare() {
  install_into "$home" "$here/requirements.txt" "Triton and OpenVINO"
  case " $* " in
  *" --cases "*http* | *" --cases="*http*) install_into "$infinity" "$here/requirements_infinity.txt" infinity ;;
  esac
  interruptible "$root/deploy/fetch-model.sh" >"$home/minilm"
  minilm=$(cat "$home/minilm")
  # sentence-transformers cuts this model's texts at 256 tokens; both sides are to serve all 512.
  mkdir -p "$home/checkpoint"
  ln -sf "$minilm"/* "$home/checkpoint/"
  ln -sfn "$minilm/1_Pooling" "$home/checkpoint/1_Pooling"
  rm -f "$home/checkpoint/sentence_bert_config.json"
  echo '{"max_seq_length": 512, "do_lower_case": false}' >"$home/checkpoint/sentence_bert_config.json"
  interruptible "$root/tests/bench/peers/compare.sh" --export_only --models minilm >"$home/models"
  models=$(cat "$home/models")
  "$home/venv/bin/python" -B "$root/tests/bench/real_texts.py" "$minilm/tokenizer.json" "$home/texts.json" >&2
  # Fetched now, not while measured.
  interruptible "$root/tests/integration/kserve/perf_analyzer.sh" --version >/dev/null 2>&1 || true
  [ -z "${ATTENDANT_BIN_DIR:-}" ] || return 0
  interruptible "$root/deploy/install-deps.sh" build test >&2
  say "building the server" >&2
  build_release "$root" attendant-server attendant engine_bench
  ATTENDANT_BIN_DIR="$root/build/release/bin"
}

home="$ATTENDANT_CACHE/served/$(key_of "$here/requirements.txt")"
infinity="$ATTENDANT_CACHE/served/infinity-$(key_of "$here/requirements_infinity.txt")"
heed_signals
with_lock "$home" prepare "$@"
revision=$(git -C "$root" describe --always --dirty 2>/dev/null || echo "an unknown revision")
exec "$home/venv/bin/python" -B "$here/compare.py" --home "$home" --bin "$ATTENDANT_BIN_DIR" --minilm "$home/checkpoint" \
  --openvino "$models/minilm/openvino/model.xml" --perf_analyzer "$root/tests/integration/kserve/perf_analyzer.sh" --infinity "$infinity/venv" \
  --command "tests/bench/served/compare.sh $*" --revision "$revision" --output "$root/build/served" "$@"
